#include "sweep/study/stack_policies.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace shardscape::sweep {

namespace {

/// A format by the bytes of a number.
std::string format_of_bytes(double bytes) {
  if (bytes == 4) return "fp32";
  if (bytes == 2) return "bf16";
  return fmt::format("{:g} bytes", bytes);
}

template <class Value>
bool same_everywhere(const Study& study, const Value& value) {
  return std::ranges::all_of(
      study.systems, [&](const System& system) { return value(system) == value(study.systems.front()); });
}

}  // namespace

std::string stack_policies(const Study& study) {
  if (study.phase() == Phase::training) {
    if (!same_everywhere(study, [](const System& system) { return system.stack.state; })) return "";
    const StackProfile::State& state = study.systems.front().stack.state;
    return fmt::format(
        "gradients of weights are kept in {} and sent in {}, as the stack has it "
        "(stack.state.gradient_bytes, stack.state.gradient_comm_bytes)",
        format_of_bytes(state.gradient_bytes), format_of_bytes(state.gradient_comm_bytes));
  }
  const auto cache = [](const System& system) {
    const StackProfile::Serving& serving = system.stack.serving;
    return std::array{serving.fp8_cache,
                      serving.fp8_cache_blackwell && system.device.supports(Precision::fp4)};
  };
  const auto precision = [&](const WorkloadSpec& workload) {
    return workload.precision == study.workloads.front().precision;
  };
  if (!same_everywhere(study, cache) || !std::ranges::all_of(study.workloads, precision)) return "";
  const PrecisionPolicy policy = study.setting(0).policy();
  const Precision products = std::min(policy.products, policy.expert_products, [](Precision a, Precision b) {
    return operand_bytes(a) < operand_bytes(b);
  });
  if (operand_bytes(products) > operand_bytes(Precision::fp8)) return "";
  return fmt::format(
      "the key-value cache is in {} beside products in {}, as the stack has it (stack.serving.fp8_cache)",
      name_of(policy.kv_cache), name_of(products));
}

}  // namespace shardscape::sweep
