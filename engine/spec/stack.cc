// The rules of a stack profile's fields, each reported at its YAML key, and the collective algorithms that a profile
// may name.
#include "engine/spec/stack.h"

#include <cmath>

#include "engine/spec/pipeline_layout.h"
#include "engine/spec/spec_numbers.h"

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

}  // namespace

std::vector<Algorithm> StackProfile::Communication::all_algorithms() {
  std::vector<Algorithm> all;
  for (const AlgorithmRow& row : kAlgorithms)
    if (row.of_stacks) all.push_back(row.algorithm);
  return all;
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
  require_ranges(problems, *this, stack_numbers());
  if (!pipeline_layout.empty()) {
    const auto layout = read_layout(pipeline_layout);
    if (!layout) problems.add("pipeline_layout", layout.error());
  }
  problems.require(
      !experts.shared_overlap || communication.expert_overlap == 0, "experts.shared_overlap",
      "excludes communication.expert_overlap: exchanges hide behind shared experts or behind the "
      "other of two passes");
  problems.require(
      communication.context_exchange == ContextExchange::ring || communication.context_overlap == 0,
      "communication.context_exchange",
      "gather leaves nothing to hide the exchange behind: attention waits for all keys and values; "
      "it needs communication.context_overlap: 0");
  problems.require(head.deferred_weight_gradient || head.deferral_limit == 0, "head.deferral_limit",
                   "has no effect without head.deferred_weight_gradient: true");
  check_algorithms(communication.algorithms, problems);
  check_kept(*this, problems);
  problems.require(communication.protocols || communication.all_reduce == AllReduceKernels::library,
                   "communication.all_reduce",
                   "has no effect without communication.protocols: true, which prices calls inside a node");
  if (reads_beside(serving.scheduler) && serving.token_budget < serving.max_batch) {
    problems.add("serving.token_budget", "must be at least serving.max_batch, one token of each sequence");
  }
  problems.require(
      !serving.two_batch_overlap || communication.expert_overlap > 0, "serving.two_batch_overlap",
      "has no effect without communication.expert_overlap above 0, the share of an exchange of experts "
      "that can hide");
  return problems;
}

}  // namespace shardscape
