// Does a framework's data file say where it is wrong, and do its rows say what they should?
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "engine/base/safe_text.h"
#include "sweep/launch/facts.h"
#include "sweep/launch/framework.h"
#include "tests/support/paths.h"

namespace shardscape::launch {
namespace {

constexpr const char* kFile = R"(name: mine
title: Mine
version: Mine 1
phase: training
sources: {manual: "https://example.org"}
where:
  large: tp > 4
program:
  - value: run --nodes {nodes}
options:
  - {says: tp, option: --tensor, value: "{tp}"}
  - says: sp
    option: --sequence
    cases:
      - {if: sp and large}
      - {if: sp, lacks: "{{tp}} is {tp}"}
)";

TEST(FrameworkFile, RowsSayWhatTheirConditionsHave) {
  const auto framework = read_framework(kFile, "mine.yaml", find_framework);
  ASSERT_TRUE(framework.has_value()) << framework.error().to_string();
  ASSERT_EQ(framework->options.size(), 2U);
  EXPECT_EQ(framework->options[0].source, "https://example.org");
  Setting setting;
  ParallelPlan plan;
  const auto said = [&](std::size_t row) {
    const Case of{setting, plan, Case::Pool::whole, 8, "a/model"};
    return framework->options[row].say(framework->words->complete(facts_of(of)));
  };
  plan.tensor = 8;
  plan.sequence_parallel = true;
  EXPECT_EQ(said(0).text, "8");
  EXPECT_EQ(said(1).kind, Said::Kind::value);
  EXPECT_EQ(said(1).text, "");
  plan.tensor = 2;
  EXPECT_EQ(said(1).kind, Said::Kind::lacks);
  EXPECT_EQ(said(1).text, "{tp} is 2");
  plan.sequence_parallel = false;
  EXPECT_EQ(said(1).kind, Said::Kind::unasked);
}

TEST(FrameworkFile, DamageIsLocated) {
  const auto problem = [](const std::string& from, const std::string& to) {
    std::string text = kFile;
    const std::size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    text.replace(at, from.size(), to);
    const auto read = read_framework(text, "mine.yaml", find_framework);
    return read ? std::string("none") : read.error().to_string();
  };
  const auto starts = [&](const std::string& from, const std::string& to, const std::string& due) {
    const std::string found = problem(from, to);
    EXPECT_EQ(found.substr(0, due.size()), due) << found;
  };
  EXPECT_EQ(problem("Mine 1", "Mine 2"), "none");
  starts("\"{tp}\"", "\"{tp}\"}\n  - {says: pp, option: --pp, unasked: false",
         "mine.yaml:12:39: options[1].unasked: is true where it is said");
  starts("title: Mine\n", "", "mine.yaml:1:1: title: missing");
  starts("phase: training", "phase: drawing", "mine.yaml:4:8: phase: unknown value \"drawing\"");
  starts("tp > 4", "tp >",
         "mine.yaml:7:10: where.large: 'tp >', character 5: a number, a name or '(' is due");
  starts("large: ", "tp: ", "mine.yaml:7:7: where.tp: a name that there is already");
  starts("\"{tp}\"", "\"{ttp}\"",
         "mine.yaml:11:41: options[0].value: 'ttp', character 1: unknown name 'ttp'");
  starts("\"{tp}\"", "\"{tp\"",
         "mine.yaml:11:41: options[0].value: '{tp', character 1: a brace without the other");
  starts("\"{tp}\"", "\"{tp:.9f}\"",
         "mine.yaml:11:41: options[0].value: 'tp:.9f': values are written plainly");
  starts("\"{tp}\"", "[1]", "mine.yaml:11:41: options[0].value: must be text, not a list");
  starts("{says: tp, option", "{says: tp, opton",
         "mine.yaml:11:16: options[0].opton: unknown key; did you mean");
  starts("value: \"{tp}\"", "value: 1, lacks: why", "mine.yaml:11:51: options[0].lacks: beside value");
  starts("{says: tp,", "{says: tp, source: book,",
         "mine.yaml:11:24: options[0].source: names none of the file's sources");
  starts("    cases:", "    value: 1\n    cases:",
         "mine.yaml:16:7: options[1].cases: beside what the row itself says");
  starts("options:", "settings_of: other\noptions:", "mine.yaml:10:14: settings_of: names no framework");
  starts("  - {says: tp,", "  - 7\n  - {says: tp,",
         "mine.yaml:11:5: options[0]: must be a map of keys and values");
  EXPECT_NE(problem(kFile, ""), "none");
  EXPECT_NE(problem("sources: {", "sources: [{"), "none");
}

TEST(FrameworkFile, LinesFitAPage) {
  for (const auto& file :
       std::filesystem::directory_iterator(test::source_dir() + "/sweep/launch/frameworks")) {
    std::ifstream in(file.path());
    std::size_t number = 0;
    for (std::string line; std::getline(in, line);) {
      ++number;
      EXPECT_LE(character_count(line), 120U) << file.path() << ':' << number;
    }
    EXPECT_GT(number, 10U) << file.path();
  }
}

}  // namespace
}  // namespace shardscape::launch
