#include "engine/spec/stack.h"

#include <algorithm>
#include <cmath>
#include <string>

namespace shardscape {

namespace {

void check_algorithms(const std::vector<Algorithm>& algorithms, Problems& problems) {
  const std::vector<Algorithm> known = StackProfile::Communication::all_algorithms();
  problems.require(!algorithms.empty(), "communication.algorithms", "must name at least one algorithm");
  for (auto it = algorithms.begin(); it != algorithms.end(); ++it) {
    const std::string name(name_of(*it));
    problems.require(
        std::ranges::find(known, *it) != known.end(), "communication.algorithms",
        name + " has no effect: it carries out broadcasts or all-to-all only, which no plan asks for");
    problems.require(std::find(algorithms.begin(), it, *it) == it, "communication.algorithms",
                     "names " + name + " twice");
  }
}

}  // namespace

std::vector<Algorithm> StackProfile::Communication::all_algorithms() {
  return {Algorithm::ring,
          Algorithm::bidirectional_ring,
          Algorithm::direct,
          Algorithm::halving_doubling,
          Algorithm::double_binary_tree,
          Algorithm::dimension_wise,
          Algorithm::in_network};
}

double StackProfile::Communication::scale_out_share(const FabricSpec& fabric) const {
  double nodes = 1;
  for (const DimensionSpec& dimension : fabric.dimensions) {
    if (dimension.scope == LinkScope::scale_out) nodes *= static_cast<double>(dimension.size());
  }
  return scale_out_fraction * std::pow(scale_out_scaling, std::max(0.0, std::log2(nodes) - 1));
}

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
  not_negative(host.decode_gap.value(), "host.decode_gap");
  not_negative(host.decode_sequence.value(), "host.decode_sequence");
  not_negative(host.decode_step_fixed.value(), "host.decode_step_fixed");
  not_negative(communication.call.value(), "communication.call");
  not_negative(communication.rank_step.value(), "communication.rank_step");
  problems.require(communication.local_copy >= 0 && communication.local_copy <= 10,
                   "communication.local_copy", "is a time over that at the memory's peak rate, 0..10");
  fraction(communication.scale_up_fraction, "communication.scale_up_fraction");
  fraction(communication.scale_out_fraction, "communication.scale_out_fraction");
  fraction(communication.scale_out_scaling, "communication.scale_out_scaling");
  not_negative(communication.rank_step_scale_out.value(), "communication.rank_step_scale_out");
  not_negative(communication.zero_bucket.value(), "communication.zero_bucket");
  share(communication.tensor_overlap, "communication.tensor_overlap");
  share(communication.context_overlap, "communication.context_overlap");
  share(communication.data_overlap, "communication.data_overlap");
  problems.require(communication.bucket.value() > 0, "communication.bucket", "must be greater than 0");
  check_algorithms(communication.algorithms, problems);
  problems.require(serving.token_budget >= 1, "serving.token_budget", "must be at least 1");
  problems.require(serving.max_batch >= 1, "serving.max_batch", "must be at least 1");
  if (serving.scheduler == ServingPolicy::chunked && serving.token_budget < serving.max_batch) {
    problems.add("serving.token_budget", "must be at least serving.max_batch, one token of each sequence");
  }
  problems.require(serving.kv_block >= 1, "serving.kv_block", "must be at least 1");
  fraction(serving.kv_share, "serving.kv_share");
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
