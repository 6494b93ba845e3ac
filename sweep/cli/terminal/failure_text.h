// Messages for failures that no command handles.
#pragma once

#include <exception>
#include <string>

namespace shardscape::cli {

/// The message for the user. A failure to allocate memory (std::bad_alloc) differs from a length that no memory has
/// (std::length_error, from a number that passed all checks); anything else has its own message.
std::string failure_text(const std::exception& failure);

}  // namespace shardscape::cli
