// Do conditions read quantities, percentages and paths, and compare only what can be compared?
#include "sweep/space/expression.h"

#include <gtest/gtest.h>

namespace shardscape::sweep {
namespace {

const std::vector<ExpressionName>& names() {
  static const std::vector<ExpressionName> kNames = {
      {"step_time", NameKind::number, {}, false, "s"},
      {"memory", NameKind::number, {}, false, "byte", true},
      {"mfu", NameKind::number, {}, false, "1"},
      {"device_hbm_bandwidth", NameKind::number, {}, false, "byte s-1"},
      {"tp", NameKind::number, {}, false, "1"},
      {"bytes", NameKind::number},
      {"device_sm_sram", NameKind::number, {}, false, "byte"}};
  return kNames;
}

/// step_time 65 s, memory 60 GB, mfu 0.4, bandwidth 3.35 TB/s, tp 8, bytes 2e6, sram 227 KiB.
bool is_true(const std::string& text) {
  const auto parsed = Expression::parse(text, names());
  EXPECT_TRUE(parsed.has_value()) << text << ": " << (parsed ? "" : parsed.error().message);
  return parsed && parsed->holds(std::vector<double>{65, 60e9, 0.4, 3.35e12, 8, 2e6, 232448});
}
std::string problem(const std::string& text) {
  const auto parsed = Expression::parse(text, names());
  EXPECT_FALSE(parsed.has_value()) << text;
  return parsed ? "" : parsed.error().message;
}

TEST(Expression, NumbersMayHaveUnits) {
  for (const char* text : {"step_time < 70 s",
                           "step_time<70s and tp == 8",
                           "step_time == 65000 ms",
                           "step_time < 1.1 min",
                           "memory <= 60 GB",
                           "memory < 56 GiB",
                           "60GB == memory",
                           "device_hbm_bandwidth >= 3 TB/s",
                           "mfu == 40 %",
                           "mfu == 40% and tp > 1",
                           "(mfu >= 39 %)",
                           "tp % 3 == 2",
                           "17 % 9 == tp",
                           "17 %tp == 1",
                           "step_time - 5 s == 60 s",
                           "2 * step_time < 131 s",
                           "memory / 2 == 30 GB",
                           "memory / 60 GB == 1",
                           "memory / step_time < 1 GB/s",
                           "bytes == 2 MB",
                           "step_time <= 65",
                           "-5 s < step_time"})
    EXPECT_TRUE(is_true(text)) << text;
  EXPECT_FALSE(is_true("step_time < 60 s"));
  EXPECT_FALSE(is_true("memory < 55 GiB"));
}

TEST(Expression, UnitsMustAgree) {
  EXPECT_EQ(problem("memory < 70 s"),
            "'memory' has the unit 'byte', and is compared with a number that has the unit 's'");
  EXPECT_EQ(problem("tp <= 4 GB"),
            "'tp' has no unit, and is compared with a number that has the unit 'byte'");
  EXPECT_EQ(problem("step_time < 40 %"),
            "'step_time' has the unit 's', and is compared with a number that has no unit");
  EXPECT_NE(problem("step_time < 70 parsecs").find("unexpected 'parsecs'"), std::string::npos);
  // Amounts of data of some tens are meant in GB; sums in bytes, nothing and what is large are taken as they stand.
  EXPECT_EQ(problem("memory < 60"),
            "'memory' is in bytes; write the number with its unit, as 60 GB or 60 GiB");
  EXPECT_EQ(problem("80.5 >= memory"),
            "'memory' is in bytes; write the number with its unit, as 80.5 GB or 80.5 GiB");
  EXPECT_EQ(problem("memory > 60000"),
            "'memory' is in bytes; write the number with its unit, as 60000 MB or 60000 MiB");
  EXPECT_TRUE(is_true("device.sm.sram == 232448 and device.sm.sram > 64 KiB"));  // no memory of gigabytes
  for (const char* text :
       {"memory > 0", "memory < 6e10", "memory < 60 * 1e9", "memory / 60 < 1e9", "tp < 60"})
    EXPECT_TRUE(Expression::parse(text, names()).has_value()) << text;
}

TEST(Expression, TheFirstChoiceMayHaveAnotherName) {
  for (const auto& [first, other] : {std::pair("none", "nothing"), std::pair("nothing", "none")}) {
    const std::vector<ExpressionName> gap = {
        {"gap", NameKind::choice, {first, "file"}, false, "", false, other}};
    for (const std::string& word : {std::string(first), std::string(other)}) {
      const auto is = Expression::parse("gap == " + word, gap),
                 is_not = Expression::parse(word + " != gap", gap);
      ASSERT_TRUE(is.has_value() && is_not.has_value()) << word;
      for (const double code : {0.0, 1.0}) {
        EXPECT_EQ(is->holds(std::vector{code}), code == 0) << word;
        EXPECT_EQ(is_not->holds(std::vector{code}), code != 0) << word;
      }
    }
    EXPECT_FALSE(Expression::parse("gap == ''", gap).has_value());
  }
}

TEST(Expression, PathsAreNames) {
  EXPECT_TRUE(is_true("device.hbm.bandwidth > 3 TB/s"));
  EXPECT_NE(problem("device.hbm.bandwith > 3").find("did you mean 'device_hbm_bandwidth'?"),
            std::string::npos);
  EXPECT_FALSE(Expression::parse("tp. > 3", names()).has_value());
}

}  // namespace
}  // namespace shardscape::sweep
