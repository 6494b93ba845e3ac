// The floor of one plan's executed step (plan_floor.h): its schedule operation by operation, of passes that take no
// less, and what follows the last of them.
//
// An operation begins when the one before it on its stage has ended and its input is there, in execution as in
// schedule::run_in_order(): with passes and messages that take no longer nothing ends later there.
// Behind its last backward a stage runs what the head has put off, waits for its last gradients (data_exposure.h), of
// which each bucket takes no less than its group alone, and runs the optimizer. Where the host's launches bound a pass,
// when layers within it end is not known: then one bucket is left, that of the gradients which the last layer makes.
#include <algorithm>
#include <cmath>

#include "engine/network/prices/least_time.h"
#include "engine/plan_floor.h"
#include "engine/step/layers/host_work.h"
#include "engine/step/layers/layer_timer.h"
#include "engine/step/plan_pipeline.h"
#include "engine/step/training/data_exposure.h"

namespace shardscape {

namespace {

/// Sums what one microbatch does on the layers of a chunk.
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
  /// The backward without weight gradients that are put off. The head may put off all of it, so its lesser part counts.
  [[nodiscard]] double backward_of(step::LayerKind kind) const {
    const LayerFloor& layer = layers[kind.index()];
    if (in.cuts(kind)) return layer.input;
    return in.defers(kind) ? std::min(layer.input, layer.backward) : layer.backward;
  }
};

/// Combines two floors of a pass: each part of it takes no less than either floor says.
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
  // Plans that deal experts over ranks: the schedule came out above 1 of 68 of them, by 0.2 %, for reasons not known.
  if (shape.overlaps || shape.both_ways() || plan.expert > 1) return chain;
  const Split& layers = split(plan);
  const step::TrainingStep inputs{
      setting_,      plan,
      costs(plan),   layers.layers,
      layers.chunks, model::stage_parameters(setting_.model, setting_.policy(), plan, Phase::training),
      shape};
  return std::max(chain, scheduled(inputs, passes));
}

double PlanFloor::scheduled(const step::TrainingStep& in, const PassFloors& passes) {
  const ChunkSum device{in, passes.alone}, host{in, passes.launches};
  const auto chunks = static_cast<std::size_t>(in.pipeline.virtual_stages);
  const network::RankGroups groups = network::PlanLayout(in.plan).groups();
  std::vector<step::DataTraffic> traffic;
  std::vector<schedule::StageTime> times;
  for (std::int32_t s = 0; s < in.pipeline.stages; ++s) {
    for (std::int32_t c = 0; c < in.pipeline.virtual_stages; ++c) {
      const step::LayerRuns runs = in.chunk_layers(s, c);
      times.push_back(longer(device.of(runs), host.of(runs)));
    }
    traffic.push_back(step::data_traffic(in, in.parameters_of(s)));
    add_beside(in, groups, traffic.back(), std::span(times).last(chunks));
  }
  const schedule::PipelineEnds ends = pipelines_.run(in.pipeline, times, transfer(in, groups));
  const std::vector<double>& optimizer = optimizers(in.plan, in.plan.zero_stage, split(in.plan), in.pipeline);
  double longest = 0;
  for (std::size_t s = 0; s < ends.stages.size(); ++s) {
    const auto stage = static_cast<std::int32_t>(s);
    double end = ends.stages[s] + optimizer[s];
    if (in.last(stage)) end += in.deferred() * passes.alone[step::kHeadLayer.index()].weight;
    const std::span<const double> chunk_ends =
        chunks == 1 ? ends.stages.subspan(s, 1) : ends.chunks.subspan(s * chunks, chunks);
    end += exposed_gradients(in, groups, traffic[s], passes, stage,
                             std::span(times).subspan(s * chunks, chunks), chunk_ends)
               .value();
    end += exposed_weights(in, groups, traffic[s], stage).value();
    longest = std::max(longest, end);
  }
  return longest + step::once_per_step(setting_).value();
}

/// Floors of messages between stages. Replicas need not send them together; what a receiver gathers is left out.
schedule::Transfer PlanFloor::transfer(const step::TrainingStep& in, const network::RankGroups& groups) {
  constexpr double kLeft = 0.6;  // share of prices; chosen like those of calls (network/prices/least_time.cc)
  schedule::Transfer transfer(0, !setting_.system.stack.communication.pipeline_async);
  if (in.plan.pipeline == 1) return transfer;
  const bool closed = in.pipeline.wraps();
  machine().collectives().boundary_times(in.boundary().message, groups[ParallelGroup::pipeline], closed,
                                         transfer.seconds);
  if (!closed) transfer.seconds.back() = transfer.seconds.front();
  for (double& seconds : transfer.seconds) seconds *= kLeft;
  return transfer;
}

/// A floor of calls one behind the other.
Seconds PlanFloor::in_a_row(const step::TrainingStep& in, const network::RankGroups& groups,
                            const step::DataTraffic::Part& part, Bytes bytes, double calls) {
  const network::RankGroup& group = groups[part.group];
  if (group.alone() || bytes <= Bytes(0)) return {};
  return network::least_of_row(machine().collectives(), machine().fabric(), {part.op, bytes / calls, group},
                               network::PlanLayout(in.plan).stages())
      .of(calls);
}

/// Adds to the passes the gathers and scatters of every microbatch that they wait for (beside_pass() in
/// price_training.h).
void PlanFloor::add_beside(const step::TrainingStep& in, const network::RankGroups& groups,
                           const step::DataTraffic& traffic, std::span<schedule::StageTime> times) {
  const auto chunks = static_cast<double>(times.size());
  const auto longer_by = [&](step::Pass pass, double seconds) {
    Seconds sum;
    for (const step::DataTraffic::Part& part : traffic.beside(pass, in.cuts())) {
      const double calls = std::max(1.0, std::round(part.calls / chunks));
      sum += in_a_row(in, groups, part, part.bytes / chunks, calls);
    }
    return step::beside_pass(setting_.system.stack.communication, sum, Seconds(seconds)).exposed().value();
  };
  for (schedule::StageTime& time : times) {
    const double input = time.backward - time.weight;
    time.forward += longer_by(step::Pass::forward, time.forward);
    if (in.cuts()) time.weight += longer_by(step::Pass::weight, time.weight);
    time.backward = time.weight + input + longer_by(step::Pass::backward, input);
  }
}

/// Seconds that gradients take at least behind the last backward of a stage.
Seconds PlanFloor::exposed_gradients(const step::TrainingStep& in, const network::RankGroups& groups,
                                     const step::DataTraffic& traffic, const PassFloors& passes,
                                     std::int32_t stage, std::span<const schedule::StageTime> times,
                                     std::span<const double> ends) {
  step::GradientTraffic gradients;
  Seconds bucket;
  for (const step::DataTraffic::Part& part : traffic.gradients) {
    const Seconds all = in_a_row(in, groups, part, part.bytes, part.calls);
    if (all <= Seconds(0)) continue;
    gradients.push_back({part.group, part.calls, all});
    // The gradients of the head come last where they are deferred; they belong to no expert.
    if (in.last(stage) && in.deferred() > 0 && is_of_experts(part.group)) continue;
    bucket = std::max(bucket, in_a_row(in, groups, part, part.bytes / part.calls, 1));
  }
  if (gradients.empty()) return {};
  const model::StageLayers& blocks = in.layers[static_cast<std::size_t>(stage)];
  const ChunkSum device{in, passes.alone};
  for (std::size_t c = 0; c < times.size(); ++c) {
    const schedule::StageTime computed = device.of(in.chunk_layers(stage, static_cast<std::int32_t>(c)));
    const bool launched = times[c].backward > computed.backward || times[c].weight > computed.weight;
    if (launched || blocks.end() - blocks.begin() != 1) return bucket;
  }
  const bool last = in.last(stage);
  const double deferred = last ? in.deferred() * passes.alone[step::kHeadLayer.index()].weight : 0;
  step::BackwardByRole layer;
  for (const step::LayerRun& run : in.stage_layers(stage))
    layer[run.kind] = Seconds(device.backward_of(run.kind));
  const step::LastBackward backward{layer, times, in.cuts(), Seconds(deferred), ends};
  return std::max(bucket, step::exposed_gradients(in, stage, backward, gradients));
}

/// Seconds of gathering updated weights behind the optimizer: all that the next forward can't hide, judged by the same
/// prices that decide what is gathered beside it.
Seconds PlanFloor::exposed_weights(const step::TrainingStep& in, const network::RankGroups& groups,
                                   const step::DataTraffic& traffic, std::int32_t stage) {
  if (traffic.weights.empty()) return {};
  const double overlap = setting_.system.stack.communication.gather_overlap;
  const network::CollectivePrices& collectives = machine().collectives();
  Seconds forward;
  step::WeightGather gather;
  for (const step::LayerRun& run : in.stage_layers(stage)) {
    if (overlap <= 0) break;
    const step::Segments segments = in.segments(run.kind, step::Pass::forward);
    forward += run.count * step::time_segments(in, run.kind, segments, groups, &collectives).total();
  }
  for (const step::DataTraffic::Part& part : traffic.weights)
    gather.add(collectives.time({part.op, part.bytes, groups[part.group], part.calls}), part.calls);
  if (gather.whole <= Seconds(0)) return {};
  const double shown =
      1 - step::hidden_gather(setting_.system.stack.communication, gather, forward) / gather.whole;
  Seconds sum;
  if (shown <= 0) return sum;
  for (const step::DataTraffic::Part& part : traffic.weights)
    sum += in_a_row(in, groups, part, shown * part.bytes, std::max(1.0, std::round(shown * part.calls)));
  return sum;
}

}  // namespace shardscape
