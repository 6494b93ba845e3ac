// Packs the columns of a block into chunks as HDF5's shuffle and deflate filters do, unpacks chunks, and chooses the
// rows that may be stored where a sweep does not store all.
#include "results_schema/rows/block.h"

#include <libdeflate.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>

#include "engine/base/check.h"

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

// Compression level on zlib's scale, in the container format that HDF5's deflate filter reads.
constexpr int kDeflateLevel = 1;

/// Shuffles as HDF5's filter does: byte j of every value, then byte j + 1 of every value. Bytes that are equal in all
/// values, such as the upper ones of small integers, are set at once.
template <class Word>
void shuffle_words(const std::byte* in, std::byte* out, std::size_t values) {
  Word first = 0, differing = 0;
  std::memcpy(&first, in, sizeof(Word));
  for (std::size_t i = 0; i < values; ++i) {
    Word word = 0;
    std::memcpy(&word, in + i * sizeof(Word), sizeof(Word));
    differing |= word ^ first;
  }
  std::array<std::byte, sizeof(Word)> differs{};
  std::memcpy(differs.data(), &differing, sizeof(Word));
  for (std::size_t byte = 0; byte < sizeof(Word); ++byte) {
    std::byte* plane = out + byte * values;
    if (differs[byte] == std::byte{0}) {
      std::memset(plane, std::to_integer<int>(in[byte]), values);
      continue;
    }
    for (std::size_t i = 0; i < values; ++i) plane[i] = in[i * sizeof(Word) + byte];
  }
}

/// `width`: bytes per value, one of the widths of stored types.
void shuffle(const std::byte* in, std::byte* out, std::size_t values, std::size_t width) {
  SHARDSCAPE_CHECK(width == 1 || width == sizeof(std::uint32_t) || width == sizeof(std::uint64_t), width);
  if (width == 1) std::memcpy(out, in, values);
  if (width == sizeof(std::uint32_t)) shuffle_words<std::uint32_t>(in, out, values);
  if (width == sizeof(std::uint64_t)) shuffle_words<std::uint64_t>(in, out, values);
}

/// Joins the bytes of each value in a register: several times as fast as byte by byte through memory.
template <class Word>
void join_bytes(const std::byte* in, std::byte* out, std::size_t values) {
  for (std::size_t i = 0; i < values; ++i) {
    Word word = 0;
    for (std::size_t byte = 0; byte < sizeof(Word); ++byte)
      word |= static_cast<Word>(std::to_integer<Word>(in[byte * values + i]) << (8 * byte));
    std::memcpy(out + i * sizeof(Word), &word, sizeof(Word));
  }
}

void unshuffle(const std::byte* in, std::byte* out, std::size_t values, std::size_t width) {
  if constexpr (std::endian::native == std::endian::little) {
    if (width == sizeof(std::uint32_t)) return join_bytes<std::uint32_t>(in, out, values);
    if (width == sizeof(std::uint64_t)) return join_bytes<std::uint64_t>(in, out, values);
  }
  for (std::size_t byte = 0; byte < width; ++byte) {
    const std::byte* plane = in + byte * values;
    for (std::size_t i = 0; i < values; ++i) out[i * width + byte] = plane[i];
  }
}

bool is_feasible(const PointRecord& row) { return row.prediction.status == Status::ok; }

}  // namespace

ChunkPacker::ChunkPacker()
    : compressor_(libdeflate_alloc_compressor(kDeflateLevel), libdeflate_free_compressor) {
  if (!compressor_) throw std::bad_alloc();
}

std::span<const std::byte> ChunkPacker::pack(std::span<const std::byte> plain, std::size_t width) {
  const std::byte* source = plain.data();
  if (width > 1) {
    if (shuffled_.size() < plain.size()) shuffled_.resize(plain.size());
    shuffle(plain.data(), shuffled_.data(), plain.size() / width, width);
    source = shuffled_.data();
  }
  packed_.resize(libdeflate_zlib_compress_bound(compressor_.get(), plain.size()));
  const std::size_t size =
      libdeflate_zlib_compress(compressor_.get(), source, plain.size(), packed_.data(), packed_.size());
  SHARDSCAPE_CHECK(size > 0, plain.size(), width);  // most_bytes() is large enough
  return std::span(packed_).first(size);
}

BlockEncoder::BlockEncoder(const ColumnTable& table, std::uint32_t rows_per_block,
                           const std::vector<std::string>& objectives, StoredRows stored,
                           const RowSelector* whole)
    : table_(&table), rows_per_block_(rows_per_block), stored_(std::move(stored)), whole_(whole) {
  plain_.resize(rows_per_block * sizeof(double));
  kept_.resize(table.columns().size());
  for (const std::string& name : objectives) objectives_.push_back(measure(name));
  for (const std::string& name : stored_.measures(objectives)) deciding_.push_back(measure(name));
}

/// Adds a measure if it is new; returns its index.
std::size_t BlockEncoder::measure(const std::string& name) {
  const ColumnInfo* const column = table_->find(name);
  SHARDSCAPE_CHECK(column != nullptr, name);
  const auto place = static_cast<std::size_t>(column - table_->columns().data());
  const auto known = std::ranges::find(measures_, place, &Measure::column);
  if (known == measures_.end()) measures_.push_back({place, column->better, {}});
  return static_cast<std::size_t>(std::ranges::find(measures_, place, &Measure::column) - measures_.begin());
}

EncodedBlock BlockEncoder::encode(std::uint64_t index, std::span<const PointRecord> rows) {
  SHARDSCAPE_CHECK(!rows.empty() && rows.size() <= rows_per_block_, index, rows.size());
  SHARDSCAPE_CHECK(rows.front().point_id >= index * rows_per_block_, index, rows.front().point_id);
  EncodedBlock block;
  block.index = index;
  block.rows = static_cast<std::uint32_t>(rows.size());
  read_measures(rows);
  block.summary = summarise(rows);
  if (stored_.all())
    pack_all(rows, block);
  else
    block.candidates = candidates(rows);
  return block;
}

void BlockEncoder::pack_all(std::span<const PointRecord> rows, EncodedBlock& block) {
  const std::size_t columns = table_->columns().size();
  const RowsInCommon common = in_common(rows);
  block.chunks.reserve(columns);
  for (std::size_t c = 0; c < columns; ++c) {
    if (table_->is_same_in_all(c, common))
      put_one_value(c, rows);
    else
      put(c, rows);
    block.chunks.push_back(kept_[c].packed);
  }
}

/// Puts a column whose rows are known to hold one value: if the block before held that value in as many rows, its chunk
/// is used again.
void BlockEncoder::put_one_value(std::size_t column, std::span<const PointRecord> rows) {
  const std::size_t width = size_of(table_->columns()[column].type);
  const Kept& kept = kept_[column];
  table_->put(column, rows.first(1), plain_.data());
  if (kept.same == rows.size() && std::memcmp(plain_.data(), kept.plain.data(), width) == 0) return;
  for (std::size_t i = 1; i < rows.size(); ++i) std::memcpy(plain_.data() + i * width, plain_.data(), width);
  std::memset(plain_.data() + rows.size() * width, 0, (rows_per_block_ - rows.size()) * width);
  keep(column, std::span(plain_).first(rows_per_block_ * width), rows.size());
}

void BlockEncoder::put(std::size_t column, std::span<const PointRecord> rows) {
  const std::size_t width = size_of(table_->columns()[column].type);
  table_->put(column, rows, plain_.data());
  std::memset(plain_.data() + rows.size() * width, 0, (rows_per_block_ - rows.size()) * width);
  const auto plain = std::span(plain_).first(rows_per_block_ * width);
  const Kept& kept = kept_[column];
  const bool known =
      kept.plain.size() == plain.size() && std::memcmp(plain.data(), kept.plain.data(), plain.size()) == 0;
  if (!known) keep(column, plain, 0);
}

void BlockEncoder::keep(std::size_t column, std::span<const std::byte> plain, std::size_t same) {
  Kept& kept = kept_[column];
  kept.plain.assign(plain.begin(), plain.end());
  const std::span<const std::byte> packed = packer_.pack(plain, size_of(table_->columns()[column].type));
  kept.packed.assign(packed.begin(), packed.end());
  kept.same = same;
}

/// Reads the measures of all rows, or zeros where no row is ok: only rows that are ok are looked at.
void BlockEncoder::read_measures(std::span<const PointRecord> rows) {
  const bool any_ok = std::ranges::any_of(rows, is_feasible);
  for (Measure& measure : measures_) {
    measure.values.clear();
    if (!any_ok) measure.values.resize(rows.size());
    if (!any_ok) continue;
    table_->put(measure.column, rows, plain_.data());
    append_numbers(table_->columns()[measure.column].type, std::span(plain_), rows.size(), measure.values);
  }
}

/// The values of some measures in a row, valid until the next call.
std::span<const double> BlockEncoder::values(std::span<const std::size_t> measures, std::size_t row) {
  row_.clear();
  for (const std::size_t measure : measures) row_.push_back(measures_[measure].values[row]);
  return row_;
}

Summary BlockEncoder::summarise(std::span<const PointRecord> rows) {
  SummaryBuilder builder(directions(objectives_));
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Prediction& prediction = rows[i].prediction;
    builder.add(rows[i].point_id, prediction.status, prediction.reason, values(objectives_, i));
  }
  return builder.finish();
}

std::vector<Better> BlockEncoder::directions(std::span<const std::size_t> measures) const {
  std::vector<Better> list;
  for (const std::size_t measure : measures) list.push_back(measures_[measure].better);
  return list;
}

/// Indices of the rows that may be stored, by what is known of this block and of the whole sweep.
std::vector<std::size_t> BlockEncoder::choose(std::span<const PointRecord> rows) {
  constexpr double kUnknown = std::numeric_limits<double>::infinity();
  RowSelector own(stored_, directions(deciding_), whole_ == nullptr ? kUnknown : whole_->bound());
  std::vector<std::size_t> taken;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (is_feasible(rows[i]) && own.offer(rows[i].point_id, values(deciding_, i))) taken.push_back(i);
  }
  if (stored_.choice == RowChoice::feasible) return taken;
  // A subset of `taken`: later rows may have displaced some.
  const std::vector<std::uint64_t> chosen = own.chosen();
  std::erase_if(taken, [&](std::size_t i) { return !std::ranges::binary_search(chosen, rows[i].point_id); });
  return taken;
}

CandidateRows BlockEncoder::candidates(std::span<const PointRecord> rows) {
  CandidateRows found;
  std::vector<PointRecord> records;
  for (const std::size_t i : choose(rows)) {
    found.ids.push_back(rows[i].point_id);
    const std::span<const double> measures = values(deciding_, i);
    found.measures.insert(found.measures.end(), measures.begin(), measures.end());
    records.push_back(rows[i]);
  }
  if (records.empty()) return found;
  for (std::size_t c = 0; c < table_->columns().size(); ++c) {
    found.columns.emplace_back(records.size() * size_of(table_->columns()[c].type));
    table_->put(c, records, found.columns.back().data());
  }
  return found;
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

BlockDecoder::BlockDecoder(std::uint32_t rows_per_block)
    : rows_per_block_(rows_per_block),
      decompressor_(libdeflate_alloc_decompressor(), libdeflate_free_decompressor) {
  if (!decompressor_) throw std::bad_alloc();
  plain_.resize(rows_per_block * sizeof(double));
  shuffled_.resize(plain_.size());
}

bool BlockDecoder::inflate(std::span<const std::byte> chunk, std::span<std::byte> target) {
  std::size_t size = 0;
  const auto result = libdeflate_zlib_decompress(decompressor_.get(), chunk.data(), chunk.size(),
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
