// What is run: one training step or one inference load.
#pragma once

#include <cstdint>

#include "engine/base/problems.h"
#include "engine/spec/expert_load.h"
#include "engine/spec/phase.h"
#include "engine/spec/precision_policy.h"

namespace shardscape {

struct WorkloadSpec {
  Phase phase = Phase::training;
  PolicyName precision = PolicyName::bf16;
  ExpertLoad expert_load = {};  ///< load of the experts, in models that have any
  // Fields of training.
  std::int64_t sequence_length = 0;  ///< tokens per sample
  std::int64_t global_batch = 0;     ///< samples per step over all data-parallel replicas
  // Fields of inference.
  std::int64_t prompt_tokens = 0;
  std::int64_t output_tokens = 0;
  std::int64_t concurrency = 0;  ///< requests in flight over all replicas

  [[nodiscard]] PrecisionPolicy policy() const { return policy_of(precision, phase); }
  [[nodiscard]] Problems validate() const;
  friend bool operator==(const WorkloadSpec&, const WorkloadSpec&) = default;
};

}  // namespace shardscape
