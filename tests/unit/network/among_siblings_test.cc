// What siblings that take turns cost each other.
#include "engine/network/prices/among_siblings.h"

#include <gtest/gtest.h>

namespace shardscape::network {
namespace {

constexpr Seconds kAlone(1);

TEST(SiblingTurns, CostNothingWhileLinksHaveRoom) {
  // Two groups keep a link busy for 0.6 s each of which an operation takes 1 s alone: they meet where the other sends
  // for more than two thirds of the time, and at 1.2 s where both do all the time.
  const Seconds at_once(1.2);
  EXPECT_EQ(among_siblings(kAlone, at_once, 0), kAlone);
  EXPECT_EQ(among_siblings(kAlone, at_once, 0.66), kAlone);
  EXPECT_GT(among_siblings(kAlone, at_once, 0.68), kAlone);
  EXPECT_NEAR(among_siblings(kAlone, at_once, 1).value(), 1 + kMetInTurn * 0.2, 1e-12);
}

TEST(SiblingTurns, CostInProportionWhereALinkIsBusyAllTheTime) {
  for (const double times : {2.0, 3.0, 8.0}) {
    const Seconds at_once = times * kAlone;
    EXPECT_EQ(among_siblings(kAlone, at_once, 0), kAlone);
    EXPECT_NEAR(among_siblings(kAlone, at_once, 0.25).value(), 1 + kMetInTurn * 0.25 * (times - 1), 1e-12);
  }
}

TEST(SiblingTurns, NothingChangesWhereNoLinkIsShared) {
  EXPECT_EQ(among_siblings(kAlone, kAlone, 0.5), kAlone);
  EXPECT_EQ(among_siblings(Seconds(0), kAlone, 0.5), kAlone);
}

}  // namespace
}  // namespace shardscape::network
