// Is what the fast packer writes the input again for whoever reads zlib streams, and small where it repeats?
#include "results_schema/repeat_packer.h"

#include <gtest/gtest.h>
#include <libdeflate.h>

#include <functional>
#include <memory>

#include "engine/base/counter_rng.h"

namespace shardscape::results {
namespace {

using Bytes8 = std::vector<std::byte>;

/// What another implementation of the format makes of it; nothing where that finds it damaged.
Bytes8 inflated(const Bytes8& packed, std::size_t size) {
  const std::unique_ptr<libdeflate_decompressor, decltype(&libdeflate_free_decompressor)> state(
      libdeflate_alloc_decompressor(), &libdeflate_free_decompressor);
  Bytes8 plain(size);
  std::size_t read = 0, written = 0;
  const auto result = libdeflate_zlib_decompress_ex(state.get(), packed.data(), packed.size(), plain.data(),
                                                    size, &read, &written);
  const bool whole = result == LIBDEFLATE_SUCCESS && read == packed.size() && written == size;
  return whole ? plain : Bytes8();
}

Bytes8 made(std::size_t size, const std::function<std::uint64_t(std::size_t)>& value) {
  Bytes8 bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(value(i));
  return bytes;
}

TEST(RepeatPacker, PatternsComeBackAndAreSmall) {
  RepeatPacker packer;
  Bytes8 packed;
  for (const std::size_t size : {64, 255, 4096, 16384, 65536, 524288}) {
    for (const std::size_t period : {1, 2, 3, 5, 72, 1000}) {
      SCOPED_TRACE(testing::Message() << size << " bytes of period " << period);
      const Bytes8 plain = made(size, [&](std::size_t i) { return i % period * 37; });
      const bool expected =
          period < size / 40;  // a period of literals costs 9 bits each, of size / 2 there are
      if (!packer.pack(plain, packed)) {
        EXPECT_FALSE(expected);
        continue;
      }
      EXPECT_EQ(inflated(packed, size), plain);
      EXPECT_LE(packed.size(), size / 16 + 128);
    }
  }
}

// Every length of match from 4 to 258 and beyond, and distances on either side of every power of two up to those that
// are too far.
TEST(RepeatPacker, EveryLengthAndDistance) {
  RepeatPacker packer;
  Bytes8 packed;
  const std::size_t size = 131072;
  const auto between = [](std::size_t i) {
    return i % 2 == 0 ? 0 : 255;
  };  // what lies between is of two values
  const auto piece = [](std::size_t i) { return 1 + i * i % 201; };
  std::size_t tried = 0;
  const auto try_one = [&](std::size_t length, std::size_t distance) {
    Bytes8 plain = made(size, between);
    for (std::size_t i = 0; i < length; ++i) {
      plain[5000 + i] = static_cast<std::byte>(piece(i));
      plain[5000 + distance + i] = static_cast<std::byte>(piece(i));
    }
    ASSERT_TRUE(packer.pack(plain, packed)) << length << ' ' << distance;
    ASSERT_EQ(inflated(packed, size), plain) << length << ' ' << distance;
    ++tried;
  };
  for (std::size_t length = 1; length <= 300; ++length) try_one(length, 1000);
  for (std::size_t power = 512; power <= 65536; power *= 2) {
    for (const std::size_t distance : {power - 1, power, power + 1, power + power / 2}) try_one(40, distance);
  }
  EXPECT_EQ(tried, 300U + 32U);
}

// Random runs of random symbols, from nearly constant to nearly random.
TEST(RepeatPacker, RandomRunsComeBack) {
  RepeatPacker packer;
  Bytes8 packed;
  std::size_t repeating = 0;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    SCOPED_TRACE(seed);
    CounterRng rng(seed, 0);
    const std::size_t size = 1 + rng.below(40000);
    const std::uint64_t symbols = 1 + rng.below(1U << rng.below(9)), longest = 1 + rng.below(3000);
    Bytes8 plain;
    while (plain.size() < size) {
      const auto symbol = static_cast<std::byte>(rng.below(symbols) * 83);
      plain.insert(plain.end(), 1 + rng.below(longest), symbol);
    }
    plain.resize(size);
    if (!packer.pack(plain, packed)) continue;
    ASSERT_EQ(inflated(packed, size), plain);
    ++repeating;
  }
  EXPECT_GT(repeating, 200U);
}

TEST(RepeatPacker, GivesUpOnWhatDoesNotRepeat) {
  RepeatPacker packer;
  Bytes8 packed;
  CounterRng rng(1, 0);
  EXPECT_FALSE(packer.pack(made(16384, [&](std::size_t) { return rng.below(256); }), packed));
}

// What was packed before leaves no trace.
TEST(RepeatPacker, IsPure) {
  const Bytes8 one = made(4096, [](std::size_t i) { return i / 7 % 5; });
  const Bytes8 other = made(4096, [](std::size_t i) { return i / 3 % 5; });
  RepeatPacker used, fresh;
  Bytes8 first, again;
  ASSERT_TRUE(fresh.pack(one, first));
  (void)used.pack(other, again);
  ASSERT_TRUE(used.pack(one, again));
  EXPECT_EQ(again, first);
}

}  // namespace
}  // namespace shardscape::results
