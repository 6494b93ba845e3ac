#include "engine/passes/step_program.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "engine/model/block.h"
#include "engine/model/embedding.h"
#include "engine/model/head.h"
#include "engine/model/partition.h"
#include "engine/network/plan_groups.h"
#include "engine/passes/data_exposure.h"
#include "engine/passes/data_traffic.h"
#include "engine/timeline/collective_kind.h"

namespace shardscape::passes {

namespace {

using model::Operator;
using model::OperatorKind;
using network::CollectiveOp;
using timeline::ChunkProgram;
using timeline::GroupAxis;
using timeline::ProgramStep;
using timeline::StepKind;

enum class Part : std::uint8_t { forward, backward, input_gradient, weight_gradient };

/// What one rank puts in, out of CollectiveModel's bytes.
double input_bytes(CollectiveOp op, Bytes bytes, std::int32_t ranks) {
  return op == CollectiveOp::all_gather ? bytes.value() / ranks : bytes.value();
}

class ProgramMaker {
 public:
  ProgramMaker(const TrainingInputs& in, network::CollectiveModel& collectives,
               const TrainingScratch& scratch)
      : in_(in),
        collectives_(collectives),
        scratch_(scratch),
        stack_(in.setting.system.stack),
        layout_(in.plan) {}

  timeline::StepProgram make() {
    timeline::StepProgram program;
    program.title = in_.setting.model.name;
    program.plan = in_.plan;
    program.shape = in_.pipeline;
    program.times = scratch_.times;
    program.transfer = scratch_.transfer;
    program.stage_end = scratch_.end;
    for (const StageTail& tail : scratch_.tails) {
      program.tails.push_back({tail.data_comm.value(), tail.optimizer.value()});
    }
    program.data_overlap = stack_.communication.data_overlap;
    program.step_fixed = stack_.host.step_fixed.value();
    set_boundary(program);
    for (std::int32_t s = 0; s < in_.plan.pipeline; ++s) program.stages.push_back(make_stage(s));
    return program;
  }

 private:
  void set_boundary(timeline::StepProgram& program) const {
    const double bytes = in_.costs.boundary.value();
    program.boundary_bytes = bytes;
    const bool scatter = stack_.communication.scatter_boundaries && !in_.plan.sequence_parallel;
    if (!scatter || in_.plan.tensor == 1) return;
    program.boundary_bytes = bytes / in_.plan.tensor;
    program.boundary_gather_bytes = bytes / in_.plan.tensor;
  }

  timeline::StageProgram make_stage(std::int32_t s) {
    const auto index = static_cast<std::size_t>(s);
    slice_ = network::stage_slice(s, layout_, in_.plan);
    const std::int32_t v = in_.pipeline.virtual_stages;
    const std::int64_t tokens = in_.setting.workload.sequence_length;
    const model::LayerKey key{in_.plan.tensor, in_.plan.context, in_.plan.microbatch,
                              in_.plan.sequence_parallel};
    const auto training = model::Mode::training;
    const bool cut = in_.pipeline.kind == ScheduleKind::zero_bubble;
    timeline::StageProgram stage;
    double weight_host = 0;
    for (std::int32_t c = 0; c < v; ++c) {
      ChunkProgram chunk;
      const bool first = s == 0 && c == 0, last = s + 1 == in_.plan.pipeline && c + 1 == v;
      const auto embedding = model::embedding_operators(in_.setting, key, tokens, training);
      std::vector<std::vector<Operator>> kinds;
      for (std::size_t kind = 0; kind < in_.costs.blocks.size(); ++kind)
        kinds.push_back(model::block_operators(in_.setting, kind, key, tokens, training));
      const auto head = model::head_operators(in_.setting, key, tokens, training);
      const model::StageLayers layers = model::layers_of_chunk(in_.layers[index], v, c);
      std::vector<std::size_t> blocks;  // by their kinds
      layers.each([&](std::size_t kind) { blocks.push_back(kind); });
      if (first) append(chunk.forward, embedding, Part::forward, "embedding");
      for (std::size_t l = 0; l < blocks.size(); ++l)
        append(chunk.forward, kinds[blocks[l]], Part::forward, block_name(l));
      if (last) append(chunk.forward, head, Part::forward, "head");
      if (last) append(chunk.backward, head, Part::backward, "head");
      for (std::size_t l = blocks.size(); l-- > 0;) {
        const std::vector<Operator>& block = kinds[blocks[l]];
        append_recompute(chunk.backward, block, block_name(l));
        append(chunk.backward, block, cut ? Part::input_gradient : Part::backward, block_name(l));
        if (cut) append(chunk.weight, block, Part::weight_gradient, block_name(l));
      }
      if (first) append(chunk.backward, embedding, Part::backward, "embedding");
      if (cut) weight_host = append_weight_host(chunk.weight, layers);
      append_wait(chunk.forward, scratch_.forward[index].host.value() / v);
      append_wait(chunk.backward, (scratch_.backward[index].host.value() - weight_host) / v);
      stage.chunks.push_back(std::move(chunk));
    }
    add_data_parallel(s, stage);
    stage.optimizer = scratch_.tails[index].optimizer.value();
    return stage;
  }
  static std::string block_name(std::size_t layer) { return "block " + std::to_string(layer); }

  static void append_wait(std::vector<ProgramStep>& steps, double seconds) {
    if (seconds <= 0) return;
    ProgramStep step;
    step.kind = StepKind::wait;
    step.name = "host";
    step.seconds = seconds;
    steps.push_back(std::move(step));
  }
  /// What the host takes for weight gradients beyond the device's time.
  double append_weight_host(std::vector<ProgramStep>& steps, const model::StageLayers& layers) const {
    double wait = 0;
    for (const auto& [kind, count] : layers) {
      const LayerCost& block = in_.costs.blocks[kind];
      const Seconds launch = backward_launch(in_, block, in_.plan.recompute, true).weight;
      wait += count * std::max(0.0, (launch - block.weight).value());
    }
    append_wait(steps, wait);
    return wait;
  }

  /// Operators in the order in which they run.
  void append(std::vector<ProgramStep>& steps, const std::vector<Operator>& operators, Part part,
              const std::string& layer) {
    const bool forward = part == Part::forward;
    const std::size_t begin = steps.size();
    for (std::size_t i = 0; i < operators.size(); ++i) {
      const Operator& op = operators[forward ? i : operators.size() - 1 - i];
      const OperatorTimes times = price(op, in_.setting);
      const model::CollectiveCall& call = forward ? op.forward_comm : op.backward_comm;
      if (call.repeats > 0 && part != Part::weight_gradient) append_call(steps, op, call, layer);
      compute::OperatorCost cost = forward ? times.forward : times.backward;
      if (part == Part::input_gradient) {
        cost.time -= times.weight;
        cost.work -= times.weight_work;
      } else if (part == Part::weight_gradient) {
        cost.time = times.weight;
        cost.work = times.weight_work;
      }
      append_compute(steps, op, cost, layer);
    }
    hide_context(steps, begin);
  }
  static void append_compute(std::vector<ProgramStep>& steps, const Operator& op,
                             const compute::OperatorCost& cost, const std::string& layer) {
    if (cost.time <= Seconds(0)) return;
    ProgramStep step;
    step.name = layer + " " + std::string(op.name);
    step.seconds = cost.time.value();
    step.work = cost.work;
    step.bound = name_of(cost.bound);
    steps.push_back(std::move(step));
  }

  void append_call(std::vector<ProgramStep>& steps, const Operator& op, const model::CollectiveCall& call,
                   const std::string& layer) {
    const bool tensor = call.axis == PlanAxis::tensor;
    ProgramStep step;
    step.kind = call.op == CollectiveOp::ring_pass ? StepKind::ring_pass : StepKind::collective;
    step.name = layer + " " + std::string(op.name);
    step.collective = timeline::kind_of(call.op);
    step.axis = tensor ? GroupAxis::tensor : GroupAxis::context;
    const network::RankGroup group = layout_.group(call.axis);
    step.bytes = input_bytes(call.op, call.bytes, group.size());
    step.repeats = static_cast<std::int32_t>(call.repeats);
    step.seconds = (call.repeats * collectives_.time(call.op, call.bytes, group, 1, slice_)).value();
    if (tensor) step.hidden = stack_.communication.tensor_overlap * step.seconds;
    steps.push_back(std::move(step));
  }

  /// Exchanges of keys and values move behind the attention that hides them; backward they are there already.
  void hide_context(std::vector<ProgramStep>& steps, std::size_t begin) const {
    for (std::size_t i = begin; i < steps.size(); ++i) {
      if (steps[i].kind != StepKind::ring_pass || steps[i].hidden > 0) continue;
      const bool after = i > begin && steps[i - 1].name.ends_with(" attention");
      if (!after && i + 1 < steps.size() && steps[i + 1].name.ends_with(" attention")) {
        std::swap(steps[i], steps[i + 1]);
        ++i;
      }
      const double attention = i > 0 && steps[i - 1].kind == StepKind::compute ? steps[i - 1].seconds : 0;
      steps[i].hidden = std::min(steps[i].seconds, stack_.communication.context_overlap * attention);
    }
  }

  void append_recompute(std::vector<ProgramStep>& steps, const std::vector<Operator>& block,
                        const std::string& layer) {
    if (in_.plan.recompute == Recompute::full) append(steps, block, Part::forward, layer + " again");
    if (in_.plan.recompute != Recompute::selective) return;
    const std::size_t begin = steps.size();
    for (const Operator& op : block) {
      const OperatorTimes times = price(op, in_.setting);
      if (op.forward_comm.repeats > 0 && op.forward_comm.axis == PlanAxis::context) {
        append_call(steps, op, op.forward_comm, layer + " again");
      }
      if (op.attention_core) {
        append_compute(steps, op, times.forward, layer + " again");
      }
    }
    hide_context(steps, begin);
  }

  void add_data_parallel(std::int32_t s, timeline::StageProgram& stage) {
    const auto index = static_cast<std::size_t>(s);
    stage.optimizer_work = optimizer_cost(in_, in_.setting.system.device, index).update.work;
    const DataTraffic calls = data_traffic(in_, in_.parameters.of_stage(in_.layers, index));
    // A pass through a chunk needs that chunk's share.
    const double chunks = in_.pipeline.virtual_stages;
    const auto step = [&](const DataTraffic::Part& call, const char* name,
                          double parts) -> std::optional<ProgramStep> {
      if (call.bytes <= Bytes(0)) return std::nullopt;
      const network::RankGroup group = network::PlanGroups(in_.plan)[ParallelGroup::data_shard];
      ProgramStep made;
      made.kind = StepKind::collective;
      made.name = name;
      made.collective = timeline::kind_of(call.op);
      made.axis = GroupAxis::shard;
      const double calls_of_part = std::max(1.0, std::ceil(call.calls / parts));
      made.bytes = input_bytes(call.op, call.bytes, group.size()) / parts / calls_of_part;
      made.repeats = static_cast<std::int32_t>(calls_of_part);
      made.seconds = collectives_.time(call.op, call.bytes, group, call.calls, slice_).value() / parts;
      return made;
    };
    stage.forward_gather = step(calls.forward_gather, "weights for forward", chunks);
    stage.backward_gather = step(calls.backward_gather, "weights for backward", chunks);
    stage.microbatch_gradients = step(calls.backward_scatter, "gradients of a microbatch", chunks);
    stage.gradients = step(calls.gradients, "gradients", 1);
    if (stage.gradients)
      stage.releases = bucket_releases(in_, s, last_backward(in_, scratch_, index), calls.gradients.calls);
    stage.weights = step(calls.weights, "updated weights", 1);
  }

  const TrainingInputs& in_;
  network::CollectiveModel& collectives_;
  const TrainingScratch& scratch_;
  const StackProfile& stack_;
  network::PlanLayout layout_;
  network::Slice slice_;  ///< the stage at hand
};

}  // namespace

timeline::StepProgram make_step_program(const TrainingInputs& inputs, network::CollectiveModel& collectives,
                                        const TrainingScratch& scratch) {
  return ProgramMaker(inputs, collectives, scratch).make();
}

}  // namespace shardscape::passes
