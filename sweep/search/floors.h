// Floors of the families of all settings, shared among settings as far as these agree.
//
// Which settings share a floor is read off the values that floors of its kind read (read_by_floor()), and it is made
// from these alone: whichever axis of a study tells two settings apart, what they share can't be wrong.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "engine/base/fields.h"
#include "engine/plan_floor.h"
#include "sweep/runner/sweep_job.h"
#include "sweep/search/regions.h"

namespace shardscape::sweep {

/// The settings of a study in groups with equal floors of one kind.
class SettingGroups {
 public:
  SettingGroups(const Study& study, FloorKind kind);

  [[nodiscard]] std::size_t count() const { return systems_.size() * workloads_.size(); }
  /// The number of a setting's group.
  [[nodiscard]] std::size_t of(std::uint64_t setting) const {
    return system_group_[setting / workload_group_.size()] * workloads_.size() +
           workload_group_[setting % workload_group_.size()];
  }
  /// A setting that stands for a group: it has what the group's floors are made from.
  [[nodiscard]] Setting setting(std::size_t group) const {
    return {*model_, systems_[group / workloads_.size()], workloads_[group % workloads_.size()]};
  }

 private:
  const ModelSpec* model_;
  std::vector<System> systems_;  ///< distinct ones
  std::vector<WorkloadSpec> workloads_;
  /// Group by system, and by workload, of the study.
  std::vector<std::size_t> system_group_, workload_group_;
};

/// Asks whether to go on.
using GoOn = std::function<bool()>;

/// Floors without calls. Immutable; any number of threads may use one object.
class FamilyFloors {
 public:
  /// Computes the floors. Asks `go_on` every few floors, from one thread at a time; groups of settings that are not
  /// finished when it returns false have none. Both references must outlive the object.
  FamilyFloors(const SweepJob& job, const Regions& regions, int threads, const GoOn& go_on);

  /// Whether all floors have been computed.
  [[nodiscard]] bool complete() const { return complete_; }
  /// The least seconds of a step for every cell of families (Regions::cells()) in a
  /// setting, over all other choices of its plans; infinite where these are indivisible or unsupported. Empty where the
  /// setting has no floors.
  [[nodiscard]] const std::vector<double>& steps(std::uint64_t setting) const {
    return steps_[groups_.of(setting)];
  }

 private:
  const Regions& regions_;
  SettingGroups groups_;                    ///< groups of settings with equal floors of steps
  std::vector<std::vector<double>> steps_;  ///< by group
  bool complete_ = true;
};

/// Floors with the calls of layers, computed on demand. Use one object per thread.
class CalledFloors {
 public:
  /// Floors of a family's passes in its cheapest rank order, and in every one.
  struct OfOrders {
    PassFloors least;
    std::vector<PassFloors> by_calls;  ///< by number in Family::calls
  };

  /// `groups`: of floors of calls; both references must outlive the object. `networks`: shared with other threads, as
  /// in SimulateOptions.
  CalledFloors(const Regions& regions, const SettingGroups& groups,
               std::shared_ptr<network::SharedNetworks> networks, ExecutionMode mode);

  /// Floors of the family's plans with this choice, or more recomputation. Valid until the next call.
  const OfOrders& of(std::uint64_t setting, std::size_t family, const FreeChoice& choice);

 private:
  struct Group {
    Group(Setting s, std::shared_ptr<network::SharedNetworks> networks, ExecutionMode mode)
        : setting(std::move(s)), floor(setting, std::move(networks), mode) {}
    Setting setting;
    PlanFloor floor;
  };
  struct Key {
    std::size_t group, family;
    FreeChoice choice;
    friend bool operator==(const Key&, const Key&) = default;
  };
  PlanFloor& floor_of(std::size_t group);

  const Regions& regions_;
  const SettingGroups& groups_;
  std::shared_ptr<network::SharedNetworks> networks_;
  ExecutionMode mode_;
  std::vector<std::unique_ptr<Group>> open_;  ///< by group; null where not opened yet
  std::unordered_map<Key, OfOrders, FieldsHash> known_;
};

}  // namespace shardscape::sweep
