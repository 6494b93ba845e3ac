#include "results_schema/chunk_reader.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <type_traits>

namespace shardscape::results {

namespace {

/// Packed values of type From, from the `first` on, as T.
template <class From, class T>
void convert(std::span<const std::byte> packed, std::uint64_t first, std::span<T> to) {
  for (std::size_t i = 0; i < to.size(); ++i) {
    From value;
    std::memcpy(&value, packed.data() + (first + i) * sizeof(From), sizeof(From));
    to[i] = static_cast<T>(value);
  }
}

/// Whether every value of the type is exactly, or rounded as HDF5 rounds, a T.
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

std::span<const std::byte> ChunkReader::chunk(const Dataset& dataset, ColumnType type, std::uint64_t row) {
  constexpr std::size_t kSlack = 1024;  // deflate's overhead on tiny chunks
  if (!dataset.try_read_chunk(row, 2 * chunk_rows_ * sizeof(double) + kSlack, packed_)) return {};
  if (!values_.empty() && type == type_ && packed_ == last_) return values_;
  values_ = decoder_->decode(type, packed_);
  type_ = type;
  last_.swap(packed_);
  return values_;
}

template <class T>
bool ChunkReader::append_as(const Dataset& dataset, std::uint64_t begin, std::uint64_t end,
                            std::vector<T>& values) {
  const std::uint64_t rows = dataset.chunk_rows();
  if (begin >= end || rows == 0 || !std::has_single_bit(rows) || rows > kMaxRowsPerBlock) return false;
  const ColumnType type = dataset.column_type();
  if (!converts<T>(type) || !dataset.is_packed_as_block(type)) return false;
  if (rows != chunk_rows_) {
    decoder_ = std::make_unique<BlockDecoder>(static_cast<std::uint32_t>(rows));
    chunk_rows_ = rows;
    values_ = {};
  }
  const std::size_t before = values.size();
  values.resize(before + (end - begin));
  for (std::uint64_t start = begin / rows * rows; start < end; start += rows) {
    const auto packed = chunk(dataset, type, start);
    if (packed.empty()) {
      values.resize(before);
      return false;
    }
    const std::uint64_t from = std::max(begin, start), to = std::min(end, start + rows);
    convert(type, packed, from - start, std::span(values).subspan(before + (from - begin), to - from));
  }
  return true;
}

bool ChunkReader::append(const Dataset& dataset, std::uint64_t begin, std::uint64_t end,
                         std::vector<double>& values) {
  return append_as(dataset, begin, end, values);
}
bool ChunkReader::append(const Dataset& dataset, std::uint64_t begin, std::uint64_t end,
                         std::vector<std::uint64_t>& values) {
  return append_as(dataset, begin, end, values);
}
bool ChunkReader::append(const Dataset& dataset, std::uint64_t begin, std::uint64_t end,
                         std::vector<std::uint8_t>& values) {
  return append_as(dataset, begin, end, values);
}

}  // namespace shardscape::results
