// Faults of links and devices on one fabric, and THE table of the kinds that studies draw.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "engine/base/enum_names.h"
#include "engine/base/quantity.h"

namespace shardscape {

/// Bandwidth of one directed link is multiplied by `derate` (0 < derate <= 1) and its latency grows by
/// `added_latency`; or the link is gone. Several faults of one link add up: derates multiply, latencies sum. Of a link
/// of several strands, it is one of these: adaptive routing leaves that strand what it can carry, and waits for none.
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
  /// The smallest of its shares.
  [[nodiscard]] constexpr double least_share() const { return std::min(compute_share, hbm_share); }
};

struct FaultSet {
  std::vector<LinkFault> links;
  std::vector<DeviceFault> devices = {};
  [[nodiscard]] bool empty() const { return links.empty() && devices.empty(); }
};

/// The kinds of faults that studies draw.
enum class FaultKind : std::uint8_t { soft_link, hard_link, hbm_derate, slow_device, nic_down, switch_down };

/// The part of a machine that is sick: a link, a device, the adapter of a device or a switch with all its links.
enum class FaultOwner : std::uint8_t { link, device, adapter, switches };
/// Names as reports write them in front of a number.
SHARDSCAPE_ENUM_NAMES(FaultOwner, "link", "device", "adapter of device", "switch");

struct FaultRow {
  FaultKind kind;
  std::string_view name;
  FaultOwner owner;
  bool derates;  ///< leaves a share, which a study draws from `derate`
  /// The fault of each link of the owner, or of a device, without ids; `share` is what is left of the rate.
  LinkFault (*of_link)(double share, Seconds added_latency) = nullptr;
  DeviceFault (*of_device)(double share) = nullptr;

  /// Whether the links that are left are slower to respond, by the study's `added_latency`.
  [[nodiscard]] constexpr bool delays() const { return derates && of_link != nullptr; }
};
namespace detail {
constexpr LinkFault soft_link(double share, Seconds latency) {
  return {.derate = share, .added_latency = latency};
}
constexpr LinkFault dead_link(double, Seconds) { return {.removed = true}; }
constexpr DeviceFault slow_clock(double share) { return {.compute_share = share}; }
constexpr DeviceFault slow_memory(double share) { return {.hbm_share = share}; }
}  // namespace detail
inline constexpr auto kFaultKinds = std::to_array<FaultRow>({
    {FaultKind::soft_link, "soft_link", FaultOwner::link, true, detail::soft_link},
    {FaultKind::hard_link, "hard_link", FaultOwner::link, false, detail::dead_link},
    // throttling, a lost stack
    {FaultKind::hbm_derate, "hbm_derate", FaultOwner::device, true, {}, detail::slow_memory},
    // thermal or power capping: a straggler
    {FaultKind::slow_device, "slow_device", FaultOwner::device, true, {}, detail::slow_clock},
    {FaultKind::nic_down, "nic_down", FaultOwner::adapter, false, detail::dead_link},
    {FaultKind::switch_down, "switch_down", FaultOwner::switches, false, detail::dead_link},
});
constexpr auto list_of_names(FaultKind /*value*/) { return names_of_table(kFaultKinds, &FaultRow::kind); }

constexpr const FaultRow& row_of(FaultKind kind) { return kFaultKinds[static_cast<std::size_t>(kind)]; }

}  // namespace shardscape
