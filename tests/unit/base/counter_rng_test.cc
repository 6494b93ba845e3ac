// Is the generator Philox4x32-10, counted as promised, and are its conversions uniform?
#include "engine/base/counter_rng.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <set>

namespace shardscape {
namespace {

using Words = std::array<std::uint32_t, 4>;

/// Philox4x32-10 written out from Salmon et al. 2011, section 3.3: ten rounds of two 32 x 32 -> 64 bit
/// products whose high halves are mixed with the key; the key grows by the golden ratio and sqrt(3) - 1.
Words philox(Words c, std::array<std::uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t p0 = 0xD2511F53ULL * c[0], p1 = 0xCD9E8D57ULL * c[2];
    c = {static_cast<std::uint32_t>(p1 >> 32) ^ c[1] ^ key[0], static_cast<std::uint32_t>(p1),
         static_cast<std::uint32_t>(p0 >> 32) ^ c[3] ^ key[1], static_cast<std::uint32_t>(p0)};
    key[0] += 0x9E3779B9U;
    key[1] += 0xBB67AE85U;
  }
  return c;
}

TEST(CounterRng, KnownAnswers) {
  // The published vectors of Random123 (kat_vectors, philox4x32 10) hold for the oracle ...
  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
  // ... and the first for the generator: words pair up, low word first.
  CounterRng random(0, 0);
  EXPECT_EQ(random.bits(), 0xe169c58d6627e8d5ULL);
  EXPECT_EQ(random.bits(), 0x9b00dbd8bc57ac4cULL);
}

TEST(CounterRng, CounterIsBlockThenStream) {
  const std::uint64_t seed = 0x0123456789abcdefULL, stream = 0xfedcba9876543210ULL;
  CounterRng random(seed, stream);
  for (std::uint32_t block = 0; block < 100; ++block) {
    const Words words = philox({block, 0, 0x76543210U, 0xfedcba98U}, {0x89abcdefU, 0x01234567U});
    EXPECT_EQ(random.bits(), words[0] | static_cast<std::uint64_t>(words[1]) << 32) << block;
    EXPECT_EQ(random.bits(), words[2] | static_cast<std::uint64_t>(words[3]) << 32) << block;
  }
}

TEST(CounterRng, StreamsAndSeedsShareNoValue) {
  // 4096 64-bit words collide by chance with probability 4096^2 / 2 / 2^64 < 1e-12.
  std::set<std::uint64_t> seen;
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    for (std::uint64_t stream = 0; stream < 8; ++stream) {
      CounterRng random(seed, stream);
      for (int i = 0; i < 64; ++i) EXPECT_TRUE(seen.insert(random.bits()).second) << seed << ' ' << stream;
    }
  }
}

TEST(CounterRng, BelowIsUniform) {
  constexpr int kDraws = 70'000;
  constexpr std::uint64_t kSides = 7;
  CounterRng random(1, 2);
  std::array<int, kSides> count{};
  for (int i = 0; i < kDraws; ++i) {
    const std::uint64_t side = random.below(kSides);
    ASSERT_LT(side, kSides);
    ++count[side];
  }
  // Binomial: mean n/7 = 10000, deviation sqrt(n/7 * 6/7) = 92.6; six deviations.
  for (const int c : count) EXPECT_NEAR(c, kDraws / 7, 6 * 92.6);
}

TEST(CounterRng, BelowAtTheEdges) {
  CounterRng random(3, 0);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(random.below(1), 0U);
  // n = 3 * 2^62 rejects a quarter of all words; a biased reduction would favour the low third's multiples:
  // the share of draws in each third stays at 1/3.
  constexpr std::uint64_t kThird = 1ULL << 62;
  std::array<int, 3> count{};
  for (int i = 0; i < 30'000; ++i) {
    const std::uint64_t value = random.below(3 * kThird);
    ASSERT_LT(value, 3 * kThird);
    ++count[value / kThird];
  }
  for (const int c : count) EXPECT_NEAR(c, 10'000, 6 * std::sqrt(30'000 * 2.0 / 9));
}

TEST(CounterRng, UniformMoments) {
  constexpr int kDraws = 100'000;
  CounterRng random(7, 7);
  double sum = 0, squares = 0;
  for (int i = 0; i < kDraws; ++i) {
    const double u = random.uniform();
    ASSERT_GE(u, 0);
    ASSERT_LT(u, 1);
    sum += u;
    squares += u * u;
  }
  // E u = 1/2 with deviation sqrt(1/12 n); E u^2 = 1/3 with deviation sqrt((1/5 - 1/9) / n).
  EXPECT_NEAR(sum / kDraws, 0.5, 6 * std::sqrt(1.0 / 12 / kDraws));
  EXPECT_NEAR(squares / kDraws, 1.0 / 3, 6 * std::sqrt((1.0 / 5 - 1.0 / 9) / kDraws));
}

TEST(CounterRng, UniformKeepsTheTop53Bits) {
  CounterRng bits(11, 5), uniform(11, 5);
  for (int i = 0; i < 1000; ++i) {
    const double expected = std::ldexp(static_cast<double>(bits.bits() / 2048), -53);
    EXPECT_EQ(uniform.uniform(), expected);
  }
}

}  // namespace
}  // namespace shardscape
