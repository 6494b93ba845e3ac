// Faults of links and devices on one fabric.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/base/enum_names.h"
#include "engine/base/quantity.h"

namespace shardscape {

/// What fault studies draw.
///   soft_link    a link keeps a share of its bandwidth (and may gain latency)
///   hard_link    a link is gone
///   hbm_derate   a device keeps a share of its memory bandwidth (throttling, a lost stack)
///   slow_device  a device keeps a share of its clock (thermal or power capping: a straggler)
///   nic_down     all links of one adapter are gone
///   switch_down  all links of one switch are gone
enum class FaultKind : std::uint8_t { soft_link, hard_link, hbm_derate, slow_device, nic_down, switch_down };
SHARDSCAPE_ENUM_NAMES(FaultKind, "soft_link", "hard_link", "hbm_derate", "slow_device", "nic_down",
                      "switch_down");

/// Bandwidth of one directed link is multiplied by `derate` (0 < derate <= 1) and its latency grows by
/// `added_latency`; or the link is gone. Several faults of one link add up: derates multiply, latencies sum.
struct LinkFault {
  std::int32_t link = 0;  ///< id in network::Fabric
  double derate = 1;
  Seconds added_latency = {};
  bool removed = false;  ///< nothing passes; the other two mean nothing then
  friend bool operator==(const LinkFault&, const LinkFault&) = default;
};

/// The device on one rank of the fabric keeps a share, 0 < share <= 1, of its clock and of its memory
/// bandwidth. Its capacity and its links are as they were. Several faults of one device multiply. Modelled in
/// training; inference takes no notice.
struct DeviceFault {
  std::int32_t rank = 0;
  double compute_share = 1;  ///< share of the SM clock that is left: matrix and vector units, SRAM and L2
  double hbm_share = 1;      ///< share of the HBM bandwidth that is left
};

struct FaultSet {
  std::vector<LinkFault> links;
  std::vector<DeviceFault> devices = {};
  [[nodiscard]] bool empty() const { return links.empty() && devices.empty(); }
};

}  // namespace shardscape
