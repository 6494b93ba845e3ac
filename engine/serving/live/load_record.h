// What a simulated load did over time, kept for a reader of a single point: every piece of work of every server, and
// what became of every request.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <utility>
#include <vector>

#include "engine/serving/load/drawn_requests.h"
#include "engine/spec/load_mix.h"

namespace shardscape::serving {

/// What became of a request; moments in seconds. The path of its tokens is that of a load which may be gone.
struct RequestRecord {
  DrawnRequest request;
  double admitted = 0, first_token = 0, done = 0;
};

/// One iteration of a server, or a run of decode iterations in which nothing changed; moments in seconds.
struct WorkRecord {
  std::int64_t server = 0;
  double begin = 0, end = 0;
  std::int64_t iterations = 1;
  std::int64_t reading = 0, decoding = 0;  ///< requests whose prompts are read, and requests that decode
  std::int64_t waiting = 0;                ///< requests at the server that do not run
  double cache = 0;                ///< share of the blocks of the server's key-value cache in use, 0..1
  double prompt_tokens = 0;        ///< read, of all prompts and of what is read again
  std::int64_t contexts_read = 0;  ///< prompts that end here, or contexts read again: each gives a token
  std::int64_t paused = 0;         ///< requests that would decode, but for the prompts that are read
  WaitsFor waits = WaitsFor::nothing;
  /// Requests that come while nothing waited wait from that moment on for `later`.
  double later_from = std::numeric_limits<double>::infinity();
  WaitsFor later = WaitsFor::nothing;

  [[nodiscard]] WorkKind kind() const {
    return reading == 0 ? WorkKind::decode : decoding == 0 ? WorkKind::prompts : WorkKind::both;
  }
};

struct LoadRecord {
  std::int64_t readers = 0;       ///< of two pools: servers that read prompts, which have the first numbers
  std::int64_t servers = 0;       ///< of both pools together
  std::vector<WorkRecord> works;  ///< in the order in which they end
  std::vector<RequestRecord> requests;  ///< those that count, in the order in which they are done
};

/// What the record adds up to.
LoadMixes mixes_of(const LoadRecord& record);

/// Who follows a simulated load.
struct LoadObserver {
  /// `to`: gets what every server does, and every request that counts; may be null. `ask`: asked every some thousand
  /// events whether to go on; where it answers false the load has no times (LoadCourse::without_end). May be empty.
  LoadObserver(LoadRecord* to = nullptr, std::function<bool()> ask = {})
      : record(to), go_on(std::move(ask)) {}
  LoadRecord* record;
  std::function<bool()> go_on;
};

}  // namespace shardscape::serving
