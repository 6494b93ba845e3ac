// Do leads of members cost what the algebra says? Milliseconds.
#include "engine/step/layers/expert_leads.h"

#include <gtest/gtest.h>

namespace shardscape::step {
namespace {

double crowding_ms(double members, double most, double dispatch, double gather, double work, double scatter,
                   bool together) {
  const auto ms = [](double value) { return Seconds(1e-3 * value); };
  return 1e3 *
         crowding({members, most, ms(dispatch), ms(gather), ms(work), ms(scatter), together, {}}).value();
}

TEST(ExpertLeads, AMemberAheadGathersBesideWhatItSends) {
  // Shares 0.6 and 0.4, r = 2/3. The other member has its tokens 10/3 before the busiest and gathers for 4: of those
  // it takes half of the link for as long as both last. It ends its scatter 42/3 + 10/3 before the busiest, and its
  // combine of 20/3 is over when that begins its scatter of 6.
  EXPECT_NEAR(crowding_ms(2, 0.6, 10, 6, 30, 6, true), 10.0 / 3, 1e-12);
  // Nothing brings them together: it has all from the start, and the gather of 4 is the shorter of both.
  EXPECT_NEAR(crowding_ms(2, 0.6, 10, 6, 30, 6, false), 4, 1e-12);
}

TEST(ExpertLeads, ACombineRunsBesideTheScatterOfTheBusiest) {
  // Four members, 0.4 and three of 0.2, r = 1/2: ahead by (2 + 1 + 8) / 2 + 4.5 = 10, 2 more than the scatter, so that
  // of a combine of 4.5 there are 2.5 left, and the scatter has room for three times its 8.
  EXPECT_NEAR(crowding_ms(4, 0.4, 9, 2, 1, 8, true), 2.5, 1e-12);
  EXPECT_NEAR(crowding_ms(4, 0.4, 9, 2, 1, 8, false), 2.5, 1e-12);
  // Two, r = 0.9: 0.9 for the gather beside the dispatch; ahead by 0.1 x 23 + 1, which is what is left of the scatter
  // when the combine begins.
  EXPECT_NEAR(crowding_ms(2, 1 / 1.9, 10, 1, 2, 20, true), 0.9 + 3.3, 1e-9);
}

TEST(ExpertLeads, AlmostEqualLoadsCostAlmostNothing) {
  EXPECT_LT(crowding_ms(2, 0.5 + 1e-6, 10, 6, 30, 6, true), 1e-3);
  EXPECT_LT(crowding_ms(8, 0.125 + 1e-6, 10, 6, 30, 6, false), 5e-3);
}

}  // namespace
}  // namespace shardscape::step
