// A GPU, built from parts: a what-if moves a part, never a fudge factor.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/problems.h"
#include "engine/base/quantity.h"
#include "engine/spec/precision.h"

namespace shardscape {

/// Peak rates follow from the parts: units x per-unit rate x clock. YAML keys carry the same names, nested
/// alike.
struct DeviceSpec {
  struct StreamingMultiprocessors {
    std::int64_t count = 0;
    Hertz clock;  ///< boost clock at which data sheets quote their peaks
    /// Dense matrix FLOPs per SM and clock, by precision; 0 where the device has no such unit. YAML: one key
    /// per type.
    std::array<double, kPrecisionCount> tensor_flops_per_clock{};
    double vector_flops_per_clock = 0;  ///< fp32 FMA lanes x 2, per SM
    Bytes registers;                    ///< register file per SM
    Bytes sram;                         ///< shared memory usable by CTAs, per SM
    double sram_bytes_per_clock = 0;    ///< shared-memory bandwidth per SM
  };
  struct L2 {
    Bytes capacity;
    double bytes_per_clock = 0;  ///< reads by all SMs together, at the SM clock
  };
  struct Hbm {
    std::int64_t stacks = 0;
    Bytes capacity_per_stack;            ///< YAML: or `capacity`, the total
    BytesPerSecond bandwidth_per_stack;  ///< YAML: or `bandwidth`, the total
  };
  /// What long kernels sustain of the peak: power throttling for tensor cores, refresh and bank conflicts for
  /// HBM.
  struct Sustained {
    double tensor = 1;
    double hbm = 1;
    double l2 = 1;
  };
  /// What a data sheet says beside: kept for the reader, used by no model. 0 or empty where it is not stated.
  struct Facts {
    double die_area_mm2 = 0;
    double process_nm = 0;
    std::vector<std::pair<std::string, std::string>> package;  ///< free remarks, key and text
    std::int64_t link_ports = 0;
    BytesPerSecond link_bandwidth_per_port;
    double power_watts = 0;
  };

  std::string name;
  StreamingMultiprocessors sm;
  L2 l2;
  Hbm hbm;
  Sustained sustained;
  Seconds kernel_latency;  ///< start-up and drain of one kernel on the device, back to back
  Facts facts;

  [[nodiscard]] FlopsPerSecond tensor_peak(Precision p) const {
    return FlopsPerSecond(static_cast<double>(sm.count) *
                          sm.tensor_flops_per_clock[static_cast<std::size_t>(p)] * sm.clock.value());
  }
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
  [[nodiscard]] BytesPerSecond hbm_sustained() const { return sustained.hbm * hbm_peak(); }

  [[nodiscard]] Problems validate() const;
};

}  // namespace shardscape
