#include "results_schema/block.h"

#include <libdeflate.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "engine/base/check.h"
#include "results_schema/sample_size.h"

namespace shardscape::results {

BlockLayout BlockLayout::whole(std::uint64_t total_points, std::uint32_t rows_per_block) {
  SHARDSCAPE_CHECK(std::has_single_bit(rows_per_block) && rows_per_block <= kMaxRowsPerBlock, rows_per_block);
  return {total_points,
          rows_per_block,
          {0, (total_points + rows_per_block - 1) / rows_per_block},
          {SelectionKind::all, total_points}};
}

std::uint32_t BlockLayout::rows_of(std::uint64_t block) const {
  const std::uint64_t left = total_points - std::min(total_points, first_row(block));
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(left, rows_per_block));
}

std::uint64_t BlockLayout::rows_in(BlockRange range) const {
  return std::min(total_points, first_row(range.end())) - std::min(total_points, first_row(range.first));
}

namespace {

// Level 1 of zlib's scale, inside the zlib container that HDF5's deflate filter reads.
constexpr int kDeflateLevel = 1;

/// HDF5's shuffle filter: byte j of every value, then byte j + 1 of every value.
void shuffle(const std::byte* in, std::byte* out, std::size_t values, std::size_t width) {
  for (std::size_t byte = 0; byte < width; ++byte) {
    std::byte* plane = out + byte * values;
    for (std::size_t i = 0; i < values; ++i) plane[i] = in[i * width + byte];
  }
}

void unshuffle(const std::byte* in, std::byte* out, std::size_t values, std::size_t width) {
  for (std::size_t byte = 0; byte < width; ++byte) {
    const std::byte* plane = in + byte * values;
    for (std::size_t i = 0; i < values; ++i) out[i * width + byte] = plane[i];
  }
}

}  // namespace

struct ChunkPacker::Compressor {
  Compressor() : state(libdeflate_alloc_compressor(kDeflateLevel)) {
    if (state == nullptr) throw std::bad_alloc();
  }
  ~Compressor() { libdeflate_free_compressor(state); }
  Compressor(const Compressor&) = delete;
  Compressor& operator=(const Compressor&) = delete;
  libdeflate_compressor* state;
};

ChunkPacker::ChunkPacker() : compressor_(std::make_unique<Compressor>()) {}
ChunkPacker::~ChunkPacker() = default;
ChunkPacker::ChunkPacker(ChunkPacker&&) noexcept = default;
ChunkPacker& ChunkPacker::operator=(ChunkPacker&&) noexcept = default;

std::span<const std::byte> ChunkPacker::pack(std::span<const std::byte> plain, std::size_t width) {
  const std::byte* source = plain.data();
  if (width > 1) {
    if (shuffled_.size() < plain.size()) shuffled_.resize(plain.size());
    shuffle(plain.data(), shuffled_.data(), plain.size() / width, width);
    source = shuffled_.data();
  }
  const std::size_t most = libdeflate_zlib_compress_bound(compressor_->state, plain.size());
  if (packed_.size() < most) packed_.resize(most);
  const std::size_t size =
      libdeflate_zlib_compress(compressor_->state, source, plain.size(), packed_.data(), packed_.size());
  SHARDSCAPE_CHECK(size > 0, plain.size(), width);  // the bound holds
  return std::span(packed_).first(size);
}

BlockEncoder::BlockEncoder(const ColumnTable& table, std::uint32_t rows_per_block)
    : table_(&table), rows_per_block_(rows_per_block) {
  plain_.resize(rows_per_block * sizeof(double));
  kept_.resize(table.columns().size());
}

EncodedBlock BlockEncoder::encode(std::uint64_t index, std::span<const PointRecord> rows) {
  SHARDSCAPE_CHECK(!rows.empty() && rows.size() <= rows_per_block_, index, rows.size());
  SHARDSCAPE_CHECK(rows.front().point_id >= index * rows_per_block_, index, rows.front().point_id);
  EncodedBlock block{index, static_cast<std::uint32_t>(rows.size()), {}, {}};
  const auto columns = table_->columns();
  block.chunks.reserve(columns.size());
  for (std::size_t c = 0; c < columns.size(); ++c) {
    const std::size_t width = size_of(columns[c].type);
    const std::size_t used = rows.size() * width;
    const std::size_t full = rows_per_block_ * width;
    table_->put(c, rows, plain_.data());
    std::fill(plain_.begin() + static_cast<std::ptrdiff_t>(used),
              plain_.begin() + static_cast<std::ptrdiff_t>(full), std::byte{0});
    const auto plain = std::span(plain_).first(full);
    Kept& kept = kept_[c];
    if (!std::ranges::equal(plain, kept.plain)) {
      kept.plain.assign(plain.begin(), plain.end());
      const auto packed = packer_.pack(plain, width);
      kept.packed.assign(packed.begin(), packed.end());
    }
    block.chunks.push_back(kept.packed);
  }
  return block;
}

std::uint64_t packed_bytes(std::span<const FaultSampleRecord> rows) {
  if (rows.empty()) return 0;
  ChunkPacker packer;
  std::vector<std::byte> plain(rows.size() * sizeof(double));
  std::uint64_t bytes = 0;
  const auto columns = fault_sample_columns();
  for (std::size_t c = 0; c < columns.size(); ++c) {
    const std::size_t width = size_of(columns[c].type);
    put_fault_samples(c, rows, plain.data());
    bytes += packer.pack(std::span(plain).first(rows.size() * width), width).size();
  }
  return bytes;
}

struct BlockDecoder::Decompressor {
  Decompressor() : state(libdeflate_alloc_decompressor()) {
    if (state == nullptr) throw std::bad_alloc();
  }
  ~Decompressor() { libdeflate_free_decompressor(state); }
  Decompressor(const Decompressor&) = delete;
  Decompressor& operator=(const Decompressor&) = delete;
  libdeflate_decompressor* state;
};

BlockDecoder::BlockDecoder(std::uint32_t rows_per_block)
    : rows_per_block_(rows_per_block), decompressor_(std::make_unique<Decompressor>()) {
  plain_.resize(rows_per_block * sizeof(double));
  shuffled_.resize(plain_.size());
}

BlockDecoder::~BlockDecoder() = default;

bool BlockDecoder::inflate(std::span<const std::byte> chunk, std::span<std::byte> target) {
  std::size_t size = 0;
  const auto result = libdeflate_zlib_decompress(decompressor_->state, chunk.data(), chunk.size(),
                                                 target.data(), target.size(), &size);
  return result == LIBDEFLATE_SUCCESS && size == target.size();
}

bool BlockDecoder::is_whole(ColumnType type, std::span<const std::byte> chunk) {
  return inflate(chunk, std::span(plain_).first(rows_per_block_ * size_of(type)));
}

std::span<const std::byte> BlockDecoder::decode(ColumnType type, std::span<const std::byte> chunk) {
  const std::size_t width = size_of(type);
  const std::size_t full = rows_per_block_ * width;
  if (!inflate(chunk, std::span(width > 1 ? shuffled_ : plain_).first(full))) return {};
  if (width > 1) unshuffle(shuffled_.data(), plain_.data(), rows_per_block_, width);
  return {plain_.data(), full};
}

}  // namespace shardscape::results
