#include "sweep/cli/reports/row_remarks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "engine/model/block_kinds.h"
#include "sweep/cli/reports/near_misses.h"
#include "sweep/cli/reports/verdicts.h"
#include "sweep/cli/terminal/format.h"

namespace shardscape::cli {

namespace {

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
