#include "sweep/yaml/device_shares.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string_view>

#include "sweep/yaml/closest_names.h"
#include "sweep/yaml/loader.h"

namespace shardscape::yaml {

namespace {

/// Where energies are known, they take the place of this share.
constexpr std::string_view kByEnergy = "sustained.tensor";

struct ShareRange {
  double least = 2, most = 0;
  void add(double value) {
    least = std::min(least, value);
    most = std::max(most, value);
  }
};

/// The range of each share over the devices of the catalog that give it.
std::map<const DeviceNumber*, ShareRange> ranges_of(const Catalog& catalog) {
  std::map<const DeviceNumber*, ShareRange> ranges;
  for (const Catalog::Entry& entry : catalog.list(PresetKind::device)) {
    Diagnostics ignored;
    Loader loader(catalog, ignored);
    const auto device = loader.device({Node::scalar(entry.file.string()), "", {}});
    if (!device) continue;
    for (const DeviceNumber& number : device_numbers()) {
      if (number.use != KeyUse::peak_if_absent) continue;
      const bool absent = std::ranges::any_of(loader.assumed_shares(), [&](const AssumedShares& assumed) {
        return std::ranges::find(assumed.shares, &number) != assumed.shares.end();
      });
      const bool replaced = device->steps_by_energy() && number.path == kByEnergy;
      if (!absent && !replaced) ranges[&number].add(number.get(*device));
    }
  }
  return ranges;
}

}  // namespace

std::vector<const DeviceNumber*> absent_shares(const Node& device) {
  std::vector<const DeviceNumber*> absent;
  // Where energies are known, the share that the power limit leaves follows from them.
  const Node* energy = device.find("energy");
  const Node* steps = energy == nullptr ? nullptr : energy->find("steps");
  const bool limited = energy != nullptr && (steps == nullptr || steps->text != "false");
  for (const DeviceNumber& number : device_numbers()) {
    if (number.use != KeyUse::peak_if_absent || (limited && number.path == kByEnergy)) continue;
    const std::size_t dot = number.path.find('.');
    const Node* group = device.find(number.path.substr(0, dot));
    if (group == nullptr || group->find(number.path.substr(dot + 1)) == nullptr) absent.push_back(&number);
  }
  return absent;
}

std::string describe_assumption(const AssumedShares& assumed, std::span<const DeviceNumber* const> shares,
                                const Catalog& catalog) {
  auto ranges = ranges_of(catalog);
  std::vector<std::string> absent, typical;
  for (const DeviceNumber* share : shares) {
    absent.emplace_back(share->path);
    const ShareRange& range = ranges[share];
    if (range.most == 0) continue;
    typical.push_back(fmt::format("{} {:.3g}", share->path, range.least));
    if (range.most > range.least) typical.back() += fmt::format(" to {:.3g}", range.most);
  }
  std::string line = to_string(assumed.where) + ": device " + assumed.device;
  if (assumed.sheet) {
    line += " is known by its data sheet alone: what it reaches of its peaks (" + join(absent) +
            ") is typical of others, and times may be a quarter off";
  } else {
    line += " does not say " + join(absent) + ": taken as 1, 100 % of its peaks, which kernels don't reach";
  }
  if (!typical.empty()) line += "; the devices that come with the program have " + join(typical);
  return line;
}

}  // namespace shardscape::yaml
