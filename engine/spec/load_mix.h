// What the servers of a simulated load do, and what keeps their requests waiting: for a reader of a single point.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/base/enum_array.h"
#include "engine/base/enum_names.h"

namespace shardscape {

/// Iterations by what they do.
enum class WorkKind : std::uint8_t { prompts, both, decode };
SHARDSCAPE_ENUM_NAMES(WorkKind, "prompts", "prompts and decode", "decode");

/// What the first of the requests that wait at a server waits for: that the server looks at it; a place in the batch;
/// tokens of the budget; blocks of the cache (or the room that a scheduler keeps free).
enum class WaitsFor : std::uint8_t { nothing, look, place, budget, blocks };

/// Of replicas that serve a load, or of one pool of two; from the first request to the last, warm-up included.
struct LoadMix {
  /// Sums over the iterations of a kind, on all servers.
  struct Kind {
    double iterations = 0, seconds = 0;
    double prompt_tokens = 0;  ///< read
    double decoding = 0;       ///< sequences that decode
    double decoding_seconds = 0,
           paused_seconds = 0;  ///< of sequences that decode, and that would but for prompts
  };
  std::int64_t servers = 1;
  double span = 0;  ///< seconds
  EnumArray<WorkKind, Kind> kinds{};
  EnumArray<WaitsFor, double> waits{};  ///< seconds of servers at work, by what requests wait for
};

/// One for replicas; the pool that reads, and the one that decodes.
using LoadMixes = std::vector<LoadMix>;

}  // namespace shardscape
