#include "engine/spec/pipeline_layout.h"

#include <gtest/gtest.h>

namespace shardscape {
namespace {

using Stages = std::vector<PipelineLayout::Stage>;

Stages stages_of(std::string_view text) {
  const auto layout = read_layout(text);
  EXPECT_TRUE(layout) << text << ": " << (layout ? "" : layout.error());
  return layout ? layout->stages : Stages{};
}

std::string layout_error(std::string_view text) {
  const auto layout = read_layout(text);
  return layout ? "" : layout.error();
}

TEST(PipelineLayout, ReadsWhatMegatronCoreWrites) {
  EXPECT_EQ(stages_of("EL"), (Stages{{0, 0}}));
  EXPECT_EQ(stages_of("Ett|tL"), (Stages{{2, 0}, {1, 0}}));
  EXPECT_EQ(stages_of("Et*2|t,m|L"), (Stages{{2, 0}, {1, 1}, {0, 0}}));
  EXPECT_EQ(stages_of("E | (t|)*2 | ttL"), (Stages{{0, 0}, {1, 0}, {1, 0}, {0, 0}, {2, 0}}));
  EXPECT_EQ(stages_of("E((t*2)*2|)*2tL"), (Stages{{4, 0}, {4, 0}, {1, 0}}));
  // DeepSeek-V3 on 16 ranks of two chunks: 3 + 29 * 2 layers, the module on its own, the loss on its own.
  const auto layout = read_layout("Et*3|(tt|)*29,m|L");
  ASSERT_TRUE(layout);
  EXPECT_EQ(layout->stages.size(), 32U);
  EXPECT_EQ(layout->layers(), 61);
  EXPECT_EQ(layout->further(), 1);
  EXPECT_EQ(layout->stages[30], (PipelineLayout::Stage{0, 1}));
  EXPECT_EQ(layout->stages[31], (PipelineLayout::Stage{0, 0}));
  EXPECT_EQ(layout->text(), "Ettt|(tt|)*29m|L");
}

TEST(PipelineLayout, TextReadsBack) {
  for (const char* const text :
       {"EL", "EtL", "E|L", "Et|tL", "Et*3|(tt|)*29,m|L", "E(|)*5L", "Et|t|t|ttmm|L", "E|(t|)*3L"}) {
    const Stages stages = stages_of(text);
    EXPECT_EQ(stages_of(PipelineLayout{stages}.text()), stages) << text;
  }
}

TEST(PipelineLayout, SaysWhatIsWrong) {
  EXPECT_EQ(layout_error("t|tL"), "no E: the first stage begins with the embedding, as in \"Et|tL\"");
  EXPECT_EQ(layout_error("Et|t"), "no L: the last stage ends with the loss, as in \"Et|tL\"");
  EXPECT_EQ(layout_error(""), layout_error("t|tL"));
  EXPECT_EQ(layout_error("tE|tL"), "E must be the first letter: the embedding begins the first stage");
  EXPECT_EQ(layout_error("Et|Lt"), "L must be the last letter: the loss ends the last stage");
  EXPECT_EQ(layout_error("EEtL"), "more than one E: there is one embedding, at the very beginning");
  EXPECT_EQ(layout_error("(Et|L)*2"), "more than one E: there is one embedding, at the very beginning");
  EXPECT_EQ(layout_error("EtLL"), "more than one L: there is one loss, at the very end");
  EXPECT_EQ(layout_error("Em|tL"), "an m before a t: what predicts further tokens comes after all layers");
  EXPECT_EQ(layout_error("Ex|tL"), "`x` is none of E, t, m, L, |, (, ), * and a number");
  EXPECT_EQ(layout_error("E(t|tL"), "a `(` without a `)`");
  EXPECT_EQ(layout_error("Et|)tL"), "a `)` without a `(`");
  EXPECT_EQ(layout_error("Et*|L"), "after `*` comes a number from 1 on");
  EXPECT_EQ(layout_error("Et*0|L"), "after `*` comes a number from 1 on");
  EXPECT_EQ(layout_error("E((((((((((t))))))))))L"), "too many groups inside each other");
  EXPECT_EQ(layout_error("E(t*1000)*1000L"), "too long");
  EXPECT_EQ(layout_error("Et*99999999999999999999L"), "too long");
  EXPECT_EQ(layout_error("E(t|)*20000L"), "more than 10000 stages");
}

}  // namespace
}  // namespace shardscape
