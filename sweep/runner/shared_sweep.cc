// Cuts the missing blocks into pieces for the ranks, lets each rank take pieces until none is left, and joins the
// ranks' progress on rank 0.
#include "sweep/runner/shared_sweep.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "engine/base/check.h"
#include "sweep/runner/block_worker.h"

namespace shardscape::sweep {

namespace {

using namespace std::chrono_literals;

ranks::Report report_of(const SweepProgress& progress) {
  ranks::Report report;
  report.rows = progress.rows_evaluated;
  report.feasible = progress.tally.count(Status::ok);
  if (progress.tally.best) {
    report.has_best = true;
    report.best_value = progress.tally.best->objective;
    report.best_point = progress.tally.best->point_id;
  }
  return report;
}

/// The progress of the whole sweep from the ranks' reports. Of the points' statuses only `ok` is counted.
SweepProgress progress_of(std::span<const ranks::Report> reports, SweepProgress progress,
                          results::Better better) {
  for (const ranks::Report& report : reports) {
    Tally tally;
    tally.by_status[static_cast<std::size_t>(Status::ok)] = report.feasible;
    if (report.has_best) tally.best = BestPoint{report.best_value, report.best_point};
    add(progress.tally, tally, better);
    progress.rows_evaluated += report.rows;
  }
  return progress;
}

/// Exchanges the progress of this rank and of the others.
class SharedProgress {
 public:
  SharedProgress(const SweepJob& job, const SweepOptions& options, const SharedStart& start,
                 ranks::Ranks& ranks)
      : observer_(options.observer), stop_wanted_(options.stop), ranks_(ranks) {
    better_ = better_of(job);
    before_.rows_total = job.layout().rows();
    before_.rows_before = start.rows_before;
  }

  /// Called after each block of this rank by its writer.
  void update(const SweepProgress& own) {
    last_ = own;
    ranks_.report(report_of(own));
    try {
      look_around();
    } catch (const ranks::RankLost&) {
      stop_all();  // finish() throws this again, once computed blocks have been sealed
    }
  }

  /// Reports that this rank takes no more pieces; rank 0 then waits for the others.
  void finish(const SweepProgress& own) {
    ranks::Report last = report_of(own);
    last.finished = true;
    if (ranks_.rank() != 0) look_around();  // a block that was given up has not told the others
    ranks_.report(last);
    while (ranks_.rank() == 0) {
      const std::vector<ranks::Report> reports = look_around();
      if (std::ranges::all_of(reports, [](const ranks::Report& report) { return report.finished; })) return;
      std::this_thread::sleep_for(10ms);
    }
  }

  [[nodiscard]] const std::atomic<bool>& stop() const { return stop_; }
  [[nodiscard]] const SweepProgress& last() const { return last_; }
  /// Makes all ranks stop taking pieces.
  void stop_all() {
    stop_ = true;
    ranks_.ask_to_stop();
  }

 private:
  std::vector<ranks::Report> look_around() {
    if (stop_wanted_ != nullptr && stop_wanted_->load(std::memory_order_relaxed)) stop_all();
    if (ranks_.asked_to_stop()) stop_ = true;
    if (ranks_.rank() != 0) return {};
    std::vector<ranks::Report> reports = ranks_.reports();
    if (observer_) observer_(progress_of(reports, before_, better_));
    return reports;
  }

  const std::function<void(const SweepProgress&)> observer_;
  const std::atomic<bool>* const stop_wanted_;
  ranks::Ranks& ranks_;
  results::Better better_ = results::Better::smaller;
  SweepProgress before_, last_;
  std::atomic<bool> stop_{false};
};

/// Gives a rank its pieces: those of its own region, then those of the others, the next one first.
class PieceTaker {
 public:
  PieceTaker(std::vector<std::vector<results::BlockRange>> pieces, ranks::Ranks& ranks)
      : pieces_(std::move(pieces)), ranks_(ranks), region_(ranks.rank()) {}

  std::optional<results::BlockRange> next() {
    for (; done_ < ranks_.size(); ++done_, region_ = (region_ + 1) % ranks_.size()) {
      const auto& pieces = pieces_[static_cast<std::size_t>(region_)];
      const std::uint64_t number = ranks_.take(region_);
      if (number < pieces.size()) return pieces[number];
    }
    return std::nullopt;
  }

 private:
  std::vector<std::vector<results::BlockRange>> pieces_;
  ranks::Ranks& ranks_;
  int region_, done_ = 0;  ///< region to take from; number of regions found empty
};

}  // namespace

std::vector<std::vector<results::BlockRange>> cut_into_pieces(std::span<const results::BlockRange> missing,
                                                              const results::BlockLayout& layout, int ranks,
                                                              std::uint64_t rows_of_segment) {
  // The last pieces decide how much later some ranks end: an eighth of little.
  constexpr std::uint64_t kPieces = 8;
  SHARDSCAPE_CHECK(ranks >= 1, ranks);
  if (ranks == 1) return {{missing.begin(), missing.end()}};
  const auto regions = static_cast<std::uint64_t>(ranks);
  std::uint64_t blocks = 0;
  for (const results::BlockRange& range : missing) blocks += range.count;
  const std::uint64_t most = std::max<std::uint64_t>(rows_of_segment / layout.rows_per_block, 1);
  std::vector<std::vector<results::BlockRange>> pieces(regions);
  std::uint64_t region = 0, left = 0;
  for (results::BlockRange range : missing) {
    while (range.count > 0) {
      for (; left == 0; ++region) left = blocks / regions + (region < blocks % regions ? 1 : 0);
      const std::uint64_t wanted = std::clamp<std::uint64_t>(left / kPieces, 1, most);
      const std::uint64_t count = std::min({wanted, left, range.count});
      pieces[region - 1].push_back({range.first, count});
      range = {range.first + count, range.count - count};
      left -= count;
    }
  }
  return pieces;
}

SweepOutcome run_shared_sweep(const SweepJob& job, const results::SegmentStore& store, SweepOptions options,
                              const SharedStart& start, ranks::Ranks& ranks) {
  PieceTaker taker(cut_into_pieces(start.missing, job.layout(), ranks.size(), options.seal.rows), ranks);
  SharedProgress progress(job, options, start, ranks);
  options.observer = [&](const SweepProgress& own) { progress.update(own); };
  options.stop_within = std::exchange(options.stop, &progress.stop());
  options.next = [&]() -> std::optional<results::BlockRange> {
    const std::optional<results::BlockRange> piece = taker.next();
    if (piece && start.took) start.took(*piece);
    return piece;
  };
  SweepOutcome outcome;
  try {
    outcome = run_sweep(job, store, options);
    if (start.sealed) start.sealed();
  } catch (...) {
    progress.stop_all();
    progress.finish(progress.last());
    throw;
  }
  progress.finish(outcome.progress);
  return outcome;
}

}  // namespace shardscape::sweep
