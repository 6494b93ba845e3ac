#include "sweep/study/stack_policies.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

namespace shardscape::sweep {

std::string format_of_bytes(double bytes) {
  if (bytes == 4) return "fp32";
  if (bytes == 2) return "16 bits";
  return fmt::format("{:g} bytes", bytes);
}

std::string stack_policies(const Study& study) {
  const Setting first = study.setting(0);
  const StackProfile& stack = first.system.stack;
  const StackProfile::State& state = stack.state;
  if (study.phase() == Phase::training) {
    const auto same = [&](const System& system) { return system.stack.state == state; };
    if (!std::ranges::all_of(study.systems, same)) return "";
    return fmt::format(
        "gradients of weights are kept in {} and sent in {}, as the stack has it "
        "(stack.state.gradient_bytes, stack.state.gradient_comm_bytes)",
        format_of_bytes(state.gradient_bytes), format_of_bytes(state.gradient_comm_bytes));
  }
  const PrecisionPolicy policy = first.policy();
  const auto as_first = [&](const System& system, const WorkloadSpec& workload) {
    const PrecisionPolicy other = Setting{first.model, system, workload}.policy();
    return other.kv_cache == policy.kv_cache && other.products == policy.products &&
           other.expert_products == policy.expert_products;
  };
  for (const System& system : study.systems)
    if (!as_first(system, study.workloads.front())) return "";
  for (const WorkloadSpec& workload : study.workloads)
    if (!as_first(first.system, workload)) return "";
  const Precision narrow = std::max(policy.products, policy.expert_products);  // they are in that order
  if (narrow < Precision::fp8) return "";
  return fmt::format(
      "the key-value cache is in {} beside products in {}, as the stack has it "
      "(stack.serving.fp8_cache)",
      name_of(policy.kv_cache), name_of(narrow));
}

namespace {

/// The fewest replicas of a plan of the study, or less.
std::int64_t fewest_replicas(const Study& study) {
  const AxisList& data = study.space[PlanKey::data];
  if (!data.fill) return std::ranges::min(data.values);
  std::int64_t gpus = study.gpu_counts.empty() ? study.gpus : std::ranges::min(study.gpu_counts);
  gpus -= std::ranges::max(study.space.prefill_gpus);
  for (const PlanKey key : {PlanKey::tensor, PlanKey::context, PlanKey::pipeline})
    gpus /= std::ranges::max(study.space[key].values);
  return std::max<std::int64_t>(1, gpus);
}

}  // namespace

std::string lockstep_clients(const Study& study) {
  if (study.phase() == Phase::training || study.workloads.front().load) return "";
  if (std::ranges::min(study.space.prefill_gpus) > 0)
    return "";  // pools that prefill have no decoding to wait for
  const auto beside = [](const System& system) { return reads_beside(system.stack.serving.scheduler); };
  const auto system = std::ranges::find_if(study.systems, beside);
  const std::int64_t clients = std::ranges::max(study.workloads, {}, &WorkloadSpec::concurrency).concurrency;
  if (system == study.systems.end() || clients <= fewest_replicas(study)) return "";
  return fmt::format(
      "where clients share a server that reads prompts beside decoding, TTFT is that of clients in "
      "lock-step; requests "
      "that come one by one may wait longer with scheduler {}: workload.client ({{requests: 20x, statistic: "
      "steady}}) "
      "simulates them",
      name_of(system->stack.serving.scheduler));
}

}  // namespace shardscape::sweep
