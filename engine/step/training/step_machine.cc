#include "engine/step/training/step_machine.h"

#include <algorithm>

namespace shardscape::step {

CallPrices StepMachine::calls_of(std::size_t stage, const network::CollectivePrices& prices) const {
  return {in.setting, in.plan, in.turns, groups, prices, slice_of(stage, in, prices)};
}

DataCosts& StepMachine::data_of(std::size_t stage, std::optional<DataCosts>& own) const {
  if (data != nullptr) return data->at(in.contents(static_cast<std::int32_t>(stage))).value;
  return sick_data != nullptr ? sick_data->costs_for(in, collectives.fault_epoch(), stage) : own.emplace();
}

bool StepMachine::like_the_one_before(std::size_t stage) const {
  return stage > 1 && !in.last(static_cast<std::int32_t>(stage)) && in.sick.empty() &&
         !told_apart(collectives) && in.layers[stage] == in.layers[stage - 1];
}

network::Slice slice_of(std::size_t stage, const TrainingStep& in,
                        const network::CollectivePrices& collectives) {
  if (!told_apart(collectives)) return {};
  return stage_slice(static_cast<std::int32_t>(stage), network::PlanLayout(in.plan), in.plan);
}

double memory_share(const TrainingStep& in, std::optional<std::size_t> stage) {
  double share = 1;
  for (const SickStage& sick : in.sick) {
    if (stage && sick.stage != *stage) continue;
    share = std::min(share, sick.memory_share);
  }
  return share;
}

}  // namespace shardscape::step
