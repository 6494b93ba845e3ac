#include "engine/spec/workload.h"

#include "engine/spec/ranges.h"

namespace shardscape {

Problems WorkloadSpec::validate() const {
  Problems problems;
  if (phase == Phase::training) {
    require_range(problems, sequence_length, "sequence_length", ranges::kTokens);
    require_range(problems, global_batch, "global_batch", ranges::kSamples);
  } else {
    if (load) {
      load->check(problems);  // its lengths stand for the tokens here
    } else {
      require_range(problems, prompt_tokens, "prompt_tokens", ranges::kTokens);
      require_range(problems, output_tokens, "output_tokens", ranges::kTokens);
    }
    if (!open_loop()) require_range(problems, concurrency, "concurrency", ranges::kRequests);
  }
  expert_load.check(problems);
  return problems;
}

}  // namespace shardscape
