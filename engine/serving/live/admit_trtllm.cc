// The rule of TensorRT-LLM's batch manager (in-flight batching without chunked context): every running sequence decodes
// a token, and waiting prompts are read whole beside them as long as they fit into what is left of the budget
// (max_num_tokens), one at least. Under GUARANTEED_NO_EVICT a request is admitted when the blocks of its last token are
// free; under MAX_UTILIZATION when those of its prompt are, and the youngest sequence is paused where they run out.
#include "engine/serving/live/server_state.h"

namespace shardscape::serving {

void admit_trtllm(ServerState& server, Batch& batch) {
  const bool kept = server.make_room_to_decode();
  std::int64_t left = server.rules().token_budget - server.decoding();
  while (kept && server.has_waiting()) {
    const std::int64_t context = server.head_tokens();
    if ((context > left && batch.reading > 0) || !server.admits_head(context)) break;
    server.read(server.admit(), context, batch);
    left -= context;
  }
  batch.decodes = server.decoding() > 0;
}

}  // namespace shardscape::serving
