// The rate at which the requests of a run come, beside the one that was asked for.
#pragma once

#include <optional>

#include "engine/spec/request_load.h"

namespace shardscape::sweep {

/// Requests per second over all replicas at which those of a run that count are sent (serving::drawn_rate()); nothing
/// where it is no matter of chance: in closed loops, at a constant rate, by a trace; or not known beforehand: sessions.
std::optional<double> sent_rate(const LoadSpec& load);

}  // namespace shardscape::sweep
