// Blocks: the unit of work of a sweep, of compression and of HDF5 chunking alike.
//
// Block b holds the rows [b * rows_per_block, (b + 1) * rows_per_block) of the points that a sweep chose, in
// ascending order of their ids. rows_per_block is also the chunk length of every column, so a block is
// compressed once, by the worker that evaluated it, and its chunks are copied as they are from then on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "results_schema/rows/columns.h"
#include "results_schema/rows/point_selection.h"
#include "results_schema/rows/records.h"
#include "results_schema/rows/stored_rows.h"
#include "results_schema/rows/summary.h"

struct libdeflate_compressor;
struct libdeflate_decompressor;

namespace shardscape::results {

inline constexpr std::uint32_t kMaxRowsPerBlock = 65536;
/// The most rows of a column in memory at once where a table is read from end to end: of so many rows, many columns fit
/// into a processor's cache. It is a multiple of every block's length, so that no chunk of a finished file is read
/// twice.
inline constexpr std::uint64_t kRowsAtOnce = kMaxRowsPerBlock;

/// Consecutive blocks [first, first + count).
struct BlockRange {
  std::uint64_t first = 0;
  std::uint64_t count = 0;
  [[nodiscard]] std::uint64_t end() const { return first + count; }
  friend bool operator==(const BlockRange&, const BlockRange&) = default;
};

/// The points of a study that a sweep chose, their division into blocks, and the blocks that this result file holds
/// (all, or the range of a shard).
struct BlockLayout {
  std::uint64_t total_points = 0;       ///< number of points chosen, over all shards
  std::uint32_t rows_per_block = 1024;  ///< a power of two
  BlockRange blocks;                    ///< the blocks in this file
  PointSelection selection = {};        ///< how the points were chosen

  /// The layout of an unsharded sweep of all points. `rows_per_block` is a power of two in 1 .. 65536.
  static BlockLayout whole(std::uint64_t total_points, std::uint32_t rows_per_block);

  /// Rows of a block: rows_per_block for all but the last block of the space.
  [[nodiscard]] std::uint32_t rows_of(std::uint64_t block) const;
  /// The block's first row among the chosen points.
  [[nodiscard]] std::uint64_t first_row(std::uint64_t block) const { return block * rows_per_block; }
  /// The id of the point in a row below total_points; it ascends with the row.
  [[nodiscard]] std::uint64_t point(std::uint64_t row) const { return selection.point(row, total_points); }
  /// Number of rows in consecutive blocks; by default in the file.
  [[nodiscard]] std::uint64_t rows_in(BlockRange range) const;
  [[nodiscard]] std::uint64_t rows() const { return rows_in(blocks); }
  /// Whether the file holds every chosen point.
  [[nodiscard]] bool is_unsharded() const { return rows() == total_points; }
  friend bool operator==(const BlockLayout&, const BlockLayout&) = default;
};

/// The rows of a part of a sweep that may be among the rows that the sweep stores (RowSelector).
struct CandidateRows {
  std::vector<std::uint64_t> ids;  ///< ascending
  std::vector<double> measures;    ///< row by row, the values of StoredRows::measures()
  std::vector<std::vector<std::byte>>
      columns;  ///< packed values, in table order; empty where there are no rows
};

/// One block, ready to be written: for every column (in table order) the bytes of one HDF5 chunk, or, where a sweep
/// does not store all rows, the rows that it may store.
struct EncodedBlock {
  std::uint64_t index = 0;
  std::uint32_t rows = 0;  ///< number of points in the block
  std::vector<std::vector<std::byte>> chunks;
  CandidateRows candidates;
  Summary summary;  ///< summary of all its points
  /// Samples of its points, in the order of the points; set by the caller.
  std::vector<FaultSampleRecord> samples;
};

/// Packs the values of one chunk: byte shuffle (of values wider than a byte) and a zlib stream, as HDF5's own filters
/// do. The result depends on the arguments only. Owns scratch memory: one object per thread.
class ChunkPacker {
 public:
  ChunkPacker();

  /// Packs values of `width` bytes. The result is valid until the next call.
  std::span<const std::byte> pack(std::span<const std::byte> plain, std::size_t width);
  /// An upper bound on the bytes of a chunk packed from `plain` bytes.
  static std::size_t most_bytes(std::size_t plain) { return 2 * plain + 1024; }

 private:
  std::vector<std::byte> shuffled_, packed_;
  std::unique_ptr<libdeflate_compressor, void (*)(libdeflate_compressor*)> compressor_;
};

/// Turns evaluated points into chunks. A short block is padded with zeros. The result depends on the arguments only;
/// the candidates also on what is known of the whole sweep. Owns scratch memory: use one object per thread.
class BlockEncoder {
 public:
  /// `table` must outlive the encoder. `objectives`: those of the manifest, for the summaries. `whole`: the selector
  /// over many blocks' candidates, which must outlive the encoder; null where there is none, or where all rows are
  /// stored.
  BlockEncoder(const ColumnTable& table, std::uint32_t rows_per_block,
               const std::vector<std::string>& objectives, StoredRows stored = {},
               const RowSelector* whole = nullptr);

  /// `rows` are the points of block `index` in ascending order of id: 1 .. rows_per_block of them.
  EncodedBlock encode(std::uint64_t index, std::span<const PointRecord> rows);

 private:
  /// A column of the latest block, kept because many columns repeat in block after block: those of an axis that changes
  /// rarely, and all results of points that do not fit.
  struct Kept {
    std::vector<std::byte> plain, packed;
    std::size_t same = 0;  ///< number of first rows known to hold one value; 0: not known
  };
  /// A column that is an objective, or that decides which rows are stored.
  struct Measure {
    std::size_t column = 0;
    Better better = Better::neither;
    std::vector<double> values;
  };
  std::size_t measure(const std::string& name);
  [[nodiscard]] std::vector<Better> directions(std::span<const std::size_t> measures) const;
  void read_measures(std::span<const PointRecord> rows);
  void put_one_value(std::size_t column, std::span<const PointRecord> rows);
  void put(std::size_t column, std::span<const PointRecord> rows);
  void keep(std::size_t column, std::span<const std::byte> plain, std::size_t same);
  void pack_all(std::span<const PointRecord> rows, EncodedBlock& block);
  Summary summarise(std::span<const PointRecord> rows);
  CandidateRows candidates(std::span<const PointRecord> rows);
  std::vector<std::size_t> choose(std::span<const PointRecord> rows);
  std::span<const double> values(std::span<const std::size_t> measures, std::size_t row);

  const ColumnTable* table_;
  std::uint32_t rows_per_block_;
  StoredRows stored_;
  const RowSelector* whole_;
  std::vector<Measure> measures_;
  std::vector<std::size_t> objectives_, deciding_;  ///< indices in measures_
  std::vector<double> row_;
  std::vector<std::byte> plain_;
  std::vector<Kept> kept_;  ///< by column
  ChunkPacker packer_;
};

/// The inverse of the encoder, for one chunk at a time. Owns scratch memory: one object per thread.
class BlockDecoder {
 public:
  explicit BlockDecoder(std::uint32_t rows_per_block);

  /// rows_per_block packed values, valid until the next call; empty where the chunk is damaged.
  std::span<const std::byte> decode(ColumnType type, std::span<const std::byte> chunk);
  /// Whether decode() would return values: the chunk's checksum and length are right. Cheaper.
  bool is_whole(ColumnType type, std::span<const std::byte> chunk);

 private:
  bool inflate(std::span<const std::byte> chunk, std::span<std::byte> target);
  std::uint32_t rows_per_block_;
  std::vector<std::byte> plain_, shuffled_;
  std::unique_ptr<libdeflate_decompressor, void (*)(libdeflate_decompressor*)> decompressor_;
};

/// Bytes that these rows of /fault_samples take in all columns, packed as blocks are.
std::uint64_t packed_bytes(std::span<const FaultSampleRecord> rows);

}  // namespace shardscape::results
