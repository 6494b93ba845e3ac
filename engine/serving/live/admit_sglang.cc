// The rule of SGLang's scheduler (Zheng et al. 2024; PrefillAdder): while prompts are there that may be admitted, an
// iteration reads prompts alone, up to the budget (chunked_prefill_size), the last of them cut, and nobody decodes. A
// prompt is admitted where, beside its blocks, a share of what the running sequences have still to give stays free.
// Where blocks run out all the same, the youngest sequence is retracted.
//
// Of servers that only read, each rank with attention of its own has a scheduler, a queue and a budget of its own:
// requests are sent to rank bootstrap_room % dp_size (DataParallelController, managers/data_parallel_controller.py),
// and routers draw the room of each (random.randint(0, 2**63 - 1) in SGLang's own and in Dynamo's; both as of 2025,
// from memory). So some ranks have more to read than others, which wait for them in every iteration. Here places and
// blocks are those of all ranks together.
//
// The same with prompts read whole is how the first scheduler of vLLM had it (prefill_priority).
#include <algorithm>

#include "engine/serving/live/server_state.h"

namespace shardscape::serving {

namespace {

/// SGLang's new_token_ratio where nothing has been retracted for 600 iterations: 0.7 x 0.14. It starts at 0.7.
constexpr double kNewTokenRatio = 0.098;

/// Whether that share of what running sequences have still to give stays free beside `context` more tokens. As they
/// decode it only becomes less true: they take more than is promised to them.
bool keeps_promise(const ServerState& server, std::int64_t context) {
  const LiveRules& rules = server.rules();
  if (!rules.on_demand || server.running() == 0) return true;
  const double left = static_cast<double>(rules.kv_blocks * rules.kv_block - context) - server.tokens_held();
  return left >= kNewTokenRatio * static_cast<double>(server.tokens_to_give());
}

}  // namespace

void admit_sglang(ServerState& server, Batch& batch) {
  const bool whole = row_of(server.rules().policy).whole;
  for (std::size_t i = 0; i < server.reading().size();) {
    const std::int32_t slot = server.reading()[i];
    const std::int64_t left = batch.left(server.queue_of(server[slot].request));
    const std::int64_t tokens = std::min<std::int64_t>(left, server[slot].context - server[slot].read);
    if (left <= 0 || server.read(slot, tokens, batch)) ++i;
  }
  while (const auto queue = server.next_queue(batch)) {
    const std::int64_t context = server.head_left(*queue);
    if (whole && !batch.takes_whole(context)) break;
    if (!server.admits_head(context, *queue) || !keeps_promise(server, context)) break;
    const std::int64_t tokens = whole ? context : std::min(batch.left(*queue), context);
    server.read(server.admit(*queue), tokens, batch);
  }
  if (batch.reading > 0) return;
  server.make_room_to_decode();
  batch.decodes = server.decoding() > 0;
}

}  // namespace shardscape::serving
