#include "sweep/search/floors.h"

#include <algorithm>
#include <limits>
#include <map>
#include <string_view>
#include <utility>

namespace shardscape::sweep {

namespace {

/// Whether steps without calls take as long whatever the value of the axis.
bool leaves_steps(const HardwareAxis& axis) {
  return std::string_view(axis.path).starts_with("fabric.") || axis.path == "device.hbm.capacity" ||
         axis.path == "placement";
}

/// Whether passes do.
bool leaves_passes(const HardwareAxis& axis) { return leaves_steps(axis) || axis.path == "stack.partition"; }

/// The first workload whose microbatches are the same.
std::size_t alike(const std::vector<WorkloadSpec>& workloads, std::size_t index) {
  const WorkloadSpec& workload = workloads[index];
  const auto same = [&](const WorkloadSpec& other) {
    return other.precision == workload.precision && other.sequence_length == workload.sequence_length &&
           other.expert_load == workload.expert_load;
  };
  return static_cast<std::size_t>(std::ranges::find_if(workloads, same) - workloads.begin());
}

/// Numbers what is new.
class Numbers {
 public:
  std::size_t of(std::vector<std::size_t> key) {
    return known_.try_emplace(std::move(key), known_.size()).first->second;
  }

 private:
  std::map<std::vector<std::size_t>, std::size_t> known_;
};

}  // namespace

SettingGroups setting_groups(const Study& study) {
  SettingGroups groups;
  Numbers passes, steps;
  for (std::size_t setting = 0; setting < study.setting_count(); ++setting) {
    const std::size_t system = setting / study.workloads.size(), workload = setting % study.workloads.size();
    std::vector<std::size_t> of_passes = {alike(study.workloads, workload)}, of_steps = {workload};
    std::size_t stride = study.systems.size();
    for (const HardwareAxis& axis : study.hardware) {
      stride /= axis.values.size();
      const std::size_t value = system / stride % axis.values.size();
      of_passes.push_back(leaves_passes(axis) ? 0 : value);
      of_steps.push_back(leaves_steps(axis) ? 0 : value);
    }
    groups.passes.push_back(passes.of(std::move(of_passes)));
    groups.steps.push_back(steps.of(std::move(of_steps)));
  }
  return groups;
}

FamilyFloors::FamilyFloors(const SweepJob& job, const Regions& regions)
    : job_(job), regions_(regions), groups_(setting_groups(job.study())) {
  passes_.resize(*std::ranges::max_element(groups_.passes) + 1);
  steps_.resize(*std::ranges::max_element(groups_.steps) + 1);
}

const std::vector<double>& FamilyFloors::steps(std::uint64_t setting) {
  std::vector<double>& steps = steps_[groups_.steps[setting]];
  if (!steps.empty()) return steps;
  const Setting of = job_.study().setting(setting);
  PlanFloor floor(of);
  for (const Family& family : regions_.families()) {
    for (std::size_t m = 0; m < regions_.microbatches().size(); ++m)
      steps.push_back(step(setting, family, m, floor));
  }
  return steps;
}

double FamilyFloors::step(std::uint64_t setting, const Family& family, std::size_t microbatch,
                          PlanFloor& floor) {
  const FreeChoice choice{regions_.least_recompute(), regions_.microbatches()[microbatch]};
  const PassFloors* known = nullptr;
  double least = std::numeric_limits<double>::infinity();
  for (const std::size_t variant : family.schedules) {
    const ParallelPlan plan = with_choice(family.variants[variant].plan, choice);
    if (known == nullptr) {
      if (!floor.possible(plan)) continue;
      known = &passes(setting, family, microbatch, plan, floor);
    }
    least = std::min(least, floor.least(plan, *known));
  }
  return least;
}

const PassFloors& FamilyFloors::passes(std::uint64_t setting, const Family& family, std::size_t microbatch,
                                       const ParallelPlan& plan, PlanFloor& floor) {
  auto& floors = passes_[groups_.passes[setting]];
  const std::size_t microbatches = regions_.microbatches().size();
  floors.resize(regions_.keys() * microbatches);
  std::optional<PassFloors>& known = floors[family.key * microbatches + microbatch];
  if (!known) known = floor.without_calls(plan);
  return *known;
}

}  // namespace shardscape::sweep
