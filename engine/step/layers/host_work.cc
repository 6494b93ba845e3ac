#include "engine/step/layers/host_work.h"

#include "engine/step/layers/training_step.h"

namespace shardscape::step {

Seconds once_per_step(const Setting& setting) {
  const StackProfile::Host& host = setting.system.stack.host;
  return setting.trains_on_graphs() ? host.graph_step : host.step_fixed;
}

Seconds pass_lead(const TrainingStep& in) {
  return in.plan.pipeline > 1 ? in.setting.system.stack.host.stage_pass : Seconds(0);
}

Seconds segments_launch(const TrainingStep& in, LayerKind kind, const Segments& segments) {
  const StackProfile::Host host = in.setting.training_host();
  const LayerCost& layer = in.costs[kind];
  const StackProfile::Experts& experts = in.setting.system.stack.experts;
  const Seconds each =
      (in.setting.model.moe ? static_cast<double>(in.setting.model.moe->experts) : 0) * experts.per_expert;
  const Seconds forward = host.forward_layer + layer.routers * (experts.forward_layer + each) +
                          layer.plain_forward * experts.plain_launch;
  const Seconds backward = host.backward_layer + layer.routers * (experts.backward_layer + each) +
                           layer.plain_backward * experts.plain_launch;
  const auto own = [&](LayerPart part) {
    switch (part) {
      case LayerPart::forward:
        return forward;
      case LayerPart::backward:
        return backward;
      case LayerPart::input:
        return (1 - layer.weight_kernels) * backward;
      case LayerPart::weight:
        return layer.weight_kernels * backward;
      case LayerPart::repeated:
        return layer.repeated_kernels * forward;
    }
    return Seconds(0);
  };
  Seconds sum;
  for (const Segment& segment : segments) {
    // The attention core, if it is all that is repeated, is launched with its backward.
    if (segment.part == LayerPart::repeated && layer.repeated_kernels == 0) continue;
    Seconds launch = own(segment.part), progress;
    for (const model::CollectiveCall& call : layer[segment.part].calls) {
      launch += call.repeats * host.per_collective;
      progress += call.repeats * ranks_of(in.plan, call.group) * host.per_collective_rank;
    }
    sum += std::max(launch, progress);
  }
  return sum;
}

Seconds pass_launch(const TrainingStep& in, LayerKind kind, Pass pass) {
  return segments_launch(in, kind, in.segments(kind, pass));
}

BlockHost host_of_block(const StackProfile& stack, double calls, std::int64_t batches) {
  const auto times = static_cast<double>(batches);
  const Seconds launch = stack.host.decode_layer + calls * stack.host.per_collective;
  return {times * launch.value(), times * stack.host.decode_gap.value()};
}

IterationHost host_of_iteration(const StackProfile& stack, double batches, double rows) {
  const Seconds row = stack.host.decode_sequence + batches * stack.host.decode_stream;
  return {stack.host.decode_step_fixed.value(), rows * row.value()};
}

}  // namespace shardscape::step
