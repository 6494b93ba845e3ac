// Finds the fastest tile, split of K and number of co-resident CTAs for a product. Evaluation prices one choice by the
// clock of the device; LibraryProduct prices library kernels on a device whose energies are known.
#include "engine/compute/gemm.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "engine/base/check.h"
#include "engine/compute/gemm_traffic.h"
#include "engine/compute/power.h"

namespace shardscape::compute {

namespace {

constexpr double kPartialBytes = 4;  ///< bytes per fp32 partial sum of split-K
constexpr std::int32_t kMaxSplit = 16;
constexpr double kTwoByteOperand = 2;

/// Rates of the device at the clock at which the product runs.
struct Machine {
  Machine(const DeviceSpec& d, Precision precision, const std::optional<Hertz>& locked, double share)
      : device(d), operand(operand_bytes(precision)), sms(static_cast<double>(d.sm.count)) {
    const double clock = locked ? locked->value() : d.sustained.tensor * d.sm.clock.value();
    math_per_second = share * d.sm.tensor_efficiency *
                      d.sm.tensor_flops_per_clock[static_cast<std::size_t>(precision)] * clock;
    sram_per_second = d.sm.sram_bytes_per_clock * clock;
    port_per_second = d.sm.l2_bytes_per_clock * clock;
    load_latency = d.sm.load_latency_clocks / clock;
    l2_per_second = d.sustained.l2 * d.l2.bytes_per_clock * (locked ? locked->value() : d.sm.clock.value());
    fixed = d.kernel_latency.value() + (locked ? d.cold_start.value() : 0);
  }

  const DeviceSpec& device;
  double operand;
  double sms;
  double math_per_second = 0, sram_per_second = 0, port_per_second = 0;  ///< rates of one SM, per second
  double load_latency = 0;
  double l2_per_second = 0;  ///< bandwidth of all SMs together, per second
  double fixed = 0;
};

struct Product {
  Product(const GemmShape& s, GemmOutput out)
      : m(static_cast<double>(s.m)),
        n(static_cast<double>(s.n)),
        k(static_cast<double>(s.k)),
        batch(static_cast<double>(s.batch)),
        output(out) {}

  double m, n, k, batch;
  GemmOutput output;

  [[nodiscard]] double elements() const { return batch * m * n; }
  [[nodiscard]] double output_traffic() const {
    return output.bytes_per_element * (output.accumulate ? 2 : 1);
  }
  /// Number of tiles that cover C in all products of the batch.
  [[nodiscard]] double tiles(const GemmTile& tile) const {
    return batch * std::ceil(m / tile.m) * std::ceil(n / tile.n);
  }
};

constexpr double kSmallestFragment = 16;  ///< below it warps share k instead of C (CUTLASS "sliced-K")

/// Bytes of operands that a CTA reads from shared memory in one k-step, fragment by fragment.
double sram_bytes_per_step(const GemmTile& tile, double operand, const DeviceSpec::Fragment& fragment) {
  double m = std::min<double>(static_cast<double>(fragment.m), tile.m);
  double n = std::min<double>(static_cast<double>(fragment.n), tile.n);
  const double most = static_cast<double>(tile.m) * tile.n / static_cast<double>(fragment.per_cta);
  while (m * n > most && std::max(m, n) > kSmallestFragment) (m > n ? m : n) /= 2;
  return tile.k * operand * (tile.m * std::ceil(tile.n / n) + tile.n * std::ceil(tile.m / m));
}

/// Elements of A and B per step of k that tiles load through L2. The CTAs of a cluster lie along one side of C and load
/// the other side's panel once.
double panel_loads(const Product& p, double rows, double columns, std::int64_t ctas) {
  const auto cluster = static_cast<double>(ctas);
  return std::min(p.m * std::ceil(columns / cluster) + p.n * rows,
                  p.m * columns + p.n * std::ceil(rows / cluster));
}

class Evaluation {
 public:
  Evaluation(const Product& product, const Machine& machine) : p_(product), d_(machine) {}

  [[nodiscard]] GemmCost run(const FittedTile& fitted, std::int32_t split) const {
    const GemmTile& tile = fitted.tile;
    GemmCost cost;
    cost.tile = tile;
    cost.split_k = split;
    const double ctas = p_.tiles(tile) * split;
    cost.waves = std::ceil(ctas / d_.sms);
    const double steps = std::ceil(p_.k / split / tile.k);
    const double epilogues = epilogue_time(tile, split, ctas, cost.waves);

    const double step_math = 2.0 * tile.m * tile.n * tile.k / d_.math_per_second;
    const double sharing = std::min<double>(fitted.resident, cost.waves);
    const double step_load = d_.load_latency / (tile.stages - 1) / sharing;
    const double sram_bytes = sram_bytes_per_step(tile, d_.operand, d_.device.sm.fragment);
    const double step_sram = sram_bytes / d_.sram_per_second;
    const auto loop = [&](double step) { return cost.waves * steps * step + epilogues + d_.load_latency; };
    const double compute = loop(std::max(step_math, step_load)), sram = loop(step_sram);
    cost.sram_bytes = Bytes(ctas * steps * sram_bytes);

    const double partials = split > 1 ? kPartialBytes * p_.elements() * split : 0;
    add_traffic(cost, fitted.resident, ctas, partials);
    const double l2 = cost.l2_bytes.value() / d_.l2_per_second;
    const double hbm = cost.hbm_bytes / d_.device.hbm_sustained() / Seconds(1);

    const double body = std::max({compute, sram, l2, hbm});
    const double fixed = d_.fixed + (split > 1 ? d_.device.kernel_latency.value() : 0);
    cost.time = Seconds(fixed + body + reduction_time(partials));
    cost.bound = fixed > body   ? Bound::launch
                 : body == hbm  ? Bound::hbm
                 : body == l2   ? Bound::l2
                 : body == sram ? Bound::sram
                                : Bound::compute;
    return cost;
  }

 private:
  /// Seconds of the epilogues of all waves: the larger of the time of an SM's port for its tiles one after the other
  /// and the time of L2 for all tiles.
  [[nodiscard]] double epilogue_time(const GemmTile& tile, std::int32_t split, double ctas,
                                     double waves) const {
    const double bytes = std::min<double>(tile.m, p_.m) * std::min<double>(tile.n, p_.n) *
                         (split > 1 ? kPartialBytes : p_.output_traffic());
    return std::max(waves * bytes / d_.port_per_second, ctas * bytes / d_.l2_per_second);
  }

  /// Seconds of the second kernel of split-K, which reads the partial sums and writes C.
  [[nodiscard]] double reduction_time(double partials) const {
    if (partials == 0) return 0;
    // Partial sums that exceed L2 come through it from HBM.
    const bool held = partials <= d_.device.l2.capacity.value();
    const double rate =
        held ? d_.l2_per_second : std::min(d_.l2_per_second, d_.device.hbm_sustained().value());
    return (partials + p_.output_traffic() * p_.elements()) / rate;
  }

  void add_traffic(GemmCost& cost, double resident, double ctas, double partials) const {
    const GemmTile& tile = cost.tile;
    const double rows = std::ceil(p_.m / tile.m), columns = std::ceil(p_.n / tile.n);
    const double c = p_.output_traffic() * p_.elements();
    const double panels = p_.batch * p_.k * d_.operand * panel_loads(p_, rows, columns, d_.device.sm.cluster);
    cost.l2_bytes = Bytes(panels + (partials > 0 ? 2 * partials : 0) + c);

    const double share = ctas / p_.batch / cost.split_k;  // tiles per product of the batch
    const double wave = std::clamp(d_.sms * resident / cost.split_k, 1.0, share);
    const double operands =
        p_.batch * operand_hbm_bytes({p_.m, p_.n, p_.k, d_.operand}, tile, wave,
                                     std::min(resident, cost.waves), d_.device.l2.capacity.value());
    const double spilled = partials > d_.device.l2.capacity.value() ? 2 * partials : 0;
    cost.hbm_bytes = Bytes(std::min(operands, panels) + c + spilled);
  }

  const Product& p_;
  const Machine& d_;
};

/// Prices a product by a library's kernels, on a device whose energy is known (see the header).
class LibraryProduct {
 public:
  LibraryProduct(const Product& product, Precision precision, const DeviceSpec& device, bool burst,
                 double share)
      : p_(product),
        device_(device),
        precision_(precision),
        operand_(operand_bytes(precision)),
        burst_(burst) {
    const double clock = device.sm.clock.value();
    math_per_second_ = share * device.sm.tensor_efficiency *
                       device.sm.tensor_flops_per_clock[static_cast<std::size_t>(precision)] * clock;
    port_per_second_ = device.products.port * clock;
    depth_ = kStepBytes / bytes_per_element(precision);
    steps_ = std::ceil(product.k / depth_);
  }

  /// Tries all tiles, or the requested one in both orientations.
  [[nodiscard]] GemmCost run(const std::optional<GemmTile>& requested) {
    if (requested) {
      consider({requested->m, requested->n, 1});
      consider({requested->n, requested->m, 1});
    } else {
      for (const LibraryTile& tile : library_tiles(device_)) consider(tile);
    }
    return cost();
  }

 private:
  static constexpr double kStepBytes = 128;  ///< bytes of depth per step: one line of shared memory
  static constexpr double kMostSplits = 64, kFewestSteps = 2;

  struct Choice {
    double compute = std::numeric_limits<double>::infinity();
    LibraryTile tile;
    double split = 1, rounds = 0;
  };

  /// Keeps the best times that depend on the tile alone. Among splits with equal rounds the largest has the fewest
  /// steps, so that one candidate per number of rounds is enough; more than two rounds are never worth a reduction.
  void consider(const LibraryTile& tile) {
    const double ctas = p_.batch * std::ceil(p_.m / tile.m) * std::ceil(p_.n / tile.n);
    const double units = std::max(1.0, std::floor(static_cast<double>(device_.sm.count) / tile.sms));
    const double rows = std::min<double>(tile.m, p_.m), columns = std::min<double>(tile.n, p_.n);
    const double math = 2.0 * tile.m * tile.n * depth_ / (math_per_second_ * tile.sms);
    const double load = (rows + columns) * kStepBytes / (port_per_second_ * tile.sms);
    const double step = std::max({math, load, device_.products.step.value()});
    const double store = rows * columns / (port_per_second_ * tile.sms);
    const auto at = [&](double split, double bytes) {
      const double rounds = std::ceil(ctas * split / units);
      return Choice{rounds * (std::ceil(steps_ / split) * step + store * bytes), tile, split, rounds};
    };
    keep(at(1, p_.output_traffic()), whole_);
    if (ctas > units) return;
    for (const double rounds : {1.0, 2.0}) {
      const double split =
          std::min({std::floor(rounds * units / ctas), kMostSplits, std::floor(steps_ / kFewestSteps)});
      if (split > 1) keep(at(split, kPartialBytes), split_);
    }
  }

  static void keep(const Choice& choice, Choice& best) {
    if (choice.compute < best.compute) best = choice;
  }

  [[nodiscard]] GemmCost cost() const {
    const double operands = p_.batch * operand_ * (p_.m * p_.k + p_.n * p_.k);
    const double c = p_.output_traffic() * p_.elements();
    const double hbm = (operands + device_.products.output * c) / device_.hbm_sustained().value();
    const double power = power_time(device_, precision_, 2 * p_.elements() * p_.k, operands + c, burst_);
    const auto total = [&](const Choice& choice) {
      const double reduction = choice.split > 1 ? device_.products.reduction.value() : 0;
      return four_norm(choice.compute, hbm, power) + reduction;
    };
    const double whole = total(whole_);
    const bool splits = split_.rounds > 0 && total(split_) < whole;
    const Choice& best = splits ? split_ : whole_;
    const double body = splits ? total(split_) : whole;

    GemmCost cost;
    const auto depth = static_cast<std::int32_t>(depth_);
    const FittedTile fitted =
        fit_stages({best.tile.m, best.tile.n, depth, 0}, best.rounds, operand_, device_);
    cost.tile = fitted.tile;
    if (fitted.resident == 0) cost.tile.stages = kPairStages;
    cost.split_k = static_cast<std::int32_t>(best.split);
    cost.waves = best.rounds;
    cost.time = device_.products.latency + Seconds(body);
    cost.bound = device_.products.latency.value() > body ? Bound::launch
                 : hbm > std::max(best.compute, power)   ? Bound::hbm
                                                         : Bound::compute;
    const double rows = std::ceil(p_.m / best.tile.m), columns = std::ceil(p_.n / best.tile.n);
    const double partials = best.split > 1 ? 2 * kPartialBytes * p_.elements() * best.split : 0;
    cost.hbm_bytes = Bytes(operands + c);
    cost.l2_bytes =
        Bytes(p_.batch * p_.k * operand_ * panel_loads(p_, rows, columns, device_.sm.cluster) + partials + c);
    cost.sram_bytes = Bytes(p_.batch * rows * columns * steps_ *
                            sram_bytes_per_step(cost.tile, operand_, device_.sm.fragment));
    return cost;
  }

  static double four_norm(double a, double b, double c) {
    a *= a, b *= b, c *= c;
    return std::sqrt(std::sqrt(a * a + b * b + c * c));
  }

  static constexpr std::int32_t kPairStages = 4;  ///< stages of tiles whose sums lie in tensor memory

  const Product& p_;
  const DeviceSpec& device_;
  Precision precision_;
  double operand_;
  bool burst_;
  double math_per_second_ = 0, port_per_second_ = 0;  ///< rates of one SM, per second
  /// Elements of k per step; number of steps over all of k.
  double depth_ = 0, steps_ = 0;
  Choice whole_, split_;  ///< the best choice without a split of K, and with one
};

/// Tries all splits of K for one tile, and all numbers of its CTAs per SM; keeps the best.
void consider(const GemmTile& tile, const Product& product, const Machine& machine, GemmCost& best) {
  const Evaluation evaluation(product, machine);
  const double grid = product.tiles(tile);
  for (std::int32_t split = 1; split <= kMaxSplit; split *= 2) {
    if (split > 1 && (grid * split > 2 * machine.sms || product.k < 2.0 * split * tile.k)) break;
    const double waves = std::ceil(grid * split / machine.sms);
    const FittedTile fitted = tile.stages > 0
                                  ? FittedTile{tile, resident_ctas(tile, machine.operand, machine.device)}
                                  : fit_stages(tile, waves, machine.operand, machine.device);
    if (fitted.resident == 0) return;
    const GemmCost most_loads = evaluation.run(fitted, split);
    if (most_loads.time < best.time) best = most_loads;
    // As many CTAs per SM as fit are fastest in all but HBM. Fewer CTAs use fewer panels at once, which L2 may hold.
    // Kernels have that choice: by asking for more SRAM than they need they keep further CTAs off their SM.
    if (most_loads.bound != Bound::hbm && most_loads.bound != Bound::launch) continue;
    for (std::int32_t resident = 1; resident <= kMostResident; ++resident) {
      const GemmTile deepest =
          tile.stages > 0 ? tile : deepest_stages(tile, resident, machine.operand, machine.device);
      if (resident_ctas(deepest, machine.operand, machine.device) < resident) break;
      const GemmCost cost = evaluation.run({deepest, resident}, split);
      if (cost.time < best.time) best = cost;
    }
  }
}

/// The tile with its depth scaled so that a k-step has as many bytes as it has for two-byte operands.
GemmTile of_operand(GemmTile tile, Precision precision) {
  const double scale = kTwoByteOperand / bytes_per_element(precision);
  tile.k = std::max(8, static_cast<std::int32_t>(tile.k * scale));
  return tile;
}

}  // namespace

GemmCost gemm(const GemmShape& shape, Precision precision, const DeviceSpec& device, GemmOutput output,
              const GemmRequest& request) {
  SHARDSCAPE_CHECK(shape.m >= 1 && shape.n >= 1 && shape.k >= 1 && shape.batch >= 1, shape.m, shape.n,
                   shape.k, shape.batch);
  SHARDSCAPE_CHECK(device.supports(precision), name_of(precision), device.name);
  const Product product(shape, output);
  if (!request.locked_clock && (request.burst ? device.knows_energy() : device.steps_by_energy()))
    return LibraryProduct(product, precision, device, request.burst, request.share).run(request.tile);
  const Machine machine(device, precision, request.locked_clock, request.share);
  GemmCost best;
  best.time = Seconds(std::numeric_limits<double>::infinity());
  if (request.tile) {
    GemmTile tile = *request.tile;
    consider(tile, product, machine, best);
    std::swap(tile.m, tile.n);
    consider(tile, product, machine, best);
  } else {
    for (const GemmTile& tile : candidate_tiles()) {
      consider(of_operand(tile, precision), product, machine, best);
    }
    if (std::min(shape.m, shape.n) <= kSkinnyRows) {
      for (GemmTile tile : skinny_tiles()) {
        if (shape.n < shape.m) std::swap(tile.m, tile.n);
        consider(of_operand(tile, precision), product, machine, best);
      }
    }
    if (best.tile.m == 0) consider(kSmallestTile, product, machine, best);
  }
  SHARDSCAPE_CHECK(best.tile.m > 0, "no tile fits", device.name);
  return best;
}

bool tile_fits(GemmTile tile, Precision precision, const DeviceSpec& device) {
  if (tile.stages == 0) tile.stages = 2;
  return resident_ctas(tile, operand_bytes(precision), device) > 0;
}

}  // namespace shardscape::compute
