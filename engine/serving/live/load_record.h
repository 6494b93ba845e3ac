// What a simulated load did over time, kept for a reader of a single point: every piece of work of every server, and
// what became of every request.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/serving/load/drawn_requests.h"

namespace shardscape::serving {

/// What became of a request; moments in seconds.
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
};

struct LoadRecord {
  std::int64_t readers = 0;       ///< of two pools: servers that read prompts, which have the first numbers
  std::vector<WorkRecord> works;  ///< in the order in which they end
  std::vector<RequestRecord> requests;  ///< those that count, in the order in which they are done
};

}  // namespace shardscape::serving
