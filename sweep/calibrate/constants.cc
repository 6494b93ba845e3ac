// The constants of a stack, out of the table of its numbers; the table of those of a device, for each its path, unit,
// range with its reason, prior width, and effect; then the texts of values.
#include "sweep/calibrate/constants.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "engine/spec/stack_numbers.h"
#include "sweep/yaml/number.h"

namespace shardscape::calibrate {

namespace {

using enum FitActsOn;
using enum FitScale;
using yaml::Dimension;

template <class T>
double number(const T& field) {
  if constexpr (std::is_same_v<T, double>) {
    return field;
  } else {
    return field.value();
  }
}

/// Reads and writes one field through a lambda that returns a reference to it.
template <class Field>
struct Access {
  static double get(const Candidate& c) { return number(Field{}(const_cast<Candidate&>(c))); }
  static void set(Candidate& c, double value) {
    auto& field = Field{}(c);
    field = std::remove_reference_t<decltype(field)>(value);
  }
};

template <class Field>
Constant entry(Field, std::string_view path, std::optional<Dimension> dimension, ActsOn acts_on, Scale scale,
               double low, double high, std::string_view reason, double width, std::string_view effect) {
  return {path,
          dimension,
          acts_on,
          scale,
          low,
          high,
          reason,
          width,
          effect,
          &Access<Field>::get,
          &Access<Field>::set};
}

constexpr std::string_view kHostRange = "from one kernel launch to an eager framework on a slow host";
constexpr std::string_view kCallRange = "from a kernel on warm caches to a rendezvous of the group";
constexpr std::string_view kWireRange = "up to the link that flags leave";
constexpr std::string_view kShareRange = "a share of the link's bandwidth; below a tenth the link is broken";
constexpr std::string_view kLatencyRange = "from one write over the link to a host in every step";
constexpr std::string_view kArchitectureRange =
    "another design of the same units; more is another architecture";
constexpr std::string_view kEagerRange = "from one launch by a fast host to a framework's wrappers";
constexpr std::string_view kPeakRange = "a share of the peak; below 0.3 it is no long kernel";

/// The rows of the stack's table that a fit may move.
std::vector<Constant> of_stacks() {
  std::vector<Constant> list;
  for (const StackNumber& number : stack_numbers()) {
    if (!number.fit) continue;
    const FitRule& fit = *number.fit;
    const auto dimension = std::visit(
        [](auto access) -> std::optional<Dimension> {
          using Value = std::remove_cvref_t<decltype(access(std::declval<StackProfile&>()))>;
          if constexpr (std::is_same_v<Value, Seconds>) return Dimension::time;
          if constexpr (std::is_same_v<Value, Bytes>) return Dimension::data;
          return std::nullopt;
        },
        number.field);
    list.push_back({number.path, dimension, fit.acts_on, fit.scale, fit.low, fit.high, fit.reason, fit.width,
                    number.meaning, [row = &number](const Candidate& c) { return row->get(c.stack); },
                    [row = &number](Candidate& c, double value) { row->set(c.stack, value); }});
  }
  return list;
}

/// Those of a device.
std::vector<Constant> of_devices() {
  return {
      entry(
          [](Candidate & c) -> auto& { return c.device->sustained.tensor; }, "device.sustained.tensor",
          std::nullopt, time, logarithmic, 0.3, 1.0, kPeakRange, 0.1,
          "matrix products: what power leaves of the peak"),
      entry(
          [](Candidate & c) -> auto& { return c.device->sustained.hbm; }, "device.sustained.hbm",
          std::nullopt, time, logarithmic, 0.3, 1.0, kPeakRange, 0.1, "streams from and to HBM"),
      entry(
          [](Candidate & c) -> auto& { return c.device->sustained.l2; }, "device.sustained.l2", std::nullopt,
          time, logarithmic, 0.3, 1.0, kPeakRange, 0.2, "reads of matrix products from L2"),
      entry(
          [](Candidate & c) -> auto& { return c.device->sm.tensor_efficiency; },
          "device.sm.tensor_efficiency", std::nullopt, time, logarithmic, 0.5, 1.0,
          "a share of the issue slots; tuned kernels fill more than half", 0.05,
          "inner loop of matrix products, at any clock"),
      entry(
          [](Candidate & c) -> auto& { return c.device->sm.load_latency_clocks; },
          "device.sm.load_latency_clocks", std::nullopt, time, logarithmic, 200.0, 3000.0,
          "from a hit in an idle L2 to a queue in front of HBM", 0.3,
          "small and skinny matrix products: a load to its data in SRAM"),
      entry(
          [](Candidate & c) -> auto& { return c.device->attention.forward; }, "device.attention.forward",
          std::nullopt, time, logarithmic, 0.1, 1.0, "a share of the peak", 0.15, "fused attention, forward"),
      entry(
          [](Candidate & c) -> auto& { return c.device->attention.backward; }, "device.attention.backward",
          std::nullopt, time, logarithmic, 0.1, 1.0, "a share of the peak", 0.15,
          "fused attention, backward"),
      entry(
          [](Candidate & c) -> auto& { return c.device->attention.prompt_rate; },
          "device.attention.prompt_rate", std::nullopt, time, logarithmic, 0.2, 5.0, kArchitectureRange, 0.2,
          "attention of prompts by kernels of the architecture"),
      entry(
          [](Candidate & c) -> auto& { return c.device->attention.decode_rate; },
          "device.attention.decode_rate", std::nullopt, time, logarithmic, 0.2, 5.0, kArchitectureRange, 0.2,
          "attention of decoding by kernels of the architecture"),
      entry(
          [](Candidate & c) -> auto& { return c.device->cold_start; }, "device.cold_start", Dimension::time,
          time, logarithmic, 1e-6, 2e-5, "from caches half warm to code and page tables read from HBM", 0.4,
          "kernels measured alone, caches cleared"),
      entry(
          [](Candidate & c) -> auto& { return c.device->kernel_latency; }, "device.kernel_latency",
          Dimension::time, time, logarithmic, 5e-7, 2e-5,
          "from the pipeline of one SM to a full drain and launch", 0.4,
          "start-up and drain of every kernel"),
      entry(
          [](Candidate & c) -> auto& { return c.device->energy.flop_pj; }, "device.energy.flop_pj",
          std::nullopt, time, logarithmic, 0.1, 5.0,
          "from the best of 2025 to the first matrix units of 2017", 0.2,
          "matrix products that power limits, alone and in steps"),
      entry(
          [](Candidate & c) -> auto& { return c.device->products.latency; }, "device.products.latency",
          Dimension::time, time, logarithmic, 5e-7, 2e-5,
          "from the pipeline of one SM to a full drain and launch", 0.4, "every matrix product"),
      entry(
          [](Candidate & c) -> auto& { return c.device->products.step; }, "device.products.step",
          Dimension::time, time, logarithmic, 2e-8, 1e-6, "from a hit in SRAM to a queue in front of HBM",
          0.3, "small and skinny matrix products"),
      entry(
          [](Candidate & c) -> auto& { return c.device->products.reduction; }, "device.products.reduction",
          Dimension::time, time, logarithmic, 5e-7, 1e-5, "a kernel of its own", 0.3, "split products"),
      entry(
          [](Candidate & c) -> auto& { return c.device->products.output; }, "device.products.output",
          std::nullopt, time, logarithmic, 1.0, 3.0, "written once, or read and written twice", 0.2,
          "outputs of matrix products"),
      entry(
          [](Candidate & c) -> auto& { return c.device->node.nccl.start; }, "device.nccl.start",
          Dimension::time, time, logarithmic, 1e-6, 5e-5, kCallRange, 0.3,
          "every collective of NCCL in a node"),
      entry(
          [](Candidate & c) -> auto& { return c.device->node.nccl.ll.step; }, "device.nccl.ll.step",
          Dimension::time, time, logarithmic, 1e-7, 1e-5, kLatencyRange, 0.3, "the smallest messages"),
      entry(
          [](Candidate & c) -> auto& { return c.device->node.nccl.ll.bandwidth; }, "device.nccl.ll.bandwidth",
          Dimension::bandwidth, time, logarithmic, 1e9, 2e12, kWireRange, 0.3, "the smallest messages"),
      entry(
          [](Candidate & c) -> auto& { return c.device->node.nccl.ll128.start; }, "device.nccl.ll128.start",
          Dimension::time, time, logarithmic, 1e-7, 5e-5, kCallRange, 0.5, "small messages"),
      entry(
          [](Candidate & c) -> auto& { return c.device->node.nccl.ll128.step; }, "device.nccl.ll128.step",
          Dimension::time, time, logarithmic, 1e-7, 1e-5, kLatencyRange, 0.3, "small messages"),
      entry(
          [](Candidate & c) -> auto& { return c.device->node.nccl.ll128.bandwidth; },
          "device.nccl.ll128.bandwidth", Dimension::bandwidth, time, logarithmic, 1e9, 2e12, kWireRange, 0.3,
          "small messages"),
      entry(
          [](Candidate & c) -> auto& { return c.device->node.nccl.simple.start; }, "device.nccl.simple.start",
          Dimension::time, time, logarithmic, 1e-7, 1e-4, kCallRange, 0.5, "large messages"),
      entry(
          [](Candidate & c) -> auto& { return c.device->node.nccl.simple.step; }, "device.nccl.simple.step",
          Dimension::time, time, logarithmic, 1e-7, 2e-5, kLatencyRange, 0.3, "large messages"),
      entry(
          [](Candidate & c) -> auto& { return c.device->node.nccl.simple.link_share; },
          "device.nccl.simple.link_share", std::nullopt, time, logarithmic, 0.1, 1.0, kShareRange, 0.1,
          "large messages"),
      entry(
          [](Candidate & c) -> auto& { return c.device->node.nccl.simple.own_bandwidth; },
          "device.nccl.simple.own_bandwidth", Dimension::bandwidth, time, logarithmic, 1e10, 2e13,
          "of the memory, at most", 0.3, "large messages: the own part"),
      entry(
          [](Candidate & c) -> auto& { return c.device->node.nccl.all_to_all.start; },
          "device.nccl.all_to_all.start", Dimension::time, time, logarithmic, 1e-6, 5e-5, kCallRange, 0.3,
          "all-to-all"),
      entry(
          [](Candidate & c) -> auto& { return c.device->node.nccl.all_to_all.small_peer; },
          "device.nccl.all_to_all.small_peer", Dimension::time, time, logarithmic, 2e-8, 1e-5, kLatencyRange,
          0.4, "all-to-all, small"),
      entry(
          [](Candidate & c) -> auto& { return c.device->node.nccl.all_to_all.small_bandwidth; },
          "device.nccl.all_to_all.small_bandwidth", Dimension::bandwidth, time, logarithmic, 1e9, 2e12,
          kWireRange, 0.3, "all-to-all, small"),
      entry(
          [](Candidate & c) -> auto& { return c.device->node.nccl.all_to_all.large_start; },
          "device.nccl.all_to_all.large_start", Dimension::time, time, logarithmic, 1e-7, 1e-4, kCallRange,
          0.5, "all-to-all, large"),
      entry(
          [](Candidate & c) -> auto& { return c.device->node.nccl.all_to_all.large_peer; },
          "device.nccl.all_to_all.large_peer", Dimension::time, time, logarithmic, 2e-8, 1e-5, kLatencyRange,
          0.4, "all-to-all, large"),
      entry(
          [](Candidate & c) -> auto& { return c.device->node.nccl.all_to_all.large_link_share; },
          "device.nccl.all_to_all.large_link_share", std::nullopt, time, logarithmic, 0.1, 1.0, kShareRange,
          0.1, "all-to-all, large"),
      entry(
          [](Candidate & c) -> auto& { return c.device->node.nccl.all_to_all.own_bandwidth; },
          "device.nccl.all_to_all.own_bandwidth", Dimension::bandwidth, time, logarithmic, 1e10, 2e13,
          "of the memory, at most", 0.3, "all-to-all, large: the own part"),
      entry(
          [](Candidate & c) -> auto& { return c.device->node.experts.low_latency.dispatch_start; },
          "device.expert_dispatch.low_latency.dispatch_start", Dimension::time, time, logarithmic, 1e-6, 1e-4,
          kCallRange, 0.3, "dispatch, low latency"),
      entry(
          [](Candidate & c) -> auto& { return c.device->node.experts.low_latency.dispatch_expert; },
          "device.expert_dispatch.low_latency.dispatch_expert", Dimension::time, time, logarithmic, 1e-10,
          1e-6, kLatencyRange, 0.4, "dispatch, low latency"),
      entry(
          [](Candidate & c) -> auto& { return c.device->node.experts.low_latency.dispatch_bandwidth; },
          "device.expert_dispatch.low_latency.dispatch_bandwidth", Dimension::bandwidth, time, logarithmic,
          1e10, 2e13, kWireRange, 0.2, "dispatch, low latency"),
      entry(
          [](Candidate & c) -> auto& { return c.device->node.experts.low_latency.dispatch_node; },
          "device.expert_dispatch.low_latency.dispatch_node", Dimension::time, time, logarithmic, 1e-7, 1e-4,
          kLatencyRange, 0.4, "dispatch, low latency, between nodes"),
      entry(
          [](Candidate & c) -> auto& { return c.device->node.experts.low_latency.combine_start; },
          "device.expert_dispatch.low_latency.combine_start", Dimension::time, time, logarithmic, 1e-6, 1e-4,
          kCallRange, 0.3, "combine, low latency"),
      entry(
          [](Candidate & c) -> auto& { return c.device->node.experts.low_latency.combine_expert; },
          "device.expert_dispatch.low_latency.combine_expert", Dimension::time, time, logarithmic, 1e-10,
          1e-6, kLatencyRange, 0.4, "combine, low latency"),
      entry(
          [](Candidate & c) -> auto& { return c.device->node.experts.low_latency.combine_bandwidth; },
          "device.expert_dispatch.low_latency.combine_bandwidth", Dimension::bandwidth, time, logarithmic,
          1e10, 2e13, kWireRange, 0.2, "combine, low latency"),
      entry(
          [](Candidate & c) -> auto& { return c.device->node.experts.low_latency.combine_node; },
          "device.expert_dispatch.low_latency.combine_node", Dimension::time, time, logarithmic, 1e-7, 1e-4,
          kLatencyRange, 0.4, "combine, low latency, between nodes"),
      entry(
          [](Candidate & c) -> auto& { return c.device->node.experts.low_latency.queue_bandwidth; },
          "device.expert_dispatch.low_latency.queue_bandwidth", Dimension::bandwidth, time, logarithmic, 1e8,
          1e12, "of one group of warps", 0.3, "dispatch, low latency, few experts"),
      entry(
          [](Candidate & c) -> auto& { return c.device->node.experts.low_latency.node_bandwidth; },
          "device.expert_dispatch.low_latency.node_bandwidth", Dimension::bandwidth, time, logarithmic, 1e9,
          2e12, kWireRange, 0.2, "low latency, between nodes"),
      entry(
          [](Candidate & c) -> auto& { return c.device->node.experts.normal.dispatch_start; },
          "device.expert_dispatch.normal.dispatch_start", Dimension::time, time, logarithmic, 1e-6, 3e-4,
          kCallRange, 0.3, "dispatch, normal"),
      entry(
          [](Candidate & c) -> auto& { return c.device->node.experts.normal.dispatch_node; },
          "device.expert_dispatch.normal.dispatch_node", Dimension::time, time, logarithmic, 1e-7, 3e-4,
          kLatencyRange, 0.4, "dispatch, normal, between nodes"),
      entry(
          [](Candidate & c) -> auto& { return c.device->node.experts.normal.combine_start; },
          "device.expert_dispatch.normal.combine_start", Dimension::time, time, logarithmic, 1e-6, 3e-4,
          kCallRange, 0.3, "combine, normal"),
      entry(
          [](Candidate & c) -> auto& { return c.device->node.experts.normal.combine_node; },
          "device.expert_dispatch.normal.combine_node", Dimension::time, time, logarithmic, 1e-7, 3e-4,
          kLatencyRange, 0.4, "combine, normal, between nodes"),
      entry(
          [](Candidate & c) -> auto& { return c.device->node.experts.normal.row_bandwidth; },
          "device.expert_dispatch.normal.row_bandwidth", Dimension::bandwidth, time, logarithmic, 1e8, 1e12,
          "of one group of warps", 0.3, "combine, normal, few tokens"),
      entry(
          [](Candidate & c) -> auto& { return c.device->node.experts.normal.copy; },
          "device.expert_dispatch.normal.copy", Dimension::time, time, logarithmic, 1e-10, 1e-5,
          kLatencyRange, 0.5, "normal, many small tokens"),
      entry(
          [](Candidate & c) -> auto& { return c.device->node.experts.normal.sm_bandwidth; },
          "device.expert_dispatch.normal.sm_bandwidth", Dimension::bandwidth, time, logarithmic, 1e9, 1e12,
          "of the port of an SM, at most", 0.3, "normal, few SMs"),
      entry(
          [](Candidate & c) -> auto& { return c.device->node.experts.normal.bandwidth; },
          "device.expert_dispatch.normal.bandwidth", Dimension::bandwidth, time, logarithmic, 1e10, 2e13,
          kWireRange, 0.2, "normal, many SMs"),
      entry(
          [](Candidate & c) -> auto& { return c.device->node.experts.normal.local_copies; },
          "device.expert_dispatch.normal.local_copies", std::nullopt, time, logarithmic, 0.1, 10.0,
          "from none but the sent ones to all ranks of a node", 0.4, "normal, few choices"),
      entry(
          [](Candidate & c) -> auto& { return c.device->node.experts.normal.node_bandwidth; },
          "device.expert_dispatch.normal.node_bandwidth", Dimension::bandwidth, time, logarithmic, 1e9, 2e12,
          kWireRange, 0.2, "normal, between nodes"),
      entry(
          [](Candidate & c) -> auto& { return c.device->node.custom.vllm.start; },
          "device.custom_all_reduce.vllm.start", Dimension::time, time, logarithmic, 1e-6, 5e-5, kCallRange,
          0.3, "vLLM's all-reduce"),
      entry(
          [](Candidate & c) -> auto& { return c.device->node.custom.vllm.rank; },
          "device.custom_all_reduce.vllm.rank", Dimension::time, time, logarithmic, 1e-9, 5e-6, kLatencyRange,
          0.5, "vLLM's all-reduce, each rank beyond two"),
      entry(
          [](Candidate & c) -> auto& { return c.device->node.custom.vllm.one_shot_bandwidth; },
          "device.custom_all_reduce.vllm.one_shot_bandwidth", Dimension::bandwidth, time, logarithmic, 1e9,
          2e12, kWireRange, 0.3, "vLLM's all-reduce, one shot"),
      entry(
          [](Candidate & c) -> auto& { return c.device->node.custom.vllm.second_start; },
          "device.custom_all_reduce.vllm.second_start", Dimension::time, time, logarithmic, 1e-8, 5e-5,
          kCallRange, 0.5, "vLLM's all-reduce, two shots"),
      entry(
          [](Candidate & c) -> auto& { return c.device->node.custom.vllm.two_shot_bandwidth; },
          "device.custom_all_reduce.vllm.two_shot_bandwidth", Dimension::bandwidth, time, logarithmic, 1e9,
          2e12, kWireRange, 0.3, "vLLM's all-reduce, two shots"),
      entry(
          [](Candidate & c) -> auto& { return c.device->node.custom.vllm.eager_floor; },
          "device.custom_all_reduce.vllm.eager_floor", Dimension::time, time, logarithmic, 1e-6, 1e-3,
          kEagerRange, 0.5, "vLLM's all-reduce, launched by the host"),
      entry(
          [](Candidate & c) -> auto& { return c.device->node.custom.trtllm.start; },
          "device.custom_all_reduce.trtllm.start", Dimension::time, time, logarithmic, 1e-6, 5e-5, kCallRange,
          0.3, "TensorRT-LLM's all-reduce"),
      entry(
          [](Candidate & c) -> auto& { return c.device->node.custom.trtllm.rank; },
          "device.custom_all_reduce.trtllm.rank", Dimension::time, time, logarithmic, 1e-9, 5e-6,
          kLatencyRange, 0.5, "TensorRT-LLM's all-reduce, each rank beyond two"),
      entry(
          [](Candidate & c) -> auto& { return c.device->node.custom.trtllm.one_shot_bandwidth; },
          "device.custom_all_reduce.trtllm.one_shot_bandwidth", Dimension::bandwidth, time, logarithmic, 1e9,
          2e12, kWireRange, 0.3, "TensorRT-LLM's all-reduce, one shot"),
      entry(
          [](Candidate & c) -> auto& { return c.device->node.custom.trtllm.second_start; },
          "device.custom_all_reduce.trtllm.second_start", Dimension::time, time, logarithmic, 1e-8, 5e-5,
          kCallRange, 0.5, "TensorRT-LLM's all-reduce, two shots"),
      entry(
          [](Candidate & c) -> auto& { return c.device->node.custom.trtllm.two_shot_bandwidth; },
          "device.custom_all_reduce.trtllm.two_shot_bandwidth", Dimension::bandwidth, time, logarithmic, 1e9,
          2e12, kWireRange, 0.3, "TensorRT-LLM's all-reduce, two shots"),
      entry(
          [](Candidate & c) -> auto& { return c.device->node.custom.trtllm.eager_floor; },
          "device.custom_all_reduce.trtllm.eager_floor", Dimension::time, time, logarithmic, 1e-6, 1e-3,
          kEagerRange, 0.5, "TensorRT-LLM's all-reduce, launched by the host"),
      entry(
          [](Candidate & c) -> auto& { return c.device->node.custom.multimem_start; },
          "device.custom_all_reduce.multimem_start", Dimension::time, time, logarithmic, 1e-6, 1e-4,
          kCallRange, 0.3, "all-reduces by switches"),
      entry(
          [](Candidate & c) -> auto& { return c.device->node.custom.multimem_bandwidth; },
          "device.custom_all_reduce.multimem_bandwidth", Dimension::bandwidth, time, logarithmic, 1e9, 2e12,
          kWireRange, 0.3, "all-reduces by switches"),
  };
}

const std::vector<Constant>& all_constants() {
  static const std::vector<Constant> all = [] {
    std::vector<Constant> list = of_stacks();
    for (Constant& constant : of_devices()) list.push_back(std::move(constant));
    return list;
  }();
  return all;
}

struct Unit {
  double size;
  const char* name;
};
constexpr Unit kTimeUnits[] = {{1, "s"}, {1e-3, "ms"}, {1e-6, "us"}, {1e-9, "ns"}};
constexpr Unit kRateUnits[] = {{1e12, "TB/s"}, {1e9, "GB/s"}, {1e6, "MB/s"}};
constexpr Unit kDataUnits[] = {{1e9, "GB"}, {1e6, "MB"}, {1e3, "kB"}, {1, "B"}};

std::span<const Unit> units_of(Dimension dimension) {
  if (dimension == Dimension::time) return kTimeUnits;
  return dimension == Dimension::bandwidth ? std::span<const Unit>(kRateUnits) : kDataUnits;
}

/// The value with three significant digits and no exponent, for values >= 1e-4.
std::string three_digits(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.3g", value);
  if (std::string_view(text.data()).find('e') != std::string_view::npos) {
    std::snprintf(text.data(), text.size(), "%.0f", std::strtod(text.data(), nullptr));  // "1e+03"
  }
  return text.data();
}

}  // namespace

bool Constant::acts_in(const Candidate& candidate) const {
  if (path.starts_with("device.products.")) return candidate.device && candidate.device->knows_energy();
  // A rate of 1 does not mean that the mechanism is off: without tables for the device's architecture it has no effect.
  if (path.starts_with("device.attention.") && path.ends_with("_rate"))
    return candidate.device && candidate.device->architecture != Architecture::other;
  return true;
}

double Constant::value_at(double u, double prior) const {
  const double value = scale == logarithmic ? prior * std::exp(width * u) : prior + width * u;
  return std::clamp(value, low, high);
}

double Constant::u_of(double value, double prior) const {
  return (scale == logarithmic ? std::log(value / prior) : value - prior) / width;
}

double Constant::slope(double value) const { return scale == logarithmic ? width * value : width; }

std::span<const Constant> constants() { return all_constants(); }

const Constant* find_constant(std::string_view path) {
  const auto found = std::ranges::find(all_constants(), path, &Constant::path);
  return found == all_constants().end() ? nullptr : &*found;
}

std::string format_value(const Constant& constant, double value) {
  if (!constant.dimension) return three_digits(value);
  const std::span<const Unit> units = units_of(*constant.dimension);
  for (const Unit& unit : units) {
    if (value >= 0.9995 * unit.size) return three_digits(value / unit.size) + ' ' + unit.name;
  }
  return three_digits(value / units.back().size) + ' ' + units.back().name;
}

std::string exact_value(const Constant& constant, double value) {
  const std::string shown = format_value(constant, value);
  const auto read = parse_value(constant, shown);
  if (read && *read == value) return shown;
  std::array<char, 32> digits{};
  const std::to_chars_result end = std::to_chars(digits.data(), digits.data() + digits.size(), value);
  std::string text(digits.data(), end.ptr);
  if (constant.dimension) {
    const bool rate = *constant.dimension == Dimension::bandwidth;
    text += *constant.dimension == Dimension::time ? " s" : rate ? " B/s" : " B";
  }
  return text;
}

tl::expected<double, std::string> parse_value(const Constant& constant, std::string_view text) {
  return constant.dimension ? yaml::parse_quantity(text, *constant.dimension) : yaml::parse_number(text);
}

}  // namespace shardscape::calibrate
