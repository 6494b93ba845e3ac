// Which texts can be names?
#include <gtest/gtest.h>

#include "sweep/yaml/node.h"
#include "sweep/yaml/value.h"
#include "tests/unit/yaml/problems_of.h"

namespace shardscape::yaml {
namespace {

using namespace std::string_literals;

TEST(Name, IsOneLineOfPlainTextAndHasAnEnd) {
  for (const auto& good : {""s, "Llama 3.1 70B"s, "gr\xC3\xB6\xC3\x9F"s, std::string(kLongestName, 'x')})
    EXPECT_EQ(name_problem(good), "") << good;
  for (const auto& bad : {"two\nlines"s, "a\tb"s, "a\0b"s, "\x1B[31m"s, "\x7F"s, "\xC2\x85"s, "\xC3("s,
                          "\xFF"s, "\xE2\x80\xAE"s})
    EXPECT_NE(name_problem(bad), "") << bad;
  EXPECT_EQ(name_problem(std::string(70000, 'x')), "must be at most 200 bytes long; this one has 70000");
}

TEST(Name, KeysAreNames) {
  Diagnostics diagnostics;
  EXPECT_FALSE(parse("? \"" + std::string(300, 'k') + "\"\n: 1\n", "f", diagnostics).has_value());
  EXPECT_TRUE(reports(diagnostics, "f:1:3", "a key must be at most 200 bytes long"));
}

}  // namespace
}  // namespace shardscape::yaml
