// Are the classes of a refinement those of the coarsest equitable partition? Held against a plain search for it on
// graphs drawn at random, and against partitions that are known.
#include "engine/base/refinement.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <tuple>

#include "tests/support/seeds.h"

namespace shardscape {
namespace {

struct DrawnMeeting {
  std::size_t a = 0;
  std::uint32_t how_a = 0;
  std::size_t b = 0;
  std::uint32_t how_b = 0;
};

struct Graph {
  std::vector<std::uint64_t> are;
  std::vector<DrawnMeeting> meetings;

  [[nodiscard]] Classes refined() const {
    std::vector<Signature> signatures(are.size());
    for (std::size_t i = 0; i < are.size(); ++i) signatures[i].add(are[i]);
    const Meetings met(are.size(), [&](auto meet) {
      for (const DrawnMeeting& m : meetings) meet(m.a, m.how_a, m.b, m.how_b);
    });
    return number_classes(refine(met, std::move(signatures)).of());
  }

  /// By the definition: every object is compared with every other by all that it meets, until nothing changes.
  [[nodiscard]] Classes by_definition() const {
    std::vector<std::int32_t> of(are.size(), 0);
    using Met = std::multiset<std::pair<std::uint32_t, std::int32_t>>;
    for (std::set<std::int32_t> before;;) {
      std::vector<Met> met(are.size());
      for (const DrawnMeeting& m : meetings) {
        met[m.a].emplace(m.how_a, of[m.b]);
        met[m.b].emplace(m.how_b, of[m.a]);
      }
      std::vector<std::int32_t> next(are.size());
      for (std::size_t i = 0; i < are.size(); ++i) {
        std::size_t like = 0;
        while (are[like] != are[i] || of[like] != of[i] || met[like] != met[i]) ++like;
        next[i] = static_cast<std::int32_t>(like);
      }
      std::set<std::int32_t> now(next.begin(), next.end());
      of = next;
      if (now == before) return number_classes(of);
      before = std::move(now);
    }
  }
};

std::uint64_t below(std::mt19937_64& random, std::uint64_t bound) { return random() % bound; }

/// Copies of one small graph, with some meetings beside: many objects are alike, some hardly differ.
Graph drawn_graph(std::mt19937_64& random) {
  const std::size_t size = 1 + below(random, 6), copies = 1 + below(random, 5);
  const std::uint64_t kinds = 1 + below(random, 3);
  const auto ways = static_cast<std::uint32_t>(1 + below(random, 3));
  Graph graph;
  for (std::size_t i = 0; i < size; ++i) graph.are.push_back(below(random, kinds));
  for (std::size_t c = 1; c < copies; ++c)
    for (std::size_t i = 0; i < size; ++i) graph.are.push_back(graph.are[i]);
  const auto way = [&] { return static_cast<std::uint32_t>(below(random, ways)); };
  for (std::uint64_t m = below(random, 2 * size + 1); m > 0; --m) {
    // Between an object of one copy and one of the next, or of the same.
    const std::size_t a = below(random, size), b = below(random, size), step = below(random, 2);
    const std::uint32_t how_a = way(), how_b = way();
    for (std::size_t c = 0; c < copies; ++c)
      graph.meetings.push_back({c * size + a, how_a, (c + step) % copies * size + b, how_b});
  }
  for (std::uint64_t m = below(random, 3); m > 0; --m)
    graph.meetings.push_back({below(random, size * copies), way(), below(random, size * copies), way()});
  std::ranges::shuffle(graph.meetings, random);
  return graph;
}

TEST(Refinement, FindsTheCoarsestEquitablePartition) {
  std::size_t objects = 0, classes = 0;
  for (std::uint64_t seed = 0; seed < test::seeds(4000); ++seed) {
    std::mt19937_64 random(seed);
    const Graph graph = drawn_graph(random);
    const Classes found = graph.refined(), expected = graph.by_definition();
    ASSERT_EQ(found.of, expected.of) << "seed " << seed;
    ASSERT_EQ(found.first, expected.first) << "seed " << seed;
    objects += found.of.size();
    classes += found.first.size();
  }
  EXPECT_LT(classes, objects * 3 / 4);  // there is something to find
  EXPECT_GT(classes, objects / 4);
}

// A path of n objects: the ends differ, and what lies further in by the distance to the nearer end, n / 2 classes. It
// takes as many rounds.
TEST(Refinement, DifferencesTravelAlongAChain) {
  constexpr std::size_t kLength = 10'000;
  std::vector<Signature> are(kLength);
  const Meetings chain(kLength, [](auto meet) {
    for (std::size_t i = 0; i + 1 < kLength; ++i) meet(i, 0, i + 1, 0);
  });
  const Classes classes = number_classes(refine(chain, are).of());
  EXPECT_EQ(classes.first.size(), kLength / 2);
  for (std::size_t i = 0; i < kLength; ++i)
    ASSERT_EQ(static_cast<std::size_t>(classes.of[i]), std::min(i, kLength - 1 - i));
}

// On the same path a round tells two more objects apart on either side.
TEST(Refinement, StopsWhereThatIsEnough) {
  const Meetings chain(100, [](auto meet) {
    for (std::size_t i = 0; i + 1 < 100; ++i) meet(i, 0, i + 1, 0);
  });
  std::size_t asked = 0;
  const Partition partition = refine(chain, std::vector<Signature>(100), [&](const Partition& found) {
    EXPECT_EQ(found.count(), ++asked);
    return asked == 7;
  });
  EXPECT_EQ(partition.count(), 7U);
}

// The same path in which each meets the next as what follows it: no two are alike. Closed to a ring all are.
TEST(Refinement, WaysOfMeetingTellApart) {
  constexpr std::size_t kLength = 50;
  const auto classes = [](std::size_t steps, std::uint32_t back) {
    const Meetings chain(kLength, [&](auto meet) {
      for (std::size_t i = 0; i < steps; ++i) meet(i, 0, (i + 1) % kLength, back);
    });
    return number_classes(refine(chain, std::vector<Signature>(kLength)).of()).first.size();
  };
  EXPECT_EQ(classes(kLength - 1, 0), kLength / 2);
  EXPECT_EQ(classes(kLength - 1, 1), kLength);
  EXPECT_EQ(classes(kLength, 1), 1U);
}

// Objects that are not told of stay where they are; those that are told the same as before do, too.
TEST(Refinement, APartitionIsSplitByWhatIsTold) {
  const auto signatures = [](const std::vector<std::uint64_t>& words) {
    std::vector<Signature> list;
    for (const std::uint64_t word : words) list.push_back(Signature::of(word));
    return list;
  };
  Partition partition(6);
  partition.split({0, 1, 2, 3, 4, 5}, signatures({7, 7, 8, 8, 8, 9}));
  EXPECT_EQ(number_classes(partition.of()).of, (std::vector<std::int32_t>{0, 0, 1, 1, 1, 2}));
  EXPECT_EQ(partition.count(), 3U);
  std::map<std::int32_t, std::int32_t> moved;
  const auto note = [&](std::int32_t object, std::int32_t before) { moved[object] = before; };
  // All of the second class are told something new: its largest part keeps the number.
  const std::int32_t number = partition.of()[3];
  partition.split({2, 3, 4}, signatures({0, 0, 5, 6, 6, 0}), note);
  EXPECT_EQ(moved, (std::map<std::int32_t, std::int32_t>{{2, number}}));
  EXPECT_EQ(partition.of()[3], number);
  // One of the first class leaves; the other stays by being told nothing, or nothing new.
  moved.clear();
  partition.split({0, 1}, signatures({1, 7, 0, 0, 0, 0}), note);
  EXPECT_EQ(moved.size(), 1U);
  EXPECT_EQ(moved.count(0), 1U);
  EXPECT_EQ(number_classes(partition.of()).of, (std::vector<std::int32_t>{0, 1, 2, 3, 3, 4}));
  EXPECT_EQ(partition.count(), 5U);
}

TEST(Refinement, ClassesAreNumberedByTheirFirstMembers) {
  const Classes classes = number_classes(std::vector<std::int32_t>{5, 2, -1, 5, 0, 2});
  EXPECT_EQ(classes.of, (std::vector<std::int32_t>{0, 1, -1, 0, 2, 1}));
  EXPECT_EQ(classes.first, (std::vector<std::int32_t>{0, 1, 4}));
  EXPECT_TRUE(classes.stands(1));
  EXPECT_FALSE(classes.stands(5));
  EXPECT_EQ(classes.representative(5), 1U);
}

}  // namespace
}  // namespace shardscape
