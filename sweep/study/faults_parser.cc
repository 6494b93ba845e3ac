// Reads the `faults:` part key by key into a FaultStudy, reports keys without effect on the chosen kinds, and writes it
// back.
#include "sweep/study/faults_parser.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <set>
#include <span>

#include "engine/network/fabric/fabric.h"
#include "engine/spec/ranges.h"
#include "sweep/faults/fault_sampler.h"
#include "sweep/study/axis_values.h"
#include "sweep/yaml/closest_names.h"
#include "sweep/yaml/visitors.h"

namespace shardscape::sweep {

namespace {

using network::Fabric;
using yaml::Node;

constexpr double kLeastShare = 0.01;
constexpr std::int64_t kMostSimultaneous = 255;

enum class Directions : std::uint8_t { both, one };

bool is_share(double value) { return ranges::kShare.holds(value); }

/// Whether the study draws a kind whose row has the property.
bool draws(const FaultStudy& study, const auto& property) {
  return std::ranges::any_of(
      study.kinds, [&](const WeightedKind& drawn) { return std::invoke(property, row_of(drawn.kind)); });
}
constexpr bool is_of_link(const FaultRow& row) { return row.owner == FaultOwner::link; }
constexpr bool is_of_part(const FaultRow& row) {
  return row.owner == FaultOwner::adapter || row.owner == FaultOwner::switches;
}

/// The message about a key that has an effect only on kinds with this property, where none of them is drawn.
std::string none_drawn(const auto& property) {
  std::vector<std::string_view> names;
  for (const FaultRow& row : kFaultKinds)
    if (std::invoke(property, row)) names.push_back(row.name);
  std::string text = "has no effect: no ";
  for (std::size_t i = 0; i < names.size(); ++i)
    text.append(i == 0 ? "" : i + 1 < names.size() ? ", " : " or ").append(names[i]);
  return text + " is drawn";
}

/// A number of a distribution, by its key.
struct Parameter {
  const char* key;
  double Distribution::*value;
};
/// The ends of the range that distributions are truncated to.
constexpr Parameter kEnds[] = {{"min", &Distribution::min}, {"max", &Distribution::max}};

/// The numbers that a kind must have; an empirical one has a list of values instead.
std::span<const Parameter> parameters_of(DistributionKind kind) {
  static constexpr Parameter kNormal[] = {{"mean", &Distribution::mean}, {"std", &Distribution::deviation}};
  static constexpr Parameter kBeta[] = {{"alpha", &Distribution::alpha}, {"beta", &Distribution::beta}};
  static constexpr Parameter kConstant[] = {{"value", &Distribution::value}};
  switch (kind) {
    case DistributionKind::normal:
      return kNormal;
    case DistributionKind::uniform:
      return kEnds;
    case DistributionKind::beta:
      return kBeta;
    case DistributionKind::constant:
      return kConstant;
    case DistributionKind::empirical:
      break;
  }
  return {};
}

/// Whether a kind may have a range beside its numbers.
bool is_truncated(DistributionKind kind) {
  return kind != DistributionKind::constant && kind != DistributionKind::uniform;
}

std::string share_rule() { return "must be a share that remains, " + ranges::kShare.text(); }

class FaultsParser {
 public:
  FaultsParser(const Node& node, const FabricSpec* fabric, std::optional<Phase> phase,
               yaml::Diagnostics& diagnostics)
      : node_(node),
        phase_(phase),
        diagnostics_(diagnostics),
        state_(node.where, "", diagnostics),
        reader_(node, "faults", state_) {
    if (fabric != nullptr) fabric_.emplace(*fabric);
  }

  std::optional<FaultStudy> run() {
    const std::size_t before = diagnostics_.size();
    if (!node_.is_map()) return std::nullopt;
    read_kinds();
    read_placement();
    read_counts();
    read_derate();
    read_link_keys();
    reader_.finish();
    if (diagnostics_.size() == before && fabric_) check_places();
    if (diagnostics_.size() != before) return std::nullopt;
    return std::move(study_);
  }

 private:
  static std::string path(const std::string& key) { return "faults." + key; }

  // ---- kinds ----

  void read_kinds() {
    const Node* node = reader_.take_required("kind");
    if (node == nullptr) return;
    if (node->is_list() && node->items.empty())
      return reader_.bad("kind", *node, "must name a kind at least");
    if (!node->is_list()) return read_kind(*node);
    for (const Node& item : node->items) read_kind(item);
  }

  void read_kind(const Node& node) {
    WeightedKind weighted;
    const Node* name = &node;
    if (node.is_map()) {
      yaml::Reader reader(node, path("kind"), state_);
      name = reader.take_required("kind");
      reader.optional("weight", weighted.weight);
      reader.finish();
      if (name == nullptr) return;
      if (!ranges::kWeight.holds(weighted.weight))
        return reader_.bad("kind", node, "weight " + ranges::kWeight.violated_by(weighted.weight));
    }
    const auto kind = yaml::parse_value<FaultKind>(*name);
    if (!kind) return reader_.bad("kind", *name, kind.error());
    weighted.kind = *kind;
    if (std::ranges::find(study_.kinds, *kind, &WeightedKind::kind) != study_.kinds.end())
      return reader_.bad("kind", *name, name->text + " is in the list twice");
    if (phase_ == Phase::inference && row_of(*kind).of_device != nullptr)
      return reader_.bad("kind", *name, name->text + " is modelled in training only");
    study_.kinds.push_back(weighted);
  }

  // ---- placement ----

  void read_placement() {
    const Node* node = reader_.take("placement");
    if (node == nullptr) return;
    state_.seen(path("placement"), node->where);
    if (node->is_map()) return read_placement_map(*node);
    const auto word =
        yaml::scalar_text(*node, "uniform_links, exhaustive, {dimension: NAME} or {links: [...]}");
    if (!word) return reader_.bad("placement", *node, word.error());
    FaultPlacement& placement = study_.placement;
    if (*word == "uniform_links") {
      placement.kind = PlacementKind::uniform_links;
    } else if (*word == "exhaustive") {
      placement.kind = PlacementKind::exhaustive;
    } else {
      reader_.bad("placement", *node,
                  "unknown placement \"" + *word +
                      "\"; it is uniform_links, exhaustive, {dimension: NAME} or " +
                      "{links: [[A, B], ...]}");
    }
  }

  void read_placement_map(const Node& node) {
    yaml::Reader reader(node, path("placement"), state_);
    const Node* dimension = reader.take("dimension");
    const Node* links = reader.take("links");
    reader.finish();
    if ((dimension == nullptr) == (links == nullptr))
      return reader_.bad("placement", node, "must have one key: dimension or links");
    if (dimension != nullptr) {
      study_.placement.kind = PlacementKind::dimension;
      read_dimension(*dimension);
    } else {
      study_.placement.kind = PlacementKind::links;
      read_links(*links);
    }
  }

  void read_dimension(const Node& node) {
    const auto name = yaml::scalar_text(node, "the name of a dimension of the fabric");
    if (!name) return reader_.bad("placement.dimension", node, name.error());
    study_.placement.dimension = *name;
    if (!fabric_) return;
    std::vector<std::string> names;
    for (const DimensionSpec& dimension : fabric_->spec().dimensions) names.push_back(dimension.name);
    if (std::ranges::find(names, *name) != names.end()) return;
    reader_.bad(
        "placement.dimension", node,
        "the fabric has no dimension \"" + *name + '"' + yaml::suggestion(*name, names, "dimensions"));
  }

  void read_links(const Node& node) {
    const std::string due = "must be a list of pairs of vertices, such as [[0, 1], [0, 4]]";
    if (!node.is_list() || node.items.empty()) return reader_.bad("placement.links", node, due);
    std::set<std::pair<std::int32_t, std::int32_t>> seen;
    for (const Node& item : node.items) {
      if (!item.is_list() || item.items.size() != 2) {
        reader_.bad("placement.links", item, due);
        continue;
      }
      read_link(item, seen);
    }
  }

  void read_link(const Node& pair, std::set<std::pair<std::int32_t, std::int32_t>>& seen) {
    const std::int64_t last = fabric_ ? fabric_->vertices() - 1 : std::numeric_limits<std::int32_t>::max();
    std::array<std::int32_t, 2> ends{};
    for (std::size_t i = 0; i < 2; ++i) {
      const auto vertex = yaml::parse_integer_node(pair.items[i], 0, last);
      if (!vertex) return reader_.bad("placement.links", pair.items[i], vertex.error());
      ends[i] = static_cast<std::int32_t>(*vertex);
    }
    if (!seen.emplace(std::minmax(ends[0], ends[1])).second)
      return reader_.bad("placement.links", pair, "is in the list twice");
    study_.placement.links.emplace_back(ends[0], ends[1]);
    if (!fabric_ || state_.full() || !links_between(*fabric_, ends[0], ends[1]).empty()) return;
    reader_.bad("placement.links", pair,
                fmt::format("there is no link between {} and {} on this fabric", ends[0], ends[1]));
  }

  // ---- numbers ----

  void read_counts() {
    const bool exhaustive = study_.exhaustive();
    if (exhaustive) {
      const std::string why = "has no effect with placement exhaustive, which takes every place once";
      reader_.unused("samples", why);
      reader_.unused("target_ci", why);
    }
    reader_.integer("samples", 1, kMostSamples, study_.samples);
    reader_.integer("simultaneous", 1, kMostSimultaneous, study_.simultaneous);
    if (exhaustive && study_.simultaneous > 1)
      reader_.bad("simultaneous", *node_.find("simultaneous"), "must be 1 with placement exhaustive");
    if (exhaustive && study_.kinds.size() > 1)
      reader_.bad("kind", *node_.find("kind"), "must be one kind with placement exhaustive");
    reader_.integer("seed", 0, std::numeric_limits<std::int64_t>::max(), study_.seed);
    if (const Node* target = reader_.take("target_ci"); target != nullptr && !exhaustive)
      read_target(*target);
  }

  void read_target(const Node& node) {
    Node number = node;
    const bool percent = number.is_scalar() && number.text.ends_with('%');
    if (percent) {
      number.quoted = false;  // some writers of YAML put a text with '%' in quotes
      number.text.pop_back();
      while (number.text.ends_with(' ')) number.text.pop_back();
    }
    const auto value = yaml::parse_number_node(number);
    if (!value || !percent || !(*value > 0 && *value <= 100))
      return reader_.bad("target_ci", node, "must be a width in percent above 0, such as 1%");
    study_.target_ci = *value / 100;
  }

  // ---- derate ----

  void read_derate() {
    const bool wanted = draws(study_, &FaultRow::derates);
    if (!wanted) {
      if (!study_.kinds.empty())
        reader_.unused("derate", none_drawn(&FaultRow::derates));
      else
        reader_.take("derate");
      return;
    }
    const Node* node = reader_.take("derate");
    if (node == nullptr)
      return state_.bad(path("derate"), node_.where,
                        "missing: the share of its rate that remains to what is sick, such as 0.5, or "
                        "{distribution: uniform, min: 0.3, max: 0.9}");
    state_.seen(path("derate"), node->where);
    if (node->is_map()) return read_distribution(*node);
    const auto value = yaml::parse_number_node(*node);
    if (!value) return reader_.bad("derate", *node, "must be a number, such as 0.5, or a distribution");
    study_.derate.kind = DistributionKind::constant;
    study_.derate.value = *value;
    if (!is_share(*value)) reader_.bad("derate", *node, share_rule());
  }

  void read_distribution(const Node& node) {
    Distribution& d = study_.derate;
    d.min = kLeastShare;
    d.max = 1;
    yaml::Reader reader(node, path("derate"), state_);
    const std::size_t before = diagnostics_.size();
    if (!reader.required("distribution", d.kind)) {
      reader.anything_else();
      return;
    }
    for (const Parameter& parameter : parameters_of(d.kind))
      reader.required(parameter.key, d.*parameter.value);
    if (d.kind == DistributionKind::empirical) read_values(reader, d.values);
    if (is_truncated(d.kind)) {
      for (const Parameter& parameter : kEnds) reader.optional(parameter.key, d.*parameter.value);
    }
    reader.finish();
    if (diagnostics_.size() == before) check_distribution(node);
  }

  void read_values(yaml::Reader& reader, std::vector<double>& values) {
    const Node* list = reader.take_required("values");
    if (list == nullptr) return;
    if (!list->is_list() || list->items.empty())
      return reader_.bad("derate.values", *list, "must be a list of numbers, such as [0.25, 0.5, 0.5]");
    for (const Node& item : list->items) {
      const auto value = yaml::parse_number_node(item);
      if (!value) {
        reader_.bad("derate.values", item, value.error());
      } else if (!is_share(*value)) {
        reader_.bad("derate.values", item, share_rule());
      } else {
        values.push_back(*value);
      }
    }
  }

  void check_distribution(const Node& node) {
    const Distribution& d = study_.derate;
    const auto where = [&](const char* key) -> const Node& {
      const Node* found = node.find(key);
      return found != nullptr ? *found : node;
    };
    if (d.kind == DistributionKind::constant) {
      if (!is_share(d.value)) reader_.bad("derate.value", where("value"), share_rule());
      return;
    }
    if (!is_share(d.min))
      return reader_.bad("derate.min", where("min"), share_rule() + ": a share of 0 is a hard fault");
    if (!is_share(d.max))
      return reader_.bad("derate.max", where("max"), share_rule() + ": a fault adds nothing");
    if (const auto problem = d.problem())
      reader_.bad("derate", node,
                  fmt::format("{}: {} ({} .. {})", name_of(d.kind), *problem, yaml::format_number(d.min),
                              yaml::format_number(d.max)));
  }

  // ---- keys that only link faults have ----

  void read_link_keys() {
    const Node* latency = reader_.take("added_latency");
    if (latency != nullptr)
      reader_.read_within("added_latency", *latency, ranges::kTime, study_.added_latency);
    const Node* directions = reader_.take("directions");
    Directions sick = Directions::both;
    if (directions != nullptr && reader_.read("directions", *directions, sick))
      study_.both_directions = sick == Directions::both;
    if (study_.kinds.empty()) return;
    const bool links = draws(study_, is_of_link), parts = draws(study_, is_of_part);
    if (latency != nullptr && !draws(study_, &FaultRow::delays))
      reader_.bad("added_latency", *latency, none_drawn(&FaultRow::delays));
    if (directions != nullptr && !links)
      reader_.bad("directions", *directions, "has no effect: no link fault is drawn");
    const PlacementKind placement = study_.placement.kind;
    const bool idle = (placement == PlacementKind::links && !links) ||
                      (placement == PlacementKind::dimension && !links && !parts);
    if (idle)
      reader_.bad("placement", *node_.find("placement"), "has no effect: no fault of a link is drawn");
  }

  void check_places() {
    for (const WeightedKind& weighted : study_.kinds) {
      const std::size_t places = fault_places(weighted.kind, study_, *fabric_).size();
      if (places >= static_cast<std::size_t>(study_.simultaneous)) continue;
      const std::string kind(name_of(weighted.kind));
      if (places == 0) {
        reader_.bad("kind", *node_.find("kind"), kind + ": the fabric has no place for such a fault");
      } else {
        reader_.bad("simultaneous", *node_.find("simultaneous"),
                    fmt::format("{} has {} places only", kind, places));
      }
    }
  }

  const Node& node_;
  std::optional<Fabric> fabric_;
  std::optional<Phase> phase_;
  yaml::Diagnostics& diagnostics_;
  yaml::ReadState state_;
  yaml::Reader reader_;
  FaultStudy study_;
};

Node write_derate(const Distribution& d) {
  Node node = yaml::flow_map({{"distribution", yaml::make_scalar(d.kind)}});
  const auto write = [&](std::span<const Parameter> parameters) {
    for (const Parameter& parameter : parameters)
      node.set(parameter.key, yaml::make_scalar(d.*parameter.value));
  };
  write(parameters_of(d.kind));
  if (d.kind == DistributionKind::empirical) node.set("values", yaml::flow_list(d.values));
  if (is_truncated(d.kind)) write(kEnds);
  return node;
}

Node write_placement(const FaultPlacement& placement) {
  if (placement.kind == PlacementKind::uniform_links || placement.kind == PlacementKind::exhaustive)
    return yaml::make_scalar(placement.kind);
  if (placement.kind == PlacementKind::dimension)
    return yaml::flow_map({{"dimension", yaml::make_scalar(placement.dimension)}});
  const auto pair = [](const auto& link) { return yaml::flow_list({link.first, link.second}); };
  return yaml::flow_map({{"links", yaml::flow_list(placement.links, pair)}});
}

}  // namespace

std::optional<FaultStudy> parse_faults_key(const yaml::Node& node, const FabricSpec* fabric,
                                           std::optional<Phase> phase, yaml::Diagnostics& diagnostics) {
  return FaultsParser(node, fabric, phase, diagnostics).run();
}

yaml::Node write_faults(const FaultStudy& faults) {
  Node node = Node::map();
  Node kinds = Node::list();
  for (const WeightedKind& weighted : faults.kinds) {
    kinds.items.push_back(yaml::flow_map(
        {{"kind", yaml::make_scalar(weighted.kind)}, {"weight", yaml::make_scalar(weighted.weight)}}));
  }
  node.set("kind", std::move(kinds));
  if (!faults.exhaustive()) node.set("samples", yaml::make_scalar(faults.samples));
  node.set("simultaneous", yaml::make_scalar(faults.simultaneous));
  if (draws(faults, &FaultRow::derates)) node.set("derate", write_derate(faults.derate));
  if (draws(faults, &FaultRow::delays)) node.set("added_latency", yaml::make_scalar(faults.added_latency));
  if (draws(faults, is_of_link))
    node.set("directions", yaml::make_scalar(faults.both_directions ? Directions::both : Directions::one));
  node.set("placement", write_placement(faults.placement));
  node.set("seed", yaml::make_scalar(faults.seed));
  if (faults.target_ci)
    node.set("target_ci", Node::scalar(yaml::format_number(100 * *faults.target_ci) + '%'));
  return node;
}

}  // namespace shardscape::sweep
