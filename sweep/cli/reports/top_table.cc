// Reads as many rows as it takes to fill the table although rows that tie become one, executes the first of them, and
// sorts these by what that gave.
#include "sweep/cli/reports/top_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "engine/model/block_kinds.h"
#include "sweep/cli/reports/executed_order.h"
#include "sweep/cli/reports/near_misses.h"
#include "sweep/cli/reports/verdicts.h"
#include "sweep/cli/terminal/format.h"

namespace shardscape::cli {

namespace {

using results::ColumnInfo;
using results::ResultReader;

/// The heading of executed times.
constexpr const char* kExecuted = "executed";

/// Whether rows may tie: plans that differ in plan axes alone can. In rankings by other columns, and without results,
/// each row stands for itself.
bool may_tie(const ResultReader& reader, const TopQuestion& question, const TopRows& found) {
  if (!question.front.empty() || !question.per.empty() || found.any_status) return false;
  const results::ColumnGroup by = reader.find(question.by)->group;
  return by != results::ColumnGroup::id && by != results::ColumnGroup::plan;
}

/// The same rows and `more` of them.
void read_further(const ResultReader& reader, std::span<const std::uint64_t> more, ChosenRows& chosen) {
  const ChosenRows further = read_rows(reader, {more.begin(), more.end()});
  chosen.rows.insert(chosen.rows.end(), more.begin(), more.end());
  chosen.values.resize(further.values.size());
  for (std::size_t i = 0; i < further.values.size(); ++i)
    chosen.values[i].insert(chosen.values[i].end(), further.values[i].begin(), further.values[i].end());
}

using results::ResultReader;

/// The outputs that expected errors are of: of a training step, or of the mean time between tokens.
bool has_expected_error(const ResultReader& reader, const std::string& column) {
  if (reader.find("step_time_s") == nullptr) return column == "itl_s";
  return column == "step_time_s" || column == "tokens_per_s_per_gpu" || column == "mfu";
}

/// Memory of the fullest device of a point, of the pool that prefills or not.
using Capacities = std::function<double(double id, bool prefill)>;
/// 0 where the study has no such point; nothing where this program reads the file's study (nothing: it cannot)
/// differently. The points are listed only where devices differ, as that takes a while.
Capacities capacities_of(const ResultReader& reader, std::optional<sweep::Study> study) {
  if (!study) return nullptr;
  const System& first = study->systems.front();
  if (std::ranges::all_of(study->systems, [&](const System& system) {
        return !system.prefill_device && system.device.memory_capacity() == first.device.memory_capacity();
      }))
    return [own = first.device.memory_capacity().value()](double, bool) { return own; };
  auto stored = with_points(reader, std::move(study));
  if (!stored) return nullptr;
  return [stored = std::make_shared<StoredStudy>(*std::move(stored))](double id, bool prefill) {
    if (!(id < static_cast<double>(stored->space.size()))) return 0.0;
    const auto setting = stored->space.point(static_cast<std::uint64_t>(id)).setting;
    const System& system = stored->study.systems[setting / stored->study.workloads.size()];
    return memory_of_fullest(system, prefill).value();
  };
}

/// A line on the MFU of a training plan with sequences of that many tokens; empty where little is masked.
std::string remark_on_mfu(const ModelSpec& model, std::int64_t length) {
  const double share = model::causal_share(model, length);
  if (share >= kMostlyCausal) return "";
  return fmt::format(
      "MFU counts attention in full, as published figures do: by the half that a causal mask leaves it is "
      "{:.2f} times as much with sequences of {} tokens",
      share, format_count(length));
}

}  // namespace

TopTable table_of(const ResultReader& reader, TopQuestion question, bool count_points) {
  // On average a row of the table stands for at most so many points.
  constexpr std::uint64_t kMostTied = 32;
  // So many are found at once: the pass over the file is what takes time.
  constexpr std::uint64_t kAtOnce = 1024;
  const std::uint64_t rows = question.count;
  TopTable table;
  std::uint64_t asked = 0;  // of the file
  for (std::uint64_t count = rows;; count *= 2) {
    const bool last = count_points || count / kMostTied >= rows;
    if (count > asked) {
      question.count = asked = std::max(count, kAtOnce);
      table.found = find_top_rows(reader, question);
    }
    const std::span known(table.found.rows.data(), std::min<std::uint64_t>(table.found.rows.size(), count));
    read_further(reader, known.subspan(table.chosen.rows.size()), table.chosen);
    const bool tie = may_tie(reader, question, table.found);
    if (tie) table.groups = tied_rows(reader, table.chosen);
    // One group more than is shown, so that all of those are complete.
    if (tie && !last && table.groups.size() <= rows && known.size() == count) continue;
    table.found.rows = table.chosen.rows;
    if (!tie) {
      for (std::size_t row = 0; row < table.chosen.rows.size(); ++row) table.groups.push_back({row});
    }
    if (table.groups.size() > rows) table.groups.resize(rows);
    return table;
  }
}

Confirmation::Confirmation(const ResultReader& reader, const TopQuestion& question, const ConfirmWish& wish)
    : reader_(reader), question_(question), wish_(wish) {
  done_.why_none = wish.why_none;
  const ColumnInfo* const by = question.by.empty() ? nullptr : reader.find(question.by);
  const bool timed = by != nullptr && by->group == results::ColumnGroup::output && by->unit == "s" &&
                     !by->name.starts_with("expected_");
  for (const char* whole : {"step_time_s", "e2e_s"}) {
    if (time_.empty() && reader.find(whole) != nullptr) time_ = timed ? by->name : whole;
  }
  if (time_.empty()) return;
  columns_ = {time_};
  if (by != nullptr && by->name != time_) columns_.push_back(by->name);
}

void Confirmation::run(ChosenRows& chosen, RowGroups& groups) {
  if (columns_.empty() || wish_.rows == 0 || !done_.why_none.empty()) return;
  std::vector<std::uint64_t> firsts;
  for (const auto& group : groups) firsts.push_back(chosen.rows[group.front()]);
  done_ = execute_rows(reader_, firsts, columns_, wish_);
  if (!done_.why_none.empty()) return;
  FurtherColumn column{*reader_.find(time_), kExecuted, time_, {}};
  column.info.name = "executed_" + time_;
  column.info.type = results::ColumnType::f8;
  column.values.assign(chosen.rows.size(), std::numeric_limits<double>::quiet_NaN());
  for (std::size_t group = 0; group < groups.size(); ++group) {
    for (const std::size_t row : groups[group]) column.values[row] = done_.values[0][group];
  }
  chosen.further.push_back(std::move(column));
  if (question_.front.empty() && question_.per.empty()) rank(groups);
}

std::string Confirmation::text() const {
  if (!done_.why_none.empty() && !wish_.asked) return "";
  return text_of(fmt::format("{} executed in {} of CPU", counted(done_.rows, "row"),
                             format_duration(done_.cpu_seconds)));
}

std::string Confirmation::lasting_text() const { return text_of(counted(done_.rows, "row") + " executed"); }

std::string Confirmation::text_of(const std::string& executed) const {
  if (columns_.empty() || wish_.rows == 0) return "";
  if (!done_.why_none.empty()) return "not executed: " + done_.why_none;
  std::string text = executed;
  if (done_.too_long > 0) text += fmt::format(", {} would take too long or never end", done_.too_long);
  if (done_.given_up > 0)
    text += fmt::format(", {} given up after {} events", done_.given_up, format_count(kMostTrialEvents));
  if (done_.left > 0) text += fmt::format(", {} not tried", done_.left);
  if (done_.given_up + done_.left > 0)
    text +=
        fmt::format(", as execution may take longer than this command should: --confirm {} does", wish_.rows);
  if (done_.stopped > 0) text += fmt::format(", {} left {}", done_.stopped, done_.why_stopped);
  if (!order_.empty()) text += ": " + order_;
  const std::size_t rows = done_.values.front().size();
  if (const std::size_t more = rows - std::min(rows, wish_.rows); more > 0)
    text += fmt::format("; {} more {} not executed", more, more == 1 ? "was" : "were");
  return text;
}

void Confirmation::rank(RowGroups& groups) {
  const std::vector<double>& values = done_.values.back();
  const double sign = reader_.find(columns_.back())->better == results::Better::larger ? -1 : 1;
  std::vector<std::size_t> places;
  for (std::size_t row = 0; row < values.size(); ++row) {
    if (!std::isnan(values[row])) places.push_back(row);
  }
  std::vector<std::size_t> order = places;
  std::ranges::stable_sort(order, {}, [&](std::size_t row) { return sign * values[row]; });
  if (order.size() > 1) {
    std::vector<double> costs;
    for (const std::size_t row : places) costs.push_back(sign * values[row]);
    // What was not executed may belong between the others.
    const bool all = order.size() == groups.size();
    order_ = fmt::format("the order{} {}", all ? "" : fmt::format(" of these {}", order.size()),
                         order_text(costs, places));
    if (!std::ranges::is_sorted(costs)) order_ += ", and rows stand by what was executed";
  }
  RowGroups ranked = groups;
  for (std::size_t i = 0; i < places.size(); ++i) ranked[places[i]] = std::move(groups[order[i]]);
  groups = std::move(ranked);
}

RowRemarks remarks_on_rows(const ResultReader& reader, const TopQuestion& question, const ChosenRows& chosen,
                           const RowGroups& groups, std::span<const std::string> only) {
  RowRemarks remarks;
  const auto values = [&](std::string_view name) -> const std::vector<double>* {
    const results::ColumnInfo* const column = reader.find(name);
    if (column == nullptr) return nullptr;
    return &chosen.values[static_cast<std::size_t>(column - reader.columns().data())];
  };
  // Adds a column of truths; returns the first rows of the groups of which it is true.
  const auto add = [&](const char* name, const std::function<bool(std::size_t row)>& holds) {
    FurtherColumn column{{}, name, "", std::vector<double>(chosen.rows.size())};
    column.info.name = name;
    column.info.type = results::ColumnType::u8;
    std::vector<std::size_t> found;
    for (const std::vector<std::size_t>& group : groups) {
      for (const std::size_t row : group) column.values[row] = holds(row) ? 1 : 0;
      if (holds(group.front())) found.push_back(group.front());
    }
    remarks.columns.push_back(std::move(column));
    return found;
  };
  const auto say = [&](const std::string& what) {
    remarks.lines.push_back(fmt::format("of the first {}, {}", format_count(groups.size()), what));
  };
  if (groups.empty()) return remarks;
  const bool timed = question.front.empty() && has_expected_error(reader, question.by);
  const auto* const ranking = timed ? values(question.by) : nullptr;
  const auto* const errors = values("expected_error");
  if (ranking != nullptr && errors != nullptr) {
    const double sign = reader.find(question.by)->better == results::Better::larger ? -1 : 1;
    const std::size_t first = std::ranges::min_element(groups, {}, [&](const auto& group) {
                                const double value = sign * (*ranking)[group.front()];
                                return std::isnan(value) ? HUGE_VAL : value;
                              })->front();
    const double best = (*ranking)[first], error = (*errors)[first];
    const auto near = [&](std::size_t row) { return std::abs((*ranking)[row] - best) <= error * best; };
    const std::size_t within = add("within_expected_error", near).size();
    const std::string size = fmt::format("expected error (+-{})", format_percent(error));
    const bool told = question.per.empty() && std::isfinite(best) && std::isfinite(error);
    if (told && within == 1 && groups.size() > 1) say("none is as near to the best as its " + size);
    if (told && within > 1)
      say(fmt::format(
          "{} are within the {} of the best: the prediction does not tell these apart, measure them",
          within == groups.size() ? "all" : format_count(within), size));
  }
  std::optional<sweep::Study> study = read_study(reader);
  const auto *const lengths = values("sequence_length"), *const mfu = values("mfu");
  const bool shown = only.empty() || std::ranges::find(only, "mfu") != only.end();
  if (study && lengths != nullptr && mfu != nullptr && shown) {
    const auto has_mfu = [&](const auto& group) { return std::isfinite((*mfu)[group.front()]); };
    const auto first = std::ranges::find_if(groups, has_mfu);
    std::string line =
        first == groups.end()
            ? ""
            : remark_on_mfu(study->model, static_cast<std::int64_t>((*lengths)[first->front()]));
    if (!line.empty()) remarks.lines.push_back(std::move(line));
  }
  const auto* const bytes = values("memory_peak_bytes");
  const auto* const ids = values("point_id");
  const auto* const prefill = values("prefill_memory_peak_bytes");
  const auto capacity =
      bytes != nullptr && ids != nullptr ? capacities_of(reader, std::move(study)) : nullptr;
  if (capacity == nullptr) return remarks;
  const auto tight = add("memory_tight", [&](std::size_t row) {
    const bool of_prefill = prefill != nullptr && (*prefill)[row] == (*bytes)[row];
    return !tight_memory((*bytes)[row], capacity((*ids)[row], of_prefill)).empty();
  });
  if (tight.empty()) return remarks;
  constexpr std::size_t kNamed = 5;
  std::string names;
  for (std::size_t i = 0; i < std::min(tight.size(), kNamed); ++i)
    names += fmt::format("{}{:.0f}", i == 0 ? "" : ", ", (*ids)[tight[i]]);
  say(fmt::format("{} more than {} of a GPU's memory, so that an allocator may run out of it (point{} {}{})",
                  tight.size() == 1 ? "1 takes" : format_count(tight.size()) + " take",
                  format_percent(kTightMemory), tight.size() == 1 ? "" : "s", names,
                  tight.size() > kNamed ? ", ..." : ""));
  return remarks;
}

}  // namespace shardscape::cli
