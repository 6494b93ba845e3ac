// Reads columns chunk by chunk, without HDF5's filters and conversions, which otherwise take most of the time of a
// command that looks at every row of a large table.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "results_schema/hdf5/hdf5_io.h"
#include "results_schema/rows/block.h"

namespace shardscape::results {

/// One column of an open file, which must outlive it. Keeps what helps the next read: facts about the dataset, a
/// decoder, and the chunk decoded last. A column of one value repeats one chunk, which is decoded once. If the dataset
/// is not packed as BlockEncoder does it (another program has rewritten the file), or if a chunk is damaged, HDF5 reads
/// it, or reports the error. Not thread-safe.
class ChunkReader {
 public:
  /// StoreError unless all chunks of the dataset are stored.
  explicit ChunkReader(Dataset dataset);

  /// Whether chunks are read without HDF5's filters.
  [[nodiscard]] bool direct() const { return chunk_rows_ > 0; }
  /// StoreError unless rows [begin, end) exist.
  void check(std::uint64_t begin, std::uint64_t end) const;
  /// Reads the existing rows [begin, begin + values.size()); codes and integers become doubles.
  void read(std::uint64_t begin, std::span<double> values) { read_as(begin, values); }
  void read(std::uint64_t begin, std::span<std::uint64_t> values) { read_as(begin, values); }
  void read(std::uint64_t begin, std::span<std::uint8_t> values) { read_as(begin, values); }
  /// True where both columns store the rows in equal, undamaged chunks, so that all values are equal. False means
  /// nothing.
  bool stored_alike(ChunkReader& other, std::uint64_t begin, std::uint64_t end);

 private:
  template <class T>
  void read_as(std::uint64_t begin, std::span<T> values);
  template <class T>
  bool read_chunks(std::uint64_t begin, std::span<T> values);
  /// Reads the stored bytes of the chunk that starts at `row` into packed_; false where HDF5 cannot.
  bool fetch(std::uint64_t row);
  /// The packed values of the chunk that starts at `row`; empty where it is damaged.
  std::span<const std::byte> chunk(std::uint64_t row);

  Dataset dataset_;
  std::uint64_t rows_ = 0;
  std::uint64_t chunk_rows_ = 0;      ///< rows per chunk; 0: HDF5 reads
  ColumnType type_ = ColumnType::u8;  ///< valid where chunk_rows_ is set
  std::unique_ptr<BlockDecoder> decoder_;
  std::vector<std::byte> packed_, last_;  ///< a chunk as stored; the latest one found undamaged
  std::span<const std::byte> values_;     ///< values of the chunk `last_`; empty where it was not decoded
  std::optional<std::uint64_t> at_;       ///< first row of the chunk decoded last
};

}  // namespace shardscape::results
