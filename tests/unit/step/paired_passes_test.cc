#include "engine/step/layers/paired_passes.h"

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
  // Backward a4, exchange of 1, b2; forward f2, exchange of 3, g1. All of f2 runs beside the first one, of which that
  // hides 1 s, and b2 beside the second one.
  EXPECT_EQ(paired("f2 x3 g1 ", "a4 x1 b2 ", 1, hidden), "a4(f2)(b2)g1");
  EXPECT_EQ(hidden, 1 + 2);
  EXPECT_EQ(paired("f1 x3 g9 ", "a4 x2 b9 ", 1, hidden), "a4(f1)(b9)g9");
  EXPECT_EQ(hidden, 1 + 3);
}

TEST(PairedPasses, ExchangesTakeTurnsWhateverTheirLength) {
  double hidden = 0;
  EXPECT_EQ(paired("f1 x9 g1 x9 h1 ", "a1 x1 b9 x1 c9 ", 1, hidden), "a1(f1)(b9)(g1)(c9)h1");
  EXPECT_EQ(hidden, 1 + 9 + 1 + 9);
  // Twice as many of the backward: its second and third one share what the forward computes between its own.
  EXPECT_EQ(paired("f2 x1 g8 x1 h2 ", "a1 x3 b1 x3 c1 x3 d1 x3 e1 ", 1, hidden),
            "a1(f2)(b1)(g4)c1(g4)(d1)(h2)e1");
  EXPECT_EQ(hidden, 2 + 1 + 3 + 3 + 1 + 2);
  // Without exchanges of its own a pass lies beside all of the other's in equal parts.
  EXPECT_EQ(paired("f8 ", "a1 x2 b1 x2 c1 ", 1, hidden), "a1(f4)b1(f4)c1");
  EXPECT_EQ(paired("f1 x2 g1 x2 h1 ", "a8 ", 1, hidden), "f1(a4)g1(a4)h1");
}

TEST(PairedPasses, WhatTheStackDoesNotOverlapIsWaitedFor) {
  double hidden = 0;
  EXPECT_EQ(paired("f9 ", "a4 x4 b2 ", 0, hidden), "a4()f9b2");
  EXPECT_EQ(hidden, 0);
  EXPECT_EQ(paired("f9 ", "a4 x4 b2 ", 0.5, hidden), "a4(f2)f7b2");
  EXPECT_EQ(hidden, 2);
}

TEST(PairedPasses, OtherCallsRunWhereTheyStand) {
  double hidden = 0;
  EXPECT_EQ(paired("f1 t2 g5 ", "a4 x4 b2 ", 1, hidden), "a4(f1[]g5)b2");
  EXPECT_EQ(hidden, 4);
}

}  // namespace
}  // namespace shardscape::step
