#include "sweep/cli/ranks/rank_sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <stdexcept>
#include <thread>
#include <utility>

#include "engine/base/safe_text.h"
#include "results_schema/segments/assemble.h"
#include "sweep/cli/terminal/cpu_time.h"
#include "sweep/cli/terminal/format.h"

namespace shardscape::cli {

namespace {

using results::SegmentStore;

/// The gaps as text, each as "block 3" or "blocks 3 to 7".
std::string gaps_text(const std::vector<results::BlockRange>& gaps) {
  constexpr std::size_t kShown = 5;
  std::string text;
  for (std::size_t i = 0; i < std::min(gaps.size(), kShown); ++i) {
    const results::BlockRange& gap = gaps[i];
    text += text.empty() ? "" : ", ";
    text += gap.count == 1 ? fmt::format("block {}", gap.first)
                           : fmt::format("blocks {} to {}", gap.first, gap.end() - 1);
  }
  return gaps.size() > kShown ? text + ", ..." : text;
}

/// Reads the folder again until all rows that the ranks have sealed are visible. On one machine that is at once, or
/// never. A network file system may show files of other machines late (NFS lists of a folder may be a minute old:
/// acdirmax).
void see_all(SegmentStore& store, std::uint64_t rows, bool one_machine) {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::seconds kPatience(90);
  const Clock::time_point limit = Clock::now() + (one_machine ? Clock::duration::zero() : kPatience);
  for (bool said = false;; std::this_thread::sleep_for(std::chrono::milliseconds(200))) {
    store.scan();
    if (store.sealed_rows() >= rows) return;
    const std::string lacks =
        fmt::format("{}: shows {} of the {} points that were sealed and lacks {}", store.folder().string(),
                    format_count(store.sealed_rows()), format_count(rows), gaps_text(store.missing()));
    if (Clock::now() >= limit)
      throw std::runtime_error(lacks +
                               ": segments were removed while the sweep ran, or can't be seen from here");
    if (!std::exchange(said, true))
      std::cerr << message_line(
                       fmt::format("{}; a network file system may show files of other machines late: waiting "
                                   "for them, {} s at most",
                                   lacks, kPatience.count()))
                << std::endl;
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
  sum.one_machine = ranks.on_this_machine() == ranks.size();
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
  see_all(store, together.outcome.progress.rows_done(), together.one_machine);
  auto summary = results::assemble(std::move(store), output, run);
  together.cost.cpu += cpu_seconds() - before;
  together.cost.peak_memory = std::max(together.cost.peak_memory, peak_memory_bytes());
  return summary;
}

}  // namespace shardscape::cli
