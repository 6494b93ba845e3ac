// Reads promises and limits of results: finds the column that a name without its unit means, and the value in that
// column's unit; then writes both back as texts.
#include "sweep/study/limits_parser.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "engine/base/suggest.h"
#include "sweep/space/axis_names.h"
#include "sweep/space/constraint.h"
#include "sweep/yaml/closest_names.h"
#include "sweep/yaml/number.h"
#include "sweep/yaml/quantity_text.h"
#include "sweep/yaml/visitors.h"

namespace shardscape::sweep {

namespace {

using results::ColumnGroup;
using results::ColumnInfo;
using results::ColumnTable;
using results::Limit;
using results::Relation;

constexpr std::array<std::string_view, 4> kLatencies = {"ttft", "itl", "tpot", "e2e"};
constexpr std::array<std::string_view, 5> kStatistics = {"", "_p50", "_p90", "_p95", "_p99"};

std::vector<std::string> promise_names() {
  std::vector<std::string> names;
  for (const std::string_view latency : kLatencies)
    for (const std::string_view statistic : kStatistics)
      names.push_back(fmt::format("{}{}", latency, statistic));
  return names;
}

bool is_figure(const ColumnInfo& column) {
  using enum ColumnGroup;
  const bool result =
      column.group == output || column.group == memory || column.group == breakdown || column.group == faults;
  return result && column.meanings.empty() && column.type != results::ColumnType::boolean;
}

/// A column's name without its unit.
std::string_view short_name(const ColumnInfo& column) {
  std::string_view name = column.name;
  for (const std::string_view unit : {"_s", "_bytes"}) {
    if ((column.unit == "s" || column.unit == "byte") && name.ends_with(unit))
      name.remove_suffix(unit.size());
  }
  return name == "memory_peak" ? "memory" : name;
}

const ColumnInfo* find_figure(const ColumnTable& table, std::string_view name) {
  for (const ColumnInfo& column : table.columns())
    if (is_figure(column) && (column.name == name || short_name(column) == name)) return &column;
  return nullptr;
}

/// The value in the column's unit. Where the name says the unit, a number alone will do.
yaml::Parsed<double> value_of(const ColumnInfo& column, std::string_view name, const std::string& text) {
  const bool named = name == column.name;
  if (const auto number = yaml::parse_finite(text); number && (named || short_name(column) == column.name))
    return *number;
  if (column.unit == "s") return yaml::parse_quantity(text, yaml::Dimension::time);
  if (column.unit == "byte") return yaml::parse_quantity(text, yaml::Dimension::data);
  // Rates by second or minute, and shares in percent: what stands behind the number is its factor.
  constexpr std::pair<std::string_view, double> kRates[] = {{"/s", 1}, {"/min", 1.0 / 60}, {"", 1}};
  constexpr std::pair<std::string_view, double> kShares[] = {{"%", 0.01}, {"", 1}};
  const bool rate = column.unit == "s-1";
  for (const auto& [unit, factor] :
       rate ? std::span<const std::pair<std::string_view, double>>(kRates) : kShares) {
    if (!std::string_view(text).ends_with(unit)) continue;
    std::string_view rest = std::string_view(text).substr(0, text.size() - unit.size());
    while (rest.ends_with(' ')) rest.remove_suffix(1);
    if (const auto number = yaml::parse_finite(rest)) return *number * factor;
  }
  return tl::unexpected(fmt::format(
      "must be a {}, not {}", rate ? "rate, such as 3 /s" : "number or a share, such as 95 %", quote(text)));
}

}  // namespace

std::vector<Limit> parse_promises(const yaml::Node& node, yaml::Diagnostics& diagnostics) {
  yaml::ReadState state(node.where, "", diagnostics);
  yaml::Reader reader(node, "promises", state);
  std::vector<Limit> limits;
  const std::vector<std::string> known = promise_names();
  for (const yaml::Entry& entry : node.entries) {
    const yaml::Node* const value = reader.take(entry.key.c_str());
    if (value == nullptr) continue;
    const std::string path = "promises." + entry.key;
    std::string name = entry.key;
    if (name.ends_with("_mean")) name.resize(name.size() - std::string_view("_mean").size());
    if (std::ranges::find(known, name) == known.end()) {
      state.bad(path, entry.value.where, "is no latency" + yaml::suggestion(entry.key, known, "latencies"));
      continue;
    }
    const auto bound = yaml::parse_quantity_node(*value, yaml::Dimension::time);
    if (!bound || *bound <= 0) {
      state.bad(path, value->where, bound ? "must be longer than 0 s" : bound.error());
      continue;
    }
    const Limit limit{name + "_s", Relation::at_most, *bound, true};
    if (std::ranges::find(limits, limit.column, &Limit::column) != limits.end()) {
      state.bad(path, value->where, "is promised twice");
    } else {
      limits.push_back(limit);
    }
  }
  reader.finish();
  if (node.is_map() && node.entries.empty())
    diagnostics.add(node.where, "promises", "promises nothing; write a latency, such as {ttft_p95: 2 s}");
  return limits;
}

LatencyBounds bounds_of(std::span<const Limit> promises) {
  const auto largest = [&](std::initializer_list<std::string_view> latencies) {
    double bound = 0;
    for (const Limit& promise : promises)
      for (const std::string_view latency : latencies)
        if (promise.promise && promise.column.starts_with(latency)) bound = std::max(bound, promise.bound);
    return bound > 0 ? bound : LatencyBounds().ttft;
  };
  return {largest({"ttft_"}), largest({"tpot_", "itl_"}), largest({"e2e_"})};
}

yaml::Node write_promises(std::span<const Limit> limits) {
  yaml::Node node = yaml::Node::map();
  for (const Limit& limit : limits) {
    if (!limit.promise) continue;
    const std::string name = limit.column.substr(0, limit.column.size() - std::string_view("_s").size());
    node.set(name, yaml::Node::scalar(yaml::format_quantity(limit.bound, yaml::Dimension::time)));
  }
  return node;
}

/// The limit of a text that begins with a result.
tl::expected<std::optional<Limit>, ExpressionError> LimitReader::read_limit(const std::string& text) const {
  const auto fail = [](std::size_t offset, std::string message) {
    return tl::unexpected(ExpressionError{offset, std::move(message)});
  };
  const std::size_t begin = std::min(text.find_first_not_of(' '), text.size());
  const std::size_t sign = text.find_first_of("<>=!", begin);
  if (sign == std::string::npos) return std::nullopt;
  std::string name = text.substr(begin, sign - begin);
  while (name.ends_with(' ')) name.pop_back();
  const auto of_plan = std::ranges::find(constraint_names(), name, &ExpressionName::name);
  const ColumnInfo* const column = find_figure(columns_, name);
  if (of_plan != constraint_names().end() || (column == nullptr && find_figure(all_, name) == nullptr))
    return std::nullopt;
  if (column == nullptr)
    return fail(begin, fmt::format("{} is no result of this study: it has no {}", quote(name),
                                   find_figure(all_, name)->group == ColumnGroup::faults
                                       ? "faults or reliability"
                                       : "load with promises that is simulated request by request"));
  const std::size_t value = std::min(text.find_first_not_of("<>=! ", sign), text.size());
  std::string relation_text = text.substr(sign, value - sign);
  while (relation_text.ends_with(' ')) relation_text.pop_back();
  const auto relation = parse_enum<Relation>(relation_text);
  if (!relation) return fail(sign, "a result is bounded by <=, <, >= or >, not by " + quote(relation_text));
  std::string bound_text = text.substr(value);
  while (bound_text.ends_with(' ')) bound_text.pop_back();
  const auto bound = value_of(*column, name, bound_text);
  if (!bound)
    return fail(value, fmt::format("{} {}; a result has a constraint of its own, such as '{} <= {}'",
                                   quote(name), bound.error(), name,
                                   column->unit == "s"      ? "2 s"
                                   : column->unit == "byte" ? "70 GB"
                                                            : "3"));
  return Limit{column->name, *relation, *bound, false};
}

tl::expected<std::optional<Limit>, ExpressionError> LimitReader::read(const std::string& text) const {
  auto limit = read_limit(text);
  if (!limit || *limit) return limit;
  const auto constraint = Constraint::parse(text);
  if (constraint) return std::nullopt;
  ExpressionError error = constraint.error();
  const std::size_t end = text.find_first_of(" <>=!*/+-%()", error.offset);
  const std::string name = text.substr(std::min(error.offset, text.size()), end - error.offset);
  if (const std::string more = about(name); !more.empty())
    error.message = "unknown name " + quote(name) + more;
  return tl::unexpected(std::move(error));
}

/// More about a name that is none of the plan's: names that are close, or how a result is bounded; empty where there is
/// nothing to say.
std::string LimitReader::about(std::string_view name) const {
  if (find_figure(all_, name) != nullptr)
    return fmt::format("; results stand alone and on the left of a constraint: '{} <= ...'", name);
  std::vector<std::string> names;
  for (const ColumnInfo& column : all_.columns()) {
    if (is_figure(column)) names.emplace_back(short_name(column));
  }
  return did_you_mean(name, names);
}

std::string limit_text(const Limit& limit) {
  return fmt::format("{} {} {}", limit.column, name_of(limit.relation), yaml::format_number(limit.bound));
}

}  // namespace shardscape::sweep
