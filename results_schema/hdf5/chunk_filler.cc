#include "results_schema/hdf5/chunk_filler.h"

namespace shardscape::results {

std::vector<ColumnType> types_of(std::span<const ColumnInfo> columns) {
  std::vector<ColumnType> types;
  for (const ColumnInfo& column : columns) types.push_back(column.type);
  return types;
}

ColumnPieces::ColumnPieces(const Dataset& source)
    : source_(&source), type_(source.column_type()), chunk_rows_(source.chunk_rows()) {
  const bool ours = chunk_rows_ > 0 && chunk_rows_ <= kMaxRowsPerBlock && source.is_packed_as_block(type_);
  if (ours)
    decoder_ = std::make_unique<BlockDecoder>(static_cast<std::uint32_t>(chunk_rows_));
  else
    chunk_rows_ = kRowsAtOnce;
}

std::span<const std::byte> ColumnPieces::read(std::uint64_t begin, std::uint64_t end) {
  const std::uint64_t chunk = begin / chunk_rows_ * chunk_rows_;
  end = std::min(end, chunk + chunk_rows_);
  const std::size_t width = size_of(type_);
  if (decoder_ != nullptr && at_ != chunk) {
    at_ = chunk;
    values_ = {};
    const std::size_t most = ChunkPacker::most_bytes(chunk_rows_ * width);
    if (source_->try_read_chunk(chunk, most, packed_)) values_ = decoder_->decode(type_, packed_);
  }
  if (!values_.empty()) return values_.subspan((begin - chunk) * width, (end - begin) * width);
  plain_.resize((end - begin) * width);
  source_->read_rows(type_, begin, end, plain_.data());
  return plain_;
}

ChunkFiller::ChunkFiller(std::span<const ColumnType> columns, std::uint64_t chunk_rows)
    : chunk_rows_(chunk_rows) {
  for (const ColumnType type : columns) {
    Open& open = open_.emplace_back();
    open.width = size_of(type);
    open.full = chunk_rows * open.width;
  }
}

void ChunkFiller::clear() {
  for (Open& open : open_) {
    open.row = 0;
    open.values.clear();
  }
}

std::span<const std::byte> ChunkFiller::pack(Open& open) {
  if (open.plain == open.values) return open.packed;
  const std::span<const std::byte> packed = packer_.pack(open.values, open.width);
  open.packed.assign(packed.begin(), packed.end());
  open.plain = open.values;
  return open.packed;
}

}  // namespace shardscape::results
