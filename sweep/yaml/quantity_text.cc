// The units with their dimensions and factors, parsing of a number with a unit into base units, and the shortest text
// of a value.
#include "sweep/yaml/quantity_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <span>
#include <vector>

#include "engine/base/suggest.h"
#include "engine/base/words.h"
#include "sweep/yaml/number.h"

namespace shardscape::yaml {

namespace {

constexpr std::size_t kDimensions = static_cast<std::size_t>(Dimension::energy_per_bit) + 1;

/// A unit: value in base units = number * factor / divisor, with powers of ten on either side, which stay exact.
struct Unit {
  std::string name;
  Dimension dimension = Dimension::time;
  double factor = 1;
  double divisor = 1;
};

struct Prefix {
  std::string_view name;
  double factor;
};

constexpr std::array<Prefix, 7> kDecimal = {
    {{"", 1}, {"k", 1e3}, {"M", 1e6}, {"G", 1e9}, {"T", 1e12}, {"P", 1e15}, {"E", 1e18}}};
constexpr std::array<Prefix, 5> kBinary = {
    {{"Ki", 0x1p10}, {"Mi", 0x1p20}, {"Gi", 0x1p30}, {"Ti", 0x1p40}, {"Pi", 0x1p50}}};
constexpr std::array<Prefix, 5> kFractions = {{{"", 1}, {"m", 1e3}, {"u", 1e6}, {"n", 1e9}, {"p", 1e12}}};

void add_family(std::vector<Unit>& units, std::span<const Prefix> prefixes, std::string_view base,
                Dimension dimension, double divisor = 1) {
  for (const Prefix& prefix : prefixes) {
    units.push_back({std::string(prefix.name) + std::string(base), dimension, prefix.factor, divisor});
  }
}

std::vector<Unit> make_units() {
  std::vector<Unit> units;
  for (const Prefix& prefix : kFractions) {
    units.push_back({fmt::format("{}s", prefix.name), Dimension::time, 1, prefix.factor});
  }
  units.push_back({"\u00b5s", Dimension::time, 1, 1e6});  // the micro sign
  units.push_back({"\u03bcs", Dimension::time, 1, 1e6});  // the Greek letter mu
  add_family(units, std::span(kDecimal).first(5), "Hz", Dimension::frequency);
  for (const auto& [suffix, dimension] :
       {std::pair("", Dimension::data), std::pair("/s", Dimension::bandwidth)}) {
    for (const auto& [letter, divisor] : {std::pair("B", 1.0), std::pair("b", 8.0)}) {
      const std::string base = std::string(letter) + suffix;
      add_family(units, kBinary, base, dimension, divisor);
      add_family(units, kDecimal, base, dimension, divisor);
    }
  }
  add_family(units, kDecimal, "FLOP", Dimension::work);
  add_family(units, kDecimal, "FLOP/s", Dimension::work_rate);
  add_family(units, std::span(kDecimal).first(4), "W", Dimension::power);
  for (const Prefix& prefix : kFractions) {
    const std::string name(prefix.name);
    units.push_back({name + "m", Dimension::length, 1, prefix.factor});
    units.push_back({name + "m2", Dimension::area, 1, prefix.factor * prefix.factor});
    units.push_back({name + "J/b", Dimension::energy_per_bit, 1, prefix.factor});
  }
  return units;
}

const std::vector<Unit>& all_units() {
  static const std::vector<Unit> kUnits = make_units();
  return kUnits;
}

const Unit* find_unit(std::string_view name) {
  const auto& units = all_units();
  const auto it = std::ranges::find(units, name, &Unit::name);
  return it == units.end() ? nullptr : &*it;
}

std::string due(Dimension dimension) {
  return fmt::format("{} is due, such as \"{}\"", row_of(dimension).name, row_of(dimension).example);
}

/// A unit in a form for comparison: "GBps" and "TFLOPS" are meant as rates, "gb/s" and "tflop/s".
std::string normalised(std::string_view unit) {
  std::string text = lower_case(unit);
  if (text.ends_with("ps") && text.size() > 2) text.replace(text.size() - 2, 2, "/s");
  if (text.ends_with("flop/s") || !text.ends_with("flops")) return text;
  text.replace(text.size() - 1, 1, "/s");
  return text;
}

std::string unknown_unit(std::string_view unit, Dimension dimension) {
  std::vector<std::string> same, names;
  for (const Unit& known : all_units()) {
    if (known.dimension != dimension) continue;
    names.push_back(known.name);
    if (lower_case(known.name) == normalised(unit)) same.push_back(known.name);
  }
  if (same.empty()) same = nearest_names(unit, names, 2);
  const std::string text = fmt::format("unknown unit \"{}\"", unit);
  if (same.empty()) return text + "; " + due(dimension);
  return fmt::format("{}; did you mean \"{}\"?", text, fmt::join(same, "\" or \""));
}

/// Length of the leading number; an 'e' belongs to it only where digits follow ("1e3 s", but not "1 EB").
std::size_t number_length(std::string_view text) {
  std::size_t i = text.find_first_not_of("+-.0123456789");
  if (i == std::string_view::npos) return text.size();
  if (i > 0 && (text[i] == 'e' || text[i] == 'E')) {
    std::size_t j = i + 1;
    if (j < text.size() && (text[j] == '+' || text[j] == '-')) ++j;
    std::size_t k = j;
    while (k < text.size() && std::isdigit(static_cast<unsigned char>(text[k]))) ++k;
    if (k > j) i = k;
  }
  return i;
}

}  // namespace

const DimensionRow& row_of(Dimension dimension) {
  // In the order of Dimension.
  static constexpr std::array<DimensionRow, kDimensions> kRows = {
      {{"a time", "5 us", "s", "_s"},
       {"a frequency", "1.41 GHz", "Hz", "_hz"},
       {"an amount of data", "80 GiB", "byte", "_bytes"},
       {"a bandwidth", "25 GB/s", "byte s-1", "_bytes_per_s"},
       {"an amount of work", "1 PFLOP", "1", "_flops"},
       {"a rate of work", "312 TFLOP/s", "s-1", "_flops_per_s"},
       {"a power", "400 W", "W", "_w"},
       {"a length", "10 mm", "m", "_m"},
       {"an area", "826 mm2", "m2", "_m2"},
       {"an energy per bit", "3.9 pJ/b", "J bit-1", "_j_per_bit"}}};
  return kRows[static_cast<std::size_t>(dimension)];
}

tl::expected<double, std::string> parse_quantity(std::string_view text, Dimension dimension) {
  text = trimmed(text);
  const std::size_t length = number_length(text);
  const std::optional<double> number = parse_finite(text.substr(0, length));
  const std::string_view name = trimmed(text.substr(length));
  if (!number) {
    return tl::unexpected(fmt::format("\"{}\" is no quantity: {}", text, due(dimension)));
  }
  if (name.empty()) {
    return tl::unexpected(fmt::format("is a bare number where a unit is due; write {}, such as \"{}\"",
                                      row_of(dimension).name, row_of(dimension).example));
  }
  const Unit* unit = find_unit(name);
  if (unit == nullptr) return tl::unexpected(unknown_unit(name, dimension));
  if (unit->dimension != dimension) {
    return tl::unexpected(
        fmt::format("\"{}\" is {}; {}", text, row_of(unit->dimension).name, due(dimension)));
  }
  const double value = *number * unit->factor / unit->divisor;
  if (!std::isfinite(value)) return tl::unexpected(fmt::format("must be finite, not \"{}\"", text));
  return value;
}

std::string format_quantity(double value, Dimension dimension) {
  std::string best;
  for (const Unit& unit : all_units()) {
    const bool bits = unit.divisor == 8;
    if (unit.dimension != dimension || bits || unit.name.front() < ' ') continue;
    const double scaled = value * unit.divisor / unit.factor;
    if (!std::isfinite(scaled) || scaled * unit.factor / unit.divisor != value) continue;
    const bool base = unit.factor == 1 && unit.divisor == 1;
    const std::string text = format_number(scaled) + ' ' + unit.name;
    if (best.empty() || text.size() < best.size() || (value == 0 && base)) best = text;
    if (value == 0 && base) break;
  }
  return best;
}

}  // namespace shardscape::yaml
