// The rows of a segment that is being filled, where a sweep does not store all of them. Private to this folder.
#pragma once

#include <cstdint>
#include <vector>

#include "results_schema/block.h"
#include "results_schema/chunk_filler.h"
#include "results_schema/manifest.h"
#include "results_schema/row_selector.h"

namespace shardscape::results {

/// Drops what the blocks so far, those of earlier segments, too, keep out of the file. What is held is packed.
class OpenCandidates {
 public:
  explicit OpenCandidates(const Manifest& manifest);

  /// Of the candidates of a block those that may still be stored; the block keeps their fault samples alone.
  void take(EncodedBlock& block);
  /// The table of those taken since clear().
  void write(const H5File& file);
  void clear();

  [[nodiscard]] const RowSelector& selector() const { return selector_; }

 private:
  std::vector<ColumnInfo> columns_;
  std::uint64_t rows_per_block_, rows_ = 0;
  RowSelector selector_;
  ChunkFiller filler_;
  std::vector<std::vector<std::vector<std::byte>>> full_;  ///< chunks by column
};

}  // namespace shardscape::results
