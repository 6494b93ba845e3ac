// Is the `reliability:` key read strictly, and written so that it reads back the same?
#include "sweep/study/study_parts.h"

#include <gtest/gtest.h>

#include "tests/unit/yaml/problems_of.h"

namespace shardscape::sweep {
namespace {

using yaml::reports;

std::optional<Reliability> reliability_of(const std::string& text, yaml::Diagnostics& diagnostics,
                                          bool faults = true, Phase phase = Phase::training) {
  const auto node = yaml::parse(text, "r", diagnostics);
  return node ? parse_reliability(*node, faults, phase, diagnostics) : std::nullopt;
}

TEST(ReliabilityParser, ReadsAndWrites) {
  for (const std::string text :
       {"{device_mtbf: 1.8e8 s, checkpoint_write: 60 s, restart: 0 s}",
        "{device_mtbf: 1.8e8 s, checkpoint_write: 60 s, restart: 600 s, checkpoint_interval: 1800 s, "
        "fault_share: 0.25}"}) {
    yaml::Diagnostics diagnostics;
    const auto first = reliability_of(text, diagnostics);
    ASSERT_TRUE(first) << diagnostics.to_string();
    const std::string written = yaml::emit(write_reliability(*first, true));
    const auto second = reliability_of(written, diagnostics);
    ASSERT_TRUE(second) << diagnostics.to_string();
    EXPECT_EQ(yaml::emit(write_reliability(*second, true)), written);
    EXPECT_EQ(second->device_failure_interval, Seconds(1.8e8));
    EXPECT_EQ(second->checkpoint_interval.has_value(), text.find("interval") != std::string::npos);
  }
}

TEST(ReliabilityParser, ProblemsAreLocated) {
  yaml::Diagnostics diagnostics;
  EXPECT_FALSE(reliability_of("{device_mtbf: 0 s, restart: 5, fault_share: 2, mtbf: 3}", diagnostics));
  EXPECT_TRUE(reports(diagnostics, "r:1:15: reliability.device_mtbf", "from 1e-06 s to 1e+12 s"));
  EXPECT_TRUE(reports(diagnostics, "r:1:1: reliability.checkpoint_write", "missing"));
  EXPECT_TRUE(reports(diagnostics, "r:1:29: reliability.restart", "bare number"));
  EXPECT_TRUE(reports(diagnostics, "r:1:45: reliability.fault_share", "between 0 and 1"));
  EXPECT_TRUE(reports(diagnostics, "r:1:48: reliability.mtbf", "unknown key"));
  yaml::Diagnostics others;
  const std::string good = "{device_mtbf: 1e8 s, checkpoint_write: 60 s, restart: 0 s, fault_share: 0.5}";
  EXPECT_FALSE(reliability_of(good, others, false));
  EXPECT_TRUE(reports(others, "r:1:73: reliability.fault_share", "no effect"));
  EXPECT_FALSE(reliability_of(good, others, true, Phase::inference));
  EXPECT_TRUE(reports(others, "r:1:1: reliability", "no effect in inference"));
}

}  // namespace
}  // namespace shardscape::sweep
