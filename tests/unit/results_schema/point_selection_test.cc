// Which points of a study are in a file, and how it says so.
#include "results_schema/rows/point_selection.h"

#include <cmath>

#include "engine/base/strata.h"
#include "tests/unit/results_schema/results_fixture.h"

namespace shardscape::results {
namespace {

TEST(PointSelection, RowsOfAPrefixAreTheirIdsAndOfASampleOneOfEachPart) {
  const PointSelection all{SelectionKind::all, 100}, first{SelectionKind::first, 100};
  const PointSelection sample{SelectionKind::sample, 100, 9};
  for (std::uint64_t row = 0; row < 20; ++row) {
    EXPECT_EQ(all.point(row, 100), row);
    EXPECT_EQ(first.point(row, 20), row);
    EXPECT_EQ(sample.point(row, 20) / 5, row);  // parts of five
  }
}

TEST(ShardRange, TextAndBack) {
  EXPECT_EQ(to_string(ShardRange{}), "1/1");
  EXPECT_EQ(to_string(ShardRange{3, 3, 16}), "3/16");
  EXPECT_EQ(to_string(ShardRange{1, 2, 3}), "1-2/3");
  for (const ShardRange& range :
       {ShardRange{}, ShardRange{3, 3, 16}, ShardRange{1, 2, 3}, ShardRange{1, 1, 0}})
    EXPECT_EQ(parse_shards(to_string(range)), range);
  for (const char* text : {"3", "/3", "0/3", "4/3", "2-1/3", "1-/3", "1/3x", "a/b", "1/", "-1/3"})
    EXPECT_FALSE(parse_shards(text).has_value()) << text;
}

class SelectionFileTest : public ResultsTest {
 protected:
  static Manifest chosen(SelectionKind kind, std::uint64_t points, std::uint64_t of, std::uint64_t seed = 0) {
    Manifest manifest = fake_manifest(points, 64);
    manifest.layout.selection = {kind, of, seed};
    return manifest;
  }
};

TEST_F(SelectionFileTest, FilesSayWhichPointsTheyHold) {
  const ResultReader all(finished("all.h5", fake_manifest(200, 64), {{0, 4}}));
  EXPECT_EQ(all.layout().selection, (PointSelection{SelectionKind::all, 200}));
  EXPECT_TRUE(all.stands_for_study());
  const ResultReader first(finished("first.h5", chosen(SelectionKind::first, 200, 5000), {{0, 4}}));
  EXPECT_EQ(first.layout().selection, (PointSelection{SelectionKind::first, 5000}));
  EXPECT_FALSE(first.stands_for_study());
  const ResultReader sample(finished("sample.h5", chosen(SelectionKind::sample, 200, 5000, 3), {{0, 4}}));
  EXPECT_EQ(sample.layout().selection, (PointSelection{SelectionKind::sample, 5000, 3}));
  EXPECT_TRUE(sample.stands_for_study());
  const auto ids = sample.point_ids();
  for (std::uint64_t row = 0; row < 200; ++row) EXPECT_EQ(ids[row], stratified_choice(5000, 200, row, 3));
  Manifest part = fake_manifest(200, 64);
  part.layout.blocks = {1, 2};
  part.shards = {2, 2, 3};
  const ResultReader shard(finished("shard.h5", part, {{1, 2}}));
  EXPECT_EQ(shard.shards(), (ShardRange{2, 2, 3}));
  EXPECT_FALSE(shard.stands_for_study());
}

TEST_F(SelectionFileTest, ASweepStandsForItsStudyOnceAllRowsAreThere) {
  const auto store = SegmentStore::create(parts_folder(file("out.h5")), fake_manifest(200, 64));
  seal(store, {{0, 2}});
  EXPECT_FALSE(ResultReader(file("out.h5")).stands_for_study());
  seal(store, {{2, 2}});
  EXPECT_TRUE(ResultReader(file("out.h5")).stands_for_study());
}

TEST_F(SelectionFileTest, ResumeRefusesAnotherChoice) {
  const auto parts = parts_folder(file("out.h5"));
  (void)SegmentStore::create(parts, chosen(SelectionKind::sample, 200, 5000, 3));
  for (const Manifest& other :
       {chosen(SelectionKind::first, 200, 5000), chosen(SelectionKind::sample, 200, 5000, 4),
        chosen(SelectionKind::sample, 200, 6000, 3)})
    EXPECT_TRUE(contains(store_error([&] { (void)SegmentStore::resume(parts, other); }), "choice of points"));
  (void)SegmentStore::resume(parts, chosen(SelectionKind::sample, 200, 5000, 3));
}

TEST_F(SelectionFileTest, MergeKeepsTheChoiceAndMixesNone) {
  const auto shard = [&](const char* name, Manifest manifest, std::uint64_t index) {
    manifest.layout.blocks = {2 * (index - 1), index == 2 ? 2U : 2U};
    manifest.shards = {index, index, 2};
    return finished(name, manifest, {manifest.layout.blocks});
  };
  const Manifest sample = chosen(SelectionKind::sample, 200, 5000, 3);
  const auto a = shard("a.h5", sample, 1), b = shard("b.h5", sample, 2);
  const auto other = shard("other.h5", chosen(SelectionKind::sample, 200, 5000, 4), 2);
  const auto first = shard("first.h5", chosen(SelectionKind::first, 200, 5000), 2);
  const auto problems = [&](std::vector<std::filesystem::path> files) {
    const auto found = merge_problems(open_parts(files));
    return found.empty() ? "" : found.front();
  };
  EXPECT_TRUE(contains(problems({a, other}), "a sample of 200 points (seed 4)"));
  EXPECT_TRUE(contains(problems({a, first}), "the first 200 points"));
  EXPECT_EQ(problems({b, a}), "");
  merge(open_parts(std::vector{b, a}), file("all.h5"), {});
  const ResultReader merged(file("all.h5"));
  EXPECT_EQ(merged.layout(), sample.layout);
  EXPECT_EQ(merged.shards(), ShardRange());
  EXPECT_TRUE(merged.stands_for_study());
}

TEST_F(SelectionFileTest, IntegersThatWereNotComputedReadAsNaN) {
  const ResultReader reader(finished("out.h5", fake_manifest(500, 64), {{0, 8}}));
  const auto status = reader.read("status"), stage = reader.read("peak_stage");
  std::size_t missing = 0;
  for (std::size_t row = 0; row < status.size(); ++row) {
    const auto verdict = static_cast<Status>(status[row]);
    const bool counted = is_timed(verdict) || verdict == Status::memory || verdict == Status::unreachable;
    EXPECT_EQ(std::isnan(stage[row]), !counted) << row;
    missing += counted ? 0 : 1;
  }
  EXPECT_GT(missing, 0U);
}

}  // namespace
}  // namespace shardscape::results
