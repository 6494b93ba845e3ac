// Reads the loads of experts key by key: the distribution comes first, since it says which keys are needed and which
// have no effect. Writes loads back as YAML or in one line.
#include "sweep/study/expert_load_parser.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>

namespace shardscape::sweep {

namespace {

/// Reads the map of a load, whose distribution says which of the other keys have an effect; nothing is said of these
/// where it cannot be read.
void read_map(yaml::Reader& reader, ExpertLoad& load) {
  const bool known = reader.required("distribution", load.distribution);
  const auto counts = [&](const char* key, LoadDistribution distribution) {
    reader.take(key);  // it counts as known, whatever is said of it
    const bool has_effect = known && load.distribution == distribution;
    if (known && !has_effect)
      reader.unused(key, fmt::format("has no effect with distribution: {}", name_of(load.distribution)));
    return has_effect;
  };
  if (counts("exponent", LoadDistribution::power_law)) reader.required("exponent", load.exponent);
  if (counts("seed", LoadDistribution::power_law))
    reader.integer("seed", 0, std::numeric_limits<std::int64_t>::max(), load.seed);
  if (!counts("histogram", LoadDistribution::histogram)) return;
  const yaml::Node* const shares = reader.take_required("histogram");
  if (shares == nullptr) return;
  if (!shares->is_list())
    return reader.bad("histogram", *shares, "must be a list of numbers, one for each expert");
  for (const yaml::Node& item : shares->items) reader.read("histogram", item, load.histogram.emplace_back());
}

std::optional<ExpertLoad> read_load(const yaml::Node& node, const std::string& path, yaml::ReadState& state) {
  ExpertLoad load;
  if (node.is_map()) {
    yaml::Reader reader(node, path, state);
    read_map(reader, load);
    const bool good = !reader.failed();
    reader.finish();
    return good ? std::optional(load) : std::nullopt;
  }
  const auto distribution = yaml::parse_value<LoadDistribution>(node);
  load.distribution = distribution.value_or(LoadDistribution::balanced);
  if (distribution && load.balanced()) return load;
  state.bad(distribution ? path : path + ".distribution", node.where,
            !distribution ? distribution.error()
                          : fmt::format("is {} without its numbers; write a map, such as {}", node.text,
                                        load.distribution == LoadDistribution::power_law
                                            ? "{distribution: power_law, exponent: 1.2}"
                                            : "{distribution: histogram, histogram: [...]}"));
  return std::nullopt;
}

}  // namespace

std::vector<ExpertLoad> parse_expert_loads(const yaml::Node& node, const std::string& path,
                                           yaml::ReadState& state) {
  std::vector<const yaml::Node*> items;
  if (!node.is_list()) items.push_back(&node);
  for (const yaml::Node& item : node.items) items.push_back(&item);
  std::vector<ExpertLoad> loads;
  std::vector<yaml::Location> places;  // places of the loads
  bool good = !items.empty();
  if (items.empty()) state.bad(path, node.where, "is an empty list; take balanced, or leave it out");
  for (const yaml::Node* item : items) {
    const std::optional<ExpertLoad> load = read_load(*item, path, state);
    good = good && load.has_value();
    if (!load) continue;
    // Columns of results identify loads by distribution and exponent, so that these must differ.
    const auto known = std::ranges::find_if(loads, [&](const ExpertLoad& other) {
      return other.distribution == load->distribution && other.exponent == load->exponent;
    });
    if (known != loads.end()) {
      good = false;
      state.bad(
          path, item->where,
          *known == *load
              ? to_text(*load) + " is in the list twice"
              : fmt::format("is the second {} load{} (the first: line {}), and results tell loads apart by "
                            "that alone; keep one of them, and give the other a study of its own",
                            name_of(load->distribution),
                            load->exponent > 0 ? fmt::format(" of exponent {}", load->exponent) : "",
                            places[static_cast<std::size_t>(known - loads.begin())].line));
    }
    loads.push_back(*load);
    places.push_back(item->where);
  }
  if (!good) loads.clear();
  return loads;
}

yaml::Node write_expert_load(const ExpertLoad& load) {
  if (load.balanced()) return yaml::make_scalar(load.distribution);
  const yaml::Node distribution = yaml::make_scalar(load.distribution);
  if (load.distribution == LoadDistribution::histogram)
    return yaml::flow_map({{"distribution", distribution}, {"histogram", yaml::flow_list(load.histogram)}});
  return yaml::flow_map({{"distribution", distribution},
                         {"exponent", yaml::make_scalar(load.exponent)},
                         {"seed", yaml::make_scalar(load.seed)}});
}

std::string to_text(const ExpertLoad& load) {
  const std::string name(name_of(load.distribution));
  if (load.balanced()) return name;
  if (load.distribution == LoadDistribution::histogram)
    return fmt::format("{{distribution: {}, histogram: [{}]}}", name, fmt::join(load.histogram, ", "));
  const std::string seed = load.seed > 0 ? fmt::format(", seed: {}", load.seed) : "";
  return fmt::format("{{distribution: {}, exponent: {}{}}}", name, load.exponent, seed);
}

}  // namespace shardscape::sweep
