#include "sweep/cli/rank_sweep.h"

#include <algorithm>
#include <chrono>
#include <span>
#include <stdexcept>
#include <thread>
#include <utility>

#include "results_schema/assemble.h"
#include "sweep/cli/cpu_time.h"
#include "sweep/cli/format.h"

namespace shardscape::cli {

namespace {

using results::SegmentStore;

/// Reads the folder until all is seen that the ranks have sealed: a network file system may show the files of
/// other machines late (of NFS, a folder's list is up to a minute old: acdirmax).
void see_all(SegmentStore& store, std::uint64_t rows) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point limit = Clock::now() + std::chrono::seconds(90);
  for (;; std::this_thread::sleep_for(std::chrono::milliseconds(200))) {
    store.scan();
    if (store.sealed_rows() >= rows) return;
    if (Clock::now() < limit) continue;
    throw std::runtime_error(store.folder().string() + ": shows " + format_count(store.sealed_rows()) +
                             " of the " + format_count(rows) + " points that the ranks have sealed");
  }
}

}  // namespace

Together compute_together(const sweep::SweepJob& job, const SegmentStore& store,
                          const sweep::SweepOptions& options, const sweep::SharedStart& start,
                          ranks::Ranks& ranks) {
  const auto open = [&]() -> const SegmentStore& { return store; };
  const std::vector<RankResult> parts = gather_results(run_part(job, open, options, start, ranks), ranks);
  Together sum;
  sweep::SweepProgress& progress = sum.outcome.progress;
  progress.rows_total = job.layout().rows();
  progress.rows_before = start.rows_before;
  sum.cost.ranks = ranks.size();
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const RankResult& part = parts[i];
    if (!part.problem.empty())
      throw std::runtime_error((i == 0 ? "" : ranks.name(static_cast<int>(i)) + ": ") + part.problem);
    progress.rows_evaluated += part.rows;
    sum.outcome.times.evaluate += part.times.evaluate;
    sum.outcome.times.encode += part.times.encode;
    sum.outcome.times.write += part.times.write;
    sum.cost.cpu += part.cpu;
    sum.cost.peak_memory = std::max(sum.cost.peak_memory, part.peak_memory);
  }
  sum.outcome.complete = progress.rows_done() == progress.rows_total;
  return sum;
}

void follow_together(const sweep::SweepJob& job, const results::Manifest& manifest,
                     const sweep::SweepOptions& options, const Heard& heard, ranks::Ranks& ranks) {
  std::optional<SegmentStore> store;
  const auto join = [&]() -> const SegmentStore& {
    return store.emplace(SegmentStore::join(heard.folder, manifest));
  };
  gather_results(run_part(job, join, options, heard.start, ranks), ranks);
}

std::optional<results::Summary> assemble(Together& together, SegmentStore store,
                                         const results::OutputPath& output, const results::RunInfo& run) {
  if (!together.outcome.complete) return std::nullopt;
  const double before = cpu_seconds();
  see_all(store, together.outcome.progress.rows_done());
  auto summary = results::assemble(std::move(store), output, run);
  together.cost.cpu += cpu_seconds() - before;
  together.cost.peak_memory = std::max(together.cost.peak_memory, peak_memory_bytes());
  return summary;
}

}  // namespace shardscape::cli
