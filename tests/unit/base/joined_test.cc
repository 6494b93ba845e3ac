#include "engine/base/words.h"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

namespace shardscape {
namespace {

TEST(Joined, PutsCommasBetweenWhatFmtCanFormat) {
  EXPECT_EQ(joined(std::vector<std::string>{}), "");
  EXPECT_EQ(joined(std::vector<std::string>{"a"}), "a");
  EXPECT_EQ(joined(std::array{1, 2, 3}), "1, 2, 3");
  EXPECT_EQ(joined(std::array{"tp", "pp"}, "*"), "tp*pp");
}

TEST(Joined, ShowsWhatAFunctionOrAMemberMakesOfAnElement) {
  struct Named {
    std::string name;
    int value = 0;
  };
  const std::vector<Named> list = {{"a", 1}, {"b", 2}};
  EXPECT_EQ(joined(list, "; ", &Named::name), "a; b");
  EXPECT_EQ(joined(list, ", ", [](const Named& one) { return one.name + std::to_string(one.value); }),
            "a1, b2");
}

TEST(Joined, TheLastHasItsOwnMark) {
  const auto sentence = [](const std::vector<std::string>& list) {
    return joined(list, ", ", std::identity(), " and ");
  };
  EXPECT_EQ(sentence({"a"}), "a");
  EXPECT_EQ(sentence({"a", "b"}), "a and b");
  EXPECT_EQ(sentence({"a", "b", "c"}), "a, b and c");
}

}  // namespace
}  // namespace shardscape
