// What siblings that take turns cost each other.
#include "engine/network/prices/among_siblings.h"

#include <gtest/gtest.h>

namespace shardscape::network {
namespace {

constexpr Seconds kAlone(1);

TEST(SiblingTurns, MeetOnlyWhereLinksHaveNoRoomForBoth) {
  // Two groups keep a link busy for 0.6 s each of which an operation takes 1 s alone, so that 0.2 s of each must meet
  // the other's. Executed, siblings that send half of the time add 1 / 50 of a second; those that send all of the time
  // keep the link busy for 1.2 s.
  const Seconds at_once(1.2);
  EXPECT_EQ(among_siblings(kAlone, at_once, at_once, 0), kAlone);
  EXPECT_NEAR(among_siblings(kAlone, at_once, at_once, 0.5).value(), 1 + 0.5 * 0.2 * 0.2, 1e-12);
  EXPECT_NEAR(among_siblings(kAlone, at_once, at_once, 0.9).value(), 0.6 * 1.9, 1e-12);
  EXPECT_NEAR(among_siblings(kAlone, at_once, at_once, 1).value(), 1.2, 1e-12);
}

TEST(SiblingTurns, TakeNoLessWhereOthersSendMore) {
  for (const double times : {1.01, 1.3, 1.7, 2.5}) {
    Seconds before = kAlone;
    for (double share = 0; share <= 1; share += 1.0 / 64) {
      const Seconds now = among_siblings(kAlone, times * kAlone, times * kAlone, share);
      EXPECT_GE(now, before) << times << " " << share;
      before = now;
    }
    EXPECT_NEAR(before.value(), times, 1e-12);
  }
}

TEST(SiblingTurns, CostInProportionWhereALinkIsBusyAllTheTime) {
  for (const double times : {2.0, 3.0, 8.0}) {
    const Seconds at_once = times * kAlone;
    EXPECT_EQ(among_siblings(kAlone, at_once, at_once, 0), kAlone);
    EXPECT_NEAR(among_siblings(kAlone, at_once, at_once, 0.25).value(), 1 + 0.25 * (times - 1), 1e-12);
  }
}

TEST(SiblingTurns, LinksThatStagesLeaveFreeHaveRoomForOthers) {
  // Two stages on links of their own, 1 s each alone and 2 s with two groups at once, whose links are in use for half
  // of that time: two groups in turn need them for as long as one takes. What meets by chance is left.
  const Seconds alone(2), at_once(4), in_use(2);
  for (const double share : {0.0, 0.4, 1.0}) {
    EXPECT_NEAR(among_siblings(alone, at_once, in_use, share).value(), 2 + 2 * share,
                1e-12);  // T >= 2 T_1: all meets
    EXPECT_NEAR(among_siblings(alone, Seconds(2.4), Seconds(1.2), share).value(), 2 + share * 0.2 * 0.4,
                1e-12);
  }
}

TEST(SiblingTurns, NothingChangesWhereNoLinkIsShared) {
  EXPECT_EQ(among_siblings(kAlone, kAlone, kAlone, 0.5), kAlone);
  EXPECT_EQ(among_siblings(Seconds(0), kAlone, kAlone, 0.5), kAlone);
}

}  // namespace
}  // namespace shardscape::network
