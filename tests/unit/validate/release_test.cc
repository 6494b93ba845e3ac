// Releases as tables state them.
#include "sweep/validate/run_labels.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

namespace shardscape::validate {
namespace {

TEST(Release, IsANumberThatGrows) {
  EXPECT_DOUBLE_EQ(*release_number("26.04"), 26.04);
  EXPECT_DOUBLE_EQ(*release_number("26.04.01"), 26.0401);
  EXPECT_DOUBLE_EQ(*release_number("24.11.1"), 24.1101);
  EXPECT_LT(*release_number("25.11"), *release_number("26.02"));
  EXPECT_LT(*release_number("26.04"), *release_number("26.04.01"));
  EXPECT_LT(*release_number("26.04.99"), *release_number("26.05"));
  for (const char* text :
       {"", "2.3", "26", "26.4", "26.00", "26.13", "26.04.", "26.04.001", "26-04", "26.0a", "026.04"})
    EXPECT_FALSE(release_number(text)) << text;
}

TEST(Release, ComesBeforeLaterOnes) {
  for (const auto& [one, next] :
       {std::pair("1.2.0rc6", "1.2.0rc10"), std::pair("1.2.0rc10", "1.2.0"),
        std::pair("1.2.0rc6", "1.2.0rc6.post2"), std::pair("1.2.0", "1.2.0.post1"),
        std::pair("0.7.0.post2", "0.8"), std::pair("0.8", "0.8.1"), std::pair("1.3.0rc1", "1.10.0")}) {
    EXPECT_TRUE(ReleaseOrder(std::string("trtllm ") + one).before(next)) << one << " " << next;
    EXPECT_FALSE(ReleaseOrder(std::string("trtllm ") + next).before(one)) << one << " " << next;
  }
  EXPECT_FALSE(ReleaseOrder("trtllm").stated());
  EXPECT_FALSE(ReleaseOrder("trtllm").before("9.9"));
}

TEST(Release, StandsBehindTheSoftwareOrInTheSource) {
  EXPECT_EQ(stated_release("megatron-bridge 26.04", "26.06 NeMo Container"), release_number("26.04"));
  EXPECT_EQ(stated_release("megatron-bridge", "docs/summary.md line 46, 26.08 NeMo Container, Performance"),
            release_number("26.08"));
  EXPECT_EQ(stated_release("nemo 2.3", "NVIDIA/dgxc-benchmarking v25.05.05 (c5c765f) README.md"),
            release_number("25.05.05"));
  EXPECT_FALSE(stated_release("nemo", "NVIDIA/dgxc-benchmarking main"));
  EXPECT_FALSE(stated_release("nemo", "the NeMo Container"));
  EXPECT_FALSE(stated_release("nemo", " NeMo Container"));
  EXPECT_FALSE(stated_release("nemo ", "dgxc-benchmarking v"));
  EXPECT_FALSE(stated_release("", ""));
}

}  // namespace
}  // namespace shardscape::validate
