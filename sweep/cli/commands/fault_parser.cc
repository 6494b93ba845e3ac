// Parses faults from texts: the owner is looked up as a link, by vertices, or as a place of its kind, and the fault is
// added to a set; problems are collected.
#include "sweep/cli/commands/fault_parser.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

#include "engine/base/enum_names.h"
#include "engine/base/words.h"
#include "engine/network/fabric/fabric.h"
#include "engine/spec/ranges.h"
#include "sweep/cli/command.h"
#include "sweep/faults/fault_sampler.h"
#include "sweep/yaml/quantity_text.h"

namespace shardscape::cli {

namespace {

class FaultParser {
 public:
  explicit FaultParser(const FabricSpec& fabric) : fabric_(fabric) {}

  FaultSet parse(const std::vector<std::string>& texts) {
    FaultSet faults;
    ProblemList problems;
    for (const std::string& text : texts) {
      const std::string problem = add(text, faults);
      if (!problem.empty()) problems.add("--fault " + text + ": " + problem);
    }
    problems.finish();
    return faults;
  }

 private:
  std::string add(std::string_view text, FaultSet& faults) const {
    const auto kind = parse_enum<FaultKind>(trimmed(text.substr(0, text.find(':'))));
    return kind ? add_part(*kind, trimmed(text.substr(text.find(':') + 1)), faults) : add_link(text, faults);
  }

  // ---- links ----

  std::string add_link(std::string_view text, FaultSet& faults) const {
    const std::size_t sign = text.rfind('=');
    const auto left = sign == std::string::npos ? std::nullopt : parse_left(trimmed(text.substr(sign + 1)));
    if (!left) {
      return fmt::format(
          "write it as LINK=DERATE with DERATE {}, such as 0-1=0.5, as LINK=DERATE+LATENCY with a latency "
          "{}, such as 0-1=0.5+5us, as LINK=dead, or as one of {}",
          ranges::kShare.text(), ranges::kTime.text(), fault_parts());
    }
    const std::vector<std::int32_t> ids = find(trimmed(text.substr(0, sign)));
    if (ids.empty())
      return "there is no such link; the fabric has " + extent() + links_of(text.substr(0, sign));
    for (const std::int32_t id : ids) {
      const bool twice = std::ranges::find(faults.links, id, &LinkFault::link) != faults.links.end();
      if (twice) return fmt::format("link {} has a fault already", id);
      faults.links.push_back({id, left->derate, left->added_latency, left->removed});
    }
    return "";
  }

  /// Parses "0.5", "0.5+5us", "dead" or "0" into a LinkFault, all but its link.
  static std::optional<LinkFault> parse_left(std::string_view text) {
    const LinkFault dead{.removed = true};
    if (text == "dead") return dead;
    double derate = 0;
    const char* const end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, derate);
    if (error != std::errc() || !(derate == 0 || ranges::kShare.holds(derate))) return std::nullopt;
    const std::string_view more = trimmed({stop, static_cast<std::size_t>(end - stop)});
    if (more.empty()) return derate == 0 ? dead : LinkFault{.derate = derate};
    const auto latency = yaml::parse_quantity(trimmed(more.substr(1)), yaml::Dimension::time);
    if (more.front() != '+' || !latency || !ranges::kTime.holds(*latency) || derate == 0) return std::nullopt;
    return LinkFault{.derate = derate, .added_latency = Seconds(*latency)};
  }

  // ---- devices, adapters, switches ----

  std::string add_part(FaultKind kind, std::string_view text, FaultSet& faults) const {
    const std::size_t sign = text.find('=');
    const std::string_view owner = trimmed(text.substr(0, sign));
    sweep::DrawnFault fault{kind};
    const FaultRow& row = row_of(kind);
    if (row.owner == FaultOwner::link)
      return "a link is written without its kind, as LINK=DERATE or LINK=dead";
    if (row.derates != (sign != std::string::npos))
      return fmt::format("write it as one of {}", fault_parts());
    if (row.derates) {
      const auto share = to_number<double>(trimmed(text.substr(sign + 1)));
      if (!share || !ranges::kShare.holds(*share))
        return "the share that is left must be " + ranges::kShare.text();
      fault.derate = *share;
    }
    sweep::FaultStudy study;
    const std::vector<sweep::FaultPlace> places = sweep::fault_places(kind, study, fabric_);
    if (places.empty()) return "the fabric has no place for such a fault";
    for (const std::int32_t vertex : vertices(owner)) {
      const auto place = std::ranges::find(places, vertex, &sweep::FaultPlace::device);
      if (place == places.end()) continue;
      sweep::apply_fault(*place, fault, Seconds(0), faults);
      return "";
    }
    return fmt::format("there is no such place; they are {} .. {}{}", places.front().device,
                       places.back().device, whose(kind, places));
  }

  [[nodiscard]] std::string whose(FaultKind kind, const std::vector<sweep::FaultPlace>& places) const {
    if (row_of(kind).owner == FaultOwner::switches) {
      return ", from '" + fabric_.vertex_name(places.front().device) + "' to '" +
             fabric_.vertex_name(places.back().device) + "'";
    }
    const bool all = places.size() == static_cast<std::size_t>(fabric_.ranks());
    return all ? "" : fmt::format(": the lowest GPU on each of {} adapters", places.size());
  }

  [[nodiscard]] std::vector<std::int32_t> find(std::string_view link) const {
    const std::size_t colon = link.find(':');
    const std::string_view dimension = colon == std::string::npos ? "" : link.substr(0, colon);
    const std::string_view ends = colon == std::string::npos ? link : trimmed(link.substr(colon + 1));
    const std::size_t dash = ends.find('-');
    if (dash == std::string::npos) return dimension.empty() ? by_id(ends) : std::vector<std::int32_t>{};
    const bool one_way = ends.substr(dash, 2) == "->";
    const std::vector<std::int32_t> from = vertices(trimmed(ends.substr(0, dash)));
    const std::vector<std::int32_t> to = vertices(trimmed(ends.substr(dash + (one_way ? 2 : 1))));
    std::vector<std::int32_t> ids = links(from, to, dimension);
    if (one_way) return ids;
    const std::vector<std::int32_t> back = links(to, from, dimension);
    ids.insert(ids.end(), back.begin(), back.end());
    return ids;
  }

  [[nodiscard]] std::vector<std::int32_t> by_id(std::string_view text) const {
    const auto id = to_number<std::int32_t>(text);
    if (!id || *id < 0 || static_cast<std::size_t>(*id) >= fabric_.links().size()) return {};
    const std::int32_t opposite = fabric_.reverse_of(*id);
    return opposite < 0 ? std::vector{*id} : std::vector{*id, opposite};
  }

  /// The vertices of that name: names are unique only within a dimension.
  [[nodiscard]] std::vector<std::int32_t> vertices(std::string_view text) const {
    if (const auto vertex = to_number<std::int32_t>(text)) return {*vertex};
    std::vector<std::int32_t> found;
    for (std::int32_t vertex = fabric_.ranks(); vertex < fabric_.vertices(); ++vertex) {
      if (fabric_.vertex_name(vertex) == text) found.push_back(vertex);
    }
    return found;
  }

  [[nodiscard]] std::vector<std::int32_t> links(const std::vector<std::int32_t>& sources,
                                                const std::vector<std::int32_t>& destinations,
                                                std::string_view dimension) const {
    const auto among = [](const std::vector<std::int32_t>& all, std::int32_t vertex) {
      return std::ranges::find(all, vertex) != all.end();
    };
    std::vector<std::int32_t> ids;
    for (std::size_t id = 0; id < fabric_.links().size(); ++id) {
      const network::Link& link = fabric_.links()[id];
      const std::string& name = fabric_.spec().dimensions[static_cast<std::size_t>(link.dimension)].name;
      if (!dimension.empty() && name != dimension) continue;
      if (among(sources, link.source) && among(destinations, link.destination))
        ids.push_back(static_cast<std::int32_t>(id));
    }
    return ids;
  }

  [[nodiscard]] std::string extent() const {
    const auto last = static_cast<std::int32_t>(fabric_.links().size()) - 1;
    std::string text = fmt::format("links 0 .. {} between vertices 0 .. {} (GPUs below {})", last,
                                   fabric_.vertices() - 1, fabric_.ranks());
    if (last >= 0) text += ", from '" + fabric_.link_name(0) + "' to '" + fabric_.link_name(last) + "'";
    return text;
  }

  /// The links of the vertices that the text may mean, as find() takes them: of the first one it names. Where neither a
  /// dimension nor a kind of fault stands before ':', the kinds.
  [[nodiscard]] std::string links_of(std::string_view text) const {
    const std::size_t colon = text.find(':');
    if (colon != std::string_view::npos && !has_dimension(trimmed(text.substr(0, colon))))
      return "; before ':' stands one of its dimensions, or a kind of fault: " + fault_parts();
    const std::string_view ends = trimmed(text.substr(text.find(':') + 1));
    std::string list;
    for (const std::int32_t vertex : vertices(trimmed(ends.substr(0, ends.find('-'))))) {
      std::int32_t left = kNamedLinks;
      for (std::size_t id = 0; id < fabric_.links().size() && left > 0; ++id) {
        const network::Link& link = fabric_.links()[id];
        if (link.source != vertex) continue;
        list += fmt::format("{}'{}'", list.empty() ? "; of what you name there is " : ", ",
                            fabric_.link_name(static_cast<std::int32_t>(id)));
        if (--left == 0) list += ", ...";
      }
    }
    return list;
  }

  [[nodiscard]] bool has_dimension(std::string_view name) const {
    return std::ranges::any_of(fabric_.spec().dimensions,
                               [&](const auto& dimension) { return dimension.name == name; });
  }

  static constexpr std::int32_t kNamedLinks = 6;

  network::Fabric fabric_;
};

}  // namespace

std::string fault_parts() {
  std::string text;
  for (const FaultRow& row : kFaultKinds) {
    if (row.owner == FaultOwner::link) continue;
    text += fmt::format("{}{}:{}{}", text.empty() ? "" : ", ", row.name,
                        row.owner == FaultOwner::switches ? "SWITCH" : "RANK", row.derates ? "=SHARE" : "");
  }
  return text;
}

FaultSet parse_faults(const std::vector<std::string>& texts, const FabricSpec& fabric) {
  if (texts.empty()) return {};
  return FaultParser(fabric).parse(texts);
}

}  // namespace shardscape::cli
