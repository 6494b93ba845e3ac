// Do parts that choose rows, each by what it has seen, leave those of the whole? Is a file that does not hold what it
// says found out?
#include "results_schema/rows/stored_rows.h"

#include <hdf5.h>

#include <algorithm>
#include <limits>

#include "results_schema/hdf5/chunk_filler.h"
#include "results_schema/reading/verify.h"
#include "tests/support/result_changes.h"
#include "tests/unit/results_schema/results_fixture.h"

namespace shardscape::results {
namespace {

TEST(StoredRows, TextsComeBack) {
  const StoredRows all[] = {{},
                            {RowChoice::feasible, 0, {}},
                            {RowChoice::top, 1000, {}},
                            {RowChoice::pareto, 0, {"step_time_s", "mfu"}}};
  const char* const texts[] = {"all", "feasible", "top 1000", "pareto step_time_s mfu"};
  for (std::size_t i = 0; i < std::size(texts); ++i) {
    EXPECT_EQ(to_string(all[i]), texts[i]);
    EXPECT_EQ(parse_stored_rows(texts[i]), all[i]);
  }
  for (const char* text : {"", "top", "top 0", "top -1", "top 1 2", "top 1x", "pareto", "feasible 3", "best"})
    EXPECT_FALSE(parse_stored_rows(text)) << text;
}

/// Points of which few differ in the first value.
std::vector<std::vector<double>> random_points(std::uint64_t seed, std::size_t count) {
  CounterRng rng(seed, 0);
  std::vector<std::vector<double>> points;
  for (std::size_t i = 0; i < count; ++i)
    points.push_back({static_cast<double>(rng.below(9)), static_cast<double>(rng.below(40))});
  return points;
}

// In any order, in parts that each drop what they can, with a bound from elsewhere.
TEST(RowSelector, PartsChooseAsTheWholeDoes) {
  const std::vector<Better> directions = {Better::larger, Better::smaller};
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    SCOPED_TRACE(seed);
    const auto points = random_points(seed, 300);
    const StoredRows choices[] = {{RowChoice::top, 1 + seed, {}}, {RowChoice::pareto, 0, {"a", "b"}}};
    for (const StoredRows& rows : choices) {
      std::vector<std::uint64_t> order(points.size()), best;
      for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
      const auto beats = [&](std::uint64_t a, std::uint64_t b) {
        const bool no_worse = points[a][0] >= points[b][0] && points[a][1] <= points[b][1];
        return no_worse && (points[a] != points[b] || a < b);
      };
      for (const std::uint64_t id : order) {
        const auto better = [&](std::uint64_t other) {
          return points[other][0] > points[id][0] || (points[other][0] == points[id][0] && other < id);
        };
        const bool stays =
            rows.choice == RowChoice::top
                ? static_cast<std::uint64_t>(std::ranges::count_if(order, better)) < rows.count
                : std::ranges::none_of(order, [&](std::uint64_t other) { return beats(other, id); });
        if (stays) best.push_back(id);
      }
      CounterRng rng(seed, 1);
      for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[rng.below(i)]);
      RowSelector running(rows, directions), final_choice(rows, directions);
      for (std::size_t begin = 0; begin < order.size();) {
        const std::size_t end = std::min(order.size(), begin + 1 + rng.below(40));
        RowSelector part(rows, directions, running.bound());
        for (std::size_t i = begin; i < end; ++i) part.offer(order[i], points[order[i]]);
        for (const std::uint64_t id : part.chosen())
          if (running.offer(id, points[id])) final_choice.offer(id, points[id]);
        begin = end;
      }
      EXPECT_EQ(final_choice.chosen(), best);
    }
  }
}

TEST(RowSelector, WhatHasNoValueIsNotRanked) {
  RowSelector selector({RowChoice::top, 2, {}}, {Better::smaller, Better::smaller});
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_FALSE(selector.offer(1, std::vector<double>{1, nan}));
  EXPECT_TRUE(selector.offer(2, std::vector<double>{5, 1}));
  EXPECT_TRUE(selector.offer(3, std::vector<double>{4, 1}));
  EXPECT_EQ(selector.bound(), 5);
  EXPECT_FALSE(selector.offer(4, std::vector<double>{5, 0}));
  EXPECT_EQ(selector.chosen(), (std::vector<std::uint64_t>{2, 3}));
}

TEST(ChunkFiller, ChunksDoNotDependOnPieces) {
  const ColumnType types[] = {ColumnType::u8, ColumnType::f8};
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    CounterRng rng(seed, 0);
    std::vector<std::byte> values(8 * rng.below(200));
    for (std::byte& value : values) value = static_cast<std::byte>(rng.below(3));
    using Chunks = std::vector<std::pair<std::uint64_t, std::vector<std::byte>>>;
    const auto chunks_of = [&](std::size_t piece) {
      ChunkFiller filler(types, 32);
      Chunks chunks;
      const auto take = [&](std::uint64_t row, std::span<const std::byte> packed) {
        chunks.emplace_back(row, std::vector(packed.begin(), packed.end()));
      };
      for (std::size_t begin = 0; begin < values.size(); begin += piece)
        filler.append(1, std::span(values).subspan(begin, std::min(piece, values.size() - begin)), take);
      filler.finish(1, take);
      filler.finish(0, take);  // nothing came
      return chunks;
    };
    const Chunks whole = chunks_of(1'000'000);
    EXPECT_EQ(whole.size(), (values.size() / 8 + 31) / 32);
    for (const std::size_t piece : {8U, 24U, 256U, 1000U}) EXPECT_EQ(chunks_of(piece), whole) << piece;
  }
}

/// What verify says beside that breakdowns do not add up: those are made up.
std::vector<std::string> problems_of(const std::filesystem::path& path) {
  std::vector<std::string> problems = verify(path).problems;
  std::erase_if(problems,
                [](const std::string& line) { return contains(line, "the breakdown does not add up"); });
  return problems;
}

/// A file of made-up points that stores what `said` names, but says of itself that it stores `stored`.
class StoredRowsFile : public ResultsTest {
 protected:
  std::vector<std::string> problems(const StoredRows& stored, const StoredRows& said,
                                    BlockRange left_out = {}) {
    Manifest manifest = fake_manifest(1001, 64);
    manifest.study.stored_rows = stored;
    const auto path = file("out.h5");
    std::filesystem::remove(path);
    SegmentStore store = SegmentStore::create(parts_folder(path), manifest);
    SegmentWriter writer(store);
    BlockEncoder encoder(table_, 64, manifest.study.objectives, said, nullptr);
    for (std::uint64_t block = 0; block < 16; ++block) {
      EncodedBlock encoded = encoder.encode(block, FakeBlock(manifest.layout, block).records);
      if (block >= left_out.first && block < left_out.end()) encoded.candidates = {};
      writer.append(std::move(encoded), {});
    }
    writer.seal();
    assemble(std::move(store), path, {});
    return problems_of(path);
  }
  static StoredRows feasible() { return {RowChoice::feasible, 0, {}}; }
  static StoredRows best(std::uint64_t count) { return {RowChoice::top, count, {}}; }
  static StoredRows front(std::vector<std::string> columns) {
    return {RowChoice::pareto, 0, std::move(columns)};
  }
};

using Lines = std::vector<std::string>;

TEST_F(StoredRowsFile, VerifyFindsRowsThatAreMissing) {
  const StoredRows front_of_objectives = front({"step_time_s", "memory_peak_bytes"});
  for (const StoredRows& rows :
       {feasible(), best(5), best(300), best(100'000), front_of_objectives, front({"mfu"})})
    EXPECT_EQ(problems(rows, rows), Lines()) << to_string(rows);
  EXPECT_TRUE(contains(problems(feasible(), feasible(), {3, 1}).at(0), "rows, which are not 'feasible' of"));
  EXPECT_FALSE(problems(feasible(), best(20)).empty());
  EXPECT_FALSE(problems(best(600), best(600), {0, 12}).empty());
  const Lines found = problems(best(5), best(5), {0, 12});
  EXPECT_EQ(std::ranges::count(found, "/summary/top is not that of the rows"), 1);
  EXPECT_EQ(problems(front_of_objectives, front_of_objectives, {0, 16}),
            Lines{"/summary/pareto is not that of the rows"});
}

// What encoders leave out of blocks must be what the whole leaves out, too.
TEST_F(ResultsTest, SegmentsOfCandidatesAreResumed) {
  Manifest manifest = fake_manifest(1001, 64);
  manifest.study.stored_rows = {RowChoice::top, 30, {}};
  const auto parts = parts_folder(file("out.h5"));
  const auto fill = [&](const SegmentStore& store, BlockRange range) {
    SegmentWriter writer(store);
    BlockEncoder encoder(table_, 64, manifest.study.objectives, manifest.study.stored_rows,
                         writer.selector());
    for (std::uint64_t block = range.first; block < range.end(); ++block)
      writer.append(encoder.encode(block, FakeBlock(manifest.layout, block).records), {});
    writer.seal();
  };
  { fill(SegmentStore::create(parts, manifest), {5, 7}); }
  Manifest other = manifest;
  other.study.stored_rows.count = 31;
  other.study.resolved_yaml += "store: {rows: top 31}\n";
  EXPECT_TRUE(contains(store_error([&] { (void)SegmentStore::resume(parts, other); }), "a different study"));
  // The texts of the study are the same where a search has evaluated every point of it: it stores all.
  Manifest searched = manifest;
  searched.study.stored_rows = {};
  const std::string refused = store_error([&] { (void)SegmentStore::resume(parts, searched); });
  EXPECT_TRUE(contains(refused, "a sweep that stores other rows (top 30, not all)")) << refused;
  SegmentStore store = SegmentStore::resume(parts, manifest);
  EXPECT_EQ(store.sealed_rows(), 7U * 64);
  EXPECT_EQ(store.missing(), (std::vector<BlockRange>{{0, 5}, {12, 4}}));
  const ResultReader reader(parts);
  EXPECT_EQ(reader.point_count(), 7U * 64);
  EXPECT_LT(reader.row_count(), reader.point_count());
  EXPECT_EQ(problems_of(parts), Lines());
  for (const BlockRange range : store.missing()) fill(store, range);
  assemble(std::move(store), file("out.h5"), {});
  EXPECT_EQ(ResultReader(file("out.h5")).row_count(), 30U);
  EXPECT_EQ(problems_of(file("out.h5")), Lines());
}

/// A shard that stores some of the rows of made-up points.
std::filesystem::path shard_of_some(const std::filesystem::path& path, const StoredRows& stored,
                                    BlockRange blocks, std::uint64_t number) {
  Manifest manifest = fake_manifest(1001, 64);
  manifest.study.stored_rows = stored;
  manifest.layout.blocks = blocks;
  manifest.shards = {number, number, 2};
  const ColumnTable table(Phase::training, fake_hardware());
  SegmentStore store = SegmentStore::create(parts_folder(path), manifest);
  SegmentWriter writer(store);
  BlockEncoder encoder(table, 64, manifest.study.objectives, stored, writer.selector());
  for (std::uint64_t block = blocks.first; block < blocks.end(); ++block)
    writer.append(encoder.encode(block, FakeBlock(manifest.layout, block).records), {});
  writer.seal();
  assemble(std::move(store), path, {});
  return path;
}

/// Changes a dataset of a file and renews the checksums.
template <class Change>
void change(const std::filesystem::path& path, const char* name, const Change& work) {
  test::change_and_renew(path, [&](hid_t file) {
    const hid_t dataset = H5Dopen2(file, name, H5P_DEFAULT);
    ASSERT_GE(dataset, 0);
    work(dataset);
    H5Dclose(dataset);
  });
}

// Rows are picked by what their ids say.
TEST_F(ResultsTest, ShardsOfSomeRowsMustHoldTogether) {
  const StoredRows choices[] = {{RowChoice::feasible, 0, {}},
                                {RowChoice::top, 200, {}},
                                {RowChoice::pareto, 0, {"mfu", "step_time_s"}}};
  for (const StoredRows& stored : choices) {
    SCOPED_TRACE(to_string(stored));
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    const auto a = shard_of_some(file("a.h5"), stored, {0, 8}, 1);
    const auto b = shard_of_some(file("b.h5"), stored, {8, 8}, 2), whole = file("whole.h5");
    std::filesystem::copy(b, whole);
    const auto merged = [&] {
      const auto parts = open_parts(std::vector{a, b});
      EXPECT_EQ(merge_problems(parts), std::vector<std::string>());
      return store_error([&] { merge(parts, file("all.h5"), {}); });
    };
    test::change_file(b, [](hid_t file) {
      const hid_t column = H5Dopen2(file, "/points/mfu", H5P_DEFAULT);
      const hsize_t rows = 1;
      H5Dset_extent(column, &rows);
      H5Dclose(column);
    });
    std::string problem = merged();
    EXPECT_TRUE(contains(problem, "b.h5: /points/mfu: has 1 rows, not ")) << problem;
    EXPECT_FALSE(std::filesystem::exists(file("all.h5")));

    std::filesystem::copy(whole, b, std::filesystem::copy_options::overwrite_existing);
    change(b, "/points/point_id", [](hid_t column) {
      const hid_t space = H5Dget_space(column);
      std::vector<std::uint64_t> ids(static_cast<std::size_t>(H5Sget_simple_extent_npoints(space)));
      H5Dread(column, H5T_NATIVE_UINT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, ids.data());
      std::ranges::reverse(ids);
      H5Dwrite(column, H5T_NATIVE_UINT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, ids.data());
      H5Sclose(space);
    });
    problem = merged();
    EXPECT_TRUE(contains(problem, "b.h5: /points/point_id: does not ascend")) << problem;
    EXPECT_FALSE(std::filesystem::exists(file("all.h5")));
  }
}

}  // namespace
}  // namespace shardscape::results
