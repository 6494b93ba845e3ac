#include "results_schema/hdf5/chunk_reader.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <type_traits>

namespace shardscape::results {

namespace {

/// Converts packed values of type From to T, from value `first` on.
template <class From, class T>
void convert(std::span<const std::byte> packed, std::uint64_t first, std::span<T> to) {
  for (std::size_t i = 0; i < to.size(); ++i) {
    From value;
    std::memcpy(&value, packed.data() + (first + i) * sizeof(From), sizeof(From));
    to[i] = static_cast<T>(value);
  }
}

/// Whether values of the type can be converted to T, exactly or rounded as HDF5 rounds.
template <class T>
bool converts(ColumnType type) {
  if constexpr (std::is_same_v<T, double>) return true;
  if constexpr (std::is_same_v<T, std::uint8_t>) return type == ColumnType::u8 || type == ColumnType::boolean;
  return type == ColumnType::u64;
}

template <class T>
void convert(ColumnType type, std::span<const std::byte> packed, std::uint64_t first, std::span<T> to) {
  with_stored_type(type, [&](auto zero) { convert<decltype(zero)>(packed, first, to); });
}

}  // namespace

ChunkReader::ChunkReader(Dataset dataset) : dataset_(std::move(dataset)), rows_(dataset_.rows()) {
  dataset_.check_stored(0, rows_);
  const std::uint64_t rows = dataset_.chunk_rows();
  if (rows == 0 || !std::has_single_bit(rows) || rows > kMaxRowsPerBlock) return;
  type_ = dataset_.column_type();
  if (!dataset_.is_packed_as_block(type_)) return;
  decoder_ = std::make_unique<BlockDecoder>(static_cast<std::uint32_t>(rows));
  chunk_rows_ = rows;
}

void ChunkReader::check(std::uint64_t begin, std::uint64_t end) const {
  if (begin > end || end > rows_) dataset_.check_stored(begin, end);
}

bool ChunkReader::fetch(std::uint64_t row) {
  constexpr std::size_t kSlack = 1024;  // room for deflate's overhead on tiny chunks
  return dataset_.try_read_chunk(row, 2 * chunk_rows_ * sizeof(double) + kSlack, packed_);
}

std::span<const std::byte> ChunkReader::chunk(std::uint64_t row) {
  if (at_ == row) return values_;
  at_.reset();
  if (!fetch(row)) return {};
  if (values_.empty() || packed_ != last_) {
    values_ = decoder_->decode(type_, packed_);
    last_.swap(packed_);
    if (values_.empty()) last_.clear();
  }
  if (!values_.empty()) at_ = row;
  return values_;
}

template <class T>
bool ChunkReader::read_chunks(std::uint64_t begin, std::span<T> values) {
  if (!direct() || !converts<T>(type_)) return false;
  const std::uint64_t end = begin + values.size();
  for (std::uint64_t start = begin / chunk_rows_ * chunk_rows_; start < end; start += chunk_rows_) {
    const auto packed = chunk(start);
    if (packed.empty()) return false;
    const std::uint64_t from = std::max(begin, start), to = std::min(end, start + chunk_rows_);
    convert(type_, packed, from - start, values.subspan(from - begin, to - from));
  }
  return true;
}

template <class T>
void ChunkReader::read_as(std::uint64_t begin, std::span<T> values) {
  if (!values.empty() && !read_chunks(begin, values)) dataset_.read_to(begin, values);
}
template void ChunkReader::read_as(std::uint64_t, std::span<double>);
template void ChunkReader::read_as(std::uint64_t, std::span<std::uint64_t>);
template void ChunkReader::read_as(std::uint64_t, std::span<std::uint8_t>);

bool ChunkReader::stored_alike(ChunkReader& other, std::uint64_t begin, std::uint64_t end) {
  if (!direct() || chunk_rows_ != other.chunk_rows_ || type_ != other.type_) return false;
  for (std::uint64_t start = begin / chunk_rows_ * chunk_rows_; start < end; start += chunk_rows_) {
    if (!fetch(start) || !other.fetch(start) || packed_ != other.packed_) return false;
    if (packed_ == last_) continue;
    values_ = {};  // they lie in the decoder's memory, which is_whole() uses
    at_.reset();
    last_.clear();
    if (!decoder_->is_whole(type_, packed_)) return false;
    last_.swap(packed_);
  }
  return true;
}

}  // namespace shardscape::results
