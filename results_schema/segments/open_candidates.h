// The rows of a segment that is being filled, in a sweep that does not store all rows. Private to this folder.
#pragma once

#include <cstdint>
#include <vector>

#include "results_schema/hdf5/chunk_filler.h"
#include "results_schema/hdf5/manifest.h"
#include "results_schema/rows/block.h"
#include "results_schema/rows/stored_rows.h"

namespace shardscape::results {

/// Keeps, packed, the rows that may still be stored, given all blocks so far, also those of earlier segments.
class OpenCandidates {
 public:
  explicit OpenCandidates(const Manifest& manifest);

  /// Takes the candidates of a block that may still be stored, and removes all but their fault samples from the block.
  void take(EncodedBlock& block);
  /// Writes the table of the rows taken since clear().
  void write(const H5File& file);
  void clear();

  [[nodiscard]] const RowSelector& selector() const { return selector_; }

 private:
  std::vector<ColumnInfo> columns_;
  std::uint64_t rows_per_block_, rows_ = 0;
  RowSelector selector_;
  ChunkFiller filler_;
  std::vector<std::vector<std::vector<std::byte>>> full_;  ///< full chunks, by column
};

}  // namespace shardscape::results
