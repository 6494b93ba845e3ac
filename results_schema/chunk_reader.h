// Columns read chunk by chunk, without HDF5's own filters and conversions: they are most of the time of a
// command that looks at every row of a large table.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "results_schema/block.h"
#include "results_schema/hdf5_io.h"

namespace shardscape::results {

/// Keeps what one read can leave to the next: a decoder, and the chunk that was decoded last. Columns of one
/// value repeat one chunk, which is decoded once. Not thread-safe.
class ChunkReader {
 public:
  /// Rows [begin, end), which are stored, behind what `values` holds; codes and integers as doubles. False, and
  /// nothing appended, where the dataset is not packed as a BlockEncoder packs (another program has written the
  /// file anew) or a chunk is damaged: then HDF5 is to read it, or to say what is wrong.
  bool append(const Dataset& dataset, std::uint64_t begin, std::uint64_t end, std::vector<double>& values);
  bool append(const Dataset& dataset, std::uint64_t begin, std::uint64_t end,
              std::vector<std::uint64_t>& values);
  bool append(const Dataset& dataset, std::uint64_t begin, std::uint64_t end,
              std::vector<std::uint8_t>& values);

 private:
  template <class T>
  bool append_as(const Dataset& dataset, std::uint64_t begin, std::uint64_t end, std::vector<T>& values);
  /// The packed values of the chunk that starts at `row`; empty where it is damaged.
  std::span<const std::byte> chunk(const Dataset& dataset, ColumnType type, std::uint64_t row);

  std::unique_ptr<BlockDecoder> decoder_;
  std::uint64_t chunk_rows_ = 0;          ///< of the decoder
  ColumnType type_ = ColumnType::u8;      ///< of the chunk decoded last
  std::vector<std::byte> packed_, last_;  ///< a chunk as stored; the one decoded last
  std::span<const std::byte> values_;     ///< of the chunk decoded last
};

}  // namespace shardscape::results
