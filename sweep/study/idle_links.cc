// A cluster that states the bandwidth of its scale-up network says more than a device's data sheet; whoever wrote the
// sheet has to know that it does. One that states none has that of its own device, whichever takes its place.
#include "sweep/study/idle_links.h"

#include <fmt/format.h>

#include <cmath>

#include "sweep/yaml/quantity_text.h"

namespace shardscape::sweep {

namespace {

std::string bandwidth_text(BytesPerSecond bandwidth) {
  return yaml::format_quantity(bandwidth.value(), yaml::Dimension::bandwidth);
}

/// Whether the cluster has the bandwidth of its device's links, and neither states its own nor was given another.
bool by_device_links(const FabricSpec& fabric) {
  return fabric.device_links.value() > 0 && !fabric.dimensions.empty() &&
         fabric.dimensions.front().bandwidth == fabric.by_device_links;
}

}  // namespace

std::vector<std::string> idle_links(const std::vector<System>& systems,
                                    const std::set<std::string>& devices) {
  constexpr double kSame = 1e-9;
  std::vector<std::string> lines;
  std::set<std::string> left = devices;
  for (const System& system : systems) {
    const DeviceSpec& device = system.device;
    if (system.fabric.dimensions.empty() || !left.contains(device.name)) continue;
    if (by_device_links(system.fabric)) continue;
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

std::string links_left_behind(const std::vector<System>& systems) {
  for (const System& system : systems) {
    const BytesPerSecond kept = system.fabric.device_links, links = system.device.links.bandwidth();
    if (!by_device_links(system.fabric) || links == kept) continue;
    return fmt::format(
        "device {} {}, but cluster {} states no bandwidth and keeps that of its own device's, {}: state it "
        "in the cluster, or list clusters, each with its device",
        system.device.name, links.value() > 0 ? "has links of " + bandwidth_text(links) : "states no links",
        system.fabric.name, bandwidth_text(kept));
  }
  return "";
}

}  // namespace shardscape::sweep
