// Do columns that are read chunk by chunk hold what HDF5's own filters and conversions read?
#include "results_schema/chunk_reader.h"

#include <hdf5.h>

#include <cstring>

#include "engine/base/counter_rng.h"
#include "results_schema/row_scan.h"
#include "tests/unit/results_schema/results_fixture.h"

namespace shardscape::results {
namespace {

namespace fs = std::filesystem;

/// What HDF5 makes of the rows, NaN by its bits.
template <class T>
void expect_same(const H5File& file, const std::string& column, RowRange rows, ChunkReader& chunks) {
  const Dataset dataset = file.dataset("/points/" + column);
  const std::vector<T> plain = dataset.read<T>(rows.begin, rows.end);
  std::vector<T> fast = {T{3}};  // stays in front
  ASSERT_TRUE(chunks.append(dataset, rows.begin, rows.end, fast)) << column;
  ASSERT_EQ(fast.size(), plain.size() + 1) << column;
  EXPECT_EQ(fast.front(), T{3});
  EXPECT_EQ(std::memcmp(fast.data() + 1, plain.data(), plain.size() * sizeof(T)), 0) << column;
}

TEST_F(ResultsTest, ChunksReadAsHdf5ReadsThem) {
  const fs::path path = finished("out.h5", fake_manifest(1001, 64), {{0, 16}});
  const H5File file = H5File::open(path);
  const ResultReader reader(path);
  ChunkReader chunks;  // one for all, as a reader has it: nothing of one column may show in the next
  CounterRng rng(7, 1);
  for (int round = 0; round < 5; ++round) {
    for (const ColumnInfo& column : reader.columns()) {
      const std::uint64_t begin = rng.below(1001);
      expect_same<double>(file, column.name, {begin, begin + 1 + rng.below(1001 - begin)}, chunks);
    }
    expect_same<std::uint64_t>(file, "point_id", {0, 1001}, chunks);
    expect_same<std::uint8_t>(file, "status", {63, 65}, chunks);
  }
}

/// A copy of a column's values under another layout: chunks of 64 with deflate only, or none.
fs::path rewritten(const fs::path& path, bool chunked) {
  const std::vector<double> values(1001, 2.5);
  const hid_t file = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  const hid_t group = H5Gcreate2(file, "points", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  const hsize_t rows = values.size(), chunk = 64;
  const hid_t space = H5Screate_simple(1, &rows, nullptr), list = H5Pcreate(H5P_DATASET_CREATE);
  if (chunked) H5Pset_chunk(list, 1, &chunk), H5Pset_deflate(list, 1);
  const hid_t dataset = H5Dcreate2(group, "mfu", H5T_NATIVE_DOUBLE, space, H5P_DEFAULT, list, H5P_DEFAULT);
  H5Dwrite(dataset, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data());
  H5Dclose(dataset), H5Pclose(list), H5Sclose(space), H5Gclose(group), H5Fclose(file);
  return path;
}

TEST_F(ResultsTest, OtherFiltersAreLeftToHdf5) {
  for (const bool chunked : {true, false}) {
    const H5File other = H5File::open(rewritten(file("other.h5"), chunked));
    ChunkReader chunks;
    std::vector<double> values = {1};
    EXPECT_FALSE(chunks.append(other.dataset("/points/mfu"), 0, 1001, values));
    EXPECT_EQ(values, std::vector<double>{1});
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

}  // namespace
}  // namespace shardscape::results
