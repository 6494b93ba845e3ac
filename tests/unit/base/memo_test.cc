// Do keys of memos tell apart whatever differs in any field?
#include "engine/base/memo.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "engine/base/quantity.h"
#include "engine/network/prices/curve_store.h"
#include "engine/network/prices/sick_links.h"
#include "engine/step/training/price_training.h"

namespace shardscape {
namespace {

template <class T>
std::deque<T> changed_copies(const T& value);

/// Copies of `of`, one for each field and each way to change that.
template <class Struct>
std::deque<Struct> with_changed_fields(const Struct& of) {
  std::deque<Struct> copies;
  std::size_t fields = 0;
  for_each_field(of, [&](const auto& /*field*/) { ++fields; });
  for (std::size_t changed = 0; changed < fields; ++changed) {
    std::size_t number = 0;
    for_each_field(of, [&](const auto& field) {
      if (number++ != changed) return;
      using Field = std::decay_t<decltype(field)>;
      for (const Field& other : changed_copies(field)) {
        Struct copy = of;
        std::size_t place = 0;
        for_each_field(copy, [&](auto& mine) {
          if constexpr (std::is_same_v<std::decay_t<decltype(mine)>, Field>) {
            if (place == changed) mine = other;
          }
          ++place;
        });
        copies.push_back(copy);
      }
    });
  }
  return copies;
}

/// Copies of a value that each differ from it in one place.
template <class T>
std::deque<T> changed_copies(const T& value) {
  if constexpr (std::is_same_v<T, bool>) {
    return {!value};
  } else if constexpr (std::is_enum_v<T>) {
    return {static_cast<T>(static_cast<std::underlying_type_t<T>>(value) + 1)};
  } else if constexpr (std::is_arithmetic_v<T>) {
    return {static_cast<T>(value + 1)};
  } else if constexpr (requires { value.value(); }) {
    return {T(value.value() + 1)};
  } else if constexpr (std::ranges::range<T>) {
    std::deque<T> copies;
    for (std::size_t i = 0; i < value.size(); ++i) {
      for (const auto& other : changed_copies(value[i])) {
        copies.push_back(value);
        copies.back()[i] = other;
      }
    }
    if constexpr (requires(T longer) { longer.emplace_back(); }) {
      copies.push_back(value);
      copies.back().emplace_back();
    }
    return copies;
  } else {
    return with_changed_fields(value);
  }
}

/// Whatever changes in the key makes another key with another hash. Returns the number of changes.
template <class Key>
std::size_t expect_every_field_counts(const Key& key) {
  const FieldsHash hash;
  const Key same = key;
  EXPECT_TRUE(same == key);
  EXPECT_EQ(hash(same), hash(key));
  const std::deque<Key> changed = changed_copies(key);
  for (std::size_t i = 0; i < changed.size(); ++i) {
    EXPECT_FALSE(changed[i] == key) << "change " << i;
    EXPECT_NE(hash(changed[i]), hash(key)) << "change " << i;
  }
  return changed.size();
}

TEST(Fields, AreCountedAndVisitedInOrder) {
  struct Sample {
    std::int32_t first = 1;
    std::vector<double> second = {2, 3};
    network::RankGroup::Level third = {4, 5};
    Seconds fourth = Seconds(6);
  };
  Sample sample;
  std::string text;
  for_each_field(sample, [&](const auto& field) {
    using Field = std::decay_t<decltype(field)>;
    if constexpr (std::is_same_v<Field, std::int32_t>) text += "int ";
    if constexpr (std::is_same_v<Field, std::vector<double>>) text += "vector ";
    if constexpr (std::is_same_v<Field, network::RankGroup::Level>) text += "level ";
    if constexpr (std::is_same_v<Field, Seconds>) text += "seconds ";
  });
  EXPECT_EQ(text, "int vector level seconds ");
}

TEST(Memo, EveryFieldOfAKeyCounts) {
  network::RankGroup group;
  group.push(4, 1);
  group.push(2, 8);
  // The levels of a group, its depth and the mirror.
  const std::size_t of_group = 2 * kPlanAxes + 1 + 2;
  EXPECT_EQ(expect_every_field_counts(group), of_group);
  EXPECT_EQ(expect_every_field_counts(network::OperationKey{network::CollectiveOp::all_gather, group}),
            1 + of_group);
  EXPECT_EQ(expect_every_field_counts(network::TwoWays{3, 5}), 2U);
  EXPECT_EQ(expect_every_field_counts(network::SeveralWays{{3, 5, 7}}), 4U);
  EXPECT_EQ(expect_every_field_counts(network::SickPriceKey{1, 3, 1e6}), 3U);
  EXPECT_EQ(expect_every_field_counts(network::SlicesKey{3, {4, 8}}), 3U);
  EXPECT_EQ(expect_every_field_counts(network::HealthyPartKey{3, 1, 1e6}), 3U);
  // Each field of a fault, and one fault more.
  EXPECT_EQ(expect_every_field_counts(std::vector<LinkFault>{{7, 0.5, Seconds(1e-6), false}}), 5U);
  // Operation, four parts of the choice, group, boundary, slice, two latencies.
  EXPECT_EQ(expect_every_field_counts(network::CurveKey{
                network::CollectiveOp::all_gather, {}, group, 1, {4, 8}, Seconds(1e-6), Seconds(2e-6)}),
            1 + 4 + of_group + 1 + 2 + 2);
  // The curve's key, bytes, tolerance.
  EXPECT_EQ(expect_every_field_counts(network::CurvePoint{
                {network::CollectiveOp::all_gather, {}, group, 1, {4, 8}, Seconds(1e-6), Seconds(2e-6)},
                1e6,
                1e-3}),
            1 + 4 + of_group + 1 + 2 + 2 + 2);
}

TEST(Memo, EveryFieldOfAStepsKeyCounts) {
  // Degrees and order by axis, both degrees of experts, sequence parallelism, schedule.
  const std::size_t of_plan = 2 * kPlanAxes + 2 + 1 + 1;
  EXPECT_EQ(expect_every_field_counts(step::PlanOnRanks()), of_plan);
  EXPECT_EQ(expect_every_field_counts(step::LayersKey()), of_plan + 3);
  EXPECT_EQ(expect_every_field_counts(step::DataKey()), of_plan + 3);  // ZeRO stage, faults, stage
  EXPECT_EQ(expect_every_field_counts(step::StepKey()), of_plan + 3 + 2);
  EXPECT_EQ(expect_every_field_counts(step::SickLinksOfStage{1, 2, 3}), 3U);
}

TEST(Memo, APairOfSlotsKeepsTheTwoKeysThatWereAskedForLast) {
  SlotMemo<network::TwoWays, int, 4> memo;
  const auto pair = [](std::uint32_t n) { return FieldsHash()(network::TwoWays{n, 0}) % 2; };
  // Of ten keys three fall on one of the two pairs, and some fall on the other.
  std::vector<std::uint32_t> here, apart;
  for (std::uint32_t n = 0; n < 10; ++n) (pair(n) == pair(0) ? here : apart).push_back(n);
  ASSERT_GE(here.size(), 3U);
  ASSERT_GE(apart.size(), 1U);
  const auto at = [&](std::uint32_t n) { return memo.at({n, 0}); };
  EXPECT_TRUE(at(here[0]).fresh);
  at(here[0]).value = 7;
  EXPECT_TRUE(at(here[1]).fresh);
  at(here[1]).value = 8;
  EXPECT_TRUE(at(apart[0]).fresh);
  EXPECT_FALSE(at(here[0]).fresh);  // now here[1] is the one that was not asked for lately
  EXPECT_EQ(at(here[0]).value, 7);
  EXPECT_TRUE(at(here[2]).fresh);
  EXPECT_FALSE(at(here[0]).fresh);
  EXPECT_EQ(at(here[0]).value, 7);
  EXPECT_TRUE(at(here[1]).fresh);
  EXPECT_FALSE(at(apart[0]).fresh);
}

TEST(Memo, AsksOnceForEachKey) {
  Memo<network::TwoWays, std::string> memo;
  int asked = 0;
  const auto make = [&](const char* text) {
    return [&asked, text] {
      ++asked;
      return std::string(text);
    };
  };
  std::string& first = memo.get({1, 2}, make("a"));
  EXPECT_EQ(memo.get({2, 1}, make("b")), "b");
  EXPECT_EQ(&memo.get({1, 2}, make("c")), &first);
  EXPECT_EQ(asked, 2);
  memo.forget();
  EXPECT_EQ(memo.get({2, 1}, make("d")), "d");
}

TEST(Memo, TheKeyDecidesWhateverTheHint) {
  HandyMemo<network::TwoWays, std::string> memo;
  const auto get = [&](std::uint32_t one, std::uint32_t other, std::size_t hint, const char* text) {
    return memo.get({one, other}, hint, [&] { return std::string(text); });
  };
  EXPECT_EQ(get(1, 2, 7, "a"), "a");
  EXPECT_EQ(get(2, 1, 7, "b"), "b");
  EXPECT_EQ(get(2, 1, 7, "c"), "b");
  EXPECT_EQ(get(1, 2, 7, "d"), "a");
  EXPECT_EQ(get(2, 1, 8, "e"), "b");
  EXPECT_EQ(get(3, 3, 23, "f"), "f");
}

TEST(Memo, AValueMayAskForOthers) {
  Memo<std::uint32_t, std::uint64_t> memo;
  const auto fibonacci = [&](const auto& self, std::uint32_t n) -> std::uint64_t {
    return memo.get(n, [&] { return n < 2 ? n : self(self, n - 1) + self(self, n - 2); });
  };
  EXPECT_EQ(fibonacci(fibonacci, 90), 2880067194370816120U);
}

/// Keys are told apart and kept in their order, a value is made once, and nothing is left of what was forgotten.
template <std::size_t kUsual>
void check_short_memo() {
  ShortMemo<int, std::string, kUsual> memo;
  int made = 0;
  const auto make = [&](const char* text) {
    return [&made, text] {
      ++made;
      return std::string(text);
    };
  };
  EXPECT_EQ(memo.get(7, make("seven")), "seven");
  EXPECT_EQ(memo.get(7, make("other")), "seven");
  EXPECT_EQ(made, 1);
  EXPECT_TRUE(memo.at(3).fresh);
  memo.at(3).value = "three";
  EXPECT_FALSE(memo.at(3).fresh);
  std::vector<int> keys;
  for (const auto& entry : memo) keys.push_back(entry.key);
  EXPECT_EQ(keys, (std::vector<int>{7, 3}));
  memo.forget();
  EXPECT_TRUE(memo.at(7).value.empty());
}
TEST(ShortMemo, KeepsOneValueForEachKey) {
  check_short_memo<0>();
  check_short_memo<2>();
}

}  // namespace
}  // namespace shardscape
