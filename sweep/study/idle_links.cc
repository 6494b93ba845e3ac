// A cluster that states the bandwidth of its scale-up network says more than a device's data sheet; whoever wrote the
// sheet has to know that it does. One that states none has that of its own device, whichever takes its place.
#include "sweep/study/idle_links.h"

#include <fmt/format.h>

#include <cmath>
#include <optional>

#include "sweep/yaml/quantity_text.h"

namespace shardscape::sweep {

namespace {

std::string bandwidth_text(BytesPerSecond bandwidth) {
  return yaml::format_quantity(bandwidth.value(), yaml::Dimension::bandwidth);
}

/// The links that the system's cluster has the bandwidth of; nothing where it states its own.
std::optional<BytesPerSecond> links_of(const System& system, const yaml::LinkedFabrics& linked) {
  if (system.fabric.dimensions.empty()) return std::nullopt;
  const auto at = linked.find({system.fabric.name, system.fabric.dimensions.front().bandwidth});
  return at == linked.end() ? std::nullopt : std::optional(at->second);
}

}  // namespace

std::vector<std::string> idle_links(const std::vector<System>& systems, const std::set<std::string>& devices,
                                    const yaml::LinkedFabrics& linked) {
  constexpr double kSame = 1e-9;
  std::vector<std::string> lines;
  std::set<std::string> left = devices;
  for (const System& system : systems) {
    const DeviceSpec& device = system.device;
    if (system.fabric.dimensions.empty() || !left.contains(device.name)) continue;
    if (links_of(system, linked)) continue;
    const DimensionSpec& inner = system.fabric.dimensions.front();
    const BytesPerSecond all = device.links.bandwidth(), own = inner.bandwidth;
    if (inner.kind == DimensionKind::custom || std::abs((all - own).value()) <= kSame * all.value()) continue;
    lines.push_back(
        fmt::format("device {}: its links ({}) have no effect, as the dimension {} of the cluster states {} "
                    "itself; leave that out of the cluster, or set hardware.fabric.{}.bandwidth",
                    device.name, bandwidth_text(all), inner.name, bandwidth_text(own), inner.name));
    left.erase(device.name);
  }
  return lines;
}

std::string links_left_behind(const std::vector<System>& systems, const yaml::LinkedFabrics& linked) {
  for (const System& system : systems) {
    const std::optional<BytesPerSecond> kept = links_of(system, linked);
    const BytesPerSecond links = system.device.links.bandwidth();
    if (!kept || links == *kept) continue;
    return fmt::format(
        "device {} has links of {}, but cluster {} states no bandwidth and keeps that of its own device's, "
        "{}: state it in the cluster, or list clusters, each with its device",
        system.device.name, bandwidth_text(links), system.fabric.name, bandwidth_text(*kept));
  }
  return "";
}

}  // namespace shardscape::sweep
