// Prints the progress of a search and its result: what became of the points, how good the answer is proved to be, and
// the rates of evaluation.
#include "sweep/cli/search_report.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cmath>
#include <iostream>
#include <nlohmann/json.hpp>
#include <utility>

#include "engine/base/safe_text.h"
#include "sweep/cli/confirm.h"
#include "sweep/cli/format.h"
#include "sweep/cli/text_table.h"
#include "sweep/space/point_text.h"

namespace shardscape::cli {

namespace {

using namespace std::chrono_literals;
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

const char* meaning_of(Fate fate) {
  switch (fate) {
    case Fate::visited:
      return "evaluated";
    case Fate::bound:
      return "beyond the answer, by a bound";
    case Fate::memory:
      return "do not fit in memory";
    case Fate::constraint:
      return "against a constraint";
    case Fate::rule:
      return "indivisible or unsupported";
    case Fate::open:
      break;
  }
  return "not decided";
}

/// A rate with two digits where it is small, as executions may take longer than a second each.
std::string rate_text(double rate) {
  return rate < 10 ? fmt::format("{:.2g}", rate) : format_count(static_cast<std::uint64_t>(rate));
}

std::string objective_text(const sweep::SweepJob& job, const std::string& objective, double value) {
  return format_value(value, job.columns().find(objective)->unit);
}

}  // namespace

SearchReporter::SearchReporter(const sweep::SweepJob& job, std::string objective, ProgressMode mode)
    : job_(job), objective_(std::move(objective)), mode_(mode) {
  if (mode_ == ProgressMode::automatic)
    mode_ = isatty(STDERR_FILENO) != 0 ? ProgressMode::line : ProgressMode::plain;
  interval_ = mode_ == ProgressMode::line ? 200ms : mode_ == ProgressMode::json ? 1s : 5s;
  start_ = Clock::now();
  next_ = start_ + interval_;
}

void SearchReporter::update(const sweep::SearchProgress& progress) {
  const Clock::time_point now = Clock::now();
  if (mode_ == ProgressMode::none || now < next_) return;
  next_ = now + interval_;
  if (mode_ == ProgressMode::json) {
    std::cout << json(progress) << std::endl;
    return;
  }
  const std::string text = line(progress);
  if (mode_ == ProgressMode::plain) {
    std::cerr << text << '\n';
    return;
  }
  const std::size_t blanks = width_ > text.size() ? width_ - text.size() : 0;
  std::cerr << '\r' << text << std::string(blanks, ' ') << std::flush;
  width_ = text.size();
}

void SearchReporter::close() {
  if (width_ > 0) std::cerr << '\n';
  width_ = 0;
  mode_ = ProgressMode::none;
}

std::string SearchReporter::line(const sweep::SearchProgress& progress) const {
  const std::uint64_t cut = cut_off(progress.counts), visited = count_of(progress.counts, Fate::visited);
  const double elapsed = std::chrono::duration<double>(Clock::now() - start_).count();
  const double rate = elapsed > 0 ? static_cast<double>(visited) / elapsed : 0;
  std::string text = fmt::format(
      "{} visited, {}/s, {} cut off ({}), bound {}", format_count(visited), rate_text(rate),
      format_count(cut), format_percent(static_cast<double>(cut) / static_cast<double>(progress.points)),
      objective_text(job_, objective_, progress.bound));
  if (progress.best) text += ", best " + objective_text(job_, objective_, progress.best->objective);
  return text;
}

std::string SearchReporter::json(const sweep::SearchProgress& progress) const {
  nlohmann::ordered_json line = {{"event", "progress"},
                                 {"points", progress.points},
                                 {"visited", count_of(progress.counts, Fate::visited)},
                                 {"cut_off", cut_off(progress.counts)}};
  if (std::isfinite(progress.bound)) line["bound"] = progress.bound;
  if (const auto& best = progress.best) {
    line["best"] = {
        {"point_id", best->point_id},
        {objective_, best->objective},
        {"plan", sweep::to_point_text(job_.space().point(best->point_id).plan, job_.study().phase())}};
  }
  return json_text(line);
}

namespace {

/// Prints how many samples a race has drawn of those that a sweep would draw for the same points.
void print_draws(std::ostream& out, const sweep::SweepJob& job, const sweep::RaceDraws& draws) {
  const std::uint64_t all = draws.points * job.fault_draws()->draws().size();
  out << "fault samples: " << format_count(draws.made) << " drawn of " << format_count(all) << " that "
      << format_count(draws.points) << " raced points have\n";
}

}  // namespace

void print_search(std::ostream& out, const sweep::SweepJob& job, const sweep::SearchOutcome& outcome,
                  const std::string& objective, std::optional<double> worst, double cpu_seconds) {
  const results::SearchInfo& info = outcome.info;
  const auto points = static_cast<double>(job.space().size());
  out << echo(job.study().title) << ": searched " << format_count(job.space().size()) << " points, "
      << format_duration(cpu_seconds) << " of CPU\n";
  TextTable table({left(""), "points", "", left("")});
  for (const Fate fate : enum_values<Fate>()) {
    const std::uint64_t count = count_of(info.counts, fate);
    if (count == 0 && fate != Fate::visited) continue;
    table.add_row({std::string(name_of(fate)), format_count(count),
                   format_percent(static_cast<double>(count) / points, 3), meaning_of(fate)});
  }
  table.print(out, 2);
  if (outcome.draws) print_draws(out, job, *outcome.draws);
  if (outcome.given_up > 0)
    out << format_count(outcome.given_up)
        << " executions were ended where their clock had passed the answer: they are among those by a "
           "bound\n";
  if (outcome.too_large > 0)
    out << format_count(outcome.too_large) << " plans take more than "
        << format_count(kMostRowEvents / 1'000'000)
        << " million events: they were not executed to their end, and are not decided\n";
  // Floors of prices are proved; those of executed steps are only tested (plan_floor.h).
  const bool executed = job.study().mode == ExecutionMode::flattened;
  if (info.complete && info.within == 0) {
    out << (executed
                ? "exact, as far as tests show that no step is shorter than its floor: no point that was not "
                  "executed belongs here\n"
                : "exact: no point that was not visited belongs here\n");
  } else if (info.complete) {
    out << "certified" << (executed ? ", as far as tests show" : "") << ": within "
        << format_percent(info.within) << " of the best\n";
  } else if (!std::isnan(info.bound) && worst) {
    const double gap = *worst > info.bound ? *worst / info.bound - 1 : info.bound / *worst - 1;
    out << "stopped" << (executed ? ", as far as tests show" : "")
        << ": no point that was not visited is better than " << objective_text(job, objective, info.bound)
        << "; these are within " << format_percent(gap) << " of that\n";
  } else {
    out << "stopped: points that were not visited may belong here\n";
  }
  out << '\n';
}

}  // namespace shardscape::cli
