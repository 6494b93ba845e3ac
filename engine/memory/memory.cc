#include "engine/memory/memory.h"

#include <algorithm>

namespace shardscape::memory {

namespace {

struct StagePosition {
  bool first = false;
  bool last = false;
};

StagePosition position(const MemoryInputs& in, std::int32_t stage) {
  return {stage == 0, stage + 1 == in.plan.pipeline};
}

double parameters_of(const MemoryInputs& in, std::int32_t stage) {
  const StagePosition at = position(in, stage);
  return in.parameters.of_stage(in.layers[static_cast<std::size_t>(stage)], at.first, at.last,
                                in.setting.model.tied_embeddings);
}

/// Microbatches that have passed the head before the last stage's first backward: one where the backward of
/// each follows at once, all where every forward comes first (gpipe, interleaved with as many microbatches as
/// stages).
double heads_in_flight(const schedule::PipelineShape& shape) {
  const bool forwards_first =
      schedule::warm_up(shape, shape.stages - 1) == shape.microbatches * shape.virtual_stages;
  return forwards_first ? shape.microbatches : 1;
}

Bytes saved_activations(const MemoryInputs& in, std::int32_t stage) {
  const StagePosition at = position(in, stage);
  const std::int32_t layers = in.layers[static_cast<std::size_t>(stage)];
  const double chunk_share = 1.0 / in.pipeline.virtual_stages;
  Bytes sum;
  for (const schedule::HeldMicrobatches& held : schedule::peaks(in.pipeline, stage)) {
    const double flights = held.in_flight * chunk_share;
    Bytes now = flights * layers * in.activations.block;
    now += static_cast<double>(held.put_off) * layers * in.activations.block_put_off;
    if (at.first) now += flights * in.activations.embedding;
    sum = std::max(sum, now);
    // The peak may also come when the running microbatch has only its last block left, and its other blocks
    // wait for their weight gradients.
    const bool cut = in.pipeline.kind == ScheduleKind::zero_bubble && layers > 0;
    if (cut)
      sum = std::max(sum, now + (layers - 1.0) * (in.activations.block_put_off - in.activations.block));
  }
  if (layers > 0) sum += in.activations.block_working;
  if (at.last) sum += heads_in_flight(in.pipeline) * in.activations.head;
  return in.setting.system.stack.memory.fragmentation * sum;
}

Bytes training_buffers(const MemoryInputs& in, double parameters) {
  const StackProfile& stack = in.setting.system.stack;
  const double group = static_cast<double>(in.plan.data) * in.plan.context;
  Bytes sum = stack.memory.workspace;
  if (group > 1)
    sum += std::min(stack.communication.bucket, Bytes(stack.state.gradient_comm_bytes * parameters));
  if (in.plan.pipeline > 1) sum += 2 * in.activations.boundary;
  if (in.plan.zero_stage == 3) {
    sum += Bytes(2 * bytes_per_element(in.setting.workload.precision) * in.parameters.block);
  }
  return sum;
}

}  // namespace

double StageParameters::of_stage(std::int32_t layers, bool first, bool last, bool tied) const {
  double sum = layers * block;
  if (first) sum += embedding;
  if (last) sum += final_norm;
  // A tied head on a stage of its own holds a copy of the table.
  if (last && !(first && tied)) sum += head;
  return sum;
}

StageParameters stage_parameters(const ModelSpec& model, std::int32_t tensor) {
  const double t = tensor;
  StageParameters p;
  // Replicated KV heads: each rank holds at least one.
  const double kv =
      static_cast<double>(workload::local_kv_heads(model, tensor)) - static_cast<double>(model.kv_heads) / t;
  const double replicated_kv = 2 * kv * static_cast<double>(model.head_dim) *
                               (static_cast<double>(model.hidden) + (model.has_qkv_bias() ? 1 : 0));
  const double split = model.block_matrix_parameters() + model.block_column_biases();
  p.block = split / t + replicated_kv + model.block_vector_parameters() - model.block_column_biases();
  const double positions = model.position_parameters();
  p.embedding = (model.embedding_parameters() - positions) / t + positions;
  p.final_norm = model.final_norm_parameters();
  p.head = static_cast<double>(model.vocabulary * model.hidden) / t;
  return p;
}

MemoryUse training_stage(const MemoryInputs& in, std::int32_t stage) {
  const StackProfile& stack = in.setting.system.stack;
  const double parameters = parameters_of(in, stage);
  const double shards = static_cast<double>(in.plan.data) * in.plan.context;
  const auto sharded_from = [&](std::int32_t zero) { return in.plan.zero_stage >= zero ? shards : 1.0; };
  // Gradients stay whole until the last microbatch where the stack reduces them only then.
  const bool whole_gradients =
      in.plan.zero_stage == 2 && stack.zero2_gradients == Zero2Gradients::last_microbatch;

  MemoryUse use;
  use.weights = Bytes(bytes_per_element(in.setting.workload.precision) * parameters / sharded_from(3));
  use.gradients = Bytes(stack.state.gradient_bytes * parameters / (whole_gradients ? 1.0 : sharded_from(2)));
  use.optimizer = Bytes((stack.state.master_bytes + stack.state.moment_bytes) * parameters / sharded_from(1));
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
  const ModelSpec& model = in.setting.model;
  const double element = bytes_per_element(in.setting.workload.precision);
  MemoryUse use;
  use.weights = Bytes(element * parameters_of(in, stage));
  use.kv_cache = Bytes(2 * element * sequences * tokens / in.plan.context *
                       static_cast<double>(in.layers[static_cast<std::size_t>(stage)]) *
                       static_cast<double>(workload::local_kv_heads(model, in.plan.tensor) * model.head_dim));
  use.activations = in.setting.system.stack.memory.fragmentation * in.activations.block_working;
  if (position(in, stage).last) use.logits = in.activations.logits;
  use.buffers = in.setting.system.stack.memory.workspace;
  if (in.plan.pipeline > 1) use.buffers += 2 * in.activations.boundary;
  use.reserve = in.setting.system.stack.memory.reserve;
  return use;
}

}  // namespace shardscape::memory
