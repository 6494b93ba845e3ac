// Lists the operators, calls and messages of each stage of a priced step with their durations, and how much of each is
// hidden, waited for or lost.
#include "engine/step/training/export_training.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "engine/model/partition.h"
#include "engine/network/groups/rank_group.h"
#include "engine/step/layers/context_drift.h"
#include "engine/step/layers/host_work.h"
#include "engine/step/layers/layer_timer.h"
#include "engine/step/training/data_exposure.h"
#include "engine/step/training/data_traffic.h"
#include "engine/step/training/stage_tails.h"
#include "engine/timeline/collective_kind.h"

namespace shardscape::step {

namespace {

using model::Operator;
using model::OperatorKind;
using network::CollectiveOp;
using timeline::ChunkSteps;
using timeline::ProgramStep;
using timeline::StepKind;

/// Bytes that one rank puts in, from the bytes as CollectiveKey counts them.
double input_bytes(CollectiveOp op, Bytes bytes, std::int32_t ranks) {
  return op == CollectiveOp::all_gather ? bytes.value() / ranks : bytes.value();
}

class StepMaker {
 public:
  StepMaker(const TrainingStep& in, const network::CollectivePrices& collectives, const StepTimes& times)
      : in_(in),
        collectives_(collectives),
        times_(times),
        stack_(in.setting.system.stack),
        layout_(in.plan),
        groups_(layout_.groups()) {
    for (const LayerKind kind : layer_kinds(in.setting.model))
      operators_[kind.index()] = training_operators(kind, in.setting, in.key());
  }

  timeline::PricedStep make() {
    timeline::PricedStep program;
    program.title = in_.setting.model.name;
    program.plan = in_.plan;
    program.shape = in_.pipeline;
    program.times = times_.times;
    program.transfer = times_.pipeline.transfer;
    for (std::size_t s = 0; s < times_.tails.size(); ++s) {
      const StageTail& tail = times_.tails[s];
      program.tails.push_back(
          {tail.data_comm.value(), tail.optimizer.value(), times_.deferred_on(in_, s).value()});
    }
    program.data_overlap = stack_.communication.data_overlap;
    program.step_fixed = once_per_step(in_.setting).value();
    set_boundary(program);
    for (std::int32_t s = 0; s < in_.plan.pipeline; ++s) program.stages.push_back(make_stage(s));
    return program;
  }

 private:
  /// What the calls of the stage being made cost.
  [[nodiscard]] CallPrices prices() const {
    return {in_.setting, in_.plan, in_.turns, groups_, collectives_, slice_};
  }
  void set_boundary(timeline::PricedStep& program) const {
    const Boundary boundary = in_.boundary();
    program.boundary_bytes = boundary.message.value();
    program.boundary_gather_bytes = (boundary.gathered / in_.plan.tensor).value();
  }

  timeline::StageSteps make_stage(std::int32_t s) {
    const auto index = static_cast<std::size_t>(s);
    slice_ = network::stage_slice(s, layout_, in_.plan);
    const std::int32_t v = in_.pipeline.virtual_stages;
    timeline::StageSteps stage;
    for (std::int32_t c = 0; c < v; ++c) {
      ChunkSteps chunk;
      const LayerRuns layers = in_.chunk_layers(s, c);
      append_layers(chunk.forward, layers, Pass::forward);
      append_layers(chunk.backward, layers, Pass::backward);
      if (in_.cuts() || in_.pipeline.both_ways()) append_layers(chunk.weight, layers, Pass::weight);
      if (in_.pipeline.both_ways()) append_layers(chunk.input, layers, Pass::input);
      const ChunkPasses& passes =
          times_.chunk(index * static_cast<std::size_t>(v) + static_cast<std::size_t>(c));
      const double weight_host = times_.stages[index].weight_host.value() / v;
      append_wait(chunk.weight, weight_host);
      append_wait(chunk.forward, passes.forward[TimeClass::host].value());
      append_wait(chunk.backward, passes.backward[TimeClass::host].value() - weight_host);
      lose_to_traffic(passes.beside, chunk);
      stage.chunks.push_back(std::move(chunk));
    }
    if (in_.last(s)) add_deferred(stage);
    add_data_parallel(s, stage);
    return stage;
  }

  void append_layers(std::vector<ProgramStep>& steps, const LayerRuns& layers, Pass pass) {
    const PassStream stream = in_.stream(layers, pass, true);
    const bool forward = pass == Pass::forward;
    std::int32_t block = 0;  // number of the next one, or of the one before
    for (const LayerWork& work : stream) block += !forward && work.kind.is_block() ? work.count : 0;
    for (const auto& [kind, count, own] : stream) {
      for (std::int32_t n = 0; n < count; ++n) {
        const std::string name = kind.is_block() ? fmt::format("block {}", forward ? block++ : --block)
                                 : kind == kEmbeddingLayer ? "embedding"
                                 : kind == kFurtherLayer
                                     ? fmt::format("further token {}", forward ? n : count - 1 - n)
                                     : "head";
        append_pass(steps, kind, own, name);
        if (pass == Pass::backward && in_.defers(kind)) append_kept_share(steps, name);
      }
    }
  }

  /// Appends the head's weight gradient at the share of it that a backward computes on average, where some microbatches
  /// defer theirs.
  void append_kept_share(std::vector<ProgramStep>& steps, const std::string& layer) {
    const double kept = 1 - in_.deferred_share();
    if (kept <= 0) return;
    std::vector<ProgramStep> whole;
    append_pass(whole, kHeadLayer, Pass::weight, layer + " on average");
    for (ProgramStep& step : whole) {
      step.seconds *= kept;
      step.work = kept * step.work;
      steps.push_back(std::move(step));
    }
  }
  void add_deferred(timeline::StageSteps& stage) {
    stage.deferrals = in_.deferred();
    if (stage.deferrals == 0) return;
    append_pass(stage.deferred, kHeadLayer, Pass::weight, "deferred head");
    append_wait(stage.deferred, times_.deferred[TimeClass::host].value() / stage.deferrals);
  }

  static void append_wait(std::vector<ProgramStep>& steps, double seconds, const char* name = "host") {
    if (seconds <= 0) return;
    ProgramStep step;
    step.kind = StepKind::wait;
    step.name = name;
    step.seconds = seconds;
    steps.push_back(std::move(step));
  }
  void append_pass(std::vector<ProgramStep>& steps, LayerKind kind, Pass pass, const std::string& layer) {
    const std::vector<Operator>& operators = operators_[kind.index()];
    for (const Segment& segment : in_.segments(kind, pass)) {
      const std::string prefix = layer + (segment.again ? " again " : " ");
      const auto cost = [&](const Node& node) { return cost_of(price(*node.op, in_.setting), node.part); };
      std::vector<TimedNode> in_order =
          timed_nodes(operators, segment.part, [&](const Node& node) { return cost(node).time; });
      for (const TimedNode& node : in_order) {
        const std::string name = prefix + std::string(node.op->name);
        if (!node.call) {
          append_compute(steps, cost(node), name);
          continue;
        }
        append_call(steps, node, name);
        if (node.hider < 0) continue;
        Seconds& room = in_order[static_cast<std::size_t>(node.hider)].time;
        steps.back().hidden =
            hide(Seconds(steps.back().seconds), stack_.communication.tensor_overlap, room).value();
      }
    }
  }
  static void append_compute(std::vector<ProgramStep>& steps, const compute::OperatorCost& cost,
                             const std::string& name) {
    if (cost.time <= Seconds(0)) return;
    ProgramStep step;
    step.name = name;
    step.seconds = cost.time.value();
    step.work = cost.work;
    step.bound = name_of(cost.bound);
    steps.push_back(std::move(step));
  }

  void append_call(std::vector<ProgramStep>& steps, const Node& node, const std::string& name) {
    const model::CollectiveCall& call = node.comm();
    ProgramStep step;
    step.kind = call.op == CollectiveOp::ring_pass ? StepKind::ring_pass : StepKind::collective;
    step.name = name;
    step.collective = timeline::kind_of(call.op);
    step.group = call.group;
    const network::RankGroup& group = groups_[call.group];
    step.bytes = input_bytes(call.op, call.bytes, group.size());
    step.parts = collectives_.healthy().experts().skew_of(call.op, group);
    if (!step.parts.shares.empty()) {
      step.kind = StepKind::exchange;
      step.bytes = collectives_.healthy().wire_bytes(call.op, call.bytes, group).value();
    }
    step.repeats = static_cast<std::int32_t>(call.repeats);
    const Seconds comm = call.repeats * prices().time(call);
    step.seconds = comm.value();
    const Seconds attention(node.beside_core ? steps.back().seconds : 0);
    const Seconds spared = spared_by_drift(call, prices());
    step.hidden =
        (spared + hidden_by_attention(stack_.communication, call.group, comm - spared, attention)).value();
    steps.push_back(std::move(step));
  }

  void add_data_parallel(std::int32_t s, timeline::StageSteps& stage) {
    const auto index = static_cast<std::size_t>(s);
    stage.optimizer_work = optimizer_cost(in_, in_.setting.system.device, s).update.work;
    const DataTraffic calls = data_traffic(in_, in_.parameters_of(s));
    // A pass through a chunk needs only that chunk's share.
    const double chunks = in_.pipeline.virtual_stages;
    const auto steps = [&](const DataTraffic::Parts& parts, const char* name) {
      std::vector<ProgramStep> made;
      for (const DataTraffic::Part& part : parts) {
        made.push_back(traffic_step(part, name, chunks));
        const Seconds spared = prices().spared_in_turn(part.group, part.key(groups_));
        made.back().seconds -= spared.value() / chunks;
      }
      return made;
    };
    stage.forward_gather = steps(calls.forward_gather, "weights for forward");
    stage.backward_gather = steps(calls.backward_gather, "weights for backward");
    stage.microbatch_gradients = steps(calls.backward_scatter, "gradients of a microbatch");
    for (const DataTraffic::Part& part : calls.gradients) {
      stage.gradients.push_back(
          {traffic_step(part, "gradients", 1),
           bucket_releases(in_, s, last_backward(in_, times_, index), part.group, part.calls)});
    }
    stage.lost = times_.tails[index].lost.value();
    split_weights(times_.tails[index].hidden, calls.weights, stage);
  }

  /// Makes one of `parts` equal parts of the traffic.
  [[nodiscard]] ProgramStep traffic_step(const DataTraffic::Part& call, const char* name,
                                         double parts) const {
    const network::RankGroup& group = groups_[call.group];
    ProgramStep made;
    made.kind = StepKind::collective;
    made.name = name;
    made.collective = timeline::kind_of(call.op);
    made.group = call.group;
    const double calls_of_part = std::max(1.0, std::ceil(call.calls / parts));
    made.bytes = input_bytes(call.op, call.bytes, group.size()) / parts / calls_of_part;
    made.repeats = static_cast<std::int32_t>(calls_of_part);
    made.seconds = collectives_.time(call.key(groups_, slice_)).value() / parts;
    return made;
  }

  /// Splits the gather of updated weights into what forwards hide, and the rest.
  void split_weights(const HiddenGather& hidden, const DataTraffic::Parts& parts,
                     timeline::StageSteps& stage) const {
    Seconds whole;
    for (const DataTraffic::Part& part : parts) whole += collectives_.time(part.key(groups_, slice_));
    const auto add = [&](std::vector<ProgramStep>& steps, double share, double times) {
      for (const DataTraffic::Part& part : parts) {
        const DataTraffic::Part mine{part.group, part.op, share * part.bytes,
                                     std::max(1.0, std::round(share * part.calls))};
        if (share > 0) steps.push_back(traffic_step(mine, "updated weights", times));
      }
    };
    if (whole <= Seconds(0)) return;
    add(stage.first_gather, hidden.first / whole, in_.pipeline.both_ways() ? in_.pipeline.virtual_stages : 1);
    add(stage.next_gather, hidden.chunks > 1 ? hidden.later / whole : 0, 1);
    add(stage.weights, 1 - hidden.all() / whole, 1);
  }

  /// Appends to each pass what compute loses to the traffic beside it.
  static void lose_to_traffic(const StageTraffic& traffic, ChunkSteps& chunk) {
    constexpr const char* kName = "lost to data-parallel traffic";
    append_wait(chunk.forward, traffic.forward_lost.value(), kName);
    append_wait(chunk.backward, traffic.backward_lost.value(), kName);
    append_wait(chunk.weight, traffic.weight_lost.value(), kName);
  }

  const TrainingStep& in_;
  const network::CollectivePrices& collectives_;
  const StepTimes& times_;
  const StackProfile& stack_;
  network::PlanLayout layout_;
  network::RankGroups groups_;
  std::array<std::vector<Operator>, kLayerKinds> operators_;
  network::Slice slice_;  ///< of the stage being made
};

}  // namespace

timeline::PricedStep make_priced_step(const TrainingStep& inputs,
                                      const network::CollectivePrices& collectives, const StepTimes& times) {
  return StepMaker(inputs, collectives, times).make();
}

}  // namespace shardscape::step
