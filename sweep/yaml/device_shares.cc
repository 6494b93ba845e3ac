#include "sweep/yaml/device_shares.h"

#include <algorithm>
#include <array>
#include <iomanip>
#include <sstream>

#include "sweep/yaml/closest_names.h"
#include "sweep/yaml/loader.h"

namespace shardscape::yaml {

namespace {

constexpr std::array<DeviceShare, 5> kShares = {
    {{"sustained", "tensor", [](const DeviceSpec& d) { return d.sustained.tensor; }},
     {"sustained", "hbm", [](const DeviceSpec& d) { return d.sustained.hbm; }},
     {"sustained", "l2", [](const DeviceSpec& d) { return d.sustained.l2; }},
     {"attention", "forward", [](const DeviceSpec& d) { return d.attention.forward; }},
     {"attention", "backward", [](const DeviceSpec& d) { return d.attention.backward; }}}};

struct ShareRange {
  double least = 2, most = 0;
  void add(double value) {
    least = std::min(least, value);
    most = std::max(most, value);
  }
};

/// The range of each share over the devices of the catalog that give it.
std::array<ShareRange, kShares.size()> ranges_of(const Catalog& catalog) {
  std::array<ShareRange, kShares.size()> ranges;
  for (const Catalog::Entry& entry : catalog.list(PresetKind::device)) {
    Diagnostics ignored;
    Loader loader(catalog, ignored);
    const auto device = loader.device(Node::scalar(entry.file.string()), "", {});
    if (!device) continue;
    for (std::size_t i = 0; i < kShares.size(); ++i) {
      const bool absent = std::ranges::any_of(loader.assumed_shares(), [&](const AssumedShares& assumed) {
        return std::ranges::find(assumed.shares, i) != assumed.shares.end();
      });
      // Not a share that has been observed: this device's energies take its place.
      const bool replaced = device->steps_by_energy() && kShares[i].path() == "sustained.tensor";
      if (!absent && !replaced) ranges[i].add(kShares[i].of(*device));
    }
  }
  return ranges;
}

}  // namespace

std::span<const DeviceShare> device_shares() { return kShares; }

std::vector<std::size_t> absent_shares(const Node& device) {
  std::vector<std::size_t> absent;
  // Where energies are known, the share that the power limit leaves follows from them.
  const Node* energy = device.find("energy");
  const Node* steps = energy == nullptr ? nullptr : energy->find("steps");
  const bool limited = energy != nullptr && (steps == nullptr || steps->text != "false");
  for (std::size_t i = 0; i < kShares.size(); ++i) {
    if (limited && kShares[i].path() == "sustained.tensor") continue;
    const Node* group = device.find(kShares[i].group);
    if (group == nullptr || group->find(kShares[i].key) == nullptr) absent.push_back(i);
  }
  return absent;
}

std::string describe_assumption(const AssumedShares& assumed, std::span<const std::size_t> shares,
                                const Catalog& catalog) {
  const auto ranges = ranges_of(catalog);
  std::vector<std::string> absent, typical;
  for (const std::size_t share : shares) {
    absent.push_back(kShares[share].path());
    const ShareRange& range = ranges[share];
    if (range.most == 0) continue;
    std::ostringstream text;
    text << kShares[share].path() << ' ' << std::setprecision(3) << range.least;
    if (range.most > range.least) text << " to " << range.most;
    typical.push_back(text.str());
  }
  std::string line = to_string(assumed.where) + ": device " + assumed.device + " does not say " +
                     join(absent) + ": taken as 1, 100 % of its peaks, which kernels don't reach";
  if (!typical.empty()) line += "; the devices that come with the program have " + join(typical);
  return line;
}

}  // namespace shardscape::yaml
