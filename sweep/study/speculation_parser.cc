// Reads `speculation:` of a workload: who drafts, how many tokens, and how many of them are accepted, also from
// a table.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>

#include "engine/spec/speculation.h"
#include "sweep/input/csv_line.h"
#include "sweep/input/input_file.h"
#include "sweep/study/axis_values.h"
#include "sweep/study/study_parts.h"
#include "sweep/yaml/number.h"
#include "sweep/yaml/value.h"
#include "sweep/yaml/visitors.h"

namespace shardscape::sweep {

namespace {

yaml::Parsed<double> parse_share(const yaml::Node& node) {
  auto share = yaml::parse_value<double>(node);
  if (share && (*share < 0 || *share > 1)) return tl::unexpected(std::string("must be from 0 to 1"));
  return share;
}

/// Shares from a table of lengths; an empty error stands for problems that are told already.
tl::expected<std::vector<double>, std::string> read_table(const yaml::Node& node, const std::string& path,
                                                          const std::filesystem::path& folder,
                                                          yaml::ReadState& state, ParsedSpeculation& result) {
  yaml::Reader of(node, path, state);
  const yaml::Node* const name = of.take_required("table");
  AcceptanceSeries series;
  for (const auto& [key, text] : {std::pair("model", &series.model), std::pair("method", &series.method),
                                  std::pair("mode", &series.mode)}) {
    if (const yaml::Node* const value = of.take(key))
      of.keep(key, *value, yaml::scalar_text(*value, "a cell of the table"), *text);
  }
  of.finish();
  if (name == nullptr || state.failed()) return tl::unexpected(std::string());
  const auto file = yaml::scalar_text(*name, "the name of a CSV file");
  if (!file) return tl::unexpected(file.error());
  const std::filesystem::path where = folder / *file;
  const auto text = input::read_file(where, input::kMostTableBytes, "a table of lengths");
  if (text) result.tables.push_back(where);
  std::string means;
  const auto shares = text ? parse_acceptance(*text, series, &means) : tl::unexpected(text.error());
  if (!means.empty())
    result.assumption = yaml::to_string({name->where, path + ".table", "accepted lengths are " + means});
  if (!shares) return tl::unexpected(where.string() + ": " + shares.error());
  return *shares;
}

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

ParsedSpeculation parse_speculation(const yaml::Node& node, const std::string& path,
                                    const std::filesystem::path& folder, yaml::ReadState& state,
                                    yaml::Diagnostics& diagnostics) {
  ParsedSpeculation result;
  Speculation& speculation = result.speculation;
  result.resolved = node;
  yaml::Reader reader(node, path, state);
  if (const yaml::Node* tokens = reader.take_required("draft_tokens"))
    result.draft_tokens = parse_axis<std::int64_t>(
        AxisPlace{*tokens, path + ".draft_tokens", diagnostics},
        [](const yaml::Node& item) { return yaml::parse_integer_node(item, 0, kMostDraftTokens); });
  const std::int64_t most = result.draft_tokens.empty() ? 0 : std::ranges::max(result.draft_tokens);
  const yaml::Node* const written = reader.take_required("acceptance");
  const yaml::Node* rates = written;
  if (rates != nullptr && rates->is_map()) {
    const auto shares = read_table(*rates, path + ".acceptance", folder, state, result);
    if (!shares && !shares.error().empty()) reader.bad("acceptance", *rates, shares.error());
    result.resolved.set("acceptance",
                        yaml::flow_list(shares.value_or(std::vector<double>()), [](double share) {
                          return yaml::Node::scalar(fmt::format("{}", share));
                        }));
    rates = shares ? result.resolved.find("acceptance") : nullptr;
  }
  if (rates != nullptr) {
    const bool listed = !rates->items.empty();
    for (const yaml::Node* item : listed ? axis_items({*rates, path + ".acceptance", diagnostics})
                                         : std::vector<const yaml::Node*>{rates}) {
      const auto share = parse_share(*item);
      if (!share) {
        reader.bad("acceptance", *item, share.error());
      } else if (!speculation.acceptance.empty() && *share > speculation.acceptance.back()) {
        reader.bad(
            "acceptance", *item,
            "rises: a draft is accepted only where all before it are, so shares of positions never do");
      } else {
        speculation.acceptance.push_back(*share);
      }
    }
    if (!listed && speculation.acceptance.size() == 1)
      speculation.acceptance = Speculation::independent(speculation.acceptance.front());
    if (!state.failed() && most > static_cast<std::int64_t>(speculation.acceptance.size()))
      reader.bad(
          "acceptance", *written,
          fmt::format("has {} positions, but {} tokens are drafted: give one share for each, or one rate",
                      speculation.acceptance.size(), most));
  }
  if (const yaml::Node* method = reader.take("method")) {
    reader.read("method", *method, speculation.method);
  } else if (node.find("draft_model") != nullptr) {
    speculation.method = DraftMethod::draft_model;
  }
  const yaml::Node* const model = reader.take("draft_model");
  if (speculation.method == DraftMethod::draft_model && model == nullptr)
    reader.bad("draft_model", node, "missing: method draft_model needs the name of the model that drafts");
  if (speculation.method == DraftMethod::mtp && model != nullptr)
    reader.bad("draft_model", *model, "has no effect with method: mtp, where the model drafts for itself");
  reader.finish();
  return result;
}

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
