// Does a condition take the rows that its words say?
#include "sweep/calibrate/dataset.h"

#include <gtest/gtest.h>

namespace shardscape::calibrate {
namespace {

const validate::Table kTable = validate::parse_csv(
    "id,cluster,gpus,gpus_per_node,bytes\n"
    "a,dgx-a100,8,8,1e6\n"
    "b,dgx-h100,8,8,2000\n"
    "c,dgx-a100,16,8,1e6\n"
    "d,,8,8,\n",
    "t.csv");

std::string taken(const char* expression) {
  const auto rows = rows_where(kTable, expression);
  if (!rows) return rows.error();
  std::string ids;
  for (const validate::TableRow& row : rows->rows) ids += row.cells[0];
  return ids;
}

TEST(RowFilter, NumbersChoicesAndBlanks) {
  EXPECT_EQ(taken("gpus == gpus_per_node"), "abd");
  EXPECT_EQ(taken("gpus == gpus_per_node and bytes >= 1e6"), "a");
  EXPECT_EQ(taken("bytes < 1e9"), "abc");
  EXPECT_EQ(taken("cluster == 'dgx-a100'"), "ac");
  EXPECT_EQ(taken("cluster != 'dgx-a100'"), "bd");
  EXPECT_EQ(taken("not (gpus > 8)"), "abd");
}

TEST(RowFilter, RowsOfARelease) {
  const validate::Table table = validate::parse_csv(
      "id,software,source\n"
      "a,bridge,summary line 3; 26.04.01 NeMo Container; notes\n"
      "b,bridge,summary line 9; 26.06 NeMo Container\n"
      "c,bridge 25.09,\n"
      "d,bridge,\n",
      "t.csv");
  const auto ids = [&](const char* expression) {
    std::string text;
    const auto kept = rows_where(table, expression);
    for (const validate::TableRow& row : kept->rows) text += row.cells[0];
    return text;
  };
  EXPECT_EQ(ids("release < 26.06"), "ac");
  EXPECT_EQ(ids("release >= 26.0401"), "ab");
  EXPECT_EQ(ids("not release >= 26.06"), "acd");  // no comparison holds for what is not stated
  EXPECT_EQ(rows_where(table, "release > 26")->columns.size(), 3U);
}

TEST(RowFilter, ProblemsNameThePlace) {
  EXPECT_EQ(taken("gpus > 100"), "'gpus > 100' holds for no row");
  EXPECT_TRUE(taken("gpus > and").starts_with("'gpus > and', character 8: ")) << taken("gpus > and");
  EXPECT_NE(taken("gpu > 1").find("(did you mean 'gpus'?)"), std::string::npos) << taken("gpu > 1");
  EXPECT_NE(taken("cluster == 'dgx-b200'").find("dgx-b200"), std::string::npos)
      << taken("cluster == 'dgx-b200'");
}

}  // namespace
}  // namespace shardscape::calibrate
