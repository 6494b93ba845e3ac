#include "results_schema/repeat_packer.h"

#include <libdeflate.h>

#include <algorithm>
#include <bit>
#include <cstring>

namespace shardscape::results {

namespace {

// What deflate allows (RFC 1951, 3.2.5); a match shorter than the four bytes that are hashed is not looked for.
constexpr std::size_t kShortest = 4, kLongest = 258, kFarthest = 32768;
/// Positions at the end of a match that are remembered: what follows a pattern is often what followed it before.
constexpr std::size_t kRemembered = 4;

/// Bits in the order in which they are written, the lowest first.
struct Code {
  std::uint32_t bits = 0;
  std::uint32_t count = 0;
};

/// Huffman codes stand in the stream from their highest bit on.
constexpr std::uint32_t reversed(std::uint32_t bits, std::uint32_t count) {
  std::uint32_t result = 0;
  for (std::uint32_t i = 0; i < count; ++i) result |= (bits >> i & 1U) << (count - 1 - i);
  return result;
}

/// The fixed code of a literal or length symbol (RFC 1951, 3.2.6).
constexpr Code code_of_symbol(std::uint32_t symbol) {
  if (symbol < 144) return {reversed(0x30 + symbol, 8), 8};
  if (symbol < 256) return {reversed(0x190 + symbol - 144, 9), 9};
  if (symbol < 280) return {reversed(symbol - 256, 7), 7};
  return {reversed(0xC0 + symbol - 280, 8), 8};
}

/// A length: its symbol and extra bits. From 3 on, every power of two is cut into four, with ever more extra bits;
/// the longest has a symbol of its own.
constexpr Code code_of_length(std::uint32_t length) {
  if (length == kLongest) return code_of_symbol(285);
  const std::uint32_t above = length - 3;
  if (above < 8) return code_of_symbol(257 + above);
  const auto extra = static_cast<std::uint32_t>(std::bit_width(above)) - 3;
  const Code symbol = code_of_symbol(257 + 4 * (extra + 1) + (above >> extra & 3U));
  return {symbol.bits | (above & ((1U << extra) - 1)) << symbol.count, symbol.count + extra};
}

constexpr auto kLiterals = [] {
  std::array<Code, 256> codes{};
  for (std::uint32_t byte = 0; byte < codes.size(); ++byte) codes[byte] = code_of_symbol(byte);
  return codes;
}();
constexpr auto kLengths = [] {
  std::array<Code, kLongest + 1> codes{};
  for (std::uint32_t length = kShortest; length < codes.size(); ++length)
    codes[length] = code_of_length(length);
  return codes;
}();

/// A distance: likewise, with every power of two cut into two; symbols have five bits.
Code code_of_distance(std::uint32_t distance) {
  const std::uint32_t above = distance - 1;
  if (above < 4) return {reversed(above, 5), 5};
  const auto extra = static_cast<std::uint32_t>(std::bit_width(above)) - 2;
  const std::uint32_t symbol = 2 * (extra + 1) + (above >> extra & 1U);
  return {reversed(symbol, 5) | (above & ((1U << extra) - 1)) << 5U, 5 + extra};
}

class BitWriter {
 public:
  explicit BitWriter(std::byte* at) : at_(at) {}
  /// At most eight bytes at a time; up to eight more are overwritten.
  void put(Code code) {
    bits_ |= std::uint64_t{code.bits} << count_;
    count_ += code.count;
    std::memcpy(at_, &bits_, sizeof(bits_));
    at_ += count_ / 8;
    bits_ >>= count_ / 8 * 8;
    count_ %= 8;
  }
  void end_byte() {
    if (count_ > 0) *at_++ = static_cast<std::byte>(bits_);
    bits_ = count_ = 0;
  }
  [[nodiscard]] std::byte* at() const { return at_; }

 private:
  static_assert(std::endian::native == std::endian::little);
  std::byte* at_;
  std::uint64_t bits_ = 0;
  std::uint32_t count_ = 0;
};

template <class T>
T load(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof(T));
  return value;
}

/// How far two places agree, `most` at most.
std::size_t equal_bytes(const std::byte* a, const std::byte* b, std::size_t most) {
  std::size_t equal = 0;
  for (; equal + sizeof(std::uint64_t) <= most; equal += sizeof(std::uint64_t)) {
    const std::uint64_t differ = load<std::uint64_t>(a + equal) ^ load<std::uint64_t>(b + equal);
    if (differ != 0) return equal + static_cast<std::size_t>(std::countr_zero(differ)) / 8;
  }
  while (equal < most && a[equal] == b[equal]) ++equal;
  return equal;
}

}  // namespace

std::size_t RepeatPacker::slot_of(std::uint32_t four_bytes) {
  constexpr std::uint32_t kGolden = 2654435761U;  // 2^32 over the golden ratio: Knuth's multiplicative hash
  return four_bytes * kGolden >> (32 - kHashBits);
}

void RepeatPacker::remember(std::span<const std::byte> in, std::size_t from, std::size_t to) {
  for (std::size_t at = from; at < to && at + kShortest <= in.size(); ++at)
    last_[slot_of(load<std::uint32_t>(in.data() + at))] = static_cast<std::uint32_t>(at + 1);
}

bool RepeatPacker::pack(std::span<const std::byte> in, std::vector<std::byte>& out) {
  constexpr std::size_t kShare = 16, kLeast = 96,
                        kSlack = 32;  // slack: the ends of the stream, and of BitWriter
  last_.fill(0);
  const std::size_t limit = in.size() / kShare + kLeast;
  out.resize(limit + kSlack);
  out[0] = std::byte{0x78};  // deflate, window of 32 KiB
  out[1] = std::byte{0x01};  // fastest level; makes the two a multiple of 31
  BitWriter writer(out.data() + 2);
  writer.put({0b011, 3});  // the last block, fixed codes
  const std::byte* const end = out.data() + limit;
  std::size_t at = 0;
  while (at < in.size()) {
    if (writer.at() > end) return false;
    if (at + kShortest > in.size()) {
      writer.put(kLiterals[static_cast<std::size_t>(in[at++])]);
      continue;
    }
    const auto here = load<std::uint32_t>(in.data() + at);
    std::uint32_t& slot = last_[slot_of(here)];
    const std::size_t before = slot;
    slot = static_cast<std::uint32_t>(at + 1);
    const std::size_t distance = at + 1 - before;
    if (before == 0 || distance > kFarthest || load<std::uint32_t>(in.data() + before - 1) != here) {
      writer.put(kLiterals[static_cast<std::size_t>(in[at++])]);
      continue;
    }
    const std::size_t most = std::min(kLongest, in.size() - at);
    const std::size_t length = equal_bytes(in.data() + at, in.data() + before - 1, most);
    writer.put(kLengths[length]);
    writer.put(code_of_distance(static_cast<std::uint32_t>(distance)));
    at += length;
    remember(in, at - std::min(length - 1, kRemembered), at);
  }
  writer.put(code_of_symbol(256));  // end of the block
  writer.end_byte();
  const std::uint32_t checksum = libdeflate_adler32(1, in.data(), in.size());
  std::byte* tail = writer.at();
  for (const std::uint32_t shift : {24U, 16U, 8U, 0U}) *tail++ = static_cast<std::byte>(checksum >> shift);
  out.resize(static_cast<std::size_t>(tail - out.data()));
  return true;
}

}  // namespace shardscape::results
