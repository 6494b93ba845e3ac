// Do ranks that share a sweep compute every block once, whatever each takes, and is it the file of one process?
#include "sweep/runner/shared_sweep.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>

#include "results_schema/reading/reader.h"
#include "tests/support/datasets_equal.h"
#include "tests/unit/runner/sweep_fixture.h"

namespace shardscape::sweep {
namespace {

using results::BlockLayout;
using results::BlockRange;
using results::SegmentStore;

using Regions = std::vector<std::vector<BlockRange>>;

Regions pieces_of(const std::vector<BlockRange>& missing, int ranks, std::uint64_t rows) {
  return cut_into_pieces(missing, BlockLayout::whole(1'000'000, 64), ranks, rows);
}

std::vector<std::uint64_t> blocks_in(const std::vector<BlockRange>& ranges) {
  std::vector<std::uint64_t> blocks;
  for (const BlockRange& range : ranges) {
    for (std::uint64_t block = range.first; block < range.end(); ++block) blocks.push_back(block);
  }
  return blocks;
}

TEST(SharedSweep, PiecesAreTheMissingBlocksInTheirOrder) {
  const std::vector<BlockRange> missing = {{3, 1}, {7, 200}, {300, 17}, {1000, 401}};
  for (const int ranks : {1, 2, 3, 16, 1000}) {
    for (const std::uint64_t rows : {1U, 64U, 1024U, 65536U}) {
      const Regions regions = pieces_of(missing, ranks, rows);
      ASSERT_EQ(regions.size(), static_cast<std::size_t>(ranks));
      std::vector<std::uint64_t> blocks;
      std::size_t least = ~std::size_t{0}, most = 0;
      for (const std::vector<BlockRange>& pieces : regions) {
        const auto region = blocks_in(pieces);
        blocks.insert(blocks.end(), region.begin(), region.end());
        least = std::min(least, region.size());
        most = std::max(most, region.size());
      }
      EXPECT_EQ(blocks, blocks_in(missing)) << ranks << " ranks";
      EXPECT_LE(most - least, 1U) << ranks << " ranks";
    }
  }
  EXPECT_EQ(pieces_of({}, 4, 65536), Regions(4));
  EXPECT_EQ(pieces_of(missing, 1, 64), Regions{missing});
}

TEST(SharedSweep, PiecesShrinkTowardsTheEndAndFillASegmentAtMost) {
  // 1,000 blocks for 2 ranks: 500 / 8 = 62 first, but a segment of 1,024 rows is filled by 16 blocks of 64.
  EXPECT_EQ(pieces_of({{0, 1000}}, 2, 1 << 20).front().front(), (BlockRange{0, 62}));
  EXPECT_EQ(pieces_of({{0, 1000}}, 2, 1 << 20).back().front(), (BlockRange{500, 62}));
  EXPECT_EQ(pieces_of({{0, 1000}}, 2, 1024).front().front(), (BlockRange{0, 16}));
  for (const auto& pieces : pieces_of({{0, 1000}}, 2, 1 << 20)) {
    for (std::size_t i = 1; i < pieces.size(); ++i) EXPECT_LE(pieces[i].count, pieces[i - 1].count);
    // Below 2 * 8 blocks the share is 1: the last 15 pieces are single blocks.
    const auto single = std::ranges::count(pieces, std::uint64_t{1}, &BlockRange::count);
    EXPECT_EQ(single, 15);
  }
}

/// One rank of several, the others of which have run before or will run later: each counter gives it the numbers that
/// its turn says.
class OneOfSeveral final : public ranks::Ranks {
 public:
  OneOfSeveral(int rank, int size) : rank_(rank), size_(size), turns_(static_cast<std::size_t>(size)) {}
  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int size() const override { return size_; }
  [[nodiscard]] int on_this_machine() const override { return size_; }
  [[nodiscard]] std::string name(int rank) const override { return "rank " + std::to_string(rank); }
  std::vector<std::string> gather(const std::string& /*text*/) override { return {}; }
  std::string broadcast(const std::string& text) override { return text; }
  std::uint64_t take(int counter) override {
    const std::uint64_t turn = turns_[static_cast<std::size_t>(counter)]++;
    return turn * static_cast<std::uint64_t>(size_) + static_cast<std::uint64_t>(rank_);
  }
  void report(const ranks::Report& report) override { own_ = report; }
  std::vector<ranks::Report> reports() override {
    const ranks::Report other{.rows = 1000,
                              .feasible = 300,
                              .best_value = 0.5,
                              .best_point = 77,
                              .has_best = true,
                              .finished = true};
    std::vector<ranks::Report> all(static_cast<std::size_t>(size_), other);
    all[static_cast<std::size_t>(rank_)] = own_;
    return all;
  }
  void ask_to_stop() override { stop_ = true; }
  [[nodiscard]] bool asked_to_stop() const override { return stop_; }
  void close() override {}

 private:
  int rank_, size_;
  std::vector<std::uint64_t> turns_;
  ranks::Report own_;
  std::atomic<bool> stop_{false};
};

SweepOptions shared_options(std::atomic<std::uint64_t>& calls) {
  SweepOptions options;
  options.threads = 2;
  options.evaluator = fake_factory(calls);
  return options;
}

TEST(SharedSweep, RanksTogetherWriteTheFileOfOneProcess) {
  const Study study = example_study();
  const SweepJob job(study);
  const ScratchFolder folder;
  std::atomic<std::uint64_t> calls = 0;
  {
    SegmentStore store =
        SegmentStore::create(results::parts_folder(folder / "one.h5"), job.manifest(example_run()));
    ASSERT_TRUE(run_sweep(job, store, shared_options(calls)).complete);
    results::assemble(std::move(store), folder / "one.h5", example_run());
  }
  calls = 0;
  const results::Manifest manifest = job.manifest(example_run());
  SegmentStore led = SegmentStore::create(results::parts_folder(folder / "three.h5"), manifest);
  const SharedStart start{led.missing(), 0, {}, {}};
  for (const int rank : {2, 0, 1}) {
    OneOfSeveral ranks(rank, 3);
    const SegmentStore joined = SegmentStore::join(led.folder(), manifest);
    const SweepOutcome outcome =
        run_shared_sweep(job, rank == 0 ? led : joined, shared_options(calls), start, ranks);
    EXPECT_FALSE(outcome.complete) << "one of three has a third";
    EXPECT_GT(outcome.progress.rows_evaluated, 0U);
  }
  EXPECT_EQ(calls, job.space().size());  // every point once
  results::assemble(std::move(led), folder / "three.h5", example_run());
  std::string difference;
  EXPECT_TRUE(test::datasets_equal(folder / "one.h5", folder / "three.h5", &difference)) << difference;
}

TEST(SharedSweep, RankZeroObservesThemAll) {
  const Study study = example_study();
  const SweepJob job(study);
  const ScratchFolder folder;
  std::atomic<std::uint64_t> calls = 0;
  const SegmentStore store =
      SegmentStore::create(results::parts_folder(folder / "a.h5"), job.manifest(example_run()));
  OneOfSeveral ranks(0, 3);
  SweepOptions options = shared_options(calls);
  SweepProgress seen;
  options.observer = [&](const SweepProgress& progress) { seen = progress; };
  const SweepOutcome own = run_shared_sweep(job, store, options, {store.missing(), 640, {}, {}}, ranks);
  // Two others of 1,000 rows each, the best of which, 0.5 s, beats every point: expected_step_time() is above 1.
  EXPECT_EQ(seen.rows_total, job.space().size());
  EXPECT_EQ(seen.rows_before, 640U);
  EXPECT_EQ(seen.rows_evaluated, own.progress.rows_evaluated + 2000);
  EXPECT_EQ(seen.tally.count(Status::ok), own.progress.tally.count(Status::ok) + 600);
  ASSERT_TRUE(seen.tally.best);
  EXPECT_EQ(seen.tally.best->point_id, 77U);
}

TEST(SharedSweep, OneStopsAll) {
  const Study study = example_study();
  const SweepJob job(study);
  const ScratchFolder folder;
  std::atomic<std::uint64_t> calls = 0;
  const SegmentStore store =
      SegmentStore::create(results::parts_folder(folder / "a.h5"), job.manifest(example_run()));
  const SharedStart start{store.missing(), 0, {}, {}};
  const std::atomic<bool> stop = true;
  SweepOptions options = shared_options(calls);
  options.stop = &stop;
  OneOfSeveral interrupted(1, 2);
  const auto outcome = run_shared_sweep(job, store, options, start, interrupted);
  EXPECT_LT(outcome.progress.rows_evaluated, job.space().size() / 2);
  EXPECT_TRUE(interrupted.asked_to_stop());

  OneOfSeveral asked(1, 2);
  asked.ask_to_stop();
  const auto other = run_shared_sweep(job, store, shared_options(calls), start, asked);
  EXPECT_LT(other.progress.rows_evaluated, job.space().size() / 2);
}

TEST(SharedSweep, WhoFailsStopsTheOthersAndCountsAsFinished) {
  const Study study = example_study();
  const SweepJob job(study);
  const ScratchFolder folder;
  const SegmentStore store =
      SegmentStore::create(results::parts_folder(folder / "a.h5"), job.manifest(example_run()));
  SweepOptions options;
  options.evaluator = [](const Setting&, PlacementChoice) -> std::unique_ptr<Evaluator> {
    throw std::runtime_error("no evaluator");
  };
  OneOfSeveral ranks(0, 2);
  EXPECT_THROW(run_shared_sweep(job, store, options, {store.missing(), 0, {}, {}}, ranks),
               std::runtime_error);
  EXPECT_TRUE(ranks.asked_to_stop());
  EXPECT_TRUE(ranks.reports().front().finished);
}

}  // namespace
}  // namespace shardscape::sweep
