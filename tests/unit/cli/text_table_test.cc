// Does a line of progress keep what matters where there is little room?
#include "sweep/cli/terminal/text_table.h"

#include <gtest/gtest.h>

namespace shardscape::cli {
namespace {

TEST(Shortened, PartsGoFromTheLeft) {
  const std::string line =
      "900/s, feasible 43 %, 1,234/5,103 points (24 %), ETA 3 s, best 16.29 s (tp=4, pp=2)";
  EXPECT_EQ(shortened(line, 200), line);
  EXPECT_EQ(shortened(line, 80),
            "feasible 43 %, 1,234/5,103 points (24 %), ETA 3 s, best 16.29 s (tp=4, pp=2)");
  EXPECT_EQ(shortened(line, 40), "ETA 3 s, best 16.29 s (tp=4, pp=2)");
  EXPECT_EQ(shortened(line, 30), "best 16.29 s (tp=4, pp=2)");
  EXPECT_EQ(shortened(line, 12), "best 16.29 s");  // brackets are not cut inside
  EXPECT_EQ(shortened("one part alone", 3), "one");
  EXPECT_EQ(shortened("", 3), "");
}

}  // namespace
}  // namespace shardscape::cli
