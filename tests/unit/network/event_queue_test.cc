// Do events come in the order of their times, and simultaneous ones in that of their pushes?
#include "engine/network/flows/event_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "engine/base/counter_rng.h"

namespace shardscape::network {
namespace {

struct Pushed {
  double time = 0;
  std::int32_t id = 0;
};

// Against a stable sort: few times and many events at each, more than a chunk of a bucket holds; some are pushed
// while others are visited.
TEST(EventQueue, IsAStableSortByTime) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    CounterRng rng(seed, 1);
    EventQueue queue;
    std::vector<Pushed> expected;
    std::vector<std::int32_t> seen;
    const auto push = [&](double time) {
      const auto id = static_cast<std::int32_t>(expected.size());
      expected.push_back({time, id});
      queue.push(EventQueue::Kind::receipt, time, id, static_cast<std::uint32_t>(id) + 7);
    };
    for (int i = 0; i < 500; ++i) push(static_cast<double>(rng.below(1 + 10 * seed)));
    while (!queue.empty()) {
      const double now = queue.next_time();
      queue.pop([&](EventQueue::Kind kind, std::int32_t id, std::uint32_t stamp) {
        EXPECT_EQ(kind, EventQueue::Kind::receipt);
        EXPECT_EQ(stamp, static_cast<std::uint32_t>(id) + 7);
        seen.push_back(id);
        if (expected.size() < 2000) push(now + 1 + static_cast<double>(rng.below(5)));
      });
    }
    std::ranges::stable_sort(expected, {}, &Pushed::time);
    ASSERT_EQ(seen.size(), expected.size());
    for (std::size_t i = 0; i < seen.size(); ++i) ASSERT_EQ(seen[i], expected[i].id) << "seed " << seed;
  }
}

TEST(EventQueue, IsEmptyAfterClear) {
  EventQueue queue;
  for (std::int32_t i = 0; i < 100; ++i) queue.push(EventQueue::Kind::gate, 1, i);
  queue.clear();
  EXPECT_TRUE(queue.empty());
  queue.push(EventQueue::Kind::gate, 2, 5);
  std::vector<std::int32_t> seen;
  queue.pop([&](EventQueue::Kind, std::int32_t id, std::uint32_t) { seen.push_back(id); });
  EXPECT_EQ(seen, std::vector<std::int32_t>{5});
}

}  // namespace
}  // namespace shardscape::network
