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

/// What one microbatch does on the layers of a chunk. The head may put off all of its weight gradient, so its lesser
/// part counts.
schedule::StageTime time_of(const step::TrainingStep& in, const step::LayerRuns& runs,
                            const LayerFloors& layers) {
  const StageFloor sum = sum_of(in, runs, layers, 1);
  const double weight = in.cuts() ? sum.kept_back : 0;
  return {sum.forward, sum.handed_on + weight, weight};
}

/// Combines two floors of a pass: each part of it takes no less than either floor says.
schedule::StageTime longer(const schedule::StageTime& one, const schedule::StageTime& other) {
  const double weight = std::max(one.weight, other.weight);
  return {std::max(one.forward, other.forward),
          weight + std::max(one.backward - one.weight, other.backward - other.weight), weight, 0};
}

}  // namespace

/// The floor of one step; its layers take no less than `passes`. All references must outlive it.
class ExecutedFloor {
 public:
  ExecutedFloor(PlanFloor& floors, const step::TrainingStep& inputs, const PassFloors& passes)
      : floors_(floors), in_(inputs), passes_(passes), groups_(network::PlanLayout(inputs.plan).groups()) {}

  double seconds() {
    const auto chunks = static_cast<std::size_t>(in_.pipeline.virtual_stages);
    std::vector<step::DataTraffic> traffic;
    std::vector<schedule::StageTime> times;
    for (std::int32_t s = 0; s < in_.pipeline.stages; ++s) {
      for (std::int32_t c = 0; c < in_.pipeline.virtual_stages; ++c) {
        const step::LayerRuns runs = in_.chunk_layers(s, c);
        times.push_back(longer(time_of(in_, runs, passes_.alone), time_of(in_, runs, passes_.launches)));
      }
      traffic.push_back(step::data_traffic(in_, s));
      add_beside(traffic.back(), std::span(times).last(chunks));
    }
    const schedule::PipelineEnds ends = floors_.pipelines_.run(in_.pipeline, times, transfer());
    const std::vector<double>& optimizer = floors_.optimizers(in_.plan, in_.plan.zero_stage, in_);
    double longest = 0;
    for (std::size_t s = 0; s < ends.stages.size(); ++s) {
      const auto stage = static_cast<std::int32_t>(s);
      double end = ends.stages[s] + optimizer[s];
      if (in_.last(stage)) end += in_.deferred() * passes_.alone[step::kHeadLayer.index()].weight;
      const std::span<const double> chunk_ends =
          chunks == 1 ? ends.stages.subspan(s, 1) : ends.chunks.subspan(s * chunks, chunks);
      end += exposed_gradients(traffic[s], stage, std::span(times).subspan(s * chunks, chunks), chunk_ends)
                 .value();
      end += exposed_weights(traffic[s], stage).value();
      longest = std::max(longest, end);
    }
    return longest + step::once_per_step(in_.setting).value();
  }

 private:
  /// Floors of messages between stages. Replicas need not send them together; what a receiver gathers is left out.
  schedule::Transfer transfer() {
    // Share of prices; chosen like those of calls (network/prices/least_time.cc).
    constexpr double kLeft = 0.6;
    schedule::Transfer transfer(0, !in_.setting.system.stack.communication.pipeline_async);
    if (in_.plan.pipeline == 1) return transfer;
    const bool closed = in_.pipeline.wraps();
    floors_.machine().collectives().boundary_times(in_.boundary().message, groups_[ParallelGroup::pipeline],
                                                   closed, transfer.seconds, transfer.back);
    for (std::vector<double>* const way : {&transfer.seconds, &transfer.back}) {
      if (!closed) way->back() = way->front();
      for (double& seconds : *way) seconds *= kLeft;
    }
    return transfer;
  }

  /// A floor of calls one behind the other.
  Seconds in_a_row(const step::DataTraffic::Part& part, Bytes bytes, double calls) {
    const network::RankGroup& group = groups_[part.group];
    if (group.alone() || bytes <= Bytes(0)) return {};
    return network::least_of_row(floors_.machine().collectives(), floors_.machine().fabric(),
                                 {part.op, bytes / calls, group}, network::PlanLayout(in_.plan).stages())
        .of(calls);
  }

  /// Adds to the passes the gathers and scatters of every microbatch that they wait for (beside_pass() in
  /// price_training.h).
  void add_beside(const step::DataTraffic& traffic, std::span<schedule::StageTime> times) {
    const auto chunks = static_cast<double>(times.size());
    const auto longer_by = [&](step::Pass pass, double seconds) {
      Seconds sum;
      for (const step::DataTraffic::Part& part : traffic.beside(pass)) {
        const double calls = std::max(1.0, std::round(part.calls / chunks));
        sum += in_a_row(part, part.bytes / chunks, calls);
      }
      return step::beside_pass(in_.setting.system.stack.communication, sum, Seconds(seconds))
          .exposed()
          .value();
    };
    for (schedule::StageTime& time : times) {
      const double input = time.backward - time.weight;
      time.forward += longer_by(step::Pass::forward, time.forward);
      if (in_.cuts()) time.weight += longer_by(step::Pass::weight, time.weight);
      time.backward = time.weight + input + longer_by(step::Pass::backward, input);
    }
  }

  /// Seconds that gradients take at least behind the last backward of a stage.
  Seconds exposed_gradients(const step::DataTraffic& traffic, std::int32_t stage,
                            std::span<const schedule::StageTime> times, std::span<const double> ends) {
    step::GradientTraffic gradients;
    Seconds bucket;
    for (const step::DataTraffic::Part& part : traffic.gradients()) {
      const Seconds all = in_a_row(part, part.bytes, part.calls);
      if (all <= Seconds(0)) continue;
      gradients.push_back({part.group, part.calls, all});
      // The gradients of the head come last where they are deferred; they belong to no expert.
      if (in_.last(stage) && in_.deferred() > 0 && is_of_experts(part.group)) continue;
      bucket = std::max(bucket, in_a_row(part, part.bytes / part.calls, 1));
    }
    if (gradients.empty()) return {};
    const model::StageLayers& blocks = in_.layers[static_cast<std::size_t>(stage)];
    for (std::size_t c = 0; c < times.size(); ++c) {
      const schedule::StageTime computed =
          time_of(in_, in_.chunk_layers(stage, static_cast<std::int32_t>(c)), passes_.alone);
      const bool launched = times[c].backward > computed.backward || times[c].weight > computed.weight;
      if (launched || blocks.end() - blocks.begin() != 1) return bucket;
    }
    const bool last = in_.last(stage);
    const double deferred = last ? in_.deferred() * passes_.alone[step::kHeadLayer.index()].weight : 0;
    step::BackwardByRole layer;
    for (const step::LayerRun& run : in_.stage_layers(stage))
      layer[run.kind] = Seconds(sum_of(in_, {{run.kind, 1}}, passes_.alone, 1).handed_on);
    const step::LastBackward backward{layer, times, in_.cuts(), Seconds(deferred), ends};
    return std::max(bucket, step::exposed_gradients(in_, stage, backward, gradients));
  }

  /// Seconds of gathering updated weights behind the optimizer: all that the next forward can't hide, judged by the
  /// same prices that decide what is gathered beside it.
  Seconds exposed_weights(const step::DataTraffic& traffic, std::int32_t stage) {
    if (traffic.weights().empty()) return {};
    const double overlap = in_.setting.system.stack.communication.gather_overlap;
    const network::CollectivePrices& collectives = floors_.machine().collectives();
    Seconds forward;
    step::WeightGather gather;
    for (const step::LayerRun& run : in_.stage_layers(stage)) {
      if (overlap <= 0) break;
      const step::Segments segments = in_.segments(run.kind, step::Pass::forward);
      forward += run.count * step::time_segments(in_, run.kind, segments, groups_, &collectives).total();
    }
    for (const step::DataTraffic::Part& part : traffic.weights())
      gather.add(collectives.time({part.op, part.bytes, groups_[part.group], part.calls}), part.calls);
    if (gather.whole <= Seconds(0)) return {};
    const Seconds hidden =
        step::hidden_gather(in_.setting.system.stack.communication, gather, forward, in_.pipeline).all();
    const double shown = 1 - hidden / gather.whole;
    Seconds sum;
    if (shown <= 0) return sum;
    for (const step::DataTraffic::Part& part : traffic.weights())
      sum += in_a_row(part, shown * part.bytes, std::max(1.0, std::round(shown * part.calls)));
    return sum;
  }

  PlanFloor& floors_;
  const step::TrainingStep& in_;
  const PassFloors& passes_;
  const network::RankGroups groups_;
};

double PlanFloor::of_point(const ParallelPlan& plan, const PassFloors& passes) {
  const double chain = least_of_stage(plan, passes);
  if (!executed() || !possible(plan) || !split(plan)) return chain;
  const schedule::PipelineShape shape = step::pipeline_shape(setting_, plan);
  // Plans that deal experts over ranks: the schedule came out above 1 of 68 of them, by 0.2 %, for reasons not known.
  if (shape.overlaps || shape.both_ways() || plan.expert > 1) return chain;
  const model::Partition& layers = *split(plan);
  const step::TrainingStep inputs{
      setting_,      plan,
      costs(plan),   layers.stages,
      layers.chunks, model::stage_parameters(setting_.model, setting_.policy(), plan, Phase::training),
      shape};
  return std::max(chain, ExecutedFloor(*this, inputs, passes).seconds());
}

}  // namespace shardscape
