#include "engine/step/paired_passes.h"

#include <gtest/gtest.h>

#include <string>

namespace shardscape::step {
namespace {

using execution::Account;
using execution::Instruction;
using Item = LayerEmitter::Item;

constexpr std::int32_t kExpertLane = 3;

/// "a4" computes for four seconds under the name 'a'; "x2" exchanges for two; "t1" is a call of another lane.
std::vector<Item> pass_of(const std::string& words) {
  std::vector<Item> items;
  for (std::size_t i = 0; i + 1 < words.size(); i += 3) {
    const char kind = words[i];
    const double seconds = words[i + 1] - '0';
    if (kind != 'x' && kind != 't') {
      items.push_back({compute(seconds, Account::compute, kind), seconds, false, 1});
      continue;
    }
    const std::int32_t lane = kind == 'x' ? kExpertLane : 1;
    items.push_back({{Instruction::Kind::start, Account::compute, static_cast<std::uint16_t>(lane), 0, 1, 0},
                     0,
                     false,
                     1});
    items.push_back({join_lane(lane, Account::expert_comm), seconds, false, 1});
  }
  return items;
}

/// "(": the exchange starts, ")": what is left of it is waited for; "[" and "]" of other lanes.
std::string paired(const std::string& forward, const std::string& backward, double overlap, double& hidden) {
  const std::vector<Item> ahead = pass_of(forward), back = pass_of(backward);
  std::string text;
  for (const Item& item : pair_up(ahead, back, kExpertLane, overlap, hidden)) {
    const Instruction& instruction = item.instruction;
    const bool expert = instruction.lane == kExpertLane;
    if (instruction.kind == Instruction::Kind::compute) {
      text += static_cast<char>(instruction.what);
      text += std::to_string(static_cast<int>(instruction.value));
      EXPECT_EQ(instruction.value, item.expected);
    } else if (instruction.kind == Instruction::Kind::start) {
      text += expert ? '(' : '[';
    } else {
      text += expert ? ')' : ']';
    }
  }
  return text;
}

TEST(PairedPasses, EachComputesWhileTheOtherExchanges) {
  double hidden = 0;
  // Backward a4, exchange of 1, b2; forward f2, exchange of 3, g1.
  EXPECT_EQ(paired("f2 x3 g1 ", "a4 x1 b2 ", 1, hidden), "a4(f1)b2f1()g1");
  EXPECT_EQ(hidden, 1);
  // The forward's exchange of 3 has only 2 s of the backward left beside it where that has a longer tail.
  EXPECT_EQ(paired("f1 x3 g1 ", "a4 x1 b2 ", 1, hidden), "a4(f1)b2()g1");
  EXPECT_EQ(paired("f1 x3 g9 ", "a4 x2 b9 ", 1, hidden), "a4(f1)(b3)g9b6");
  EXPECT_EQ(hidden, 1 + 3);
}

TEST(PairedPasses, WhatTheStackDoesNotOverlapIsWaitedFor) {
  double hidden = 0;
  EXPECT_EQ(paired("f9 ", "a4 x4 b2 ", 0, hidden), "a4()b2f9");
  EXPECT_EQ(hidden, 0);
  EXPECT_EQ(paired("f9 ", "a4 x4 b2 ", 0.5, hidden), "a4(f2)b2f7");
  EXPECT_EQ(hidden, 2);
}

TEST(PairedPasses, OtherCallsRunWhereTheyStand) {
  double hidden = 0;
  EXPECT_EQ(paired("f1 t2 g5 ", "a4 x4 b2 ", 1, hidden), "a4(f1[]g3)b2g2");
  EXPECT_EQ(hidden, 4);
}

}  // namespace
}  // namespace shardscape::step
