#include "sweep/cli/reports/sweep_progress.h"

#include <fmt/format.h>

#include "sweep/cli/terminal/format.h"
#include "sweep/space/point_text.h"

namespace shardscape::cli {

namespace {

struct Pace {
  double rate = 0;       ///< rows per second in this run
  double remaining = 0;  ///< seconds; valid where rate > 0
  double feasible = 0;   ///< share of this run's rows that are feasible
};

Pace pace_of(const sweep::SweepProgress& progress, double elapsed) {
  Pace pace;
  if (elapsed > 0) pace.rate = static_cast<double>(progress.rows_evaluated) / elapsed;
  if (pace.rate > 0)
    pace.remaining = static_cast<double>(progress.rows_total - progress.rows_done()) / pace.rate;
  if (progress.rows_evaluated > 0) {
    pace.feasible =
        static_cast<double>(progress.tally.count(Status::ok)) / static_cast<double>(progress.rows_evaluated);
  }
  return pace;
}

}  // namespace

std::string objective_text(const sweep::SweepJob& job, const std::string& objective, double value) {
  return format_value(value, job.columns().find(objective)->unit);
}

nlohmann::ordered_json best_json(const sweep::SweepJob& job, std::uint64_t point,
                                 const std::string& objective, double value) {
  return {{"point_id", point},
          {objective, value},
          {"plan", sweep::to_point_text(job.space().point(point).plan, job.study().phase())}};
}

void ProgressReporter::update(const sweep::SweepProgress& progress) {
  line_.update([&] { return text(progress); }, [&] { return json(progress); });
}

std::string ProgressReporter::text(const sweep::SweepProgress& progress) const {
  const Pace pace = pace_of(progress, elapsed_seconds());
  const double share = static_cast<double>(progress.rows_done()) / static_cast<double>(progress.rows_total);
  // What matters least comes first, as narrow terminals leave that out.
  const auto& best = progress.tally.best;
  std::string text;
  if (best)
    text = fmt::format("best plan {}, ", sweep::to_point_text(job_.space().point(best->point_id).plan,
                                                              job_.study().phase(), ' '));
  text += fmt::format("feasible {}, {}/s, {}/{} points ({}), ETA {}", format_percent(pace.feasible),
                      format_count(static_cast<std::uint64_t>(pace.rate)), format_count(progress.rows_done()),
                      format_count(progress.rows_total), format_percent(share, 0),
                      format_duration(pace.remaining));
  if (best) text += ", best " + objective_text(job_, job_.study().objectives.front(), best->objective);
  return text;
}

nlohmann::ordered_json ProgressReporter::json(const sweep::SweepProgress& progress) const {
  const double elapsed = elapsed_seconds();
  const Pace pace = pace_of(progress, elapsed);
  nlohmann::ordered_json line = {{"event", "progress"},          {"points", progress.rows_done()},
                                 {"total", progress.rows_total}, {"feasible_share", pace.feasible},
                                 {"elapsed_s", elapsed},         {"points_per_s", pace.rate},
                                 {"eta_s", pace.remaining}};
  if (const auto& found = progress.tally.best)
    line["best"] = best_json(job_, found->point_id, job_.study().objectives.front(), found->objective);
  return line;
}

}  // namespace shardscape::cli
