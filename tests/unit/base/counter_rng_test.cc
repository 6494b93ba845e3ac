#include "engine/base/counter_rng.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>

namespace shardscape {
namespace {

// Known answers of philox4x32-10 (kat_vectors of the Random123 distribution). The generator's first block has
// counter (0, 0, stream low, stream high) and key (seed low, seed high); bits() reads the words in pairs, low
// word first.
TEST(CounterRng, FirstBlockIsThePublishedKnownAnswer) {
  // counter 0 0 0 0, key 0 0 -> 6627e8d5 e169c58d bc57ac4c 9b00dbd8
  CounterRng zero(0, 0);
  EXPECT_EQ(zero.bits(), 0xe169c58d6627e8d5ULL);
  EXPECT_EQ(zero.bits(), 0x9b00dbd8bc57ac4cULL);
}

TEST(CounterRng, CipherIsTheTenRoundPhilox) {
  using Cipher = r123::Philox4x32;
  // counter ffffffff x 4, key ffffffff x 2 -> 408f276d 41c83b0e a20bc7c6 6d5451fd
  const Cipher::ctr_type ones{{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}};
  const Cipher::ctr_type a = Cipher()(ones, Cipher::key_type{{0xffffffff, 0xffffffff}});
  EXPECT_EQ(a, (Cipher::ctr_type{{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}}));
  // digits of pi -> d16cfe09 94fdcceb 5001e420 24126ea1
  const Cipher::ctr_type pi{{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}};
  const Cipher::ctr_type b = Cipher()(pi, Cipher::key_type{{0xa4093822, 0x299f31d0}});
  EXPECT_EQ(b, (Cipher::ctr_type{{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}}));
}

TEST(CounterRng, SeedAndStreamBothMatterInAllTheirBits) {
  const auto first = [](std::uint64_t seed, std::uint64_t stream) { return CounterRng(seed, stream).bits(); };
  const std::uint64_t base = first(0, 0);
  for (int bit = 0; bit < 64; ++bit) {
    EXPECT_NE(first(1ULL << bit, 0), base) << bit;
    EXPECT_NE(first(0, 1ULL << bit), base) << bit;
  }
  EXPECT_EQ(first(7, 11), first(7, 11));
}

TEST(CounterRng, UniformLiesInTheHalfOpenUnitIntervalAndIsFlat) {
  CounterRng rng(2, 3);
  constexpr int kDraws = 200'000;
  double sum = 0, squares = 0;
  for (int i = 0; i < kDraws; ++i) {
    const double u = rng.uniform();
    ASSERT_GE(u, 0);
    ASSERT_LT(u, 1);
    sum += u;
    squares += u * u;
  }
  // Mean 1/2 with standard error sqrt(1/12/n); E u^2 = 1/3 with variance 1/5 - 1/9 = 4/45. Six sigma.
  EXPECT_NEAR(sum / kDraws, 0.5, 6 * std::sqrt(1.0 / 12 / kDraws));
  EXPECT_NEAR(squares / kDraws, 1.0 / 3, 6 * std::sqrt(4.0 / 45 / kDraws));
}

TEST(CounterRng, BelowCoversItsRangeEvenly) {
  CounterRng rng(5, 0);
  constexpr std::size_t kBins = 7;
  constexpr int kDraws = 140'000;
  std::array<int, kBins> count{};
  for (int i = 0; i < kDraws; ++i) {
    const std::uint64_t value = rng.below(kBins);
    ASSERT_LT(value, kBins);
    ++count[value];
  }
  // Chi-squared with 6 degrees of freedom exceeds 38 once in a million.
  double chi_squared = 0;
  for (const int n : count) chi_squared += std::pow(n - kDraws / 7.0, 2) / (kDraws / 7.0);
  EXPECT_LT(chi_squared, 38);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(rng.below(1), 0U);
}

TEST(CounterRng, BelowHasNoModuloBiasWhereTheRangeIsLarge) {
  // n = 3 * 2^62: plain 64-bit modulo would give the lowest quarter of 2^64 twice the weight, i.e. values
  // below 2^62 half of all draws instead of a third.
  CounterRng rng(9, 1);
  constexpr int kDraws = 30'000;
  int low = 0;
  for (int i = 0; i < kDraws; ++i) low += rng.below(3ULL << 62) < (1ULL << 62) ? 1 : 0;
  EXPECT_NEAR(low / static_cast<double>(kDraws), 1.0 / 3, 6 * std::sqrt(2.0 / 9 / kDraws));
}

}  // namespace
}  // namespace shardscape
