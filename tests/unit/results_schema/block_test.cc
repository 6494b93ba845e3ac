// Do HDF5's own filters read what the workers compress?
#include "results_schema/rows/block.h"

#include <hdf5.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <random>

#include "tests/unit/results_schema/results_fixture.h"

namespace shardscape::results {
namespace {

hid_t hdf5_type(ColumnType type) {
  switch (type) {
    case ColumnType::u8:
    case ColumnType::boolean:
      return H5T_NATIVE_UINT8;
    case ColumnType::i32:
      return H5T_NATIVE_INT32;
    case ColumnType::u64:
      return H5T_NATIVE_UINT64;
    case ColumnType::f4:
      return H5T_NATIVE_FLOAT;
    case ColumnType::f8:
      return H5T_NATIVE_DOUBLE;
  }
  return H5I_INVALID_HID;
}

TEST(BlockLayout, RowsOfBlocks) {
  const BlockLayout layout = BlockLayout::whole(10, 4);
  EXPECT_EQ(layout.blocks, (BlockRange{0, 3}));
  EXPECT_EQ(layout.rows_of(0), 4U);
  EXPECT_EQ(layout.rows_of(2), 2U);
  EXPECT_EQ(layout.rows_in({1, 2}), 6U);
  EXPECT_EQ(layout.rows(), 10U);
  EXPECT_EQ(BlockLayout::whole(8, 4).blocks.count, 2U);
  EXPECT_EQ(BlockLayout::whole(0, 4).blocks.count, 0U);
  const BlockLayout shard{10, 4, {1, 1}};
  EXPECT_EQ(shard.rows(), 4U);
}

TEST_F(ResultsTest, ChunksPassThroughHdf5sFilters) {
  constexpr std::uint32_t kRows = 64;
  const BlockLayout layout = BlockLayout::whole(100, kRows);  // the second block is short
  BlockEncoder encoder(table_, kRows, {});
  const hid_t hdf5 = H5Fcreate(file("chunks.h5").c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  ASSERT_GE(hdf5, 0);
  for (const std::uint64_t block : {std::uint64_t{0}, std::uint64_t{1}}) {
    const FakeBlock points(layout, block);
    const EncodedBlock encoded = encoder.encode(block, points.records);
    const auto columns = table_.columns();
    ASSERT_EQ(encoded.chunks.size(), columns.size());
    for (std::size_t c = 0; c < columns.size(); ++c) {
      const std::string name = columns[c].name + std::to_string(block);
      const hsize_t size = points.records.size(), chunk = kRows, unlimited = H5S_UNLIMITED, offset = 0;
      const hid_t space = H5Screate_simple(1, &size, &unlimited);
      const hid_t creation = H5Pcreate(H5P_DATASET_CREATE);
      H5Pset_chunk(creation, 1, &chunk);
      if (size_of(columns[c].type) > 1) H5Pset_shuffle(creation);
      H5Pset_deflate(creation, 1);
      const hid_t type = hdf5_type(columns[c].type);
      const hid_t dataset = H5Dcreate2(hdf5, name.c_str(), type, space, H5P_DEFAULT, creation, H5P_DEFAULT);
      ASSERT_GE(H5Dwrite_chunk(dataset, H5P_DEFAULT, 0, &offset, encoded.chunks[c].size(),
                               encoded.chunks[c].data()),
                0);
      std::vector<std::byte> expected(size * size_of(columns[c].type)), stored(expected.size());
      table_.put(c, points.records, expected.data());
      ASSERT_GE(H5Dread(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, stored.data()), 0) << name;
      EXPECT_EQ(stored, expected) << name;
      H5Dclose(dataset);
      H5Pclose(creation);
      H5Sclose(space);
    }
  }
  H5Fclose(hdf5);
}

/// Rows of values that are the same, count up, come again and again, or are drawn at random.
std::vector<std::byte> values_of_kind(int kind, std::size_t rows, std::size_t width,
                                      std::mt19937_64& random) {
  std::vector<std::byte> values(rows * width);
  const std::uint64_t same = random();
  for (std::size_t i = 0; i < rows; ++i) {
    const std::uint64_t value = kind == 0 ? same : kind == 1 ? i : kind == 2 ? same >> (i % 12) : random();
    std::memcpy(values.data() + i * width, &value, width);
  }
  return values;
}

/// The oracle is HDF5, which unpacks by zlib.
TEST_F(ResultsTest, WhateverAChunkHoldsPassesThroughHdf5sFilters) {
  const std::map<std::size_t, ColumnType> types = {
      {1, ColumnType::u8}, {4, ColumnType::i32}, {8, ColumnType::u64}};
  std::mt19937_64 random(1);
  ChunkPacker used;  // used again for each chunk
  const hid_t hdf5 = H5Fcreate(file("any.h5").c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  ASSERT_GE(hdf5, 0);
  for (const hsize_t rows : {1U, 8U, 64U, 4096U, kMaxRowsPerBlock}) {
    for (const auto& [width, column] : types) {
      for (int kind = 0; kind < 4; ++kind) {
        const std::string name =
            std::to_string(rows) + "x" + std::to_string(width) + "." + std::to_string(kind);
        const auto values = values_of_kind(kind, rows, width, random);
        const auto packed = used.pack(values, width);
        EXPECT_LE(packed.size(), ChunkPacker::most_bytes(values.size())) << name;
        ChunkPacker fresh;
        EXPECT_TRUE(std::ranges::equal(packed, fresh.pack(values, width))) << name;
        BlockDecoder decoder(static_cast<std::uint32_t>(rows));
        EXPECT_TRUE(std::ranges::equal(decoder.decode(column, packed), values)) << name;

        const hsize_t offset = 0;
        const hid_t space = H5Screate_simple(1, &rows, nullptr), creation = H5Pcreate(H5P_DATASET_CREATE);
        H5Pset_chunk(creation, 1, &rows);
        if (width > 1) H5Pset_shuffle(creation);
        H5Pset_deflate(creation, 1);
        const hid_t type = hdf5_type(column);
        const hid_t dataset = H5Dcreate2(hdf5, name.c_str(), type, space, H5P_DEFAULT, creation, H5P_DEFAULT);
        ASSERT_GE(H5Dwrite_chunk(dataset, H5P_DEFAULT, 0, &offset, packed.size(), packed.data()), 0) << name;
        std::vector<std::byte> stored(values.size());
        ASSERT_GE(H5Dread(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, stored.data()), 0) << name;
        EXPECT_EQ(stored, values) << name;
        H5Dclose(dataset);
        H5Pclose(creation);
        H5Sclose(space);
      }
    }
  }
  H5Fclose(hdf5);
}

TEST_F(ResultsTest, EncodingIsPure) {
  const BlockLayout layout = BlockLayout::whole(256, 64);
  BlockEncoder used(table_, 64, {}), fresh(table_, 64, {});
  (void)used.encode(3, FakeBlock(layout, 3).records);
  const FakeBlock points(layout, 1);
  const auto expected = fresh.encode(1, points.records).chunks;
  EXPECT_EQ(used.encode(1, points.records).chunks, expected);
  EXPECT_EQ(used.encode(1, points.records).chunks, expected);  // every column as in the block before
}

/// Points of one verdict each, with one workload and one machine or with their own.
struct VerdictBlock {
  VerdictBlock(std::uint32_t rows, std::uint64_t first, Status status, bool shared) {
    for (std::uint32_t i = 0; i < rows; ++i) {
      points.emplace_back(first + i);
      points.back().prediction.status = status;
    }
    for (const FakePoint& point : points) {
      const FakePoint& of = shared ? points.front() : point;
      records.push_back({point.id, point.plan, of.workload, of.hardware, point.prediction});
    }
  }
  std::deque<FakePoint> points;
  std::vector<PointRecord> records;
};

// Columns that are known to hold one value are not looked at row by row: what is stored is what put() gives for each
// row, whatever the block before was, and however many rows the block has.
TEST_F(ResultsTest, ColumnsOfOneValueAreThoseOfTheirRows) {
  constexpr std::uint32_t kRows = 64;
  BlockEncoder encoder(table_, kRows, {"step_time_s", "memory_peak_bytes"});
  BlockDecoder decoder(kRows);
  std::uint64_t index = 0;
  for (const Status status : enum_values<Status>()) {
    for (const bool shared : {true, false, true}) {
      for (const std::uint32_t rows : {kRows, 7U, kRows - 1}) {
        SCOPED_TRACE(testing::Message() << name_of(status) << ' ' << shared << ' ' << rows);
        const VerdictBlock block(rows, ++index * kRows, status, shared);
        const RowsInCommon common = in_common(block.records);
        const EncodedBlock encoded = encoder.encode(index, block.records);
        for (std::size_t c = 0; c < table_.columns().size(); ++c) {
          const ColumnInfo& column = table_.columns()[c];
          std::vector<std::byte> expected(kRows * size_of(column.type));  // zeros behind the last row
          table_.put(c, block.records, expected.data());
          const auto plain = decoder.decode(column.type, encoded.chunks[c]);
          ASSERT_EQ(std::vector<std::byte>(plain.begin(), plain.end()), expected) << column.name;
          const bool timed = column.group == ColumnGroup::breakdown || column.name == "step_time_s";
          if (timed) {
            EXPECT_EQ(table_.is_same_in_all(c, common), !is_timed(status)) << column.name;
          }
          if (column.group == ColumnGroup::hardware || column.group == ColumnGroup::workload) {
            EXPECT_EQ(table_.is_same_in_all(c, common), shared) << column.name;
          }
        }
        EXPECT_EQ(encoded.chunks, BlockEncoder(table_, kRows, {}).encode(index, block.records).chunks);
        ASSERT_EQ(encoded.summary.statuses.size(), 1U);
        EXPECT_EQ(encoded.summary.statuses.front().count, rows);
      }
    }
  }
}

TEST_F(ResultsTest, DecoderInvertsAndDetectsDamage) {
  const BlockLayout layout = BlockLayout::whole(64, 64);
  BlockEncoder encoder(table_, 64, {});
  BlockDecoder decoder(64);
  std::size_t detected = 0;
  const FakeBlock points(layout, 0);
  EncodedBlock encoded = encoder.encode(0, points.records);
  for (std::size_t c = 0; c < table_.columns().size(); ++c) {
    const ColumnType type = table_.columns()[c].type;
    std::vector<std::byte> expected(64 * size_of(type));
    table_.put(c, points.records, expected.data());
    const auto plain = decoder.decode(type, encoded.chunks[c]);
    ASSERT_EQ(plain.size(), expected.size());
    EXPECT_EQ(std::memcmp(plain.data(), expected.data(), expected.size()), 0);
    EXPECT_TRUE(decoder.is_whole(type, encoded.chunks[c]));
    encoded.chunks[c][encoded.chunks[c].size() / 2] ^= std::byte{0x10};
    const auto damaged = decoder.decode(type, encoded.chunks[c]);
    const bool whole = !damaged.empty();
    if (whole) {  // a bit that deflate does not use
      EXPECT_EQ(std::memcmp(damaged.data(), expected.data(), expected.size()), 0);
    } else {
      ++detected;
    }
    EXPECT_EQ(decoder.is_whole(type, encoded.chunks[c]), whole);
  }
  EXPECT_GT(detected, table_.columns().size() * 3 / 4);
}

}  // namespace
}  // namespace shardscape::results
