// What the calls of one stage cost, those of its layers and its data-parallel traffic.
#pragma once

#include "engine/model/operator.h"
#include "engine/network/prices/collective_prices.h"
#include "engine/spec/scenario.h"
#include "engine/step/layers/sibling_turns.h"

namespace shardscape::step {

/// All references must outlive it.
struct CallPrices {
  const Setting& setting;
  const ParallelPlan& plan;
  const SiblingTurns* turns;  ///< TrainingStep::turns
  const network::RankGroups& groups;
  const network::CollectivePrices& collectives;
  network::Slice slice = {};  ///< the ranks of the stage, where links tell stages apart

  /// One of the repeats of a call, on the ranks of the stage.
  [[nodiscard]] network::CollectiveKey on_stage(const model::CollectiveCall& call) const {
    return {call.op, call.bytes, groups[call.group], 1, slice};
  }
  /// The same on a healthy machine, whose stages cost the same.
  [[nodiscard]] network::CollectiveKey healthy(const model::CollectiveCall& call) const {
    return {call.op, call.bytes, groups[call.group]};
  }
  /// The time of one of them, among siblings that take turns.
  [[nodiscard]] Seconds time(const model::CollectiveCall& call) const {
    return time(call.group, on_stage(call));
  }
  /// The same, with what faults of links add to it.
  [[nodiscard]] network::CollectivePrices::Priced priced(const model::CollectiveCall& call) const {
    const network::CollectiveKey asked = on_stage(call);
    const auto [time, added] = collectives.priced(asked);
    return {time - spared_in_turn(call.group, asked), added};
  }
  /// CollectivePrices::sooner_by_loads(), on healthy links.
  [[nodiscard]] Seconds sooner_by_loads(const model::CollectiveCall& dispatch,
                                        const model::CollectiveCall& combine, Seconds work) const {
    return collectives.sooner_by_loads(healthy(dispatch), healthy(combine), work);
  }
  /// The time of an operation in passes, of a group of this kind.
  [[nodiscard]] Seconds time(ParallelGroup kind, const network::CollectiveKey& asked) const {
    return collectives.time(asked) - spared_in_turn(kind, asked);
  }
  /// The same beside every pass, right behind those of the pass before; where these end sooner, sick links cost less.
  [[nodiscard]] Seconds time_in_row(ParallelGroup kind, const network::CollectiveKey& asked) const {
    return collectives.time_in_row(asked) - spared_in_turn(kind, asked);
  }
  /// What groups of other stages cost an operation on a healthy machine if all of them send at once.
  [[nodiscard]] Seconds cost_of_siblings(const network::CollectiveKey& asked) const {
    if (plan.pipeline == 1) return Seconds(0);
    const Seconds each =
        collectives.time_without_faults({asked.op, (1 / asked.calls) * asked.bytes, asked.group});
    network::CollectiveKey within = asked;
    within.slice = stage_slice(0, network::PlanLayout(plan), plan);
    return asked.calls * each - collectives.time_within_slice(within).most;
  }
  /// By how much longer an operation takes in the stage whose groups are slowest than in that where they are quickest,
  /// as where only some stages lie across nodes; all of them are taken to be as slow.
  [[nodiscard]] Seconds uneven_stages(const network::CollectiveKey& asked) const {
    if (plan.pipeline == 1) return Seconds(0);
    network::CollectiveKey within = asked;
    within.slice = stage_slice(0, network::PlanLayout(plan), plan);
    const auto [least, most] = collectives.time_within_slice(within);
    return most - least;
  }
  /// The part of what siblings cost that an operation in passes is spared.
  [[nodiscard]] Seconds spared_in_turn(ParallelGroup kind, const network::CollectiveKey& asked) const {
    if (turns == nullptr || turns->beside[kind] <= 0) return Seconds(0);
    return turns->beside[kind] * cost_of_siblings(asked);
  }
};

}  // namespace shardscape::step
