#include "engine/spec/workload.h"

namespace shardscape {

namespace {
constexpr std::int64_t kMostRequests = 1'000'000;
}  // namespace

Problems WorkloadSpec::validate() const {
  Problems problems;
  const auto positive = [&](std::int64_t value, const char* field) {
    problems.require(value >= 1, field, "must be at least 1");
  };
  if (phase == Phase::training) {
    positive(sequence_length, "sequence_length");
    positive(global_batch, "global_batch");
  } else {
    positive(prompt_tokens, "prompt_tokens");
    positive(output_tokens, "output_tokens");
    positive(concurrency, "concurrency");
    // A server's course is followed request by request.
    problems.require(concurrency <= kMostRequests, "concurrency", "must be at most 1000000");
  }
  return problems;
}

}  // namespace shardscape
