// The numbers of a stack profile, one row for each, in the order in which its file lists them.
#pragma once

#include <span>

#include "engine/spec/number_row.h"
#include "engine/spec/stack.h"

namespace shardscape {

using StackNumber = NumberRow<StackProfile>;

/// All numbers of a profile; those of a group ("host.", "communication.", ...) stand together.
std::span<const StackNumber> stack_numbers();

}  // namespace shardscape
