#include "engine/step/training/data_beside.h"

#include <algorithm>
#include <optional>
#include <span>

#include "engine/step/training/data_traffic.h"
#include "engine/step/training/known_step.h"
#include "engine/step/training/stage_tails.h"

namespace shardscape::step {

using network::PlanLayout;
using network::RankGroup;
using network::RankGroups;
using network::Slice;

void copy_stage(const StageTimes& source, std::size_t from, StageTimes& target, std::size_t to) {
  target.forward[to] = source.forward[from];
  target.backward[to] = source.backward[from];
  target.weight[to] = source.weight[from];
  target.weight_host[to] = source.weight_host[from];
  target.beside[to] = source.beside[from];
  target.ends[to] = source.ends[from];
  target.hidden[to] = source.hidden[from];
}

namespace {

BesideCosts beside_costs(const TrainingStep& in, std::size_t s, const PlanLayout& layout,
                         const RankGroups& groups, const network::CollectivePrices& healthy_memory) {
  const network::CollectivePrices collectives = healthy_memory.with_memory(memory_share(in, s));
  const DataTraffic traffic = data_traffic(in, in.parameters_of(static_cast<std::int32_t>(s)));
  const Slice slice = slice_of(s, layout, in, collectives);
  const auto beside = [&](Pass pass) {
    Seconds time;
    for (const DataTraffic::Part& part : traffic.beside(pass, in.cuts())) {
      const RankGroup& group = groups[part.group];
      time += collectives.time({part.op, part.bytes, group, part.calls, slice}) -
              spared_in_turn(in.turns, part.group, in.plan, {part.op, part.bytes, group, part.calls},
                             collectives);
    }
    return time;
  };
  return {beside(Pass::forward), beside(Pass::backward), beside(Pass::weight)};
}

/// Adds to the passes of a stage (share 1) or of a chunk what they expose of the traffic beside them, and returns that.
StageTraffic add_beside(const StackProfile::Communication& stack, const BesideCosts& costs, double share,
                        PassTime& forward, PassTime& backward, Seconds& weight) {
  StageTraffic traffic;
  traffic.backward = beside_pass(stack, share * costs.backward, backward.total() - weight);
  traffic.weight = beside_pass(stack, share * costs.weight, weight);
  traffic.forward = beside_pass(stack, share * costs.forward, forward.total());
  forward[TimeClass::data_comm] += traffic.forward.exposed();
  backward[TimeClass::data_comm] += traffic.backward.exposed() + traffic.weight.exposed();
  weight += traffic.weight.exposed();
  return traffic;
}

/// The same for a stage of several chunks, each of which has an equal share of the traffic, as it is executed.
void add_beside_chunks(const TrainingStep& in, const BesideCosts& costs, std::size_t s,
                       TrainingScratch& scratch) {
  const auto each = static_cast<std::size_t>(in.pipeline.virtual_stages);
  StageTraffic& sum = scratch.beside[s] = {};
  const auto add = [](BesidePass& to, const BesidePass& more) {
    to.beyond += more.beyond;
    to.lost += more.lost;
  };
  for (ChunkPasses& chunk : std::span(scratch.chunks).subspan(s * each, each)) {
    chunk.beside = add_beside(in.setting.system.stack.communication, costs, 1.0 / in.pipeline.virtual_stages,
                              chunk.forward, chunk.backward, chunk.weight);
    add(sum.forward, chunk.beside.forward);
    add(sum.backward, chunk.beside.backward);
    add(sum.weight, chunk.beside.weight);
  }
  scratch.forward[s][TimeClass::data_comm] += sum.forward.exposed();
  scratch.backward[s][TimeClass::data_comm] += sum.backward.exposed() + sum.weight.exposed();
  scratch.weight[s] += sum.weight.exposed();
}

}  // namespace

void add_data_parallel(const TrainingStep& in, const PlanLayout& layout, const RankGroups& groups,
                       const network::CollectivePrices& collectives, StageDataCosts* data,
                       TrainingScratch& scratch) {
  if (!sends_beside_passes(in)) {
    std::ranges::fill(scratch.beside, StageTraffic());
    return;
  }
  const PartsToPrice& parts = *scratch.parts;
  const auto each = static_cast<std::ptrdiff_t>(in.pipeline.virtual_stages);
  for (std::int32_t stage = 0; stage < in.plan.pipeline; ++stage) {
    const auto s = static_cast<std::size_t>(stage);
    if (!parts.beside(s) || scratch.is_twin(s)) continue;
    if (!parts.passes(s)) {
      const StageTimes& before = parts.known()->layers;
      copy_stage(before, s, scratch, s);
      if (each > 1)
        std::copy_n(before.chunks.begin() + stage * each, each, scratch.chunks.begin() + stage * each);
    }
    std::optional<BesideCosts> own;
    std::optional<BesideCosts>& costs = data != nullptr ? data->costs_of_stage(in, stage).beside : own;
    if (!costs) costs = beside_costs(in, s, layout, groups, collectives);
    if (each > 1) {
      add_beside_chunks(in, *costs, s, scratch);
    } else {
      scratch.beside[s] = add_beside(in.setting.system.stack.communication, *costs, 1, scratch.forward[s],
                                     scratch.backward[s], scratch.weight[s]);
    }
    if (network::LinkRecorder* const recorder = collectives.recorder())
      scratch.known->links[s].beside = recorder->take_part();
  }
}

}  // namespace shardscape::step
