#include "engine/memory/memory.h"

#include <algorithm>

#include "engine/model/block_kinds.h"
#include "engine/spec/deferred_head.h"
#include "engine/spec/zero.h"

namespace shardscape::memory {

namespace {

struct StagePosition {
  bool first = false;
  bool last = false;
};

StagePosition position(const MemoryInputs& in, std::int32_t stage) {
  const bool first = stage == 0, last = stage + 1 == in.plan.pipeline;
  const bool both = in.pipeline.both_ways() && (first || last);  // either end is the other one's mirror
  return {first || both, last || both};
}

model::ParameterGroups parameters_of(const MemoryInputs& in, std::int32_t stage) {
  if (!in.held.empty()) return in.held[static_cast<std::size_t>(stage)];
  const StagePosition at = position(in, stage);
  return in.parameters.of_stage(in.layers[static_cast<std::size_t>(stage)], at.first, at.last);
}

/// Microbatches that have passed the head before the last stage's first backward: one where the backward of
/// each follows at once, all where every forward comes first (gpipe, interleaved with as many microbatches as
/// stages).
double heads_in_flight(const schedule::PipelineShape& shape) {
  const bool forwards_first =
      schedule::warm_up(shape, shape.stages - 1) == shape.microbatches * shape.virtual_stages;
  if (forwards_first) return shape.microbatches;
  return shape.overlaps ? 2 : 1;  // a pair runs the next one beside the backward
}

/// What microbatches before the last loss have kept for weight gradients of the head.
Bytes deferred_heads_bytes(const MemoryInputs& in) {
  const double deferred = deferred_heads(in.plan, in.setting.system.stack, in.pipeline.microbatches);
  const double before = in.pipeline.microbatches - heads_in_flight(in.pipeline);
  return std::min(deferred, before) * in.activations.head_put_off;
}

Bytes saved_activations(const MemoryInputs& in, std::int32_t stage) {
  const StagePosition at = position(in, stage);
  const model::StageLayers& layers = in.layers[static_cast<std::size_t>(stage)];
  const double chunk_share = 1.0 / in.pipeline.virtual_stages;
  Bytes sum;
  for (const schedule::HeldMicrobatches& held : schedule::peaks(in.pipeline, stage)) {
    const double flights = held.in_flight * chunk_share;
    Bytes now, all_but_one;
    for (const auto& [kind, count] : layers) {
      const BlockBytes& block = in.activations.block[kind];
      now += flights * count * block.saved + held.put_off * chunk_share * count * block.put_off;
      const double others = kind == layers.begin()->kind ? count - 1 : count;
      all_but_one += chunk_share * others * (block.put_off - block.saved);
    }
    if (at.first) now += flights * in.activations.embedding;
    if (!at.last) now += flights * layers.further() * in.activations.further;
    sum = std::max(sum, now);
    // The peak may also come when the running microbatch has only its last block left (the first of the stage),
    // and its other blocks wait for their weight gradients.
    const bool cut = in.pipeline.kind == ScheduleKind::zero_bubble || held.put_off > 0;
    if (cut) sum = std::max(sum, now + all_but_one);
  }
  Bytes working;
  for (const auto& [kind, count] : layers) working = std::max(working, in.activations.block[kind].working);
  sum += working;
  if (at.last) {
    const Bytes ends = in.activations.head + layers.further() * in.activations.further;
    sum += heads_in_flight(in.pipeline) * ends + deferred_heads_bytes(in);
  }
  return in.setting.system.stack.memory.fragmentation * sum;
}

Bytes training_buffers(const MemoryInputs& in, const model::ParameterGroups& parameters) {
  const StackProfile& stack = in.setting.system.stack;
  Bytes sum = stack.memory.workspace;
  for (const auto& [copies, held] : parameters) {
    if (ranks_of(in.plan, copies) > 1)
      sum += std::min(stack.communication.bucket, Bytes(stack.state.gradient_comm_bytes * held.count));
  }
  if (in.plan.pipeline > 1) sum += 2 * in.activations.boundary;
  if (zero_shards(in.plan, ZeroState::weights)) {
    Bytes largest_block;
    for (const model::ParameterGroups& block : in.parameters.block) {
      const model::Parameters all = block.total();
      largest_block = std::max(largest_block, all.weights + all.copies);
    }
    sum += 2 * largest_block;
  }
  return sum;
}

}  // namespace

bool is_no_fuller(const MemoryInputs& in, std::int32_t stage) {
  if (stage < 2 || in.pipeline.kind == ScheduleKind::zero_bubble || in.pipeline.both_ways()) return false;
  const auto s = static_cast<std::size_t>(stage);
  return stage + 1 < in.plan.pipeline && in.layers[s] == in.layers[s - 1];
}

MemoryUse training_stage(const MemoryInputs& in, std::int32_t stage) {
  const StackProfile& stack = in.setting.system.stack;
  const model::ParameterGroups parameters = parameters_of(in, stage);
  const bool whole_weights = !zero_shards(in.plan, ZeroState::weights);

  MemoryUse use;
  for (const auto& [copies, held] : parameters) {
    const double shards = ranks_of(in.plan, copies), owners = in.pipeline.copies() * shards;
    // Under ZeRO-3 the copies are made of gathered blocks and go with them.
    use.weights += whole_weights ? held.weights + held.copies : held.weights / shards;
    use.gradients += Bytes(stack.state.gradient_bytes * held.count /
                           (scatters_each_microbatch(in.plan, stack) ? shards : 1.0));
    use.optimizer += Bytes((stack.state.master_bytes + stack.state.moment_bytes) * held.count /
                           (zero_shards(in.plan, ZeroState::optimizer) ? owners : 1.0));
  }
  use.activations = saved_activations(in, stage);
  if (position(in, stage).last) {
    const double waiting = heads_in_flight(in.pipeline) - 1;
    use.logits = in.activations.logits + waiting * in.activations.logits_saved;
  }
  use.buffers = training_buffers(in, parameters);
  use.reserve = stack.memory.reserve;
  return use;
}

MemoryUse inference_stage(const MemoryInputs& in, std::int32_t stage, double sequences, double tokens) {
  MemoryUse use;
  use.weights = parameters_of(in, stage).total().weights;
  for (const auto& [kind, count] : in.layers[static_cast<std::size_t>(stage)])
    use.kv_cache += sequences * model::cached_tokens(in.setting.model, kind, tokens) / in.plan.context *
                    count * model::kv_bytes(in.setting, kind, in.plan.tensor);
  Bytes working;
  for (const BlockBytes& block : in.activations.block) working = std::max(working, block.working);
  use.activations = in.setting.system.stack.memory.fragmentation * working;
  if (position(in, stage).last) use.logits = in.activations.logits;
  use.buffers = in.setting.system.stack.memory.workspace;
  if (in.plan.pipeline > 1) use.buffers += 2 * in.activations.boundary;
  use.reserve = in.setting.system.stack.memory.reserve;
  return use;
}

}  // namespace shardscape::memory
