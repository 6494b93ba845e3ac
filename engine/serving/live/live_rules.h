// The rules of a server that is simulated request by request, and what an iteration of it does.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/serving/server.h"
#include "engine/spec/stack.h"

namespace shardscape::serving {

struct LiveRules {
  ServingPolicy policy = ServingPolicy::vllm;
  bool on_demand = true;  ///< blocks of the cache are taken as sequences grow, not at once
  /// The most tokens of an iteration; at least max_batch where prompts are read beside.
  std::int64_t token_budget = 1;
  std::int64_t max_batch = 1;      ///< the most requests running at once
  std::int64_t kv_block = 1;       ///< tokens of one block
  std::int64_t kv_blocks = 1;      ///< blocks of one server; enough for the longest request
  std::int64_t watermark = 0;      ///< blocks that admission leaves free where anything runs
  std::int64_t poll_interval = 1;  ///< decode iterations between looks at new requests
  std::int64_t schedule_ahead =
      0;  ///< iterations that are fixed when a request comes, beside the one under way
  QueueOrder queue = QueueOrder::fcfs;
  Routing routing = Routing::round_robin;
  std::int64_t servers = 1;
  double frontend = 0;             ///< seconds from sending a request until a scheduler may see it
  double eager_floor = 0;          ///< the least seconds of an iteration that reads a prompt
  std::int64_t graph_tokens = 0;   ///< and has more tokens than these
  std::int64_t cached_prompt = 0;  ///< tokens of a prompt that need not be read
  double window = 0;               ///< window of the model's local layers in tokens; 0: none
};

/// What admission rules fill: the prompts that an iteration reads, and whether running sequences decode beside them.
struct Batch {
  Iteration work;                   ///< without decoding sequences
  std::vector<std::int32_t> ended;  ///< sequences whose context is read to its end
  std::int64_t reading = 0;         ///< sequences of which something is read
  bool decodes = false;
};

class ServerState;

// One admission rule each, in a file of its own.
void admit_vllm(ServerState& server, Batch& batch);
void admit_sglang(ServerState& server, Batch& batch);
void admit_trtllm(ServerState& server, Batch& batch);

}  // namespace shardscape::serving
