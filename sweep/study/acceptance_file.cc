#include "sweep/study/acceptance_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
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
  return shares;
}

/// Why no line has what is wanted: the first of model, method and mode that none has, and what there is instead.
std::string missing_series(const std::array<std::string_view, 3>& names,
                           const std::array<std::string, 3>& wanted,
                           const std::array<std::set<std::string>, 3>& there) {
  if (there.front().empty()) return "has no lines";
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (wanted[i].empty() || there[i].contains(wanted[i])) continue;
    if (there[i] == std::set<std::string>{""}) return fmt::format("has no {}", names[i]);
    return fmt::format("has no line with {} {}, but with {}", names[i], wanted[i], fmt::join(there[i], ", "));
  }
  return "has no line of that model, method and mode";
}

}  // namespace

tl::expected<std::vector<double>, std::string> parse_acceptance(std::string_view text,
                                                                const AcceptanceSeries& series,
                                                                std::string* means) {
  constexpr std::array<std::string_view, 5> kNames = {"draft_tokens", "acceptance_length", "model", "method",
                                                      "mode"};
  constexpr std::size_t kNeeded = 3,
                        kSeries = 2;  // columns that there must be; where those of a series begin
  const std::array<std::string, 3> wanted = {series.model, series.method, series.mode};
  std::array<std::set<std::string>, 3> there, taken;  // of all lines, and of those that are meant
  std::array<std::size_t, kNames.size()> columns{};
  bool named = false;
  LengthSums lengths;
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";  // spreadsheets write it
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  for (std::size_t line = 1; !text.empty(); ++line) {
    const std::size_t end = text.find('\n');
    const std::vector<std::string_view> cells = input::cells_of(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (cells.size() == 1 && cells.front().empty()) continue;
    if (!std::exchange(named, true)) {
      for (std::size_t i = 0; i < kNames.size(); ++i) {
        columns[i] = static_cast<std::size_t>(std::ranges::find(cells, kNames[i]) - cells.begin());
        if (i < kNeeded && columns[i] == cells.size())
          return tl::unexpected(fmt::format("line {}: needs the column {}", line, kNames[i]));
      }
      continue;
    }
    const auto cell = [&](std::size_t i) {
      return columns[i] < cells.size() ? cells[columns[i]] : std::string_view();
    };
    bool meant = true;
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      there[i].emplace(cell(kSeries + i));
      meant = meant && (wanted[i].empty() || cell(kSeries + i) == wanted[i]);
    }
    if (!meant) continue;
    for (std::size_t i = 0; i < taken.size(); ++i) taken[i].emplace(cell(kSeries + i));
    const auto drafts = yaml::parse_integer(cell(0), 1, kMostDraftTokens);
    if (!drafts) return tl::unexpected(fmt::format("line {}: draft_tokens {}", line, drafts.error()));
    const std::optional<double> length = yaml::parse_finite(cell(1));
    if (!length || *length < 1 || *length > static_cast<double>(1 + *drafts))
      return tl::unexpected(
          fmt::format("line {}: acceptance_length must be from 1 to {}", line, 1 + *drafts));
    auto& [sum, number] = lengths[*drafts];
    sum += *length;
    ++number;
  }
  if (taken[0].size() > 1)
    return tl::unexpected(fmt::format("has lines of {}: say which `model`", fmt::join(taken[0], ", ")));
  if (lengths.empty())
    return tl::unexpected(missing_series({kNames[2], kNames[3], kNames[4]}, wanted, there));
  int most = 1;
  for (const auto& [drafts, sum] : lengths) most = std::max(most, sum.second);
  std::string apart;
  for (const std::size_t i : {1U, 2U})
    if (taken[i].size() > 1)
      apart += fmt::format("{}{}", apart.empty() ? "name " : " and ", kNames[kSeries + i]);
  if (most > 1 && means != nullptr)
    *means =
        fmt::format("means of up to {} lines with the same number of draft tokens; {}", most,
                    apart.empty() ? "no model, method or mode tells them apart" : apart + " to choose lines");
  return shares_of(lengths);
}

}  // namespace shardscape::sweep
