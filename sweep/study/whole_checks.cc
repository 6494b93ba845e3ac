// Checks of a study as a whole, once its parts are read: lengths and loads against the model, and settings that have no
// value or no effect.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "sweep/study/load_parser.h"
#include "sweep/study/study_parts.h"

namespace shardscape::sweep {

namespace {

/// Tokens of the longest sequence.
std::int64_t longest_of(const WorkloadSpec& workload) {
  return workload.phase == Phase::training ? workload.sequence_length
                                           : workload.longest_prompt() + workload.longest_output();
}

}  // namespace

std::vector<Problem> without_value(const Study& study) {
  Problems problems;
  const bool one = std::ranges::any_of(study.workloads, [](const WorkloadSpec& workload) {
    return workload.phase == Phase::inference && !results::has_second_token(workload);
  });
  for (const results::Limit& limit : study.limits) {
    if (!one || !results::is_between_tokens(limit.column)) continue;
    problems.add(
        limit.promise ? "promises" : "constraints",
        fmt::format("{} cannot be judged: requests of one output token (workload.output_tokens) have "
                    "no time between tokens; leave it out, or give more tokens",
                    limit.column.substr(0, limit.column.size() - std::string_view("_s").size())));
  }
  const bool pools = std::ranges::min(study.space.prefill_gpus) > 0;
  const auto lacks = [&](std::string_view column, std::string_view key, std::string_view value, auto of) {
    const auto own = [&](const System& system) { return of(system.device) > 0; };
    const auto both = [&](const System& system) {
      return own(system) && (!pools || of(system.prefilling()) > 0);
    };
    if (std::ranges::find(study.objectives, column) == study.objectives.end() ||
        std::ranges::any_of(study.systems, both))
      return;
    problems.add("objectives",
                 std::ranges::any_of(study.systems, own)
                     ? fmt::format("{} has no value: the prefill_device says no {}, such as prefill_device: "
                                   "{{base: {}, {}: {}}}",
                                   column, key, study.systems.front().prefilling().name, key, value)
                     : fmt::format("{} has no value: the device says no {}, such as --set 'device.{}={}'",
                                   column, key, key, value));
  };
  lacks("cost_per_million_tokens", "price_per_hour", "2.5",
        [](const DeviceSpec& device) { return device.price_per_hour; });
  lacks("energy_per_token_j", "power", "700 W",
        [](const DeviceSpec& device) { return device.power.value(); });
  const std::optional<LoadSpec>& load = study.workloads.front().load;
  if (std::string idle = load ? idle_priorities(*load, study.systems) : ""; !idle.empty())
    problems.add("stack.serving.queue", std::move(idle));
  return {problems.list().begin(), problems.list().end()};
}

std::string long_sequences(const ModelSpec& model, std::span<const WorkloadSpec> workloads) {
  std::int64_t longest = 0;
  for (const WorkloadSpec& workload : workloads) longest = std::max(longest, longest_of(workload));
  if (model.context == 0 || longest <= model.context) return "";
  return fmt::format(
      "sequences have up to {} tokens, and model {} is published for {} (context): its quality beyond is not "
      "known, its time is predicted all the same",
      longest, model.name, model.context);
}

void check_expert_loads(const Study& study, const yaml::Node& root, yaml::ReadState& state) {
  const yaml::Node* const node = root.find("workload")->find("expert_load");
  const MixtureOfExperts* const experts = study.model.moe ? &*study.model.moe : nullptr;
  for (const WorkloadSpec& workload : study.workloads) {
    Problems problems;
    workload.expert_load.check_against(problems, experts);
    for (const Problem& problem : problems.list())
      state.bad("workload." + problem.field, node->where, problem.message);
    if (!problems.empty()) return;
  }
}

void check_lengths(const Study& study, const yaml::Node& root, yaml::ReadState& state) {
  for (const WorkloadSpec& workload : study.workloads) {
    const yaml::Node& node = *root.find("workload");
    const char* const key = workload.phase == Phase::training ? "sequence_length" : "output_tokens";
    std::string refusal = study.model.too_long(longest_of(workload));
    const yaml::Node* at = node.find(key);
    if (workload.load && workload.load->trace)
      at = node.find("trace"), refusal = too_long_request(*workload.load->trace, study.model);
    if (!refusal.empty())
      state.bad(std::string("workload.") + key, (at != nullptr ? *at : node).where, refusal);
  }
}

}  // namespace shardscape::sweep
