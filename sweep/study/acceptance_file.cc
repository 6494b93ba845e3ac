#include "sweep/study/acceptance_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "engine/spec/speculation.h"
#include "sweep/input/csv_line.h"
#include "sweep/yaml/number.h"

namespace shardscape::sweep {

namespace {

/// Lengths by number of drafts: their sum and their number.
using LengthSums = std::map<std::int64_t, std::pair<double, int>>;

tl::expected<std::vector<double>, std::string> shares_of(const LengthSums& lengths) {
  std::vector<double> shares;
  double before = 1;
  for (const auto& [drafts, sum] : lengths) {
    if (drafts != static_cast<std::int64_t>(shares.size()) + 1)
      return tl::unexpected(fmt::format("has no length with {} draft tokens", shares.size() + 1));
    const double length = sum.first / sum.second;
    const double most = shares.empty() ? 1 : shares.back();
    shares.push_back(std::clamp(length - before, 0.0, most));
    before = length;
  }
  if (shares.empty()) return tl::unexpected(std::string("has no line of that model, method and mode"));
  return shares;
}

}  // namespace

tl::expected<std::vector<double>, std::string> parse_acceptance(std::string_view text,
                                                                const AcceptanceSeries& series) {
  constexpr std::array<std::string_view, 5> kNames = {"model", "draft_tokens", "acceptance_length", "method",
                                                      "mode"};
  constexpr std::size_t kNeeded = 3;
  std::array<std::size_t, kNames.size()> columns{};
  LengthSums lengths;
  for (std::size_t line = 1; !text.empty(); ++line) {
    const std::size_t end = text.find('\n');
    const std::vector<std::string_view> cells = input::cells_of(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (line == 1) {
      for (std::size_t i = 0; i < kNames.size(); ++i) {
        columns[i] = static_cast<std::size_t>(std::ranges::find(cells, kNames[i]) - cells.begin());
        if (i < kNeeded && columns[i] == cells.size())
          return tl::unexpected(fmt::format("line 1: needs the column {}", kNames[i]));
      }
      continue;
    }
    const auto cell = [&](std::size_t i) {
      return columns[i] < cells.size() ? cells[columns[i]] : std::string_view();
    };
    const auto meant = [&](std::size_t i, const std::string& wanted) {
      return wanted.empty() || cell(i) == wanted;
    };
    if (!meant(0, series.model) || !meant(3, series.method) || !meant(4, series.mode)) continue;
    if (cells.size() == 1 && cells.front().empty()) continue;
    const auto drafts = yaml::parse_integer(cell(1), 1, kMostDraftTokens);
    if (!drafts) return tl::unexpected(fmt::format("line {}: draft_tokens {}", line, drafts.error()));
    const std::optional<double> length = yaml::parse_finite(cell(2));
    const auto most = static_cast<double>(1 + *drafts);
    if (!length || *length < 1 || *length > most)
      return tl::unexpected(
          fmt::format("line {}: acceptance_length must be from 1 to {}", line, 1 + *drafts));
    auto& [sum, number] = lengths[*drafts];
    sum += *length;
    ++number;
  }
  return shares_of(lengths);
}

}  // namespace shardscape::sweep
