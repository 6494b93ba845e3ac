#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <mutex>

#include "engine/base/check.h"
#include "engine/base/enum_names.h"
#include "engine/spec/parallel_groups.h"
#include "sweep/launch/data_files.h"
#include "sweep/launch/framework.h"

namespace shardscape::launch {

std::int64_t Case::coupled() const { return experts() ? coupled_replicas(plan) : 1; }

std::int64_t Case::replicas() const {
  const bool together = workload().phase == Phase::training || (dense_together && !experts());
  return together ? plan.data : coupled();
}

std::int64_t Case::gpus() const {
  return static_cast<std::int64_t>(plan.tensor) * plan.context * plan.pipeline * replicas();
}

namespace {
/// The data files, in the order of --for.
constexpr std::pair<std::string_view, std::string_view (*)()> kFiles[] = {{"megatron-lm", data::megatron_lm},
                                                                          {"nemo", data::nemo},
                                                                          {"torchtitan", data::torchtitan},
                                                                          {"vllm", data::vllm},
                                                                          {"sglang", data::sglang},
                                                                          {"trtllm", data::trtllm},
                                                                          {"dynamo", data::dynamo}};
}  // namespace

const Framework* find_framework(std::string_view name) {
  // Each is read when it is asked for: a launch needs one or two.
  static std::array<std::once_flag, std::size(kFiles)> read;
  static std::array<Framework, std::size(kFiles)> frameworks;
  const auto* const file = std::ranges::find(kFiles, name, [](const auto& row) { return row.first; });
  if (file == std::end(kFiles)) return nullptr;
  const auto at = static_cast<std::size_t>(file - std::begin(kFiles));
  std::call_once(read[at], [&] {
    auto framework =
        read_framework(std::string(file->second()),
                       fmt::format("sweep/launch/frameworks/{}-options.yaml", name), find_framework);
    SHARDSCAPE_CHECK(framework.has_value(), framework.error().to_string());
    frameworks[at] = *std::move(framework);
  });
  return &frameworks[at];
}

std::vector<std::string> framework_names() {
  std::vector<std::string> names;
  for (const auto& [name, text] : kFiles) names.emplace_back(name);
  return names;
}

const Framework& nearest_framework(const StackProfile& stack, Phase phase, std::string_view other) {
  for (const std::string& name : framework_names())
    if (name != other && stack.name.starts_with(name) && find_framework(name)->phase == phase)
      return *find_framework(name);
  if (phase == Phase::training) return *find_framework("megatron-lm");
  const ServingPolicy policy = stack.serving.scheduler;
  const Framework* const own = find_framework(name_of(policy));
  return own != nullptr ? *own
                        : *find_framework(policy == ServingPolicy::prefill_priority ? "sglang" : "vllm");
}

}  // namespace shardscape::launch
