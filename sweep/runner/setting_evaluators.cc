#include "sweep/runner/setting_evaluators.h"

#include <algorithm>

namespace shardscape::sweep {

namespace {

/// The most evaluators kept for workloads of one machine that differ in more than their load. In training only the
/// latest is kept, as each of them remembers much on large fabrics.
constexpr std::size_t kKept = 8;

bool differ_in_load_alone(WorkloadSpec a, const WorkloadSpec& b) {
  a.concurrency = b.concurrency;
  return a == b;
}

}  // namespace

Evaluator& SettingEvaluators::of(std::uint64_t setting) {
  if (index_ == setting) return *bound_[current_]->evaluator;
  const std::size_t workloads = study_.workloads.size();
  const WorkloadSpec& workload = study_.workloads[setting % workloads];
  const bool same_machine = index_ && *index_ / workloads == setting / workloads;
  const auto known = std::ranges::find_if(bound_, [&](const std::unique_ptr<Bound>& bound) {
    return differ_in_load_alone(bound->setting.workload, workload);
  });
  if (same_machine && known != bound_.end()) {
    (*known)->setting.workload.concurrency = workload.concurrency;
    current_ = static_cast<std::size_t>(known - bound_.begin());
  } else {
    make(setting);
    const bool keeps = same_machine && study_.phase() == Phase::inference;
    // The new evaluator exists before old ones go, so that it takes over what they share.
    const std::size_t most = keeps ? kKept : 1;
    if (bound_.size() > most) bound_.erase(bound_.begin(), bound_.end() - static_cast<std::ptrdiff_t>(most));
    current_ = bound_.size() - 1;
  }
  index_ = setting;
  return *bound_[current_]->evaluator;
}

void SettingEvaluators::make(std::uint64_t setting) {
  bound_.push_back(std::make_unique<Bound>(Bound{study_.setting(setting), nullptr}));
  bound_.back()->evaluator =
      factory_(bound_.back()->setting, placement_of(study_, setting / study_.workloads.size()));
}

}  // namespace shardscape::sweep
