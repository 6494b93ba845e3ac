#include "engine/step/layers/paired_passes.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace shardscape::step {
namespace {

using Kind = PairStep::Kind;

/// "a4" computes for four seconds under the name 'a'; "x2" exchanges for two; "t1" is a call of another group.
std::vector<PairStep> pass_of(const std::string& words, std::string& names) {
  std::vector<PairStep> steps;
  for (std::size_t i = 0; i + 1 < words.size(); i += 3) {
    const char kind = words[i];
    const double seconds = words[i + 1] - '0';
    if (kind == 'x') {
      steps.insert(steps.end(), {{Kind::exchange}, {Kind::wait, seconds}});
      names += "()";
    } else if (kind == 't') {
      steps.insert(steps.end(), {{Kind::other}, {Kind::other, seconds}});
      names += "[]";
    } else {
      steps.push_back({Kind::compute, seconds});
      names += kind;
    }
  }
  return steps;
}

/// "(": the exchange starts, ")": what is left of it is waited for; "[" and "]" of other groups.
std::string paired(const std::string& forward, const std::string& backward, double overlap, double& hidden) {
  std::string ahead_names, back_names, text;
  const std::vector<PairStep> ahead = pass_of(forward, ahead_names), back = pass_of(backward, back_names);
  const PairOrder order = pair_up(ahead, back, overlap);
  hidden = order.hidden;
  for (const PairOrder::Part& part : order.parts) {
    text += (part.backward ? back_names : ahead_names)[part.step];
    const bool computes = (part.backward ? back : ahead)[part.step].kind == Kind::compute;
    if (computes) text += std::to_string(static_cast<int>(part.seconds));
    EXPECT_EQ(part.seconds > 0, computes);
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
