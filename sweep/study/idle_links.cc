// A cluster that states the bandwidth of its scale-up network says more than a device's data sheet; whoever wrote the
// sheet has to know that it does.
#include "sweep/study/idle_links.h"

#include <fmt/format.h>

#include <cmath>

#include "sweep/yaml/quantity_text.h"

namespace shardscape::sweep {

std::vector<std::string> idle_links(const std::vector<System>& systems,
                                    const std::set<std::string>& devices) {
  constexpr double kSame = 1e-9;
  std::vector<std::string> lines;
  std::set<std::string> left = devices;
  for (const System& system : systems) {
    const DeviceSpec& device = system.device;
    if (system.fabric.dimensions.empty() || !left.contains(device.name)) continue;
    const DimensionSpec& inner = system.fabric.dimensions.front();
    const double all = static_cast<double>(device.links.ports) * device.links.bandwidth_per_port.value();
    const double own = inner.bandwidth.value();
    if (inner.kind == DimensionKind::custom || std::abs(all - own) <= kSame * all) continue;
    const auto text = [](double value) { return yaml::format_quantity(value, yaml::Dimension::bandwidth); };
    lines.push_back(
        fmt::format("device {}: its links ({}) have no effect, as the dimension {} of the cluster states {} "
                    "itself; leave that out of the cluster, or set hardware.fabric.{}.bandwidth",
                    device.name, text(all), inner.name, text(own), inner.name));
    left.erase(device.name);
  }
  return lines;
}

}  // namespace shardscape::sweep
