// The floor of one plan's executed step (plan_floor.h): its schedule operation by operation, of passes that take no less,
// and what follows the last of them.
//
// An operation begins when the one before it on its stage has ended and its input is there, in execution as in
// schedule::run_in_order(): with passes that take no longer, and messages that take no time, nothing ends later there.
// Behind its last backward a stage runs what the head has put off, waits for its last gradients (data_exposure.h), of
// which each bucket takes no less than its group alone, and runs the optimizer. Where the host's launches bound a pass,
// when layers within it end is not known: then one bucket is left, that of the gradients which the last layer makes.
#include <algorithm>

#include "engine/plan_floor.h"
#include "engine/step/data_exposure.h"
#include "engine/step/data_traffic.h"
#include "engine/step/plan_pipeline.h"

namespace shardscape {

namespace {

/// What one microbatch does on the layers of a chunk.
struct ChunkSum {
  const step::TrainingStep& in;
  const LayerFloors& layers;

  [[nodiscard]] schedule::StageTime of(const step::LayerRuns& runs) const {
    schedule::StageTime sum;
    double handed_on = 0;
    for (const step::LayerRun& run : runs) {
      const LayerFloor& layer = layers[run.kind.index()];
      sum.forward += run.count * layer.forward;
      if (in.cuts(run.kind)) sum.weight += run.count * layer.weight;
      handed_on += run.count * backward_of(run.kind);
    }
    sum.backward = handed_on + sum.weight;
    return sum;
  }
  /// Without what is put off; of the head all of it may be.
  [[nodiscard]] double backward_of(step::LayerKind kind) const {
    const LayerFloor& layer = layers[kind.index()];
    if (in.cuts(kind)) return layer.input;
    return in.defers(kind) ? std::min(layer.input, layer.backward) : layer.backward;
  }
};

/// Each part of a pass takes no less than either says.
schedule::StageTime longer(const schedule::StageTime& one, const schedule::StageTime& other) {
  const double weight = std::max(one.weight, other.weight);
  return {std::max(one.forward, other.forward),
          weight + std::max(one.backward - one.weight, other.backward - other.weight), weight, 0};
}

}  // namespace

double PlanFloor::of_point(const ParallelPlan& plan, const PassFloors& passes) {
  const double chain = least_of_stage(plan, passes);
  if (!executed() || !possible(plan) || !split(plan).met) return chain;
  const schedule::PipelineShape shape = step::pipeline_shape(setting_, plan);
  if (shape.overlaps || shape.both_ways() || order_decides_pairs()) return chain;
  const Split& layers = split(plan);
  const step::TrainingStep inputs{
      setting_,      plan,
      costs(plan),   layers.layers,
      layers.chunks, model::stage_parameters(setting_.model, setting_.policy(), plan, Phase::training),
      shape};
  return std::max(chain, scheduled(inputs, passes));
}

double PlanFloor::scheduled(const step::TrainingStep& in, const PassFloors& passes) {
  const ChunkSum device{in, passes.alone}, host{in, passes.launched};
  const auto chunks = static_cast<std::size_t>(in.pipeline.virtual_stages);
  std::vector<schedule::StageTime> computed, times;
  for (std::int32_t s = 0; s < in.pipeline.stages; ++s) {
    for (std::int32_t c = 0; c < in.pipeline.virtual_stages; ++c) {
      const step::LayerRuns runs = in.chunk_layers(s, c);
      computed.push_back(device.of(runs));
      times.push_back(longer(computed.back(), host.of(runs)));
    }
  }
  const schedule::PipelineEnds ends = pipelines_.run(in.pipeline, times, {});
  const network::RankGroups groups = network::PlanLayout(in.plan).groups();
  const std::vector<double>& optimizer = optimizers(in.plan, in.plan.zero_stage, split(in.plan), in.pipeline);
  double longest = 0;
  for (std::size_t s = 0; s < ends.stages.size(); ++s) {
    const auto stage = static_cast<std::int32_t>(s);
    double end = ends.stages[s] + optimizer[s];
    if (in.last(stage)) end += in.deferred() * passes.alone[step::kHeadLayer.index()].weight;
    const std::span<const double> chunk_ends =
        chunks == 1 ? ends.stages.subspan(s, 1) : ends.chunks.subspan(s * chunks, chunks);
    end += exposed(in, groups, passes, stage, std::span(times).subspan(s * chunks, chunks), chunk_ends).value();
    longest = std::max(longest, end);
  }
  return longest + setting_.system.stack.host.step_fixed.value();
}

/// What gradients take behind the last backward of a stage.
Seconds PlanFloor::exposed(const step::TrainingStep& in, const network::RankGroups& groups,
                           const PassFloors& passes, std::int32_t stage,
                           std::span<const schedule::StageTime> times, std::span<const double> ends) {
  const step::DataTraffic traffic = step::data_traffic(in, in.parameters_of(stage));
  step::GradientTraffic gradients;
  Seconds bucket;
  for (const step::DataTraffic::Part& part : traffic.gradients) {
    if (groups[part.group].alone()) continue;
    const Seconds all = alone(in.plan, part.op, part.bytes, groups[part.group], part.calls);
    gradients.push_back({part.group, part.calls, all});
    // The head's gradients, where they come last, are none of experts.
    if (!(in.last(stage) && in.deferred() > 0 && is_of_experts(part.group)))
      bucket = std::max(bucket, all / part.calls);
  }
  if (gradients.empty()) return {};
  const model::StageLayers& blocks = in.layers[static_cast<std::size_t>(stage)];
  const ChunkSum device{in, passes.alone};
  for (std::size_t c = 0; c < times.size(); ++c) {
    const step::LayerRuns runs = in.chunk_layers(stage, static_cast<std::int32_t>(c));
    const schedule::StageTime computed = device.of(runs);
    const bool launched = times[c].backward > computed.backward || times[c].weight > computed.weight;
    if (launched || blocks.end() - blocks.begin() != 1) return bucket;
  }
  const auto of = [&](step::LayerKind kind) { return Seconds(device.backward_of(kind)); };
  const bool last = in.last(stage);
  const double deferred =
      last ? in.deferred() * passes.alone[step::kHeadLayer.index()].weight : 0;
  return step::exposed_gradients(
      in, stage,
      {last ? of(step::kHeadLayer) : Seconds(0), of(step::kFurtherLayer), of(step::block_layer(blocks.begin()->kind)),
       in.first(stage) ? of(step::kEmbeddingLayer) : Seconds(0), times, in.cuts(), Seconds(deferred), ends},
      gradients);
}

}  // namespace shardscape
