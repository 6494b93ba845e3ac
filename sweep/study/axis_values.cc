#include "sweep/study/axis_values.h"

#include <fmt/format.h>

#include <cctype>

#include "sweep/yaml/closest_names.h"
#include "sweep/yaml/visitors.h"

namespace shardscape::sweep {

namespace {

constexpr std::int64_t kMaxValues = 65'536;

std::int32_t narrow(std::int64_t value) { return static_cast<std::int32_t>(value); }

std::vector<std::int32_t> powers_of_two(const IntegerDomain& domain) {
  std::vector<std::int32_t> values;
  for (std::int64_t power = 1; power <= *domain.whole && power <= domain.high; power *= 2) {
    if (power >= domain.low) values.push_back(narrow(power));
  }
  return values;
}

std::vector<std::int32_t> divisors_within(const IntegerDomain& domain) {
  std::vector<std::int32_t> values;
  for (const std::int64_t divisor : divisors(*domain.whole)) {
    if (divisor >= domain.low && divisor <= domain.high) values.push_back(narrow(divisor));
  }
  return values;
}

/// The values of {from: a, to: b, step: c}: a, a + c, ... up to b.
std::vector<std::int32_t> range_values(const AxisPlace& place, const IntegerDomain& domain) {
  if (place.node.find("from") == nullptr && place.node.find("to") == nullptr) {
    const std::vector<yaml::Entry>& entries = place.node.entries;
    place.diagnostics.add(
        place.node.where, place.path,
        fmt::format("must be a number, a list, or a range such as {{from: 1, to: 8, step: 1}}, not "
                    "a map{}",
                    entries.empty() ? "" : " with the key \"" + entries.front().key + '"'));
    return {};
  }
  const std::size_t before = place.diagnostics.size();
  yaml::ReadState state(place.node.where, "", place.diagnostics);
  yaml::Reader reader(place.node, place.path, state);
  std::int64_t from = 0, to = 0, step = 1;
  if (reader.take_required("from") != nullptr) reader.integer("from", domain.low, domain.high, from);
  if (reader.take_required("to") != nullptr) reader.integer("to", domain.low, domain.high, to);
  reader.integer("step", 1, domain.high, step);
  reader.finish();
  if (place.diagnostics.size() != before || state.failed()) return {};
  if (from > to) {
    state.bad(place.path, place.node.where, "from must not be greater than to");
    return {};
  }
  if ((to - from) / step >= kMaxValues) {
    state.bad(place.path, place.node.where, fmt::format("more than {} values", kMaxValues));
    return {};
  }
  std::vector<std::int32_t> values;
  for (std::int64_t value = from; value <= to; value += step) values.push_back(narrow(value));
  return values;
}

bool is_word(const yaml::Node& node) {
  return node.is_scalar() && !node.text.empty() &&
         std::isalpha(static_cast<unsigned char>(node.text.front()));
}

AxisList word_values(const AxisPlace& place, const IntegerDomain& domain) {
  std::vector<std::string> known;
  if (domain.whole) known = {"powers_of_two", "divisors"};
  if (domain.may_fill) known.emplace_back("fill");
  const std::string& word = place.node.text;
  AxisList axis;
  if (word == "fill" && domain.may_fill) {
    axis.fill = true;
  } else if (word == "powers_of_two" && domain.whole) {
    axis.values = powers_of_two(domain);
  } else if (word == "divisors" && domain.whole) {
    axis.values = divisors_within(domain);
  } else {
    place.diagnostics.add(place.node.where, place.path,
                          "must be an integer, not \"" + word + '"' + yaml::suggestion(word, known, "words"));
    return axis;
  }
  if (!axis.fill && axis.values.empty()) {
    place.diagnostics.add(place.node.where, place.path,
                          fmt::format("{} gives no value from {} to {}", word, domain.low,
                                      std::min(domain.high, *domain.whole)));
  }
  return axis;
}

}  // namespace

std::vector<std::int64_t> divisors(std::int64_t n) {
  std::vector<std::int64_t> small, large;
  for (std::int64_t d = 1; d * d <= n; ++d) {
    if (n % d != 0) continue;
    small.push_back(d);
    if (d != n / d) large.push_back(n / d);
  }
  small.insert(small.end(), large.rbegin(), large.rend());
  return small;
}

std::vector<const yaml::Node*> axis_items(const AxisPlace& place) {
  if (!place.node.is_list()) return {&place.node};
  if (place.node.items.empty())
    place.diagnostics.add(place.node.where, place.path, "an empty list; give a value");
  if (place.node.items.size() > kMostListed) {
    place.diagnostics.add(
        place.node.where, place.path,
        fmt::format("a list of {} values; at most {} may be listed", place.node.items.size(), kMostListed));
    return {};
  }
  std::vector<const yaml::Node*> items;
  for (const yaml::Node& item : place.node.items) items.push_back(&item);
  return items;
}

AxisList parse_integer_axis(const AxisPlace& place, const IntegerDomain& domain) {
  if (is_word(place.node)) return word_values(place, domain);
  if (place.node.is_map()) return {.values = range_values(place, domain)};
  return {.values = parse_axis<std::int32_t>(place, [&](const yaml::Node& item) {
            return yaml::parse_integer_node(item, domain.low, domain.high).map(narrow);
          })};
}

}  // namespace shardscape::sweep
