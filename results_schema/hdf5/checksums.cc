// Computes checksums, and does what the classes of hdf5_io.h do about them.
#include "results_schema/hdf5/checksums.h"

#include <fmt/format.h>
#include <libdeflate.h>

#include <algorithm>

#include "results_schema/hdf5/hdf5_io.h"

namespace shardscape::results {

std::uint32_t checksum_of(std::span<const std::byte> bytes) {
  return libdeflate_crc32(0, bytes.data(), bytes.size());
}

void Dataset::read_chunk(std::uint64_t row, std::size_t limit, std::vector<std::byte>& bytes) const {
  if (!try_read_chunk(row, limit, bytes)) fail_chunk(row);
}

bool Dataset::try_read_chunk(std::uint64_t row, std::size_t limit, std::vector<std::byte>& bytes) const {
  const hsize_t offset = row;
  hsize_t size = 0;
  std::uint32_t skipped_filters = 0;
  if (H5Dget_chunk_storage_size(id(), &offset, &size) < 0 || size == 0 || size > limit) return false;
  bytes.resize(size);
  return H5Dread_chunk(id(), H5P_DEFAULT, &offset, &skipped_filters, bytes.data()) >= 0 &&
         skipped_filters == 0 && first_sum_ &&
         sums_->fits(*first_sum_ + row / chunk_rows_, checksum_of(bytes));
}

void Dataset::fail_chunk(std::uint64_t row) const {
  fail(fmt::format(
      "the chunk of row {} is missing, or not what its checksum says: the file is damaged, or another "
      "program has rewritten it",
      row));
}

void Dataset::check_sums(std::uint64_t begin, std::uint64_t end) const {
  if (chunk_rows_ == 0) return check_whole();
  const Hid type(H5Dget_type(id()));
  const std::uint64_t plain = std::min(chunk_rows_, kMostTextBytes) * H5Tget_size(type.get());
  std::vector<std::byte> bytes;
  for (std::uint64_t row = begin / chunk_rows_ * chunk_rows_; row < end; row += chunk_rows_)
    read_chunk(row, ChunkPacker::most_bytes(plain), bytes);
}

/// Checks a dataset in one piece against its checksum.
void Dataset::check_whole() const {
  if (whole_) return;
  const Hid type(H5Dget_type(id()));
  const std::size_t width = H5Tget_size(type.get());
  const Hid file(H5Iget_file_id(id()));
  hsize_t most = 0;  // bytes in the file
  if (H5Fget_filesize(file.get(), &most) < 0) fail("can't be read");
  if (path_ != kChunkChecksums) most = std::min<hsize_t>(most, kMostTextBytes);
  if (rows() > most / width)
    fail(fmt::format("has {} values in one piece; there are at most {} bytes in one", rows(), most));
  check_stored(0, rows());
  std::vector<std::byte> bytes(rows() * width);
  if (!bytes.empty() && H5Dread(id(), type.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, bytes.data()) < 0)
    fail("can't be read");
  if (integer_attribute(kChecksum) != checksum_of(bytes))
    fail("is not what its checksum says: the file is damaged, or another program has changed it");
  whole_ = true;
}

void H5File::read_checksums() {
  if (!has(kChunkChecksums)) return;  // a dataset in chunks then fails where it is read
  *sums_ = ChunkChecksums(dataset(kChunkChecksums).read_all<std::uint32_t>());
}

void H5File::write_checksums() const {
  create_group(kChecksumsGroup);
  const std::vector<std::uint32_t>& sums = sums_->all();
  const Dataset stored = write_piece(kChunkChecksums, native_type<std::uint32_t>(), sums.size(), sums.data());
  stored.set_attribute("units", "1");
  stored.set_attribute("long_name", "CRC-32 of every chunk of the file as stored");
}

}  // namespace shardscape::results
