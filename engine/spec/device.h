// A GPU, built from parts: a what-if moves a part, never a fudge factor.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/enum_names.h"
#include "engine/base/problems.h"
#include "engine/base/quantity.h"
#include "engine/spec/node_collectives.h"
#include "engine/spec/precision.h"

namespace shardscape {

/// Generations of matrix units for which kernels are known by name (compute/fused_attention.h).
enum class Architecture : std::uint8_t { other, ampere, hopper, blackwell };

/// Peak rates follow from the parts: units x per-unit rate x clock. YAML keys carry the same names, nested
/// alike; what a number is and may be stands in its row (device_numbers.cc).
struct DeviceSpec {
  /// The part of a CTA's output tile whose products share one read of their operands from shared memory. At
  /// least `per_cta` of them make up a CTA, however small its tile: one per matrix unit where a warp feeds
  /// one unit, one where a warpgroup feeds all four.
  struct Fragment {
    std::int64_t m = 64, n = 64;
    std::int64_t per_cta = 4;
    friend bool operator==(const Fragment&, const Fragment&) = default;
  };
  struct StreamingMultiprocessors {
    std::int64_t count = 0;
    Hertz clock;  ///< boost clock at which data sheets quote their peaks
    /// Dense matrix FLOPs per SM and clock, by precision; 0 where the device has no such unit. YAML: one key
    /// per type.
    std::array<double, kPrecisionCount> tensor_flops_per_clock{};
    double vector_flops_per_clock = 0;
    Bytes registers, sram;
    double sram_bytes_per_clock = 0;
    double tensor_efficiency = 1;
    double load_latency_clocks = 800;
    double l2_bytes_per_clock = 64;
    Fragment fragment;
    /// CTAs that receive one load together (thread block clusters with multicast); 1: every CTA loads alone.
    std::int64_t cluster = 1;
    friend bool operator==(const StreamingMultiprocessors&, const StreamingMultiprocessors&) = default;
  };
  struct L2 {
    Bytes capacity;
    double bytes_per_clock = 0;  ///< bytes read by all SMs together per SM clock
    friend bool operator==(const L2&, const L2&) = default;
  };
  struct Hbm {
    std::int64_t stacks = 0;
    Bytes capacity_per_stack;
    BytesPerSecond bandwidth_per_stack;
    friend bool operator==(const Hbm&, const Hbm&) = default;
  };
  /// Shares of the peaks that long kernels sustain: refresh and bank conflicts limit HBM, crossing partitions limits
  /// L2. For matrix units it is the share of the boost clock that the power limit leaves under full load; at a clock
  /// that is locked below it nothing throttles.
  struct Sustained {
    double tensor = 1;
    double hbm = 1;
    double l2 = 1;
    friend bool operator==(const Sustained&, const Sustained&) = default;
  };
  /// Kernels of fused attention; the rates are of those known by name (compute/fused_attention.h).
  struct FusedAttention {
    double forward = 1, backward = 1;
    double prompt_rate = 1, decode_rate = 1;
    friend bool operator==(const FusedAttention&, const FusedAttention&) = default;
  };
  /// Power that work draws, from which follows how fast the card's limit lets it run (compute/power.h). Not known where
  /// `flop_pj` is 0; then `sustained.tensor` stands for what the limit leaves.
  struct Energy {
    double idle_watts = 0;
    double flop_pj = 0;            ///< energy of a bf16 FLOP of the matrix units, in pJ
    double fp8 = 0.5, fp4 = 0.25;  ///< relative to a bf16 FLOP
    double byte_pj = 0;            ///< energy of a byte from or to HBM, in pJ
    double burst_watts = 0;
    /// Whether the speed of whole steps follows from these energies too, rather than from `sustained.tensor`.
    bool steps = true;
    friend bool operator==(const Energy&, const Energy&) = default;
  };
  /// Constants of the library's matrix-product kernels on a device whose `energy` is known (compute/gemm.h).
  struct Products {
    Seconds latency = Seconds(3e-6);
    Seconds step = Seconds(100e-9);  ///< latency that the stages don't hide
    Seconds reduction = Seconds(2.5e-6);
    double output = 1;  ///< above 1: partial lines are read before they are written
    double port = 64;
    bool pairs = false;  ///< two SMs share one tile of C and its operands (tcgen05 cta_group::2)
    friend bool operator==(const Products&, const Products&) = default;
  };
  /// Further facts of the data sheet, for the reader, as are those of Links. 0 or empty where not stated.
  struct Die {
    double area_mm2 = 0;
    double process_nm = 0;
    friend bool operator==(const Die&, const Die&) = default;
  };
  struct Links {
    std::int64_t ports = 0;
    BytesPerSecond bandwidth_per_port;
    /// All ports together, in one direction; 0 where it is not stated.
    [[nodiscard]] BytesPerSecond bandwidth() const { return static_cast<double>(ports) * bandwidth_per_port; }
    friend bool operator==(const Links&, const Links&) = default;
  };

  std::string name;
  StreamingMultiprocessors sm;
  L2 l2;
  Hbm hbm;
  Sustained sustained;
  FusedAttention attention;
  Architecture architecture = Architecture::other;
  Energy energy;
  Products products;
  Seconds kernel_latency, cold_start;
  NodeCollectives node;  ///< YAML: `nccl`, `custom_all_reduce` and `expert_dispatch`
  Die die;
  Links links;
  Watts power;                ///< power limit of the card, used where `energy` is known; 0: not stated
  double price_per_hour = 0;  ///< what one device costs, in a currency of the reader's; 0: not stated
  std::vector<std::pair<std::string, std::string>> package;  ///< free remarks of the data sheet, key and text

  [[nodiscard]] FlopsPerSecond tensor_peak(Precision p) const {
    return FlopsPerSecond(static_cast<double>(sm.count) *
                          sm.tensor_flops_per_clock[static_cast<std::size_t>(p)] * sm.clock.value());
  }
  /// Rate of the inner loop of a matrix kernel in a long step: the peak at the clock that the power limit leaves.
  [[nodiscard]] FlopsPerSecond tensor_sustained(Precision p) const;
  /// Whether the energies are known from which the power limit of a single kernel, or of a whole step, is computed;
  /// otherwise `sustained.tensor` stands for it.
  [[nodiscard]] bool knows_energy() const { return energy.flop_pj > 0; }
  [[nodiscard]] bool steps_by_energy() const { return knows_energy() && energy.steps; }
  /// Energy of one FLOP of the matrix units, in joules.
  [[nodiscard]] double flop_joules(Precision p) const;
  [[nodiscard]] bool supports(Precision p) const {
    return sm.tensor_flops_per_clock[static_cast<std::size_t>(p)] > 0;
  }
  [[nodiscard]] FlopsPerSecond vector_peak() const {
    return FlopsPerSecond(static_cast<double>(sm.count) * sm.vector_flops_per_clock * sm.clock.value());
  }
  [[nodiscard]] Bytes memory_capacity() const {
    return static_cast<double>(hbm.stacks) * hbm.capacity_per_stack;
  }
  [[nodiscard]] BytesPerSecond hbm_peak() const {
    return static_cast<double>(hbm.stacks) * hbm.bandwidth_per_stack;
  }
  [[nodiscard]] BytesPerSecond l2_sustained() const {
    return BytesPerSecond(sustained.l2 * l2.bytes_per_clock * sm.clock.value());
  }
  /// Sustained L2 bandwidth that `sms` of the SMs get together.
  [[nodiscard]] BytesPerSecond l2_sustained(double sms) const {
    return std::min(l2_sustained(), BytesPerSecond(sms * sm.l2_bytes_per_clock * sm.clock.value()));
  }
  [[nodiscard]] BytesPerSecond hbm_sustained() const { return sustained.hbm * hbm_peak(); }

  [[nodiscard]] Problems validate() const;
  friend bool operator==(const DeviceSpec&, const DeviceSpec&) = default;
};

}  // namespace shardscape
