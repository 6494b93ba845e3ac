// The rule of vLLM's scheduler (V1; Kwon et al. 2023, Agrawal et al. 2024): every running sequence decodes a token,
// then prompts are read in the order of admission, cut where the budget ends, then waiting ones while there are places,
// blocks for what is read of them, and nothing was preempted in this iteration. Where blocks run out, the youngest
// running sequence gives back all of its own, and reads prompt and output again later (preemption by recomputation).
#include <algorithm>

#include "engine/serving/live/server_state.h"

namespace shardscape::serving {

void admit_vllm(ServerState& server, Batch& batch) {
  bool kept = server.make_room_to_decode();
  std::int64_t left = server.rules().token_budget - server.decoding();
  for (std::size_t i = 0; left > 0 && i < server.reading().size();) {
    const std::int32_t slot = server.reading()[i];
    const std::int64_t tokens = std::min<std::int64_t>(left, server[slot].context - server[slot].read);
    const std::int64_t before = server.preemptions();
    if (server.read(slot, tokens, batch)) {
      left -= tokens;
      ++i;
    }
    kept = kept && server.preemptions() == before;
  }
  while (kept && left > 0 && server.has_waiting()) {
    const std::int64_t tokens = std::min<std::int64_t>(left, server.head_tokens());
    if (!server.admits_head(tokens)) break;
    server.read(server.admit(), tokens, batch);
    left -= tokens;
  }
  batch.decodes = server.decoding() > 0;
}

}  // namespace shardscape::serving
