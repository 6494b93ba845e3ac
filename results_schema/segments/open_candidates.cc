#include "results_schema/segments/open_candidates.h"

#include <algorithm>

namespace shardscape::results {

OpenCandidates::OpenCandidates(const Manifest& manifest)
    : columns_(manifest.columns),
      rows_per_block_(manifest.layout.rows_per_block),
      selector_(manifest.study.stored_rows, deciding_directions(manifest)),
      filler_(types_of(columns_), rows_per_block_),
      full_(columns_.size()) {}

void OpenCandidates::take(EncodedBlock& block) {
  const CandidateRows& rows = block.candidates;
  const std::size_t measures = rows.ids.empty() ? 0 : rows.measures.size() / rows.ids.size();
  std::vector<RowRange> taken;
  std::vector<std::uint64_t> ids;
  for (std::size_t i = 0; i < rows.ids.size(); ++i) {
    const auto values = std::span(rows.measures).subspan(i * measures, measures);
    if (!selector_.offer(rows.ids[i], values)) continue;
    ids.push_back(rows.ids[i]);
    append_row(taken, i);
  }
  for (std::size_t c = 0; c < rows.columns.size(); ++c) {
    const std::size_t width = size_of(columns_[c].type);
    const auto keep = [&](std::uint64_t, std::span<const std::byte> chunk) {
      full_[c].emplace_back(chunk.begin(), chunk.end());
    };
    for (const RowRange& range : taken) {
      const std::size_t bytes = (range.end - range.begin) * width;
      filler_.append(c, std::span(rows.columns[c]).subspan(range.begin * width, bytes), keep);
    }
  }
  rows_ += ids.size();
  std::erase_if(block.samples, [&](const FaultSampleRecord& sample) {
    return !std::ranges::binary_search(ids, sample.point_id);
  });
  block.candidates = {};
}

void OpenCandidates::write(const H5File& file) {
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    const Dataset column = file.create_bare_column("/points", columns_[c], rows_, rows_per_block_);
    std::uint64_t row = 0;
    for (const std::vector<std::byte>& chunk : full_[c]) {
      column.write_chunk(row, chunk);
      row += rows_per_block_;
    }
    filler_.finish(c, column.chunk_writer());
  }
}

void OpenCandidates::clear() {
  rows_ = 0;
  filler_.clear();
  for (auto& chunks : full_) chunks.clear();
}

}  // namespace shardscape::results
