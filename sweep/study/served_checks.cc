// Checks what a study says of the pool that prefills (nothing where there is none, and pools that can take each other's
// caches) and of experts in servers.
#include <fmt/format.h>

#include <algorithm>

#include "sweep/study/study_parts.h"
#include "sweep/study/system_changes.h"

namespace shardscape::sweep {

bool has_pools(const SpaceSpec& space) {
  return std::ranges::any_of(space.prefill_gpus, [](std::int32_t n) { return n > 0; });
}

void check_pools(const Study& study, Phase phase, const yaml::Node& root, yaml::ReadState& state) {
  const bool serves = phase == Phase::inference, pools = serves && has_pools(study.space);
  const char* const idle = serves ? "has no effect without space.prefill_gpus" : "has no effect in training";
  if (const yaml::Node* own = root.find(kPrefillDevice); own != nullptr && !pools)
    state.bad(std::string(kPrefillDevice), own->where, idle);
  const yaml::Node* const hardware = root.find("hardware");
  for (const std::string_view path : {kPrefillDevice, std::string_view("stack.serving.kv_transfer"),
                                      std::string_view("stack.serving.prefill_precision")}) {
    const bool listed = hardware != nullptr && hardware->is_map();
    const yaml::Node* const axis = listed ? hardware->find(path) : nullptr;
    const bool told = path != kPrefillDevice && !serves;  // paths of servers are refused in training anyway
    if (axis != nullptr && !pools && !told) state.bad("hardware." + std::string(path), axis->where, idle);
  }
  if (!pools || study.systems.empty() || study.workloads.empty()) return;
  for (std::size_t i = 0; i < study.setting_count(); ++i) {
    const Setting setting = study.setting(i);
    if (!pools_differ(setting) || caches_agree(setting)) continue;
    const Setting prefill = prefill_setting(setting);
    return state.bad(
        "stack.serving.prefill_precision", root.find("stack")->where,
        fmt::format(
            "{} on {} keeps its key-value cache in {}, {} on {} in {}: caches move from one pool to the "
            "other, so that both need one type (see stack.serving.fp8_cache)",
            name_of(prefill.workload.precision), prefill.system.device.name,
            name_of(prefill.policy().kv_cache), name_of(setting.workload.precision),
            setting.system.device.name, name_of(setting.policy().kv_cache)));
  }
}

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
