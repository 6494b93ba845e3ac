// The first study of a user: the text of a short one, with a comment on every key, for a model on a number of GPUs.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "engine/spec/model.h"
#include "engine/spec/phase.h"
#include "engine/spec/precision_policy.h"
#include "sweep/yaml/preset_specs.h"

namespace shardscape::sweep {

/// A key of a first study that its user may give in place of what the study would have.
struct StarterKey {
  std::string_view name;  ///< as in the study
  Phases phases;
  const char* meaning;
};
inline constexpr std::array<StarterKey, 8> kStarterKeys = {{
    {"sequence_length", Phases::training, "tokens of a sample"},
    {"global_batch", Phases::training, "samples of a step, on all GPUs together"},
    {"prompt_tokens", Phases::inference, "tokens of each request"},
    {"output_tokens", Phases::inference, "tokens of each answer"},
    {"request_rate", Phases::inference, "requests come at a rate, such as 2 /s"},
    {"concurrency", Phases::inference, "requests in flight, on all GPUs together"},
    {"promises", Phases::inference, "with a rate: ttft_p95: 2 s, tpot_p95: 40 ms"},
    {"precision", Phases::both, "what products are of, and weights are served in: bf16, fp8, nvfp4, ..."},
}};

/// What users call a phase.
constexpr std::string_view user_word(Phase phase) {
  return phase == Phase::training ? "training" : "serving";
}

/// What the study is of. References are what the study shall name: names of presets, or paths from its folder.
struct Starter {
  const ModelSpec& model;
  const yaml::Cluster& cluster;
  std::int64_t gpus = 0;  ///< a number that the cluster comes in
  Phase phase = Phase::training;
  std::string model_reference, cluster_reference, stack_reference;
  std::optional<PolicyName> checkpoint =
      {};  ///< the precision of the weights, where the model's config says it
  std::map<std::string, std::string, std::less<>> given = {};  ///< values of kStarterKeys, as YAML
};

/// The text. Every axis has the values that are worth trying: tensor groups inside a node, numbers of stages that
/// divide the layers, ranks that divide the experts, sequences cut as far as 2,048 tokens a rank; replicas fill what is
/// left. Each such study has some hundreds or thousands of points.
std::string starter_text(const Starter& starter);

}  // namespace shardscape::sweep
