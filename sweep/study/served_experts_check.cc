#include "sweep/study/study_parts.h"

#include <algorithm>

namespace shardscape::sweep {

void check_served_experts(const Study& study, Phase phase, const yaml::Node& root, yaml::ReadState& state) {
  if (phase != Phase::inference) return;
  using Serving = StackProfile::Serving;
  struct Key {
    const char* path;
    bool (*set)(const Serving& serving);
    std::vector<PlanKey> acts_on;  ///< axes that deal experts
    const char* without;
  };
  const Key keys[] = {{"stack.serving.redundant_experts",
                       [](const Serving& s) { return s.redundant_experts > 0; },
                       {PlanKey::expert, PlanKey::prefill_expert, PlanKey::ffn},
                       "space.expert_parallel above 1"},
                      {"stack.serving.prefill_redundant_experts",
                       [](const Serving& s) { return s.prefill_redundant_experts > 0; },
                       {PlanKey::prefill_expert},
                       "space.prefill_gpus and space.prefill_expert_parallel above 1"},
                      {"stack.serving.two_batch_overlap",
                       [](const Serving& s) { return s.two_batch_overlap; },
                       {PlanKey::expert, PlanKey::prefill_expert},
                       "space.expert_parallel above 1"}};
  const bool pooled = has_pools(study.space);
  const auto deals = [&](PlanKey key) {
    if (key == PlanKey::prefill_expert && !pooled) return false;
    return std::ranges::any_of(study.space[key].values, [](std::int32_t ranks) { return ranks > 1; });
  };
  const yaml::Node* const hardware = root.find("hardware");
  for (const Key& key : keys) {
    const bool used = std::ranges::any_of(
        study.systems, [&](const System& system) { return key.set(system.stack.serving); });
    if (!used) continue;
    const yaml::Node* const axis =
        hardware != nullptr && hardware->is_map() ? hardware->find(key.path) : nullptr;
    const std::string path = axis != nullptr ? std::string("hardware.") + key.path : key.path;
    const yaml::Location where = axis != nullptr ? axis->where : root.find("stack")->where;
    if (!study.model.moe) {
      state.bad(path, where, "has no effect in a dense model: it has no experts; leave it out");
    } else if (axis != nullptr && std::ranges::none_of(key.acts_on, deals)) {
      state.bad(path, where, std::string("has no effect without ") + key.without);
    }
  }
}

}  // namespace shardscape::sweep
