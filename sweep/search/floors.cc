// Groups settings by what their floors read, and computes the floors of all families: those without calls for whole
// groups in parallel, those with calls on demand.
#include "sweep/search/floors.h"

#include <oneapi/tbb/parallel_for.h>

#include <algorithm>
#include <bit>
#include <initializer_list>
#include <limits>
#include <mutex>
#include <optional>
#include <span>

#include "engine/base/hash.h"
#include "engine/spec/spec_numbers.h"

namespace shardscape::sweep {

namespace {

std::uint64_t mark_of(std::initializer_list<double> numbers, std::uint64_t mark = 0) {
  for (const double number : numbers) mark = hash_word(mark, std::bit_cast<std::uint64_t>(number));
  return mark;
}

/// A hash of the fields that studies vary most, so that few different systems share it.
std::uint64_t mark_of(const System& system) {
  std::uint64_t mark = 0;
  for (const DeviceNumber& number : device_numbers()) mark = mark_of({number.get(system.device)}, mark);
  for (const StackNumber& number : stack_numbers()) mark = mark_of({number.get(system.stack)}, mark);
  for (const DimensionSpec& dimension : system.fabric.dimensions)
    mark = mark_of(
        {static_cast<double>(dimension.size()), dimension.bandwidth.value(), dimension.latency.value()},
        mark);
  return mark;
}

std::uint64_t mark_of(const WorkloadSpec& workload) {
  return mark_of({static_cast<double>(workload.sequence_length), static_cast<double>(workload.global_batch),
                  static_cast<double>(workload.precision)});
}

/// Gives equal values one number, in the order in which values come.
template <class T>
class Distinct {
 public:
  explicit Distinct(std::vector<T>& values) : values_(values) {}
  std::size_t number_of(T value) {
    const auto [first, last] = by_mark_.equal_range(mark_of(value));
    const auto known =
        std::find_if(first, last, [&](const auto& entry) { return values_[entry.second] == value; });
    if (known != last) return known->second;
    by_mark_.emplace(mark_of(value), values_.size());
    values_.push_back(std::move(value));
    return values_.size() - 1;
  }

 private:
  std::vector<T>& values_;
  std::unordered_multimap<std::uint64_t, std::size_t> by_mark_;
};

/// Number of floors computed between two calls of go_on: each takes some microseconds per schedule.
constexpr std::size_t kMadeUnasked = 16;

/// Floors of the passes without calls, shared by all settings in which these are equal.
class SharedPasses {
 public:
  SharedPasses(const Regions& regions, Setting setting, ExecutionMode mode)
      : regions_(regions),
        setting_(std::move(setting)),
        mode_(mode),
        floor_(setting_, {}, mode),
        passes_(regions.keys() * choices()) {}

  /// The floors of the steps of all families in one group of these settings; empty where go_on says stop.
  std::vector<double> steps(const Setting& setting, const GoOn& go_on) {
    PlanFloor floor(setting, {}, mode_);
    std::vector<double> steps;
    steps.reserve(regions_.cells());
    for (const Family& family : regions_.families()) {
      for (std::size_t choice = 0; choice < choices(); ++choice) {
        if (++made_ % kMadeUnasked == 0 && !go_on()) return {};
        steps.push_back(step(family, choice, floor));
      }
    }
    return steps;
  }

 private:
  [[nodiscard]] std::size_t choices() const { return regions_.least_choices().size(); }

  double step(const Family& family, std::size_t choice, PlanFloor& floor) {
    std::unique_ptr<PassFloors>& known = passes_[family.key * choices() + choice];
    double least = std::numeric_limits<double>::infinity();
    for (const std::size_t variant : family.schedules) {
      const ParallelPlan plan = with_choice(family.variants[variant].plan, regions_.least_choices()[choice]);
      if (!floor.possible(plan)) continue;
      if (!known) known = std::make_unique<PassFloors>(floor_.without_calls(plan));
      least = std::min(least, floor.least(plan, *known));
    }
    return least;
  }

  const Regions& regions_;
  const Setting setting_;
  ExecutionMode mode_;
  PlanFloor floor_;
  std::vector<std::unique_ptr<PassFloors>>
      passes_;  ///< by key and least choice; null for most, which have no possible plans
  std::size_t made_ = 0;
};

}  // namespace

SettingGroups::SettingGroups(const Study& study, FloorKind kind) : model_(&study.model) {
  Distinct systems(systems_);
  Distinct workloads(workloads_);
  for (const System& system : study.systems)
    system_group_.push_back(systems.number_of(read_by_floor(kind, system)));
  for (const WorkloadSpec& workload : study.workloads)
    workload_group_.push_back(workloads.number_of(read_by_floor(kind, workload)));
}

FamilyFloors::FamilyFloors(const SweepJob& job, const Regions& regions, int threads, const GoOn& go_on)
    : regions_(regions), groups_(job.study(), FloorKind::steps), steps_(groups_.count()) {
  const SettingGroups passes(job.study(), FloorKind::passes);
  // Groups of steps by their group of passes. A floor of a step reads all that a floor of its passes reads.
  std::vector<std::vector<std::size_t>> members(passes.count());
  std::vector<char> seen(groups_.count());
  for (std::uint64_t setting = 0; setting < job.space().settings(); ++setting) {
    const std::size_t group = groups_.of(setting);
    if (std::exchange(seen[group], 1) == 0) members[passes.of(setting)].push_back(group);
  }
  std::mutex mutex;  // guards complete_ and go_on
  const auto ask = [&] {
    const std::lock_guard lock(mutex);
    complete_ = complete_ && (!go_on || go_on());
    return complete_;
  };
  const auto fill = [&](std::size_t of_passes) {
    std::optional<SharedPasses> shared;
    for (const std::size_t group : members[of_passes]) {
      if (!ask()) return;
      if (!shared) shared.emplace(regions_, passes.setting(of_passes), job.study().mode);
      steps_[group] = shared->steps(groups_.setting(group), ask);
    }
  };
  if (threads > 1) {
    tbb::parallel_for(std::size_t{0}, members.size(), fill);
  } else {
    for (std::size_t i = 0; i < members.size(); ++i) fill(i);
  }
}

CalledFloors::CalledFloors(const Regions& regions, const SettingGroups& groups,
                           std::shared_ptr<network::SharedNetworks> networks, ExecutionMode mode)
    : regions_(regions),
      groups_(groups),
      networks_(std::move(networks)),
      mode_(mode),
      open_(groups.count()) {}

PlanFloor& CalledFloors::floor_of(std::size_t group) {
  std::unique_ptr<Group>& wanted = open_[group];
  if (!wanted) wanted = std::make_unique<Group>(groups_.setting(group), networks_, mode_);
  return wanted->floor;
}

const CalledFloors::OfOrders& CalledFloors::of(std::uint64_t setting, std::size_t family,
                                               const FreeChoice& choice) {
  constexpr std::size_t kMost = 1 << 15;  // they take some kilobytes each
  const std::size_t group = groups_.of(setting);
  if (known_.size() >= kMost) known_.clear();
  const auto [entry, fresh] = known_.try_emplace({group, family, choice});
  OfOrders& floors = entry->second;
  if (!fresh) return floors;
  const Family& of = regions_.families()[family];
  const ParallelPlan plan = with_choice(of.plan, choice);
  for (std::size_t order = 0; order < of.orders.size(); ++order) {
    if (of.calls[order] < floors.by_calls.size()) continue;
    floors.by_calls.push_back(floor_of(group).with_calls(plan, std::span(of.orders).subspan(order, 1)));
    if (order == 0) {
      floors.least = floors.by_calls.front();
    } else {
      keep_least(floors.least, floors.by_calls.back());
    }
  }
  return floors;
}

}  // namespace shardscape::sweep
