// Sets of links against std::set.
#include "engine/network/fabric/link_set.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

namespace shardscape::network {
namespace {

std::set<std::int32_t> as_std_set(const LinkSet& set) {
  std::set<std::int32_t> links;
  std::int32_t last = -1;
  set.for_each([&](std::int32_t link) {
    EXPECT_GT(link, last);
    last = link;
    links.insert(link);
  });
  return links;
}

TEST(LinkSet, AgreesWithStdSet) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    LinkSet a, b;
    std::set<std::int32_t> of_a, of_b;
    // Within one chunk, and over many of which most are empty.
    const std::uint64_t range = seed % 2 == 0 ? 300 : 100'000;
    for (std::uint64_t i = random() % 40; i > 0; --i) {
      const auto link = static_cast<std::int32_t>(random() % range);
      a.insert(link);
      of_a.insert(link);
      if (random() % 3 != 0) continue;
      b.insert(link);
      of_b.insert(link);
    }
    if (random() % 2 == 0) {
      const auto link = static_cast<std::int32_t>(random() % range);
      b.insert(link);
      of_b.insert(link);
    }
    EXPECT_EQ(as_std_set(a), of_a);
    EXPECT_EQ(a.empty(), of_a.empty());
    EXPECT_EQ(a.contains_all(b), std::ranges::includes(of_a, of_b));
    EXPECT_EQ(b.contains_all(a), std::ranges::includes(of_b, of_a));
    const auto shared = [&](std::int32_t link) { return of_b.contains(link); };
    EXPECT_EQ(a.intersects(b), std::ranges::any_of(of_a, shared));
    EXPECT_EQ(b.intersects(a), std::ranges::any_of(of_a, shared));
    for (std::int32_t link = 0; link < 300; ++link) EXPECT_EQ(a.contains(link), of_a.contains(link));
    LinkSet all = b;
    all.insert_all(a);
    of_b.insert(of_a.begin(), of_a.end());
    EXPECT_EQ(as_std_set(all), of_b);
  }
}

}  // namespace
}  // namespace shardscape::network
