#include "sweep/search/floors.h"

#include <algorithm>
#include <string_view>

namespace shardscape::sweep {

namespace {

/// Whether passes without calls are the same whatever the value of the axis.
bool leaves_passes(const HardwareAxis& axis) {
  return std::string_view(axis.path).starts_with("fabric.") || axis.path == "device.hbm.capacity" ||
         axis.path == "placement";
}

/// The first workload whose microbatches are the same.
std::size_t like(const std::vector<WorkloadSpec>& workloads, std::size_t index) {
  const WorkloadSpec& workload = workloads[index];
  const auto same = [&](const WorkloadSpec& other) {
    return other.precision == workload.precision && other.sequence_length == workload.sequence_length &&
           other.expert_load == workload.expert_load;
  };
  return static_cast<std::size_t>(std::ranges::find_if(workloads, same) - workloads.begin());
}

}  // namespace

std::vector<std::size_t> pass_groups(const Study& study) {
  std::map<std::vector<std::size_t>, std::size_t> numbers;
  std::vector<std::size_t> groups;
  for (std::size_t setting = 0; setting < study.setting_count(); ++setting) {
    const std::size_t system = setting / study.workloads.size();
    std::vector<std::size_t> key = {like(study.workloads, setting % study.workloads.size())};
    std::size_t stride = study.systems.size();
    for (const HardwareAxis& axis : study.hardware) {
      stride /= axis.values.size();
      key.push_back(leaves_passes(axis) ? 0 : system / stride % axis.values.size());
    }
    groups.push_back(numbers.try_emplace(std::move(key), numbers.size()).first->second);
  }
  return groups;
}

SharedFloors::SharedFloors(const SweepJob& job, const Regions& regions)
    : regions_(regions), group_(pass_groups(job.study())) {
  floors_.resize(*std::ranges::max_element(group_) + 1);
}

const PassFloors& SharedFloors::of(std::uint64_t setting, const Family& family, std::size_t microbatch,
                                   const ParallelPlan& plan, PlanFloor& floor) {
  auto& floors = floors_[group_[setting]];
  const std::size_t microbatches = regions_.microbatches().size();
  floors.resize(regions_.keys() * microbatches);
  std::optional<PassFloors>& known = floors[family.key * microbatches + microbatch];
  if (!known) known = floor.without_calls(plan);
  return *known;
}

}  // namespace shardscape::sweep
