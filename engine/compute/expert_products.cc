// Prices the grouped products of experts: the cheapest tile over all experts' rows, combined with HBM and power, and
// the whole layer (router, permutation, two products) as benchmarks time it.
#include "engine/compute/expert_products.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/base/check.h"
#include "engine/compute/power.h"

namespace shardscape::compute {

namespace {

/// Constants of one architecture; see the header for the fit.
struct ExpertKernels {
  double call;         ///< seconds of a call beyond what its work explains
  double share;        ///< share of the peak of the matrix units that is reached
  double hbm;          ///< share of the HBM peak that is reached
  double step;         ///< least seconds per step
  double token;        ///< seconds per token whose choices are examined
  double expert;       ///< seconds per expert of all ranks together
  double permutation;  ///< how often a row of hidden values crosses HBM
  double tile;         ///< seconds to start a tile
};

/// One row per architecture from Ampere on. Blackwell has Hopper's values except `tile`: its kernels with one CTA per
/// SM start the next tile while they store the last.
constexpr ExpertKernels kExpertKernels[] = {
    {17.4e-6, 0.542, 0.804, 506e-9, 22.9e-9, 88.5e-9, 3.39, 3.04e-6},
    {21.7e-6, 0.624, 0.832, 74.4e-9, 3.45e-9, 40.7e-9, 4.22, 1.71e-6},
    {21.7e-6, 0.624, 0.832, 74.4e-9, 3.45e-9, 40.7e-9, 4.22, 0.3e-6},
};

constexpr double kTileTokens[] = {16, 32, 64, 128, 256}, kTileColumns[] = {64, 128, 256};
/// Elements of a tile whose sums fill half of the registers of an SM.
constexpr double kLargestTile = 256.0 * 128;
constexpr double kGroupedStepBytes = 128;  ///< bytes of depth per step: one line of shared memory
constexpr double kRowBytes = 2;            ///< bytes per permuted value: bf16
constexpr int kDraws = 5;                  ///< number of random loads, as in the benchmark

const ExpertKernels& expert_kernels(const DeviceSpec& device) {
  const auto known = std::max(device.architecture, Architecture::ampere);
  return kExpertKernels[static_cast<std::size_t>(known) - static_cast<std::size_t>(Architecture::ampere)];
}

/// Bytes of scales per value of input and weight.
struct ScaleBytes {
  double input = 0, weight = 0;
};
ScaleBytes scale_bytes(Precision precision, bool blocks) {
  constexpr double kNvfp4 = 1.0 / 16, kBlock = 128, kScale = 4;
  if (precision == Precision::fp4) return {kNvfp4, kNvfp4};
  if (precision == Precision::fp8 && blocks) return {kScale / kBlock, kScale / (kBlock * kBlock)};
  return {};
}

/// Number of tiles of height `rows` that cover the rows of all experts.
double row_tiles(const ExpertLoads& loads, double rows) {
  double sum = 0;
  for (const ExpertRun& run : loads.runs) sum += run.experts * std::ceil(run.tokens / rows);
  return sum;
}

/// Time of the SMs over all tiles with the best tile, where the units reach `share` of their rate.
/// `stored`: how weights come, where 8-bit units take narrower ones as they are: a step is a line of those.
double grouped_compute(const ExpertLoads& loads, double n, double k, Precision precision, Precision stored,
                       const DeviceSpec& device, double share) {
  const ExpertKernels& kernels = expert_kernels(device);
  const double clock = device.sm.clock.value(), sms = static_cast<double>(device.sm.count);
  const double limit = device.knows_energy() ? 1 : device.sustained.tensor;
  const double math = share * kernels.share * limit *
                      device.sm.tensor_flops_per_clock[static_cast<std::size_t>(precision)] * clock;
  const double port = device.products.port * clock;
  const Precision line = precision == Precision::fp8 ? stored : precision;
  const double depth = kGroupedStepBytes / bytes_per_element(line);
  double best = std::numeric_limits<double>::infinity();
  for (const double rows : kTileTokens) {
    const double high = row_tiles(loads, rows);
    for (const double columns : kTileColumns) {
      if (rows * columns > kLargestTile) continue;
      const double step = std::max(
          {2 * rows * columns * depth / math, (rows + columns) * kGroupedStepBytes / port, kernels.step});
      const double store = rows * columns * output_bytes(precision) / port;
      const double turns = std::ceil(high * std::ceil(n / columns) / sms);
      best = std::min(best, turns * (std::ceil(k / depth) * step + store + kernels.tile));
    }
  }
  return best;
}

double permutation_seconds(const ExpertLoads& loads, double hidden, const DeviceSpec& device) {
  const ExpertKernels& kernels = expert_kernels(device);
  return kernels.permutation * kRowBytes * loads.tokens() * hidden /
         (kernels.hbm * device.hbm_peak().value());
}

}  // namespace

OperatorCost grouped_product(const ExpertLoads& loads, double n, double k, Precision precision,
                             const DeviceSpec& device, const GroupedOptions& options) {
  SHARDSCAPE_CHECK(n >= 1 && k >= 1 && options.share > 0 && device.supports(precision), n, k,
                   name_of(precision), device.name);
  const double tokens = loads.tokens(), element = bytes_per_element(precision);
  const ScaleBytes scales = scale_bytes(precision, options.blocks);
  const Precision stored = options.stored.value_or(precision);
  const double weight = bytes_per_element(stored) + scale_bytes(stored, options.blocks).weight;
  const double bytes = weight * loads.active() * n * k + (element + scales.input) * tokens * k +
                       output_bytes(precision) * tokens * n;
  const double flops = 2 * tokens * n * k;
  const double compute = grouped_compute(loads, n, k, precision, stored, device, options.share);
  const double hbm = bytes / (expert_kernels(device).hbm * device.hbm_peak().value());
  // Where steps are not priced by energy, the card has no more power for a short burst than for a step.
  const bool burst = options.burst || !device.energy.steps;
  const double power = device.knows_energy() ? power_time(device, precision, flops, bytes, burst) : 0;
  const auto fourth = [](double x) { return x * x * x * x; };
  const double body = std::sqrt(std::sqrt(fourth(compute) + fourth(hbm) + fourth(power)));
  const Bound bound = device.kernel_latency.value() > body ? Bound::launch
                      : hbm > std::max(compute, power)     ? Bound::hbm
                                                           : Bound::compute;
  return {device.kernel_latency + Seconds(body), bound, {Flops(flops), Bytes(bytes)}};
}

OperatorCost expert_permutation(const ExpertLoads& loads, double hidden, const DeviceSpec& device) {
  constexpr double kKernels = 2;  // one kernel into the order of experts and one back
  const Bytes bytes(expert_kernels(device).permutation * kRowBytes * loads.tokens() * hidden);
  return {kKernels * device.kernel_latency + Seconds(permutation_seconds(loads, hidden, device)),
          Bound::hbm,
          {Flops(loads.tokens() * hidden), bytes}};
}

OperatorCost experts_alone(const ExpertLoads& loads, const ExpertLayer& layer, Precision precision,
                           const DeviceSpec& device) {
  const ExpertKernels& kernels = expert_kernels(device);
  const GroupedOptions options{.blocks = layer.blocks, .burst = true};
  const double up = layer.gated ? 2 * layer.inner : layer.inner;
  OperatorCost cost = grouped_product(loads, up, layer.hidden, precision, device, options);
  const OperatorCost down = grouped_product(loads, layer.hidden, layer.inner, precision, device, options);
  const double beside = std::max(0.0, kernels.call - 2 * device.kernel_latency.value()) +
                        kernels.token * layer.tokens + kernels.expert * layer.experts;
  cost.time += down.time + Seconds(beside + permutation_seconds(loads, layer.hidden, device));
  cost.work += down.work + expert_permutation(loads, layer.hidden, device).work;
  return cost;
}

OperatorCost routed_experts_alone(const Routing& routing, std::optional<double> exponent, std::int64_t ranks,
                                  const ExpertLayer& layer, Precision precision, const DeviceSpec& device) {
  if (!exponent)
    return experts_alone(busiest_rank(balanced_tokens(routing), ranks), layer, precision, device);
  OperatorCost mean;
  for (int draw = 0; draw < kDraws; ++draw) {
    CounterRng random(0, static_cast<std::uint64_t>(draw));
    const ExpertLoads loads = busiest_rank(power_law_tokens(routing, *exponent, random), ranks);
    const OperatorCost one = experts_alone(loads, layer, precision, device);
    mean.time += one.time;
    mean.work += one.work;
    mean.bound = one.bound;
  }
  return {mean.time / kDraws, mean.bound, (1.0 / kDraws) * mean.work};
}

}  // namespace shardscape::compute
