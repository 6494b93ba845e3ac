#include "sweep/validate/published.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "sweep/validate/evaluation.h"
#include "tests/support/paths.h"
#include "tests/unit/yaml/problems_of.h"

namespace shardscape::validate {
namespace {

namespace fs = std::filesystem;

class PublishedTest : public testing::Test {
 protected:
  tl::expected<PublishedSet, yaml::Diagnostics> load(const std::string& text) {
    std::ofstream(file_) << text;
    return load_published(file_);
  }
  ~PublishedTest() override { fs::remove(file_); }

  fs::path file_ = fs::path(testing::TempDir()) / ("published-" + std::to_string(getpid()) + ".yaml");
};

TEST_F(PublishedTest, CommonCellsAreThoseOfEveryRowThatHasNoOwn) {
  const auto set = load(
      "title: T\nsource: S\ntolerances: {step_time.mape: 4 %, ranking.spearman: 0.9}\n"
      "common: {phase: training, model: a}\nrows:\n  - {id: x}\n  - {id: y, model: b}\n");
  ASSERT_TRUE(set) << set.error().to_string();
  EXPECT_EQ(set->title, "T");
  EXPECT_EQ(set->source, "S");
  ASSERT_EQ(set->bars.size(), 2U);
  EXPECT_DOUBLE_EQ(set->bars[0].limit, 0.04);
  ASSERT_EQ(set->table.rows.size(), 2U);
  EXPECT_EQ(set->table.rows[0].line, 6);
  const ptrdiff_t model = std::ranges::find(set->table.columns, "model") - set->table.columns.begin();
  EXPECT_EQ(set->table.rows[0].cells[static_cast<std::size_t>(model)], "a");
  EXPECT_EQ(set->table.rows[1].cells[static_cast<std::size_t>(model)], "b");
}

TEST_F(PublishedTest, EveryProblemIsLocated) {
  const auto set = load(
      "title: T\ntolerances: {step_time.mpae: 4 %}\ncommon: {modle: a}\nrows:\n  - {id: [1]}\nextra: 1\n");
  ASSERT_FALSE(set);
  const std::string file = file_.string();
  EXPECT_TRUE(yaml::reports(set.error(), file + ":2:14: tolerances", "did you mean 'step_time.mape'?"));
  EXPECT_TRUE(yaml::reports(set.error(), file + ":3:10: common", "did you mean 'model'?"));
  EXPECT_TRUE(yaml::reports(set.error(), file + ":5:10: rows", "must be one value"));
  EXPECT_NE(set.error().to_string().find("source"), std::string::npos);
  EXPECT_NE(set.error().to_string().find("extra"), std::string::npos);
}

// Every figure can be predicted, carries a citation, and is compared against a tolerance.
TEST(Published, SetsOfTheProjectAreSound) {
  const std::vector<fs::path> files = list_published(fs::path(test::source_dir()) / "sweep" / "published");
  ASSERT_GE(files.size(), 3U);
  Presets presets(yaml::Catalog({test::source_dir()}));
  for (const fs::path& file : files) {
    const auto set = load_published(file);
    ASSERT_TRUE(set) << set.error().to_string();
    EXPECT_FALSE(set->source.empty()) << file;
    const Evaluation evaluation = evaluate(set->table, presets, {});
    for (const TableProblem& problem : evaluation.problems) ADD_FAILURE() << to_string(problem);
    EXPECT_EQ(evaluation.rows.size(), set->table.rows.size());
    const auto results = check_bars(set->bars, statistics(evaluation));
    EXPECT_EQ(results.size(), set->bars.size()) << file << ": a tolerance without a measurement";
    EXPECT_FALSE(results.empty()) << file;
    for (const BarResult& result : results) {
      EXPECT_TRUE(result.held) << file << ": " << result.bar.statistic << " " << result.value;
    }
  }
}

}  // namespace
}  // namespace shardscape::validate
