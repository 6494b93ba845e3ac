#include "engine/spec/stack.h"

namespace shardscape {

Problems StackProfile::validate() const {
  Problems problems;
  const auto not_negative = [&](double value, const char* field) {
    problems.require(value >= 0, field, "must not be negative");
  };
  const auto share = [&](double value, const char* field) {
    problems.require(value >= 0 && value <= 1, field, "is a share, 0..1");
  };
  const auto fraction = [&](double value, const char* field) {
    problems.require(value > 0 && value <= 1, field, "is an achieved share of the peak, 0 < share <= 1");
  };
  not_negative(zero_slice.value(), "zero_slice");
  not_negative(host.forward_layer.value(), "host.forward_layer");
  not_negative(host.backward_layer.value(), "host.backward_layer");
  not_negative(host.per_collective.value(), "host.per_collective");
  not_negative(host.per_collective_rank.value(), "host.per_collective_rank");
  not_negative(host.step_fixed.value(), "host.step_fixed");
  not_negative(host.decode_layer.value(), "host.decode_layer");
  not_negative(host.decode_step_fixed.value(), "host.decode_step_fixed");
  not_negative(communication.call.value(), "communication.call");
  not_negative(communication.rank_step.value(), "communication.rank_step");
  fraction(communication.scale_up_fraction, "communication.scale_up_fraction");
  fraction(communication.scale_out_fraction, "communication.scale_out_fraction");
  fraction(communication.scale_out_scaling, "communication.scale_out_scaling");
  not_negative(communication.rank_step_scale_out.value(), "communication.rank_step_scale_out");
  not_negative(communication.zero_bucket.value(), "communication.zero_bucket");
  share(communication.tensor_overlap, "communication.tensor_overlap");
  share(communication.context_overlap, "communication.context_overlap");
  share(communication.data_overlap, "communication.data_overlap");
  problems.require(communication.bucket.value() > 0, "communication.bucket", "must be greater than 0");
  not_negative(state.gradient_bytes, "state.gradient_bytes");
  not_negative(state.gradient_comm_bytes, "state.gradient_comm_bytes");
  not_negative(state.master_bytes, "state.master_bytes");
  not_negative(state.moment_bytes, "state.moment_bytes");
  not_negative(memory.reserve.value(), "memory.reserve");
  not_negative(memory.workspace.value(), "memory.workspace");
  problems.require(memory.fragmentation >= 1, "memory.fragmentation",
                   "is reserved over allocated, at least 1");
  return problems;
}

}  // namespace shardscape
