// What plans share of the times of their layers. On a healthy machine a pass of one microbatch through a layer
// depends on the degrees of the plan, the order of its ranks, the microbatch and what is recomputed, but not on the
// ZeRO stage, not on how the layers lie on stages and chunks, and of the schedule only on what it puts off. So do the
// passes through a stage of the same layers, and the messages between stages.
#pragma once

#include <array>
#include <boost/container/small_vector.hpp>
#include <cstdint>
#include <optional>
#include <vector>

#include "engine/base/enum_array.h"
#include "engine/base/memo.h"
#include "engine/model/stage_layers.h"
#include "engine/network/groups/rank_group.h"
#include "engine/network/prices/among_siblings.h"
#include "engine/network/prices/flow_set.h"
#include "engine/schedule/pipeline.h"
#include "engine/spec/plan.h"
#include "engine/spec/time_class.h"
#include "engine/step/layers/price_layers.h"
#include "engine/step/layers/training_step.h"

namespace shardscape::step {

/// Time by class of one pass of a microbatch through a layer or a stage.
struct PassTime : Breakdown {
  PassTime() = default;
  PassTime(const Breakdown& times) : Breakdown(times) {}

  /// The sum over the classes that a pass can have; the others are zero.
  [[nodiscard]] Seconds total() const {
    Seconds sum;
    for (const TimeClass c : kPassClasses) sum += (*this)[c];
    return sum;
  }
};

/// A pass through one layer.
struct LayerPass {
  PassTime time;
  Seconds launch;  ///< pass_launch()
  /// The part of `time` in which the host is not waited for.
  [[nodiscard]] Seconds runs() const { return time.total() - time[TimeClass::host]; }
};
/// The passes through one layer, index: Pass; those of weights and of inputs are filled where some backward is cut.
using LayerPasses = std::array<LayerPass, kPasses>;

/// Backward of layers for one microbatch (the head's on average), each by itself; within a pass some layers wait less
/// for the host. All blocks count together, and so do all modules of further tokens; 0 where the stage has no such
/// layer.
struct BackwardByRole {
  std::array<Seconds, 4> roles;  ///< index: LayerKind::Role

  [[nodiscard]] Seconds& operator[](LayerKind kind) { return roles[static_cast<std::size_t>(kind.role)]; }
  [[nodiscard]] Seconds operator[](LayerKind kind) const {
    return roles[static_cast<std::size_t>(kind.role)];
  }
};

/// The passes of one microbatch through one chunk of a stage, or through all of them.
struct ChunkPasses {
  PassTime forward, backward;
  /// Before the work of each of both, and in them (host_work.h): nothing of a pass lies beside it.
  Seconds lead;
  Seconds weight;  ///< the part of `backward` that a schedule may put off
  /// The backward without weight gradients, where only some are put off (dualpipe). With them it takes longer than
  /// `backward`: cut, it has fewer operators beside its calls.
  Seconds cut;
  /// Seconds by which its forward and a backward of either of its schedule::partners() are shorter as a pair: the
  /// exchanges of experts of each run beside the compute of the other.
  std::array<Seconds, 2> hidden;
  Seconds weight_exposed;  ///< by which data-parallel traffic beside it makes `weight` longer
  /// The work of a pass that data-parallel traffic lies beside, without what that exposes. `cuts`: gradients of
  /// weights are a pass of their own, which calls nobody.
  [[nodiscard]] Seconds work(Pass pass, bool cuts) const {
    const Seconds put_off = weight - weight_exposed;
    if (pass == Pass::weight) return put_off;
    const PassTime& time = pass == Pass::forward ? forward : backward;
    const Seconds all = time.total() - time[TimeClass::data_comm];
    return (cuts && pass == Pass::backward ? all - put_off : all) - lead;
  }
};
struct StagePasses : ChunkPasses {
  Seconds slowed;  ///< by which faults make the forward longer, in a pipeline
  BackwardByRole backwards;
};

/// What the passes of a stage or chunk depend on besides the times of its layers.
struct StageKind {
  StageContents contents;
  bool overlaps = false;      ///< whether forwards and backwards run in pairs
  std::int32_t deferred = 0;  ///< TrainingStep::deferred()
  friend bool operator==(const StageKind&, const StageKind&) = default;
};
/// A forward through one chunk and a backward through another.
struct PairKind {
  StageKind forward, backward;
  friend bool operator==(const PairKind&, const PairKind&) = default;
};

/// Times of the operations of one kind of groups.
struct AmongSiblings {
  Seconds time;    ///< with all groups sending at once
  Seconds others;  ///< the part of it that is due to the groups of other stages
  Seconds in_use;  ///< of it, for which its busiest links are in use
  AmongSiblings& operator+=(const AmongSiblings& more) {
    time += more.time;
    others += more.others;
    in_use += more.in_use;
    return *this;
  }
  /// What is spared where those of other stages send for a share of the time only. `in_phase`: the share of that for
  /// which they use these links at the same time, 0..1.
  [[nodiscard]] Seconds spared(ParallelGroup group, double share, double in_phase = 0) const {
    const double met = group == ParallelGroup::context ? network::kMetByExchanges : 1;
    const auto now = [&](Seconds used) {
      return network::among_siblings(time - others, time, used, share, met);
    };
    return time - (1 - in_phase) * now(in_use) - in_phase * now(time);
  }
};
using SiblingTimes = EnumArray<ParallelGroup, AmongSiblings>;

/// The calls of a stage with these layers, as contention_of() reads them.
struct ContendedCalls {
  /// One of the different calls.
  struct Call {
    const model::CollectiveCall* call = nullptr;
    Seconds time, siblings, on_links;  ///< all of it, due to groups of other stages, and on links
    double most_use = 1;               ///< HealthyCosts::most_use() where siblings cost anything
  };
  struct Sent {
    std::size_t call = 0;       ///< index in `calls`
    Seconds seconds;            ///< of all microbatches together
    double shown = 1;           ///< share of a call's lengthening that work beside it does not hide, 0..1
    Pass pass = Pass::forward;  ///< which calls
    Seconds others = {};        ///< what is due to the groups of other stages, of all microbatches together
  };
  /// How the calls share links with traffic that goes this `way`, if that lies beside all of the passes.
  struct Meeting {
    std::uint32_t way = 0;      ///< HealthyCosts::way_number()
    Pass pass = Pass::forward;  ///< whose calls they are
    bool once = false;  ///< the traffic is sent once in a step; here and below where faults slow calls
    Bytes bytes = {};   ///< of the traffic, in so many `calls`
    double calls = 0;
    EnumArray<ParallelGroup, Seconds> longer = {};  ///< seconds that calls take longer
    EnumArray<ParallelGroup, Seconds> lost = {};    ///< seconds of traffic that calls keep from its links
  };
  /// Seconds by which tensor groups of the same stage that lie along the context axis make each other's calls longer;
  /// filled when first asked for.
  std::optional<Seconds> apart = {};
  SiblingTimes siblings = {};  ///< of the calls of blocks, of all microbatches together
  Seconds time = {};           ///< seconds of all calls, one after the other
  /// Seconds by which early combines may make dispatches to the busiest experts longer, likewise
  /// (CollectivePrices::crowded_by_loads()).
  Seconds crowded = {};
  boost::container::small_vector<Meeting, 2> meetings = {};
  boost::container::small_vector<Call, 8> calls = {};
  boost::container::small_vector<Sent, 24> sent = {};  ///< sized so that few models need memory from the heap
  boost::container::small_vector<Sent, 8> ends =
      {};  ///< calls of embedding, head and modules of further tokens
};

/// Times of layers that plans share; each entry is filled when it is first asked for.
struct LayerTimes {
  std::uint64_t id = 0;  ///< in a LayerTimesMemo: above 0, and different for different layers; else 0
  ShortMemo<LayerKind, LayerPasses> layers;
  ShortMemo<StageContents, ContendedCalls> contended;
  ShortMemo<StageKind, StagePasses> stages;
  ShortMemo<StageKind, ChunkPasses> chunks;  ///< of stages that have several
  ShortMemo<PairKind, Seconds> pairs;        ///< seconds that they hide of each other
  std::optional<network::RankGroups> groups;
  /// Of messages between stages: in a chain, in a ring.
  std::array<std::optional<schedule::Transfer>, 2> transfers;

  void forget() {
    layers.forget();
    contended.forget();
    stages.forget();
    pairs.forget();
    chunks.forget();
    groups.reset();
    for (std::optional<schedule::Transfer>& transfer : transfers) transfer.reset();
  }
};

/// The times at a place of a memo, emptied where they were another key's.
template <class Place>
LayerTimes& times_at(const Place& place) {
  if (place.fresh) place.value.forget();
  return place.value;
}

/// How a training plan lies on the ranks, and what layers see of its schedule: whether weight gradients run apart.
struct PlanOnRanks {
  std::array<std::int32_t, kPlanAxes> degrees{};
  RankOrder order{};
  std::int32_t expert = 1, expert_tensor = 1;
  bool sequence_parallel = false;
  ScheduleKind schedule = kPlainSchedule;
  friend bool operator==(const PlanOnRanks&, const PlanOnRanks&) = default;
};
inline PlanOnRanks on_ranks(const TrainingStep& in) {
  const ParallelPlan& plan = in.plan;
  return {{plan.tensor, plan.context, plan.data, plan.pipeline},
          plan.order,
          plan.expert,
          plan.expert_tensor,
          plan.sequence_parallel,
          in.schedule_of_layers()};
}

/// What the times of a plan's layers depend on.
struct LayersKey {
  PlanOnRanks plan;
  std::int32_t microbatch = 1;
  Recompute recompute = Recompute::none;
  bool defers = false;  ///< the head's weight gradients
  friend bool operator==(const LayersKey&, const LayersKey&) = default;
};

inline LayersKey layers_key(const TrainingStep& in) {
  return {on_ranks(in), in.plan.microbatch, in.plan.recompute, in.deferred() > 0};
}

/// Remembers times for one setting on one healthy machine. They are exact, as only plans share them that agree in
/// everything they depend on, and bounded.
class LayerTimesMemo {
 public:
  /// Returns the times for the plan's layers. The reference is valid until the next call.
  LayerTimes& times_for(const TrainingStep& inputs) {
    const auto [times, fresh] = known_.at(layers_key(inputs));
    if (fresh) {
      times.forget();
      times.id = next_id();
    }
    return times;
  }
  /// A number that no times in the memo have as their id.
  std::uint64_t next_id() { return ++last_id_; }

 private:
  /// Enough for the plans of one choice of degrees in large studies; takes some megabytes in all.
  SlotMemo<LayersKey, LayerTimes, 512> known_;
  std::uint64_t last_id_ = 0;
};

}  // namespace shardscape::step
