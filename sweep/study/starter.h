// The first study of a user: the text of a short one, with a comment on every key, for a model on a number of GPUs.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "engine/spec/model.h"
#include "engine/spec/phase.h"
#include "sweep/yaml/preset_specs.h"

namespace shardscape::sweep {

/// A key of a first study that its user may give in place of what the study would have.
struct StarterKey {
  std::string_view name;  ///< as in the study
  Phase phase;
  const char* meaning;
};
inline constexpr std::array<StarterKey, 7> kStarterKeys = {{
    {"sequence_length", Phase::training, "tokens of a sample"},
    {"global_batch", Phase::training, "samples of a step, on all GPUs together"},
    {"prompt_tokens", Phase::inference, "tokens of each request"},
    {"output_tokens", Phase::inference, "tokens of each answer"},
    {"request_rate", Phase::inference, "requests come at a rate, such as 2 /s"},
    {"concurrency", Phase::inference, "requests in flight, on all GPUs together"},
    {"promises", Phase::inference, "with a rate: ttft_p95: 2 s, tpot_p95: 40 ms"},
}};

/// What the study is of. References are what the study shall name: names of presets, or paths from its folder.
struct Starter {
  const ModelSpec& model;
  const yaml::Cluster& cluster;
  std::int64_t gpus = 0;  ///< a number that the cluster comes in
  Phase phase = Phase::training;
  std::string model_reference, cluster_reference, stack_reference;
  std::map<std::string, std::string, std::less<>> given = {};  ///< values of kStarterKeys, as YAML
};

/// The text. Every axis has the values that are worth trying: tensor groups inside a node, numbers of stages that
/// divide the layers, ranks that divide the experts, sequences cut as far as 2,048 tokens a rank; replicas fill what is
/// left. Each such study has some hundreds or thousands of points.
std::string starter_text(const Starter& starter);

}  // namespace shardscape::sweep
