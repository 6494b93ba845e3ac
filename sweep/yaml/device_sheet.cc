// Rewrites the keys of a data sheet into those of parts: a peak is divided by processors x clock.
#include "sweep/yaml/device_sheet.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <map>

#include "engine/base/enum_array.h"
#include "engine/base/suggest.h"
#include "engine/spec/precision.h"
#include "sweep/yaml/closest_names.h"
#include "sweep/yaml/loader.h"
#include "sweep/yaml/quantity_text.h"
#include "sweep/yaml/visitors.h"

namespace shardscape::yaml {

namespace {

/// What a data sheet leaves open, in the middle of the devices that come with the program. Rates that follow from
/// others: fp32 lanes a sixteenth of the 16-bit peak, L2 three times the bandwidth of memory.
constexpr const char* kNoMaker = R"(
sm: {count: 128, clock: 1.6 GHz, registers: 256 KiB, sram: 192 KiB, sram_bytes_per_clock: 128}
l2: {capacity: 50 MiB}
hbm: {stacks: 6}
sustained: {tensor: 0.7, hbm: 0.8, l2: 0.7}
attention: {forward: 0.5, backward: 0.42}
kernel_latency: 3 us
)";
constexpr double kLanes = 1.0 / 16, kL2 = 3;

/// Pairs of keys in a part that say the same.
constexpr std::array<std::pair<std::string_view, std::string_view>, 2> kPairs = {
    {{"capacity", "capacity_per_stack"}, {"bandwidth", "bandwidth_per_stack"}}};
constexpr std::string_view kSheetKeys[] = {"peak", "memory", "bandwidth"};

bool replaced(const Node& changed, std::string_view key) {
  return std::ranges::any_of(kPairs, [&](const auto& pair) {
    return (key == pair.first && changed.find(pair.second) != nullptr) ||
           (key == pair.second && changed.find(pair.first) != nullptr);
  });
}

/// The map of a key, which is added where it is missing.
Node& group(Node& map, const char* key) {
  if (map.find(key) == nullptr) map.set(key, Node::map());
  return *map.find(key);
}

class SheetReader {
 public:
  SheetReader(Node device, const Node* base, const std::string& path, Diagnostics& diagnostics)
      : own_(std::move(device)), base_(base), path_(path), diagnostics_(diagnostics) {
    Diagnostics none;
    defaults_ = *parse(kNoMaker, "", none);
    relocate(defaults_, own_.where);
  }

  std::optional<SheetDevice> run() {
    const std::size_t before = diagnostics_.size();
    for (const char* key : {"sm", "hbm", "l2"}) {
      const Node* const part = own_.find(key);
      if (part != nullptr && !part->is_map()) bad(key, part->where, "must be a map");
    }
    Node whole = base_ != nullptr ? *base_ : Node::map();
    if (diagnostics_.size() == before) read(whole);
    if (diagnostics_.size() != before) return std::nullopt;
    relocate_new();
    SheetDevice found{laid_over(own_, whole), {}};
    found.assumed = absent_shares(found.parts);
    found.parts = laid_over(found.parts, defaults_);
    return found;
  }

 private:
  void bad(const std::string& key, const Location& where, const std::string& message) {
    diagnostics_.add(where, key_path(path_, key), message);
  }
  [[nodiscard]] std::optional<double> quantity(const std::string& key, const Node& node,
                                               Dimension dimension) {
    const auto value = node.is_scalar()
                           ? parse_quantity(node.text, dimension)
                           : tl::unexpected(fmt::format("must be a quantity, not {}", kind_name(node)));
    if (value && *value > 0) return *value;
    bad(key, node.where, value ? "must be above 0" : value.error());
    return std::nullopt;
  }
  /// A key of the sheet that takes the place of one or two in a part.
  std::optional<double> take(const char* key, Dimension dimension, const char* part,
                             std::initializer_list<const char*> instead) {
    const Node* const node = own_.find(key);
    if (node == nullptr) {
      if (base_ == nullptr)
        bad(key, own_.where,
            fmt::format("missing: a data sheet without a base needs peak, memory and bandwidth"));
      return std::nullopt;
    }
    for (const char* const other : instead)
      if (const Node* const own = own_.find(part); own != nullptr && own->find(other) != nullptr)
        bad(key, node->where, fmt::format("given twice: {}.{} says it, too", part, other));
    return quantity(key, *node, dimension);
  }
  /// A number of `sm`, from the device, its base or the defaults.
  std::optional<double> of_sm(const char* key, std::optional<Dimension> dimension) {
    for (const Node* const device :
         {static_cast<const Node*>(&own_), base_, static_cast<const Node*>(&defaults_)}) {
      const Node* const sm = device != nullptr ? device->find("sm") : nullptr;
      const Node* const node = sm != nullptr ? sm->find(key) : nullptr;
      if (node == nullptr) continue;
      if (dimension) return quantity(std::string("sm.") + key, *node, *dimension);
      const auto count = to_number<double>(node->text);
      if (!count || !(*count >= 1))
        bad(std::string("sm.") + key, node->where, "must be a whole number, 1 or more");
      return count;
    }
    return std::nullopt;
  }

  void read(Node& whole) {
    const auto bandwidth =
        take("bandwidth", Dimension::bandwidth, "hbm", {"bandwidth", "bandwidth_per_stack"});
    const auto memory = take("memory", Dimension::data, "hbm", {"capacity", "capacity_per_stack"});
    const std::optional<Node> peak =
        own_.find("peak") != nullptr ? std::optional(*own_.find("peak")) : std::nullopt;
    if (memory) group(own_, "hbm").set("capacity", *own_.find("memory"));
    if (bandwidth) group(own_, "hbm").set("bandwidth", *own_.find("bandwidth"));
    const auto clock = of_sm("clock", Dimension::frequency), count = of_sm("count", std::nullopt);
    if (!clock || !count) return;
    if (peak) {
      read_peaks(*peak, *clock * *count, whole);
    } else if (base_ == nullptr) {
      bad("peak", own_.where, "missing; such as peak: {bf16: 990 TFLOP/s, fp8: 1980 TFLOP/s}");
    }
    const auto has_l2 = [](const Node& device) {
      const Node* const l2 = device.find("l2");
      return l2 != nullptr && l2->find("bytes_per_clock") != nullptr;
    };
    if (bandwidth && !has_l2(own_) && !has_l2(whole))
      group(own_, "l2")
          .set("bytes_per_clock", Node::scalar(fmt::format("{:.17g}", kL2 * *bandwidth / *clock)));
    if (Node* const links = own_.find("links"); links != nullptr && links->is_scalar()) {
      Node map = Node::map();
      map.set("ports", Node::scalar("1"));
      map.set("bandwidth_per_port", *links);
      *links = std::move(map);
    }
    for (const std::string_view key : kSheetKeys) own_.erase(key);
  }

  /// `clocks`: of all processors together, per second.
  void read_peaks(const Node& peak, double clocks, Node& whole) {
    if (!peak.is_map() || peak.entries.empty())
      return bad("peak", peak.where, "must be a map, such as {bf16: 990 TFLOP/s, fp8: 1980 TFLOP/s}");
    if (const Node* const sm = own_.find("sm");
        sm != nullptr && sm->find("tensor_flops_per_clock") != nullptr)
      return bad("peak", peak.where, "given twice: sm.tensor_flops_per_clock says it, too");
    EnumArray<Precision, double> rates{};
    for (const Entry& entry : peak.entries) {
      const auto precision = parse_enum<Precision>(entry.key);
      if (!precision) {
        bad("peak." + entry.key, entry.key_where,
            "unknown precision; one of " + join_names(enum_names<Precision>()));
      } else if (const auto value = quantity("peak." + entry.key, entry.value, Dimension::work_rate)) {
        rates[*precision] = *value / clocks;
      }
    }
    double& bf16 = rates[Precision::bf16];
    double& fp16 = rates[Precision::fp16];
    if (bf16 == 0) bf16 = fp16;
    if (fp16 == 0) fp16 = bf16;
    const double fastest = std::ranges::max(rates);
    const double lanes =
        rates[Precision::fp32] > 0 ? rates[Precision::fp32] : kLanes * (bf16 > 0 ? bf16 : fastest);
    Node tensor = Node::map();
    for (const Precision precision : enum_values<Precision>())
      if (rates[precision] > 0)
        tensor.set(name_of(precision), Node::scalar(fmt::format("{:.17g}", rates[precision])));
    Node& sm = group(own_, "sm");
    sm.set("tensor_flops_per_clock", std::move(tensor));
    if (sm.find("vector_flops_per_clock") == nullptr)
      sm.set("vector_flops_per_clock", Node::scalar(fmt::format("{:.17g}", lanes)));
    if (Node* const inherited = whole.find("sm")) inherited->erase("tensor_flops_per_clock");
    // The energies and the power of the base give the clock at which its own units run.
    for (const char* key : {"energy", "power", "die", "price_per_hour"}) whole.erase(key);
  }

  /// Places what has no place of its own at the device.
  void relocate_new() {
    const std::function<void(Node&)> place = [&](Node& node) {
      if (node.where.source == nullptr) node.where = own_.where;
      for (Entry& entry : node.entries) {
        if (entry.key_where.source == nullptr) entry.key_where = own_.where;
        place(entry.value);
      }
    };
    place(own_);
  }

  Node own_, defaults_;
  const Node* base_;
  const std::string& path_;
  Diagnostics& diagnostics_;
};

constexpr std::string_view kDevice = ": device ", kBySheet = " is known by its data sheet alone: ";

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

Node laid_over(const Node& changed, const Node& base) {
  if (!changed.is_map() || !base.is_map()) return changed;
  Node node = changed;
  for (const Entry& entry : base.entries) {
    if (Node* const own = node.find(entry.key)) {
      *own = laid_over(*own, entry.value);
    } else if (!replaced(changed, entry.key)) {
      node.entries.push_back(entry);
    }
  }
  return node;
}

bool is_sheet(const Node& device) {
  return std::ranges::any_of(kSheetKeys, [&](std::string_view key) { return device.find(key) != nullptr; });
}

std::optional<SheetDevice> by_parts(Node device, const Node* base, const std::string& path,
                                    Diagnostics& diagnostics) {
  return SheetReader(std::move(device), base, path, diagnostics).run();
}

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
  std::string line = fmt::format("{}{}{}", to_string(assumed.where), kDevice, assumed.device);
  if (assumed.sheet) {
    line += fmt::format("{}what it reaches of its peaks ({}", kBySheet, join(absent)) +
            ") is typical of others, and times may be a quarter off";
  } else {
    line += " does not say " + join(absent) + ": taken as 1, 100 % of its peaks, which kernels don't reach";
  }
  if (!typical.empty()) line += "; the devices that come with the program have " + join(typical);
  return line;
}

std::optional<std::string> sheet_device_of(std::string_view line) {
  const std::size_t end = line.find(kBySheet), start = line.rfind(kDevice, end);
  if (end == std::string_view::npos || start == std::string_view::npos) return std::nullopt;
  return std::string(line.substr(start + kDevice.size(), end - start - kDevice.size()));
}

}  // namespace shardscape::yaml
