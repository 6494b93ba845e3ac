// Columns read chunk by chunk, without HDF5's own filters and conversions: they are most of the time of a
// command that looks at every row of a large table.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "results_schema/block.h"
#include "results_schema/hdf5_io.h"

namespace shardscape::results {

/// One column of an open file, which outlives it. What one read can leave to the next is kept: what the dataset is
/// like, a decoder, and the chunk that was decoded last. A column of one value repeats one chunk, which is decoded
/// once. Where the dataset is not packed as a BlockEncoder packs (another program has written the file anew) or a
/// chunk is damaged, HDF5 reads it, or says what is wrong. Not thread-safe.
class ChunkReader {
 public:
  /// StoreError unless all chunks of the dataset are stored.
  explicit ChunkReader(Dataset dataset);

  /// Whether chunks are read without HDF5's filters.
  [[nodiscard]] bool direct() const { return chunk_rows_ > 0; }
  /// StoreError unless rows [begin, end) exist.
  void check(std::uint64_t begin, std::uint64_t end) const;
  /// Rows [begin, begin + values.size()), which exist; codes and integers as doubles.
  void read(std::uint64_t begin, std::span<double> values) { read_as(begin, values); }
  void read(std::uint64_t begin, std::span<std::uint64_t> values) { read_as(begin, values); }
  void read(std::uint64_t begin, std::span<std::uint8_t> values) { read_as(begin, values); }
  /// True where the rows are stored in undamaged chunks of the same bytes: none of their values differs. False
  /// says nothing.
  bool stored_alike(ChunkReader& other, std::uint64_t begin, std::uint64_t end);

 private:
  template <class T>
  void read_as(std::uint64_t begin, std::span<T> values);
  template <class T>
  bool read_chunks(std::uint64_t begin, std::span<T> values);
  /// The stored bytes of the chunk that starts at `row` in packed_; false where HDF5 can't read them.
  bool fetch(std::uint64_t row);
  /// The packed values of that chunk; empty where it is damaged.
  std::span<const std::byte> chunk(std::uint64_t row);

  Dataset dataset_;
  std::uint64_t rows_ = 0;
  std::uint64_t chunk_rows_ = 0;      ///< 0: HDF5 reads
  ColumnType type_ = ColumnType::u8;  ///< where chunk_rows_ is set
  std::unique_ptr<BlockDecoder> decoder_;
  std::vector<std::byte> packed_, last_;  ///< a chunk as stored; the last one that was found whole
  std::span<const std::byte> values_;     ///< of the chunk `last_`; empty where it was not decoded
  std::optional<std::uint64_t> at_;       ///< the row at which the chunk starts that was decoded last
};

}  // namespace shardscape::results
