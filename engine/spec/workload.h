// What is run: one training step or one inference load.
#pragma once

#include <cstdint>
#include <optional>

#include "engine/base/problems.h"
#include "engine/spec/expert_load.h"
#include "engine/spec/phase.h"
#include "engine/spec/precision_policy.h"
#include "engine/spec/request_load.h"

namespace shardscape {

struct WorkloadSpec {
  Phase phase = Phase::training;
  PolicyName precision = PolicyName::bf16;
  ExpertLoad expert_load = {};  ///< load of the experts, in models that have any
  // Fields of training.
  std::int64_t sequence_length = 0;  ///< tokens per sample
  std::int64_t global_batch = 0;     ///< samples per step over all data-parallel replicas
  // Fields of inference.
  // Of a simulated load the tokens are rounded means.
  std::int64_t prompt_tokens = 0;
  std::int64_t output_tokens = 0;
  std::int64_t concurrency = 0;  ///< requests in flight over all replicas; 0 in an open loop
  std::optional<LoadSpec>
      load;  ///< simulated request by request; nothing: the steady closed loop of alike requests

  [[nodiscard]] bool open_loop() const { return load && load->open(); }
  [[nodiscard]] std::int64_t longest_prompt() const { return load ? load->prompt.longest : prompt_tokens; }
  [[nodiscard]] std::int64_t shortest_prompt() const { return load ? load->prompt.shortest : prompt_tokens; }
  [[nodiscard]] std::int64_t longest_output() const { return load ? load->output.longest : output_tokens; }

  [[nodiscard]] PrecisionPolicy policy() const { return policy_of(precision, phase); }
  [[nodiscard]] Problems validate() const;
  friend bool operator==(const WorkloadSpec&, const WorkloadSpec&) = default;
};

}  // namespace shardscape
