// The rules of a stack profile's fields, each reported at its YAML key, and the collective algorithms that a profile
// may name.
#include "engine/spec/stack.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "engine/spec/pipeline_layout.h"
#include "engine/spec/ranges.h"

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

void check_kept(const StackProfile& stack, Problems& problems) {
  const std::vector<RecomputePart>& parts = stack.selective_recompute;
  problems.require(!parts.empty(), "selective_recompute",
                   "must name at least one part of a block; plans without any say recompute: none");
  for (auto it = parts.begin(); it != parts.end(); ++it) {
    problems.require(std::find(parts.begin(), it, *it) == it, "selective_recompute",
                     "names " + std::string(name_of(*it)) + " twice");
  }
  problems.require(is_fused(stack.attention) || stack.kept.attention_output == KeptFormat::computed,
                   "kept.attention_output",
                   "has no effect with attention: naive, whose backward does not need its output");
}

/// Whether a text is a month of the form YY.MM.
bool is_month(const std::string& text) {
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  return text.size() == 5 && text[2] == '.' && digit(text[0]) && digit(text[1]) && digit(text[3]) &&
         digit(text[4]) && text.substr(3) >= "01" && text.substr(3) <= "12";
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
  const auto check = [&](auto value, const char* field, const Range& range) {
    require_range(problems, value, field, range);
  };
  if (!pipeline_layout.empty()) {
    const auto layout = read_layout(pipeline_layout);
    if (!layout) problems.add("pipeline_layout", layout.error());
  }
  check(zero_slice, "zero_slice", ranges::kTime);
  check(host.forward_layer, "host.forward_layer", ranges::kTime);
  check(host.backward_layer, "host.backward_layer", ranges::kTime);
  check(host.per_collective, "host.per_collective", ranges::kTime);
  check(host.per_collective_rank, "host.per_collective_rank", ranges::kTime);
  check(host.step_fixed, "host.step_fixed", ranges::kTime);
  check(host.decode_layer, "host.decode_layer", ranges::kTime);
  check(host.decode_gap, "host.decode_gap", ranges::kTime);
  check(host.decode_sequence, "host.decode_sequence", ranges::kTime);
  check(host.decode_step_fixed, "host.decode_step_fixed", ranges::kTime);
  check(communication.call, "communication.call", ranges::kTime);
  check(communication.rank_step, "communication.rank_step", ranges::kTime);
  problems.require(communication.local_copy >= 0 && communication.local_copy <= 10,
                   "communication.local_copy", "is a time over that at the memory's peak rate, 0..10");
  check(communication.scale_up_fraction, "communication.scale_up_fraction", ranges::kShare);
  check(communication.scale_out_fraction, "communication.scale_out_fraction", ranges::kShare);
  check(communication.scale_out_scaling, "communication.scale_out_scaling", ranges::kScaling);
  check(communication.rank_step_scale_out, "communication.rank_step_scale_out", ranges::kTime);
  check(communication.zero_bucket, "communication.zero_bucket", ranges::kBucketOrDefault);
  check(communication.tensor_overlap, "communication.tensor_overlap", ranges::kFraction);
  check(communication.context_overlap, "communication.context_overlap", ranges::kFraction);
  check(communication.data_overlap, "communication.data_overlap", ranges::kFraction);
  check(communication.data_hidden, "communication.data_hidden", ranges::kFraction);
  problems.require(communication.data_sms >= 0 && communication.data_sms <= 1000, "communication.data_sms",
                   "is a number of SMs, 0..1000");
  check(communication.gather_overlap, "communication.gather_overlap", ranges::kFraction);
  check(communication.expert_overlap, "communication.expert_overlap", ranges::kFraction);
  problems.require(experts.dispatch_sms >= 1 && experts.dispatch_sms <= 1000, "experts.dispatch_sms",
                   "is a number of SMs, 1..1000");
  problems.require(
      !experts.shared_overlap || communication.expert_overlap == 0, "experts.shared_overlap",
      "excludes communication.expert_overlap: exchanges hide behind shared experts or behind the "
      "other of two passes");
  check(experts.forward_layer, "experts.forward_layer", ranges::kTime);
  check(experts.backward_layer, "experts.backward_layer", ranges::kTime);
  check(experts.per_expert, "experts.per_expert", ranges::kTime);
  check(experts.load_wait, "experts.load_wait", ranges::kTime);
  check(experts.plain_launch, "experts.plain_launch", ranges::kTime);
  check(communication.expert_hidden, "communication.expert_hidden", ranges::kFraction);
  problems.require(quantisation.passes >= 0 && quantisation.passes <= 10, "quantisation.passes",
                   "is a number of passes over a tensor, 0..10");
  problems.require(quantisation.weight_bytes >= 0 && quantisation.weight_bytes <= 100,
                   "quantisation.weight_bytes", "is a number of bytes per weight, 0..100");
  problems.require(head.deferral_limit >= 0 && head.deferral_limit <= 1'000'000, "head.deferral_limit",
                   "is a number of microbatches, 0 (all) to 1,000,000");
  problems.require(head.deferred_weight_gradient || head.deferral_limit == 0, "head.deferral_limit",
                   "has no effect without head.deferred_weight_gradient: true");
  check(communication.bucket, "communication.bucket", ranges::kBucket);
  check_algorithms(communication.algorithms, problems);
  check_kept(*this, problems);
  problems.require(communication.protocols || communication.all_reduce == AllReduceKernels::library,
                   "communication.all_reduce",
                   "has no effect without communication.protocols: true, which prices calls inside a node");
  problems.require(tables.usual_zero_stage >= 0 && tables.usual_zero_stage <= 3, "usual_zero_stage",
                   "is 0..3");
  problems.require(tables.expert_software_from.empty() || is_month(tables.expert_software_from),
                   "expert_software_from", "is a release by year and month, such as 26.06");
  const bool narrowed =
      !tables.expert_software_from.empty() || tables.expert_software_on != Architecture::other;
  problems.require(!narrowed || !tables.expert_software.empty(), "expert_software",
                   "must name the software whose release or architecture the profile is meant of");
  check(serving.token_budget, "serving.token_budget", ranges::kTokens);
  check(serving.max_batch, "serving.max_batch", ranges::kRequests);
  if (serving.scheduler == ServingPolicy::chunked && serving.token_budget < serving.max_batch) {
    problems.add("serving.token_budget", "must be at least serving.max_batch, one token of each sequence");
  }
  check(serving.kv_block, "serving.kv_block", ranges::kTokens);
  check(serving.kv_share, "serving.kv_share", ranges::kShare);
  check(serving.converted_share, "serving.converted_share", ranges::kShare);
  check(serving.redundant_experts, "serving.redundant_experts", ranges::kExpertsOrNone);
  check(serving.prefill_redundant_experts, "serving.prefill_redundant_experts", ranges::kExpertsOrNone);
  problems.require(
      !serving.two_batch_overlap || communication.expert_overlap > 0, "serving.two_batch_overlap",
      "has no effect without communication.expert_overlap above 0, the share of an exchange of experts "
      "that can hide");
  check(state.gradient_bytes, "state.gradient_bytes", ranges::kBytesPerParameter);
  check(state.gradient_comm_bytes, "state.gradient_comm_bytes", ranges::kBytesPerParameter);
  check(state.master_bytes, "state.master_bytes", ranges::kBytesPerParameter);
  check(state.moment_bytes, "state.moment_bytes", ranges::kBytesPerParameter);
  check(memory.reserve, "memory.reserve", ranges::kBytes);
  check(memory.workspace, "memory.workspace", ranges::kBytes);
  // Reserved memory divided by allocated memory.
  check(memory.fragmentation, "memory.fragmentation", ranges::kOverhead);
  return problems;
}

}  // namespace shardscape
