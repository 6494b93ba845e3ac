// A fast packer for columns that repeat themselves.
//
// Most columns of a block are runs, or a pattern that comes again and again: degrees that change slowly, the upper
// bytes of small integers, points that differ in an axis which does not touch the value. A general compressor spends
// its time on hashing every byte of them. This one writes the same format (a zlib stream, RFC 1950 and 1951) by a
// greedy search that remembers few positions of what it skips, and with deflate's fixed codes; it gives up early on
// what does not repeat.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace shardscape::results {

/// Owns scratch memory: one object per thread. A result depends on the arguments alone.
class RepeatPacker {
 public:
  /// Replaces `out` by the packed bytes; false, with `out` undefined, where they would not be much less than a
  /// sixteenth of the input.
  bool pack(std::span<const std::byte> in, std::vector<std::byte>& out);

 private:
  static constexpr unsigned kHashBits = 11;

  [[nodiscard]] static std::size_t slot_of(std::uint32_t four_bytes);
  void remember(std::span<const std::byte> in, std::size_t from, std::size_t to);

  /// By hash of four bytes, where they stood last, counted from 1; 0: nowhere.
  std::array<std::uint32_t, std::size_t{1} << kHashBits> last_{};
};

}  // namespace shardscape::results
