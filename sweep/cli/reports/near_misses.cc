// Finds the points that come closest to being feasible in one pass over the rows, and tries single changes of their
// plans, and more memory, with the simulator.
#include "sweep/cli/reports/near_misses.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "engine/neighbours.h"
#include "engine/simulate.h"
#include "results_schema/reading/row_scan.h"
#include "sweep/cli/command.h"
#include "sweep/cli/reports/top_output.h"
#include "sweep/cli/reports/verdicts.h"
#include "sweep/cli/terminal/format.h"
#include "sweep/cli/terminal/text_table.h"
#include "sweep/space/constraint.h"
#include "sweep/space/design_space.h"
#include "sweep/space/point_text.h"
#include "sweep/study/load_study.h"
#include "sweep/yaml/device_sheet.h"

namespace shardscape::cli {

namespace {

using report::Fix;
using report::NearMiss;
using results::ResultReader;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr std::size_t kMissesShown = 3, kFixesShown = 3;
constexpr const char* kMoreMemory = "device.hbm.capacity";
constexpr const char* kRejected = "a constraint rejects it";
/// Number of nearest points among which one that a single change makes feasible is searched.
constexpr std::size_t kMissesTried = 50;

/// A row, with what decides how near it is to being feasible.
struct Candidate {
  std::size_t row = 0;
  std::uint64_t point_id = 0;
  std::string reason;
  double needed = kNaN, capacity = kNaN, stage = kNaN;
  double missed_by = kNaN;  ///< where it fits, but misses a bound of the study
  bool prefill = false;     ///< whether `needed` is of the pool that prefills

  [[nodiscard]] double missing() const { return needed - capacity; }
};

class MissFinder {
 public:
  explicit MissFinder(const ResultReader& reader)
      : reader_(reader), stored_(stored_study(reader)), study_(stored_ ? &stored_->study : nullptr) {
    if (study_ == nullptr) return;
    for (const std::string& text : study_->space.constraints) {
      if (auto constraint = sweep::Constraint::parse(text)) constraints_.push_back(*std::move(constraint));
    }
  }

  std::vector<NearMiss> run(const std::function<bool(std::size_t)>& keep) {
    read(keep);
    std::vector<NearMiss> misses;
    bool mended = false;
    for (const Candidate& candidate : candidates_) {
      const bool shown = misses.size() < kMissesShown;
      if (!shown && (mended || !study_)) break;
      std::vector<Fix> fixes = moves(candidate, 1);
      const bool helps = !fixes.empty();
      if (!shown && !helps) continue;  // go on to find one that a single change makes feasible
      mended = mended || helps;
      misses.push_back(describe_miss(candidate));
      misses.back().fixes = std::move(fixes);
      add_more_memory(candidate, misses.back());
    }
    if (!mended && study_ && !misses.empty() && !misses.front().fits) {
      constexpr std::int32_t kMostMoves = 3;
      std::vector<Fix> fixes = moves(candidates_.front(), kMostMoves);
      misses.front().fixes.insert(misses.front().fixes.begin(), fixes.begin(), fixes.end());
    }
    return misses;
  }

 private:
  /// Collects the rows that miss a bound of the study by least, one for each bound; then those that lack memory, by the
  /// amount, one for each amount; without any of them one for each other reason.
  void read(const std::function<bool(std::size_t)>& keep) {
    enum Column : std::size_t { status, reason, peak, stage, prefill };
    std::vector<std::string> columns = {"status", "reason", "memory_peak_bytes", "peak_stage"};
    const bool pools = reader_.find("prefill_memory_peak_bytes") != nullptr;
    if (pools) columns.emplace_back("prefill_memory_peak_bytes");
    std::map<std::pair<double, double>, Candidate> by_missing;
    const bool bounds = reader_.find("missed_by") != nullptr;
    if (bounds) columns.emplace_back("missed_by");
    const std::vector<std::string>& names = reader_.find("reason")->meanings;
    std::map<std::size_t, Candidate> by_reason, missed;
    const std::size_t columns_read = columns.size();
    for (results::RowScan scan(reader_, std::move(columns)); scan.next();) {
      const auto ids = reader_.point_ids({scan.first_row(), scan.first_row() + scan.size()});
      for (std::size_t i = 0; i < scan.size(); ++i) {
        const std::size_t row = scan.first_row() + i;
        if (!keep(row)) continue;
        if (study_ != nullptr && ids[i] >= stored_->space.size())
          throw results::StoreError(
              reader_.path(), fmt::format("row {} has point_id {}, but the study has {} points", row, ids[i],
                                          stored_->space.size()));
        const auto code = static_cast<std::size_t>(scan.values(reason)[i]);
        Candidate candidate{row, ids[i], reason_name(names, code)};
        const auto verdict = static_cast<Status>(scan.values(status)[i]);
        if (bounds && verdict == Status::missed) {
          candidate.missed_by = scan.values(columns_read - 1)[i];
          Candidate& nearest = missed.try_emplace(code, candidate).first->second;
          if (candidate.missed_by < nearest.missed_by) nearest = candidate;
          continue;
        }
        if (verdict != Status::memory) {
          by_reason.try_emplace(code, candidate);
          continue;
        }
        candidate.needed = scan.values(peak)[i];
        candidate.stage = scan.values(stage)[i];
        candidate.prefill = pools && scan.values(prefill)[i] == candidate.needed;
        if (study_)
          candidate.capacity = memory_of_fullest(system_of(candidate.point_id), candidate.prefill).value();
        const std::pair key(study_ ? candidate.missing() : candidate.needed, candidate.needed);
        if (by_missing.size() == kMissesTried && key >= std::prev(by_missing.end())->first) continue;
        by_missing.try_emplace(key, candidate);
        if (by_missing.size() > kMissesTried) by_missing.erase(std::prev(by_missing.end()));
      }
    }
    for (const auto& [code, candidate] : missed) candidates_.push_back(candidate);
    std::ranges::sort(candidates_, {}, &Candidate::missed_by);
    for (const auto& [missing, candidate] : by_missing) candidates_.push_back(candidate);
    if (!candidates_.empty()) return;
    for (const auto& [code, candidate] : by_reason) candidates_.push_back(candidate);
  }

  [[nodiscard]] std::size_t setting_of(std::uint64_t point_id) const {
    return static_cast<std::size_t>(stored_->space.point(point_id).setting);
  }
  [[nodiscard]] const System& system_of(std::uint64_t point_id) const {
    return study_->systems[setting_of(point_id) / study_->workloads.size()];
  }

  [[nodiscard]] NearMiss describe_miss(const Candidate& candidate) const {
    NearMiss miss;
    miss.point_id = candidate.point_id;
    miss.missing_bytes = candidate.missing();
    if (study_) {
      const sweep::PointIndex point = stored_->space.point(candidate.point_id);
      miss.plan = sweep::to_point_text(point.plan, study_->phase());
      if (study_->setting_count() > 1) miss.setting = describe_setting(*study_, point.setting);
    }
    miss.fits = !std::isnan(candidate.missed_by);
    if (std::isnan(candidate.needed)) {
      miss.problem = describe(candidate.reason);
      if (miss.fits) miss.problem += ", missed by " + format_percent(candidate.missed_by);
      return miss;
    }
    if (!std::isnan(candidate.stage)) miss.stage = static_cast<std::int32_t>(candidate.stage);
    const std::string pool = candidate.prefill ? " of the prefill pool" : "";
    const std::string stage = fmt::format("on stage {}{}", miss.stage, pool);
    const std::string needs = "needs " + format_bytes(candidate.needed);
    miss.problem = study_ ? format_bytes(candidate.missing()) + " missing " + stage + ": " + needs +
                                ", has " + format_bytes(candidate.capacity)
                          : needs + " " + stage;
    return miss;
  }

  [[nodiscard]] bool admits(const ParallelPlan& plan, const WorkloadSpec& workload) const {
    return std::ranges::all_of(constraints_,
                               [&](const sweep::Constraint& c) { return c.holds(plan, workload); });
  }
  [[nodiscard]] std::string where(std::size_t setting, const ParallelPlan& plan,
                                  const WorkloadSpec& workload) const {
    if (!admits(plan, workload)) return kRejected;
    const auto id = stored_->space.find(setting, plan);
    return id ? fmt::format("point {}", *id) : "not in the study's space";
  }

  /// Plans within `most_moves` changes that fit; those that the constraints admit come first.
  std::vector<Fix> moves(const Candidate& candidate, std::int32_t most_moves) {
    if (!study_ || !std::isnan(candidate.missed_by)) return {};
    const sweep::PointIndex point = stored_->space.point(candidate.point_id);
    const Setting setting = study_->setting(point.setting);
    std::vector<Fix> fixes;
    if (candidate.reason == name_of(Reason::constraint)) {
      const Prediction prediction = Simulator(setting).run(point.plan);
      if (prediction.status == Status::ok)
        fixes.push_back({"without the constraint", prediction.memory_peak.value(),
                         prediction.whole(study_->phase()).value(), kRejected});
    }
    constexpr std::size_t kAll = 1000;
    const auto found =
        nearest_feasible(setting, point.plan, most_moves == 1 ? kAll : kFixesShown, most_moves);
    for (const Neighbour& near : found) {
      Fix fix{sweep::changes_text(near.plan, point.plan, study_->phase()),
              near.prediction.memory_peak.value(), near.prediction.whole(study_->phase()).value(),
              where(point.setting, near.plan, setting.workload)};
      if (fix.where == kRejected) fix.change += " and without the constraint";
      fixes.push_back(std::move(fix));
    }
    std::stable_partition(fixes.begin(), fixes.end(), [](const Fix& fix) { return fix.where != kRejected; });
    if (fixes.size() > kFixesShown) fixes.resize(kFixesShown);
    return fixes;
  }

  /// Adds a change to devices with as many whole GiB as the plan needs.
  void add_more_memory(const Candidate& candidate, NearMiss& miss) const {
    if (!study_ || std::isnan(candidate.needed)) return;
    constexpr double kGiB = 1024.0 * 1024 * 1024;
    const sweep::PointIndex point = stored_->space.point(candidate.point_id);
    Setting setting = study_->setting(point.setting);
    DeviceSpec::Hbm& hbm = setting.system.device.hbm;
    const double capacity = std::ceil(candidate.needed / kGiB) * kGiB;
    hbm.capacity_per_stack = Bytes(capacity / static_cast<double>(hbm.stacks));
    const Prediction prediction = Simulator(setting).run(point.plan);
    if (prediction.status != Status::ok) return;
    miss.fixes.push_back({"devices with " + format_bytes(capacity), prediction.memory_peak.value(),
                          prediction.whole(study_->phase()).value(), kMoreMemory});
  }

  const ResultReader& reader_;
  const std::optional<StoredStudy> stored_;
  const sweep::Study* const study_;  ///< null where none is stored
  std::vector<sweep::Constraint> constraints_;
  std::vector<Candidate> candidates_;
};

}  // namespace

std::optional<sweep::Study> read_study(const ResultReader& reader) {
  auto study = sweep::parse_study(reader.resolved_yaml(), "study", {}, yaml::Catalog());
  if (!study) return std::nullopt;
  study->sheet_devices = sheet_devices(reader);
  return *std::move(study);
}

std::optional<StoredStudy> with_points(const ResultReader& reader, std::optional<sweep::Study> study) {
  if (!study) return std::nullopt;
  sweep::DesignSpace space = study->design_space();
  const std::uint64_t points = reader.layout().selection.study_points;
  if (points != 0 ? points != space.size() : space.size() < reader.layout().total_points) return std::nullopt;
  return StoredStudy{*std::move(study), std::move(space)};
}

std::optional<StoredStudy> stored_study(const ResultReader& reader) {
  return with_points(reader, read_study(reader));
}

std::vector<NearMiss> near_misses(const ResultReader& reader,
                                  const std::function<bool(std::size_t row)>& keep) {
  return MissFinder(reader).run(keep);
}

std::vector<NearMiss> near_misses(const ResultReader& reader) {
  const auto is_ok = [](const results::CodeCount& code) {
    return static_cast<Status>(code.code) == Status::ok;
  };
  if (std::ranges::any_of(reader.summary().statuses, is_ok)) return {};
  return near_misses(reader, [](std::size_t) { return true; });
}

void print_near_misses(std::ostream& out, const std::vector<NearMiss>& misses) {
  if (misses.empty()) return;
  const bool settings =
      std::ranges::any_of(misses, [](const NearMiss& miss) { return !miss.setting.empty(); });
  TextTable table({"point", left("what it lacks"), left("plan")});
  TextTable fixes({"point", left("change"), "memory", "time", left("where")});
  if (settings) table.add_column("setting", TextTable::Align::left);
  bool of_plan = false;
  for (const NearMiss& miss : misses) {
    std::vector<std::string> cells = {std::to_string(miss.point_id), miss.problem, miss.plan};
    if (settings) cells.push_back(miss.setting);
    table.add_row(std::move(cells));
    for (const Fix& fix : miss.fixes) {
      fixes.add_row({std::to_string(miss.point_id), fix.change, format_bytes(fix.memory_bytes),
                     format_seconds(fix.time_s), fix.where});
      of_plan = of_plan || fix.where != kMoreMemory;
    }
  }
  out << "nearest misses\n";
  table.print(out, 2);
  if (!of_plan && !misses.front().fits)
    out << "\nno plan within three changes of degrees, recomputation, ZeRO stage or microbatch fits\n";
  if (fixes.empty()) return;
  out << "\nwhat would make one fit\n";
  fixes.print(out, 2);
}

}  // namespace shardscape::cli
