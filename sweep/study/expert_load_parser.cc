// Reads the loads of experts key by key: the distribution comes first, since it says which keys are needed and which
// have no effect. Writes loads back as YAML or in one line.
#include "sweep/study/expert_load_parser.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>

namespace shardscape::sweep {

namespace {

class LoadReader {
 public:
  LoadReader(std::string path, yaml::ReadState& state) : path_(std::move(path)), state_(state) {}

  std::optional<ExpertLoad> read(const yaml::Node& node) {
    good_ = true;
    ExpertLoad load;
    if (node.is_map()) {
      yaml::Reader reader(node, path_, state_);
      read_distribution(reader.take_required("distribution"), load);
      const bool power_law = load.distribution == LoadDistribution::power_law;
      read_exponent(part(reader, "exponent", power_law), load);
      read_seed(power_law ? reader.take("seed") : no_part(reader, "seed"), load);
      read_histogram(part(reader, "histogram", load.distribution == LoadDistribution::histogram), load);
      reader.finish();
    } else {
      read_distribution(&node, load);
      if (good_ && !load.balanced())
        bad("", node,
            fmt::format("is {} without its numbers; write a map, such as {}", node.text,
                        load.distribution == LoadDistribution::power_law
                            ? "{distribution: power_law, exponent: 1.2}"
                            : "{distribution: histogram, histogram: [...]}"));
    }
    return good_ ? std::optional(load) : std::nullopt;
  }

 private:
  void bad(const std::string& key, const yaml::Node& node, const std::string& message) {
    good_ = false;
    state_.bad(key.empty() ? path_ : path_ + "." + key, node.where, message);
  }
  template <class T>
  void keep(const char* key, const yaml::Node& node, const yaml::Parsed<T>& parsed, T& value) {
    if (parsed) {
      value = *parsed;
    } else {
      bad(key, node, parsed.error());
    }
  }
  /// The node of a key that is needed, or has no effect, depending on the distribution; neither is reported where the
  /// distribution could not be read.
  const yaml::Node* part(yaml::Reader& reader, const char* key, bool needed) {
    if (!known_ || !needed) return no_part(reader, key);
    const yaml::Node* node = reader.take_required(key);
    good_ = good_ && node != nullptr;
    return node;
  }
  const yaml::Node* no_part(yaml::Reader& reader, const char* key) {
    const yaml::Node* node = reader.take(key);
    if (node != nullptr && known_)
      bad(key, *node, fmt::format("has no effect with distribution: {}", name_of(distribution_)));
    return nullptr;
  }
  void read_distribution(const yaml::Node* node, ExpertLoad& load) {
    known_ = false;
    if (node == nullptr) {
      good_ = false;
      return;
    }
    const auto parsed = yaml::parse_value<LoadDistribution>(*node);
    known_ = parsed.has_value();
    keep("distribution", *node, parsed, load.distribution);
    distribution_ = load.distribution;
  }
  void read_exponent(const yaml::Node* node, ExpertLoad& load) {
    if (node != nullptr) keep("exponent", *node, yaml::parse_value<double>(*node), load.exponent);
  }
  void read_seed(const yaml::Node* node, ExpertLoad& load) {
    if (node == nullptr) return;
    std::int64_t seed = 0;
    keep("seed", *node, yaml::parse_integer_node(*node, 0, std::numeric_limits<std::int64_t>::max()), seed);
    load.seed = static_cast<std::uint64_t>(seed);
  }
  void read_histogram(const yaml::Node* node, ExpertLoad& load) {
    if (node == nullptr) return;
    if (!node->is_list()) return bad("histogram", *node, "must be a list of numbers, one for each expert");
    for (const yaml::Node& item : node->items) {
      double value = 0;
      keep("histogram", item, yaml::parse_value<double>(item), value);
      load.histogram.push_back(value);
    }
  }

  const std::string path_;
  yaml::ReadState& state_;
  bool good_ = true;
  bool known_ = false;  ///< whether the distribution could be read
  LoadDistribution distribution_{};
};

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
    const std::optional<ExpertLoad> load = LoadReader(path, state).read(*item);
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
  yaml::Node node = yaml::Node::map();
  node.flow = true;
  node.set("distribution", yaml::make_scalar(load.distribution));
  if (load.distribution == LoadDistribution::power_law) {
    node.set("exponent", yaml::make_scalar(load.exponent));
    node.set("seed", yaml::make_scalar(static_cast<std::int64_t>(load.seed)));
    return node;
  }
  yaml::Node list = yaml::Node::list();
  list.flow = true;
  for (const double one : load.histogram) list.items.push_back(yaml::make_scalar(one));
  node.set("histogram", std::move(list));
  return node;
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
