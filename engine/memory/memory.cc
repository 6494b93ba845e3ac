// Adds up the memory of a stage: its parameters' state under ZeRO, the activations of the microbatches in flight at the
// moments of peaks(), logits, buffers and the reserve; for servers weights, caches and working tensors.
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
  // Under dualpipe the first and the last stage each hold both ends.
  const bool both = in.pipeline.both_ways() && (first || last);
  return {first || both, last || both};
}

model::ParameterGroups parameters_of(const MemoryInputs& in, std::int32_t stage) {
  if (!in.held.empty()) return in.held[static_cast<std::size_t>(stage)];
  const StagePosition at = position(in, stage);
  return in.parameters.of_stage(in.layers[static_cast<std::size_t>(stage)], at.first, at.last);
}

/// Number of microbatches that have passed the head before the last stage's first backward: one where the backward of
/// each follows at once, all where every forward comes first (gpipe, interleaved with as many microbatches as stages).
double heads_in_flight(const schedule::PipelineShape& shape) {
  const bool forwards_first =
      schedule::warm_up(shape, shape.stages - 1) == shape.microbatches * shape.virtual_stages;
  if (forwards_first) return shape.microbatches;
  return shape.overlaps ? 2 : 1;  // a pair runs the head of the next microbatch beside the backward
}

/// Bytes that microbatches before the last loss have kept for weight gradients of the head.
Bytes deferred_heads_bytes(const MemoryInputs& in) {
  const double deferred = deferred_heads(in.plan, in.setting.system.stack, in.pipeline.microbatches);
  const double before = in.pipeline.microbatches - heads_in_flight(in.pipeline);
  return std::min(deferred, before) * in.activations.head_put_off;
}

/// Numbers of microbatches that a set of layers holds.
struct Flights {
  const model::StageLayers& layers;
  double in_flight, put_off;
  bool first, last;        ///< whether embedding and head are among the layers
  double all_but_one = 1;  ///< share of the running microbatch's blocks that counts
};

/// The bytes that these microbatches hold, and how many more they are when the running one has only its last block left
/// (the first of the stage) and its other blocks wait for their weight gradients.
struct HeldBytes {
  Bytes now, more;
};
HeldBytes held_bytes(const ActivationBytes& of, const Flights& through) {
  HeldBytes held;
  for (const auto& [kind, count] : through.layers) {
    const BlockBytes& block = of.block[kind];
    held.now += through.in_flight * count * block.saved + through.put_off * count * block.put_off;
    const double others = kind == through.layers.begin()->kind ? count - 1 : count;
    held.more += through.all_but_one * others * (block.put_off - block.saved);
  }
  if (through.first) held.now += through.in_flight * of.embedding;
  if (!through.last) held.now += through.in_flight * through.layers.further() * of.further;
  return held;
}

/// Peak bytes of a stage whose chunks are alike, or nearly: each holds an equal share of the microbatches.
Bytes alike_chunks_bytes(const MemoryInputs& in, std::int32_t stage) {
  const StagePosition at = position(in, stage);
  const model::StageLayers& layers = in.layers[static_cast<std::size_t>(stage)];
  const double share = 1.0 / in.pipeline.virtual_stages;
  Bytes sum;
  std::int32_t in_flight = -1, put_off = -1;  // the numbers of the previous moment
  for (const schedule::HeldMicrobatches& held : schedule::peaks(in.pipeline, stage)) {
    if (held.in_flight == in_flight && held.put_off == put_off)
      continue;  // most schedules have a single moment
    in_flight = held.in_flight;
    put_off = held.put_off;
    const HeldBytes bytes = held_bytes(
        in.activations, {layers, held.in_flight * share, held.put_off * share, at.first, at.last, share});
    const bool cut = in.pipeline.cuts() || held.put_off > 0;
    sum = std::max(sum, bytes.now + (cut ? std::max(Bytes(0), bytes.more) : Bytes(0)));
  }
  return sum;
}

/// Peak bytes of a dualpipe stage, which holds its own part of the model and its mirror's: many microbatches of the
/// part whose microbatches come in nearer to it, few of the other.
Bytes both_parts_bytes(const MemoryInputs& in, std::int32_t stage) {
  Bytes sum;
  for (const auto& moment : schedule::peaks_by_chunk(in.pipeline, stage)) {
    Bytes now, more;
    bool cut = false;
    for (std::int32_t chunk = 0; chunk < 2; ++chunk) {
      const std::int32_t part = in.pipeline.part(stage, chunk);
      const schedule::HeldMicrobatches& held = moment[static_cast<std::size_t>(chunk)];
      const double in_flight = held.in_flight, put_off = held.put_off;
      const HeldBytes bytes =
          held_bytes(in.activations, {in.chunks[static_cast<std::size_t>(2 * stage + chunk)], in_flight,
                                      put_off, part == 0, part + 1 == in.pipeline.parts()});
      now += bytes.now;
      if (held.in_flight > 0) more = std::max(more, bytes.more);
      cut = cut || held.put_off > 0;
    }
    sum = std::max(sum, now + (cut ? more : Bytes(0)));
  }
  return sum;
}

Bytes saved_activations(const MemoryInputs& in, std::int32_t stage) {
  const StagePosition at = position(in, stage);
  const model::StageLayers& layers = in.layers[static_cast<std::size_t>(stage)];
  Bytes sum = in.pipeline.both_ways() ? both_parts_bytes(in, stage) : alike_chunks_bytes(in, stage);
  Bytes working;
  for (const auto& [kind, count] : layers) working = std::max(working, in.activations.block[kind].working);
  sum += working;
  if (at.last) {
    const Bytes ends = in.activations.head + layers.further() * in.activations.further;
    sum += heads_in_flight(in.pipeline) * ends + deferred_heads_bytes(in);
  }
  return in.setting.system.stack.memory.fragmentation * sum;
}

/// Under ZeRO-3: the weights that are gathered of the two largest blocks of a stage, of one where it has no more, and
/// the copies made of them. What a single rank holds is gathered by nobody.
Bytes gathered_blocks(const MemoryInputs& in, std::int32_t stage) {
  Bytes largest, next;
  for (const auto& [kind, count] : in.layers[static_cast<std::size_t>(stage)]) {
    Bytes gathered;
    for (const auto& [copies, held] : in.parameters.block[kind])
      if (ranks_of(in.plan, copies) > 1) gathered += held.weights + held.copies;
    for (std::int32_t i = 0; i < std::min(count, 2); ++i) {
      next = std::max(next, std::min(largest, gathered));
      largest = std::max(largest, gathered);
    }
  }
  return largest + next;
}

/// Bytes of all buffers; `buckets` are those of the gradient buckets and the workspace.
Bytes training_buffers(const MemoryInputs& in, std::int32_t stage, Bytes buckets) {
  Bytes sum = buckets;
  if (in.plan.pipeline > 1) sum += 2 * in.activations.boundary;
  if (zero_shards(in.plan, ZeroState::weights)) sum += gathered_blocks(in, stage);
  return sum;
}

}  // namespace

bool is_no_fuller(const MemoryInputs& in, std::int32_t stage) {
  if (stage < 2 || in.pipeline.cuts() || in.pipeline.both_ways()) return false;
  const auto s = static_cast<std::size_t>(stage);
  return stage + 1 < in.plan.pipeline && in.layers[s] == in.layers[s - 1];
}

MemoryUse training_state(const MemoryInputs& in, std::int32_t stage) {
  const StackProfile& stack = in.setting.system.stack;
  const model::ParameterGroups parameters = parameters_of(in, stage);
  const bool whole_weights = !zero_shards(in.plan, ZeroState::weights);

  MemoryUse use;
  use.buffers = stack.memory.workspace;
  for (const auto& [copies, held] : parameters) {
    const double shards = ranks_of(in.plan, copies), owners = in.pipeline.copies() * shards;
    // Under ZeRO-3 the copies are made from gathered blocks and freed with them.
    use.weights += whole_weights || shards <= 1 ? held.weights + held.copies : held.weights / shards;
    use.gradients += Bytes(stack.state.gradient_bytes * held.count /
                           (scatters_each_microbatch(in.plan, stack) ? shards : 1.0));
    use.optimizer += Bytes((stack.state.master_bytes + stack.state.moment_bytes) * held.count /
                           (zero_shards(in.plan, ZeroState::optimizer) ? owners : 1.0));
    if (owners > 1)
      use.buffers += std::min(gradient_bucket(in.plan, stack, copies),
                              Bytes(stack.state.gradient_comm_bytes * held.count));
  }
  return use;
}

MemoryUse training_stage(const MemoryInputs& in, std::int32_t stage, const MemoryUse& state) {
  MemoryUse use = state;
  use.activations = saved_activations(in, stage);
  if (position(in, stage).last) {
    const double waiting = heads_in_flight(in.pipeline) - 1;
    use.logits = in.activations.logits + waiting * in.activations.logits_saved;
  }
  use.buffers = training_buffers(in, stage, state.buffers);
  use.reserve = in.setting.system.stack.memory.reserve;
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
