#include <algorithm>

#include "engine/base/enum_names.h"
#include "engine/spec/parallel_groups.h"
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

Said value(std::string text) { return {Said::Kind::option, std::move(text)}; }
Said value(std::int64_t number) { return value(std::to_string(number)); }

const std::vector<Framework>& frameworks() {
  static const std::vector<Framework> all = {megatron_lm(), nemo(),   torchtitan(), vllm(),
                                             sglang(),      trtllm(), dynamo()};
  return all;
}

const Framework* find_framework(std::string_view name) {
  const auto found = std::ranges::find(frameworks(), name, &Framework::name);
  return found == frameworks().end() ? nullptr : &*found;
}

std::vector<std::string> framework_names() {
  std::vector<std::string> names;
  for (const Framework& framework : frameworks()) names.emplace_back(framework.name);
  return names;
}

const Framework& nearest_framework(const StackProfile& stack, Phase phase, std::string_view other) {
  for (const Framework& framework : frameworks())
    if (framework.phase == phase && framework.name != other && stack.name.starts_with(framework.name))
      return framework;
  if (phase == Phase::training) return *find_framework("megatron-lm");
  const ServingPolicy policy = stack.serving.scheduler;
  const Framework* const own = find_framework(name_of(policy));
  return own != nullptr ? *own
                        : *find_framework(policy == ServingPolicy::prefill_priority ? "sglang" : "vllm");
}

}  // namespace shardscape::launch
