// Do columns that are read chunk by chunk hold what HDF5's own filters and conversions read?
#include "results_schema/hdf5/chunk_reader.h"

#include <hdf5.h>

#include <cstring>
#include <map>
#include <span>

#include "engine/base/counter_rng.h"
#include "results_schema/reading/row_scan.h"
#include "tests/unit/results_schema/results_fixture.h"

namespace shardscape::results {
namespace {

namespace fs = std::filesystem;

/// Compares rows with what HDF5 reads; NaNs by their bits.
template <class T>
void expect_same(const H5File& file, const std::string& column, RowRange rows, ChunkReader& chunks) {
  const Dataset dataset = file.dataset("/points/" + column);
  const std::vector<T> plain = dataset.read<T>(rows.begin, rows.end);
  std::vector<T> fast(rows.end - rows.begin, T{3});
  ASSERT_TRUE(chunks.direct()) << column;
  chunks.read(rows.begin, std::span(fast));
  EXPECT_EQ(std::memcmp(fast.data(), plain.data(), plain.size() * sizeof(T)), 0) << column;
}

TEST_F(ResultsTest, ChunksReadAsHdf5ReadsThem) {
  const fs::path path = finished("out.h5", fake_manifest(1001, 64), {{0, 16}});
  const H5File file = H5File::open(path);
  const ResultReader reader(path);
  std::map<std::string, ChunkReader> chunks;  // nothing of one read may show in the next
  const auto of = [&](const std::string& column) -> ChunkReader& {
    return chunks.try_emplace(column, file.dataset("/points/" + column)).first->second;
  };
  CounterRng rng(7, 1);
  for (int round = 0; round < 5; ++round) {
    for (const ColumnInfo& column : reader.columns()) {
      const std::uint64_t begin = rng.below(1001);
      expect_same<double>(file, column.name, {begin, begin + 1 + rng.below(1001 - begin)}, of(column.name));
    }
    expect_same<std::uint64_t>(file, "point_id", {0, 1001}, of("point_id"));
    expect_same<std::uint8_t>(file, "status", {63, 65}, of("status"));
  }
}

/// Every chunk of a column once in each file, and what comparing them leaves behind.
TEST_F(ResultsTest, EqualBytesAreStoredAlikeAndOthersAreNot) {
  const H5File one = H5File::open(finished("one.h5", fake_manifest(1001, 64), {{0, 16}}));
  const H5File same = H5File::open(finished("same.h5", fake_manifest(1001, 64), {{0, 16}}));
  ChunkReader a(one.dataset("/points/step_time_s")), b(same.dataset("/points/step_time_s"));
  ChunkReader other(one.dataset("/points/expected_error")), wider(one.dataset("/points/point_id"));
  EXPECT_TRUE(a.stored_alike(b, 0, 1001));
  EXPECT_TRUE(a.stored_alike(b, 70, 71));
  EXPECT_FALSE(a.stored_alike(other, 0, 1001));
  EXPECT_FALSE(a.stored_alike(wider, 0, 1001));
  expect_same<double>(one, "step_time_s", {60, 200}, a);
  EXPECT_TRUE(a.stored_alike(b, 0, 64));
  expect_same<double>(one, "step_time_s", {60, 200}, a);
  expect_same<double>(one, "step_time_s", {0, 1001}, b);
}

/// A file of so many equal values that are not stored in blocks: in one piece where they are few, otherwise in a chunk
/// whose length is no power of two.
fs::path small_table(const fs::path& path, std::size_t count) {
  H5File file = H5File::create(path);
  file.create_group("/points");
  const std::vector<double> values(count, 2.5);
  (void)file.write_values<double>("/points/mfu", values, "1", "some");
  file.close();
  return path;
}

TEST_F(ResultsTest, OtherLayoutsAreLeftToHdf5) {
  for (const std::size_t count : {1001U, 3001U}) {
    const H5File other = H5File::open(small_table(file("other.h5"), count));
    ChunkReader chunks(other.dataset("/points/mfu"));
    EXPECT_FALSE(chunks.direct());
    std::vector<double> values(1000, 1.0);
    chunks.read(1, std::span(values));
    EXPECT_EQ(values, std::vector<double>(1000, 2.5));
    EXPECT_FALSE(chunks.stored_alike(chunks, 0, 1001));
  }
}

TEST_F(ResultsTest, AScanSeesEveryRowOnce) {
  const ResultReader reader(finished("out.h5", fake_manifest(1001, 64), {{0, 16}}));
  const std::vector<std::string> names = {"status", "step_time_s"};
  std::vector<std::vector<double>> seen(names.size());
  std::uint64_t row = 0;
  for (RowScan scan(reader, names, 128); scan.next(); row += scan.size()) {
    EXPECT_EQ(scan.first_row(), row);
    EXPECT_LE(scan.size(), 128U);
    for (std::size_t i = 0; i < names.size(); ++i) {
      ASSERT_EQ(scan.values(i).size(), scan.size());
      seen[i].insert(seen[i].end(), scan.values(i).begin(), scan.values(i).end());
    }
  }
  EXPECT_EQ(row, 1001U);
  for (std::size_t i = 0; i < names.size(); ++i) {
    const std::vector<double> whole = reader.read(names[i]);
    ASSERT_EQ(seen[i].size(), whole.size());
    EXPECT_EQ(std::memcmp(seen[i].data(), whole.data(), whole.size() * sizeof(double)), 0) << names[i];
  }
}

TEST_F(ResultsTest, ValuesOfSomeRowsAreThoseOfTheColumn) {
  const ResultReader reader(finished("out.h5", fake_manifest(5001, 64), {{0, 79}}));
  const std::vector<double> whole = reader.read("memory_peak_bytes");
  CounterRng rng(9, 1);
  for (int round = 0; round < 20; ++round) {
    std::vector<std::uint64_t> rows;
    for (std::uint64_t row = rng.below(3000); row < whole.size(); row += 1 + rng.below(1 + rng.below(2500)))
      rows.push_back(row);
    std::vector<double> expected;
    for (const std::uint64_t row : rows) expected.push_back(whole[row]);
    const std::vector<double> found = values_of(reader, "memory_peak_bytes", rows);
    ASSERT_EQ(found.size(), expected.size());
    EXPECT_EQ(std::memcmp(found.data(), expected.data(), found.size() * sizeof(double)), 0);
  }
  EXPECT_TRUE(values_of(reader, "mfu", {}).empty());
}

}  // namespace
}  // namespace shardscape::results
