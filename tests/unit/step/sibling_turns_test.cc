// What a step is spared because groups of other stages do not send all the time.
#include "engine/step/layers/sibling_turns.h"

#include <gtest/gtest.h>

#include <array>

namespace shardscape::step {
namespace {

/// One of two stages of 10 s: passes of 9 s that call for 4 s, and gradients of which 1 s is left.
constexpr std::array<double, 2> kEnds = {9, 9};

TimedStage timed_stage() {
  TimedStage stage;
  stage.stage = 1;
  stage.step = Seconds(10);
  stage.passes = Seconds(9);
  stage.data_tail = Seconds(1);
  stage.shown[TimeClass::tensor_comm] = Seconds(4);
  stage.shown[TimeClass::data_comm] = Seconds(1);
  stage.ends = kEnds;
  return stage;
}

/// Half of the time is due to others, and the links are in use all the while.
constexpr AmongSiblings half_of(double seconds) {
  return {Seconds(seconds), Seconds(0.5 * seconds), Seconds(seconds)};
}
constexpr EnumArray<ParallelGroup, double> by_others(double share) {
  EnumArray<ParallelGroup, double> all;
  for (const ParallelGroup group : enum_values<ParallelGroup>()) all[group] = share;
  return all;
}

// The tail is 1 s whatever is spared in it: traffic of two kinds of groups spares no more of it than that of one.
TEST(TurnsOfSiblings, SpareATailOnce) {
  SiblingTimes passes, one, two;
  passes[ParallelGroup::tensor] = half_of(4);
  one[ParallelGroup::data_shard] = half_of(8);
  two[ParallelGroup::data_shard] = two[ParallelGroup::expert_data] = half_of(4);
  for (const double share : {0.1, 0.5}) {
    const SiblingTurns of_one = sibling_turns(passes, one, timed_stage(), by_others(share), {});
    const SiblingTurns of_two = sibling_turns(passes, two, timed_stage(), by_others(share), {});
    EXPECT_GT(of_one.once, timed_stage().data_tail);
    EXPECT_NEAR(of_one.once.value(), of_two.once.value(), 1e-12);
    EXPECT_NEAR(of_one.beside[ParallelGroup::tensor], of_two.beside[ParallelGroup::tensor], 1e-12);
    EXPECT_NEAR(of_one.left.value(), of_two.left.value(), 1e-12);
  }
}

// Likewise of calls in passes: what shows of a class is spared once, and the step is not shorter than what it works.
TEST(TurnsOfSiblings, SpareNoMoreOfAClassThanShows) {
  SiblingTimes passes;
  for (const ParallelGroup group : {ParallelGroup::expert, ParallelGroup::expert_tensor})
    passes[group] = half_of(4);
  TimedStage stage = timed_stage();
  stage.shown[TimeClass::expert_comm] = Seconds(1);
  const SiblingTurns turns = sibling_turns(passes, {}, stage, by_others(0.1), {});
  // Of 2 s that siblings cost each kind of groups 2 (1 - u) s are spared, where they send for u = 0.1 (2 + 2 u) / 9 of
  // the time: 9 s are left of the step, as 1 s shows of both kinds.
  EXPECT_NEAR(turns.beside[ParallelGroup::expert], 1 - 0.2 / 8.8, 1e-4);
  EXPECT_NEAR(turns.beside[ParallelGroup::expert_tensor], 1 - 0.2 / 8.8, 1e-4);
}

// Traffic beside passes meets as much of the others' as the schedule says, whatever share of the step it takes: of 2 s
// that siblings cost a fifth is spared where they send beside four fifths of it.
TEST(TurnsOfSiblings, TrafficBesidePassesMeetsWhatTheScheduleSays) {
  SiblingTimes passes;
  passes[ParallelGroup::data_shard] = half_of(4);
  TimedStage stage = timed_stage();
  stage.shown[TimeClass::data_comm] = Seconds(4);
  for (const double share : {0.0, 0.3, 0.8, 1.0}) {
    for (const double others : {0.5, 1.0}) {
      const SiblingTurns turns = sibling_turns(passes, {}, stage, by_others(others), {share, 0});
      EXPECT_NEAR(turns.beside[ParallelGroup::data_shard], 1 - share, 1e-12);
    }
  }
}

// Where two groups share links for a part of their time only, those that are there together wait for each other.
TEST(TurnsOfSiblings, TrafficInPhaseMeetsOnTheSharedLinks) {
  SiblingTimes passes;
  passes[ParallelGroup::data_shard] = {Seconds(4), Seconds(1), Seconds(2)};
  TimedStage stage = timed_stage();
  stage.shown[TimeClass::data_comm] = Seconds(4);
  const auto spared = [&](double in_phase) {
    return sibling_turns(passes, {}, stage, by_others(1), {1, in_phase}).beside[ParallelGroup::data_shard];
  };
  EXPECT_NEAR(spared(0), 2.0 / 3, 1e-12);
  EXPECT_NEAR(spared(1), 0, 1e-12);
  EXPECT_NEAR(spared(0.5), 1.0 / 3, 1e-12);
}

}  // namespace
}  // namespace shardscape::step
