// The values of one axis as a study may write them: a value, a list, `powers_of_two`, `divisors`, {from, to,
// step} or `fill`.
//
// Every function reports all its problems against the node they stand at and gives an empty list where there
// is any.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <tl/expected.hpp>
#include <vector>

#include "sweep/space/space_spec.h"
#include "sweep/yaml/diagnostics.h"
#include "sweep/yaml/node.h"
#include "sweep/yaml/value.h"

namespace shardscape::sweep {

/// The node of an axis, and where its problems are reported.
struct AxisPlace {
  const yaml::Node& node;
  std::string path;
  yaml::Diagnostics& diagnostics;
};

/// The values that an integer axis may have.
struct IntegerDomain {
  std::int64_t low = 1;
  std::int64_t high = 1;
  /// `powers_of_two` go up to this number and `divisors` divide it; without it neither word is allowed.
  std::optional<std::int64_t> whole;
  bool may_fill = false;
};

/// The values as they are written, each once. `high` must fit in 32 bits.
AxisList parse_integer_axis(const AxisPlace& place, const IntegerDomain& domain);

/// The longest list of an axis; longer ones are ranges.
inline constexpr std::size_t kMostListed = 4096;

/// The items of a single value, or of a non-empty list of at most kMostListed.
std::vector<const yaml::Node*> axis_items(const AxisPlace& place);

/// All divisors of n, ascending.
std::vector<std::int64_t> divisors(std::int64_t n);

/// A value or a list of values, each once, read by `parse` (Node -> yaml::Parsed<T>).
template <class T, class Parse>
std::vector<T> parse_axis(const AxisPlace& place, Parse&& parse) {
  std::vector<T> values;
  bool good = true;
  const auto problem = [&](const yaml::Node& item, const std::string& message) {
    place.diagnostics.add(item.where, place.path, message);
    good = false;
  };
  for (const yaml::Node* item : axis_items(place)) {
    yaml::Parsed<T> value = parse(*item);
    if (!value) {
      problem(*item, value.error());
    } else if (std::find(values.begin(), values.end(), *value) != values.end()) {
      problem(*item, item->text + " is in the list twice");
    } else {
      values.push_back(*value);
    }
  }
  if (!good) values.clear();
  return values;
}

}  // namespace shardscape::sweep
