// Columns that come piece by piece, cut into packed chunks of one length.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "results_schema/block.h"
#include "results_schema/columns.h"
#include "results_schema/hdf5_io.h"
#include "results_schema/row_range.h"

namespace shardscape::results {

std::vector<ColumnType> types_of(std::span<const ColumnInfo> columns);

/// A stored column, read piece by piece. Where the dataset is not packed as a ChunkPacker packs, or a chunk is damaged,
/// HDF5 reads it, or says what is wrong.
class ColumnPieces {
 public:
  /// The dataset outlives it.
  explicit ColumnPieces(const Dataset& source);

  /// Packed values of rows from `begin` on, at most to `end`: of one chunk. They exist. Valid until the next call.
  std::span<const std::byte> read(std::uint64_t begin, std::uint64_t end);

 private:
  const Dataset* source_;
  ColumnType type_;
  std::uint64_t chunk_rows_ = 0;
  std::unique_ptr<BlockDecoder> decoder_;  ///< null where HDF5 reads
  std::vector<std::byte> packed_, plain_;
  std::optional<std::uint64_t> at_;    ///< the first row of the chunk that was decoded last
  std::span<const std::byte> values_;  ///< of it
};

/// The chunk being filled of every column, each at its own row. The chunks are a function of the values, wherever the pieces end. A chunk
/// goes to `take(row, packed)`, with the row that it begins at; `packed` is valid until the next call.
class ChunkFiller {
 public:
  ChunkFiller(std::span<const ColumnType> columns, std::uint64_t chunk_rows);

  /// Packed values, behind those that the column has already.
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

  /// Those rows of another column of the same type: ascending, all there. StoreError where they can't be read.
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

  /// What there is of a last chunk, the rest of it zeros. It stays open: more may be appended.
  template <class Take>
  void finish(std::size_t column, const Take& take) {
    Open& open = open_[column];
    if (open.values.empty()) return;
    const std::size_t size = open.values.size();
    open.values.resize(open.full);
    take(open.row, pack(open));
    open.values.resize(size);
  }

  /// Begins anew, at row 0 of every column.
  void clear();

 private:
  struct Open {
    std::size_t width = 0, full = 0;       ///< bytes of a value, of a chunk
    std::uint64_t row = 0;                 ///< of the chunk that is being filled
    std::vector<std::byte> values;         ///< of it
    std::vector<std::byte> plain, packed;  ///< the chunk before: columns of one value repeat it
  };
  std::span<const std::byte> pack(Open& open);

  std::uint64_t chunk_rows_;
  std::vector<Open> open_;  ///< by column
  ChunkPacker packer_;
};

}  // namespace shardscape::results
