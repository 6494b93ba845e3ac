// Columns that arrive piece by piece, cut into packed chunks of equal length.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "results_schema/hdf5/hdf5_io.h"
#include "results_schema/rows/block.h"
#include "results_schema/rows/columns.h"
#include "results_schema/rows/records.h"

namespace shardscape::results {

std::vector<ColumnType> types_of(std::span<const ColumnInfo> columns);

/// A stored column that is read piece by piece. If the dataset is not packed as ChunkPacker does it, or if a chunk is
/// damaged, HDF5 reads it, or reports the error.
class ColumnPieces {
 public:
  /// The dataset must outlive the object.
  explicit ColumnPieces(const Dataset& source);

  /// Packed values of existing rows from `begin` on: those of one chunk, at most up to `end`. Valid until the next
  /// call.
  std::span<const std::byte> read(std::uint64_t begin, std::uint64_t end);

 private:
  const Dataset* source_;
  ColumnType type_;
  std::uint64_t chunk_rows_ = 0;
  std::unique_ptr<BlockDecoder> decoder_;  ///< null where HDF5 does the reading
  std::vector<std::byte> packed_, plain_;
  std::optional<std::uint64_t> at_;    ///< first row of the chunk decoded last
  std::span<const std::byte> values_;  ///< values of that chunk
};

/// Fills a chunk of every column, each column at its own row. Chunks depend on the values alone, not on where pieces
/// end. A full chunk goes to `take(row, packed)` with its first row; `packed` is valid until the next call.
class ChunkFiller {
 public:
  ChunkFiller(std::span<const ColumnType> columns, std::uint64_t chunk_rows);

  /// Appends packed values to a column.
  template <class Take>
  void append(std::size_t column, std::span<const std::byte> values, const Take& take) {
    Open& open = open_[column];
    while (!values.empty()) {
      const std::size_t count = std::min(values.size(), open.full - open.values.size());
      open.values.insert(open.values.end(), values.begin(),
                         values.begin() + static_cast<std::ptrdiff_t>(count));
      values = values.subspan(count);
      if (open.values.size() < open.full) continue;
      take(open.row, pack(open));
      open.row += chunk_rows_;
      open.values.clear();
    }
  }

  /// Appends rows of another column of the same type; the rows ascend and must exist. StoreError where they cannot be
  /// read.
  template <class Take>
  void append_rows(std::size_t column, ColumnPieces source, std::span<const RowRange> rows,
                   const Take& take) {
    for (const RowRange& range : rows) {
      for (std::uint64_t begin = range.begin; begin < range.end;) {
        const std::span<const std::byte> values = source.read(begin, range.end);
        append(column, values, take);
        begin += values.size() / open_[column].width;
      }
    }
  }

  /// Takes what there is of a last chunk, filled up with zeros. The chunk stays open, so that more may be appended.
  template <class Take>
  void finish(std::size_t column, const Take& take) {
    Open& open = open_[column];
    if (open.values.empty()) return;
    const std::size_t size = open.values.size();
    open.values.resize(open.full);
    take(open.row, pack(open));
    open.values.resize(size);
  }

  /// Begins again at row 0 of every column.
  void clear();

 private:
  struct Open {
    std::size_t width = 0, full = 0;       ///< bytes per value, bytes per chunk
    std::uint64_t row = 0;                 ///< first row of the chunk that is being filled
    std::vector<std::byte> values;         ///< packed values of that chunk
    std::vector<std::byte> plain, packed;  ///< the chunk before, as columns of one value repeat it
  };
  std::span<const std::byte> pack(Open& open);

  std::uint64_t chunk_rows_;
  std::vector<Open> open_;  ///< by column
  ChunkPacker packer_;
};

}  // namespace shardscape::results
