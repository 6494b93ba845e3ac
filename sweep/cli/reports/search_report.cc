// Prints the progress of a search and its result: what became of the points, how good the answer is proved to be, and
// the rates of evaluation.
#include "sweep/cli/reports/search_report.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "engine/base/safe_text.h"
#include "sweep/cli/reports/confirm.h"
#include "sweep/cli/reports/sweep_progress.h"
#include "sweep/cli/terminal/format.h"
#include "sweep/cli/terminal/text_table.h"

namespace shardscape::cli {

namespace {

using results::Fate;

std::uint64_t count_of(const results::FateCounts& counts, Fate fate) {
  return counts[static_cast<std::size_t>(fate)];
}

std::uint64_t cut_off(const results::FateCounts& counts) {
  std::uint64_t cut = 0;
  for (const Fate fate : {Fate::bound, Fate::memory, Fate::constraint, Fate::rule})
    cut += count_of(counts, fate);
  return cut;
}

/// What became of points, in the order of Fate.
constexpr const char* kMeanings[] = {"evaluated",
                                     "beyond the answer, by a bound",
                                     "do not fit in memory",
                                     "against a constraint",
                                     "indivisible, unsupported or out of range",
                                     "not decided"};
static_assert(std::size(kMeanings) == enum_names<Fate>().size());

/// A rate with two digits where it is small, as executions may take longer than a second each.
std::string rate_text(double rate) {
  return rate < 10 ? fmt::format("{:.2g}", rate) : format_count(static_cast<std::uint64_t>(rate));
}

/// Prints how many samples a race has drawn of those that a sweep would draw for the same points.
void print_draws(std::ostream& out, const sweep::SweepJob& job, const sweep::RaceDraws& draws) {
  const std::uint64_t all = draws.points * job.fault_draws()->draws().size();
  out << "fault samples: " << format_count(draws.made) << " drawn of " << format_count(all) << " that "
      << counted(draws.points, "raced point") << " would have\n";
}

}  // namespace

SearchReporter::SearchReporter(const sweep::SweepJob& job, std::string objective, ProgressMode mode)
    : job_(job), objective_(std::move(objective)), line_(mode) {}

void SearchReporter::update(const sweep::SearchProgress& progress) {
  line_.update([&] { return text(progress); }, [&] { return json(progress); });
}

std::string SearchReporter::text(const sweep::SearchProgress& progress) const {
  const std::uint64_t cut = cut_off(progress.counts), visited = count_of(progress.counts, Fate::visited);
  const double elapsed = line_.elapsed_seconds();
  const double rate = elapsed > 0 ? static_cast<double>(visited) / elapsed : 0;
  std::string text = fmt::format(
      "{} visited, {}/s, {} cut off ({}), bound {}", format_count(visited), rate_text(rate),
      format_count(cut), format_percent(static_cast<double>(cut) / static_cast<double>(progress.points)),
      objective_text(job_, objective_, progress.bound));
  if (progress.best) text += ", best " + objective_text(job_, objective_, progress.best->objective);
  return text;
}

nlohmann::ordered_json SearchReporter::json(const sweep::SearchProgress& progress) const {
  nlohmann::ordered_json line = {{"event", "progress"},
                                 {"points", progress.points},
                                 {"visited", count_of(progress.counts, Fate::visited)},
                                 {"cut_off", cut_off(progress.counts)}};
  if (std::isfinite(progress.bound)) line["bound"] = progress.bound;
  if (const auto& best = progress.best)
    line["best"] = best_json(job_, best->point_id, objective_, best->objective);
  return line;
}

void print_search(std::ostream& out, const sweep::SweepJob& job, const sweep::SearchOutcome& outcome,
                  const std::string& objective, std::optional<double> worst, double cpu_seconds) {
  const results::SearchInfo& info = outcome.info;
  const auto points = static_cast<double>(job.space().size());
  out << echo(job.study().title) << ": searched " << counted(job.space().size(), "point") << ", "
      << format_duration(cpu_seconds) << " of CPU\n";
  TextTable table({left(""), "points", "", left("")});
  for (const Fate fate : enum_values<Fate>()) {
    const std::uint64_t count = count_of(info.counts, fate);
    if (count == 0 && fate != Fate::visited) continue;
    table.add_row({std::string(name_of(fate)), format_count(count),
                   format_percent(static_cast<double>(count) / points, 3),
                   kMeanings[static_cast<std::size_t>(fate)]});
  }
  table.print(out, 2);
  if (outcome.draws) print_draws(out, job, *outcome.draws);
  if (outcome.given_up > 0)
    out << counted(outcome.given_up, "execution")
        << " ended where the clock had passed the answer, among those by a bound\n";
  if (outcome.too_large > 0)
    out << counted(outcome.too_large, "plan") << " of more than " << format_count(kMostRowEvents / 1'000'000)
        << " million events: not executed to the end, and not decided\n";
  // Floors of prices are proved; those of executed steps are only tested (plan_floor.h).
  const bool served = job.study().phase() == Phase::inference;
  const bool executed = job.study().mode == ExecutionMode::flattened;
  const char* const of_loads = ", with floors that are proved but for attention, which is tested";
  const char* const how = served ? of_loads : executed ? ", as far as tests show" : "";
  if (info.complete && info.within == 0) {
    out << "exact" << how << (executed ? " that no step is shorter than its floor" : "")
        << ": no point that was not "
        << (served     ? "simulated"
            : executed ? "executed"
                       : "visited")
        << " belongs here\n";
  } else if (info.complete) {
    out << "certified" << how << ": within " << format_percent(info.within) << " of the best\n";
  } else if (worst && std::isfinite(info.bound) && info.bound > 0) {
    const double gap = *worst > info.bound ? *worst / info.bound - 1 : info.bound / *worst - 1;
    out << "stopped" << how << ": no point that was not visited is better than "
        << objective_text(job, objective, info.bound) << "; these are within " << format_percent(gap)
        << " of that\n";
  } else {
    out << "stopped: points that were not visited may belong here\n";
  }
  out << '\n';
}

std::string executed_text(const sweep::SweepJob& job, const sweep::SearchGoal& goal,
                          const sweep::SearchOutcome& found, double cpu_seconds) {
  const auto text = [&](double value) { return objective_text(job, goal.objectives.front(), value); };
  const std::string took =
      fmt::format("{} executed or known so, {} given up as slower, {} of CPU",
                  counted(found.visited.size(), "point"), format_count(found.given_up),
                  format_duration(cpu_seconds)) +
      (found.too_large > 0 ? fmt::format(", {} too large to execute", format_count(found.too_large)) : "");
  if (found.best.empty()) return "executed: no plan is known to have a time; " + took;
  const std::string best =
      fmt::format("point {}, {}", found.best.front().point_id, text(found.best.front().objective));
  if (found.info.complete)
    return fmt::format("executed: {} is the best of all{}, as far as tests show that floors hold; {}", best,
                       goal.within > 0 ? " within " + format_percent(goal.within) : "", took);
  if (std::isnan(found.info.bound)) return "executed: stopped at " + best + "; " + took;
  return fmt::format("executed: stopped at {}; as far as tests show, none is better than {}; {}", best,
                     text(found.info.bound), took);
}

}  // namespace shardscape::cli
