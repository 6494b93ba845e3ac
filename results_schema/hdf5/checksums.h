// Checksums of what HDF5 itself stores without any: the bytes of every dataset. Its headers, with all attributes, have
// checksums of their own; its index of chunks has none, so that a chunk is only known by its bytes. Private to this
// folder.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace shardscape::results {

/// Where the checksums of all chunks of a file lie, one dataset after the other.
inline constexpr const char* kChecksumsGroup = "/checksums";
inline constexpr const char* kChunkChecksums = "/checksums/chunks";
/// Attribute of a dataset in one piece: the checksum of its bytes.
inline constexpr const char* kChecksum = "checksum";
/// Attribute of a dataset in chunks: the place of its first chunk's checksum.
inline constexpr const char* kFirstChecksum = "first_checksum";

/// CRC-32 as zlib has it.
std::uint32_t checksum_of(std::span<const std::byte> bytes);

/// The checksums of the chunks of one file, as stored.
class ChunkChecksums {
 public:
  ChunkChecksums() = default;
  explicit ChunkChecksums(std::vector<std::uint32_t> stored) : sums_(std::move(stored)) {}

  /// Makes room for a dataset of so many chunks; the place of the first.
  std::uint64_t add(std::uint64_t chunks) {
    const std::uint64_t first = sums_.size();
    sums_.resize(first + chunks);
    return first;
  }
  void set(std::uint64_t place, std::uint32_t sum) { sums_.at(place) = sum; }
  /// Whether the chunk of that place has this checksum; false where there is no such place.
  [[nodiscard]] bool fits(std::uint64_t place, std::uint32_t sum) const {
    return place < sums_.size() && sums_[place] == sum;
  }
  [[nodiscard]] const std::vector<std::uint32_t>& all() const { return sums_; }

 private:
  std::vector<std::uint32_t> sums_;
};

}  // namespace shardscape::results
