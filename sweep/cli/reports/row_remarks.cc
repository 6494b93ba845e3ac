#include "sweep/cli/reports/row_remarks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>

#include "engine/base/joined.h"
#include "sweep/cli/reports/near_misses.h"
#include "sweep/cli/reports/verdicts.h"
#include "sweep/cli/terminal/format.h"

namespace shardscape::cli {

namespace {

using results::ColumnInfo;
using results::ResultReader;

/// The outputs that expected errors are of: of a training step, or of the mean time between tokens.
bool has_expected_error(const ResultReader& reader, const std::string& column) {
  if (reader.find("itl_s") != nullptr) return column == "itl_s";
  return column == "step_time_s" || column == "tokens_per_s_per_gpu" || column == "mfu";
}

/// Memory of the device of each row; nothing where this program reads the file's study differently. The points of a
/// study are listed only where its devices differ.
std::function<double(double id)> capacities_of(const ResultReader& reader) {
  auto study = read_study(reader);
  if (!study) return nullptr;
  const auto of = [](const System& system) { return system.device.memory_capacity().value(); };
  const double first = of(study->systems.front());
  if (std::ranges::all_of(study->systems, [&](const System& system) { return of(system) == first; }))
    return [first](double) { return first; };
  auto stored = with_points(reader, std::move(study));
  if (!stored) return nullptr;
  return [of, stored = std::make_shared<StoredStudy>(*std::move(stored))](double id) {
    const auto setting = stored->space.point(static_cast<std::uint64_t>(id)).setting;
    return of(stored->study.systems[setting / stored->study.workloads.size()]);
  };
}

class Remarking {
 public:
  Remarking(const ResultReader& reader, const ChosenRows& chosen, const RowGroups& groups)
      : reader_(reader), chosen_(chosen), groups_(groups) {}

  /// The values of a column by row; null where the file has none.
  [[nodiscard]] const std::vector<double>* values(std::string_view name) const {
    const ColumnInfo* const column = reader_.find(name);
    if (column == nullptr) return nullptr;
    return &chosen_.values[static_cast<std::size_t>(column - reader_.columns().data())];
  }
  /// Adds a column of truths, and a line about the groups of which it is true.
  template <class Holds, class Line>
  void add(const char* name, const Holds& holds, const Line& line) {
    FurtherColumn column{{}, name, "", std::vector<double>(chosen_.rows.size())};
    column.info.name = name;
    column.info.type = results::ColumnType::u8;
    std::vector<std::size_t> found;
    for (const std::vector<std::size_t>& group : groups_) {
      for (const std::size_t row : group) column.values[row] = holds(row) ? 1 : 0;
      if (holds(group.front())) found.push_back(group.front());
    }
    if (std::string text = line(found); !text.empty())
      remarks_.lines.push_back(fmt::format("of the first {}, {}", format_count(groups_.size()), text));
    remarks_.columns.push_back(std::move(column));
  }
  RowRemarks take() { return std::move(remarks_); }

 private:
  const ResultReader& reader_;
  const ChosenRows& chosen_;
  const RowGroups& groups_;
  RowRemarks remarks_;
};

}  // namespace

RowRemarks remarks_on_rows(const ResultReader& reader, const TopQuestion& question, const ChosenRows& chosen,
                           const RowGroups& groups) {
  Remarking remarking(reader, chosen, groups);
  if (groups.empty()) return remarking.take();
  const std::size_t first = groups.front().front();
  const bool ranked = question.front.empty() && question.per.empty();
  const auto* const errors = remarking.values("expected_error");
  const auto* const ranking = ranked ? remarking.values(question.by) : nullptr;
  if (errors != nullptr && ranking != nullptr && has_expected_error(reader, question.by) &&
      std::isfinite((*errors)[first]) && std::isfinite((*ranking)[first])) {
    const double best = (*ranking)[first], error = (*errors)[first];
    const auto within = [&](std::size_t row) { return std::abs((*ranking)[row] - best) <= error * best; };
    remarking.add("within_expected_error", within, [&](const std::vector<std::size_t>& found) -> std::string {
      if (groups.size() == 1) return "";
      if (found.size() == 1)
        return fmt::format("none is as near to the best as its expected error, +-{}", format_percent(error));
      return fmt::format(
          "{} are within the expected error of the best, +-{}: the prediction does not tell these apart, "
          "measure them",
          found.size() == groups.size() ? "all" : format_count(found.size()), format_percent(error));
    });
  }
  const auto* const bytes = remarking.values("memory_peak_bytes");
  const auto capacity = bytes == nullptr ? nullptr : capacities_of(reader);
  if (capacity == nullptr) return remarking.take();
  const auto* const ids = remarking.values("point_id");
  const auto tight = [&](std::size_t row) {
    return !tight_memory((*bytes)[row], capacity((*ids)[row])).empty();
  };
  remarking.add("memory_tight", tight, [&](const std::vector<std::size_t>& found) -> std::string {
    if (found.empty()) return "";
    constexpr std::size_t kNamed = 5;
    std::string names;
    for (std::size_t i = 0; i < std::min(found.size(), kNamed); ++i)
      names += fmt::format("{}{:.0f}", i == 0 ? "" : ", ", (*ids)[found[i]]);
    return fmt::format(
        "{} {} more than {} of a GPU's memory, so that an allocator may run out of it ({} {}{})",
        format_count(found.size()), found.size() == 1 ? "takes" : "take", format_percent(kTightMemory),
        found.size() == 1 ? "point" : "points", names, found.size() > kNamed ? ", ..." : "");
  });
  return remarking.take();
}

}  // namespace shardscape::cli
