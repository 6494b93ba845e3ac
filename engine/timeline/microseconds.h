#pragma once

namespace shardscape::timeline {

/// Times in Chrome traces are in microseconds ("Trace Event Format", Google): factor from seconds.
inline constexpr double kMicroseconds = 1e6;

}  // namespace shardscape::timeline
