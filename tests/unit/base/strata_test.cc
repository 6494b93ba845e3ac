// A stratified choice, held to its parts written out by hand and to equal chances.
#include "engine/base/strata.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace shardscape {
namespace {

TEST(StratifiedChoice, OneOfEachPart) {
  // 10 = 4 * 2 + 2: the first two parts have three members.
  constexpr std::array<std::pair<std::uint64_t, std::uint64_t>, 4> kParts = {
      {{0, 2}, {3, 5}, {6, 7}, {8, 9}}};
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    for (std::uint64_t i = 0; i < kParts.size(); ++i) {
      const std::uint64_t chosen = stratified_choice(10, 4, i, seed);
      EXPECT_GE(chosen, kParts[i].first);
      EXPECT_LE(chosen, kParts[i].second);
    }
  }
}

TEST(StratifiedChoice, AllOfAllIsThePopulation) {
  for (std::uint64_t i = 0; i < 7; ++i) EXPECT_EQ(stratified_choice(7, 7, i, 3), i);
}

TEST(StratifiedChoice, LargePopulationsDoNotOverflow) {
  constexpr std::uint64_t kAll = ~std::uint64_t{0};
  std::uint64_t last = 0;
  for (std::uint64_t i = 0; i < 1000; ++i) {
    const std::uint64_t chosen = stratified_choice(kAll, 1000, i, 1);
    EXPECT_TRUE(i == 0 || chosen > last);
    last = chosen;
  }
  EXPECT_GE(last, kAll / 1000 * 999);
}

TEST(StratifiedChoice, MembersOfAPartAreEquallyLikely) {
  // Part 1 of 10 in 4 has three members. Over 3,000 seeds each is drawn 1,000 times, with a standard
  // deviation of sqrt(3000 * 1/3 * 2/3) = 25.8; five of them are 129.
  std::array<int, 3> drawn{};
  for (std::uint64_t seed = 0; seed < 3000; ++seed) ++drawn[stratified_choice(10, 4, 1, seed) - 3];
  for (const int count : drawn) EXPECT_NEAR(count, 1000, 129);
}

TEST(StratifiedChoice, DigitsAreMetAsOftenAsTheyOccur) {
  // Ids whose last digit (of base 6) is an axis: parts of exactly six ids would always begin with the same
  // digit, and a fixed offset would see one value only.
  std::array<int, 6> met{};
  for (std::uint64_t i = 0; i < 6000; ++i) ++met[stratified_choice(36000, 6000, i, 0) % 6];
  for (const int count : met) EXPECT_NEAR(count, 1000, 5 * 29);  // sqrt(6000 * 1/6 * 5/6) = 28.9
}

}  // namespace
}  // namespace shardscape
