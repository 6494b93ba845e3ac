#include "sweep/validate/measured_table.h"

#include <gtest/gtest.h>

#include "engine/base/safe_text.h"

namespace shardscape::validate {
namespace {

using Cells = std::vector<std::string>;

TEST(Table, ReadsHeaderRowsAndLines) {
  const Table table = parse_csv("a,b,c\n1,,x\n\n4, 5 ,6\n", "t.csv");
  EXPECT_TRUE(table.problems.empty());
  EXPECT_EQ(table.columns, (Cells{"a", "b", "c"}));
  ASSERT_EQ(table.rows.size(), 2U);
  EXPECT_EQ(table.rows[0].line, 2);
  EXPECT_EQ(table.rows[0].cells, (Cells{"1", "", "x"}));
  EXPECT_EQ(table.rows[1].line, 4);
  EXPECT_EQ(table.rows[1].cells, (Cells{"4", "5", "6"}));
}

TEST(Table, QuotedCellsKeepCommasQuotesBlanksAndLines) {
  const Table table = parse_csv("a,b\r\n\"x, \"\"y\"\" \",\"two\nlines\"\r\n3,4\r\n", "t.csv");
  EXPECT_TRUE(table.problems.empty());
  ASSERT_EQ(table.rows.size(), 2U);
  EXPECT_EQ(table.rows[0].cells, (Cells{"x, \"y\" ", "two\nlines"}));
  EXPECT_EQ(table.rows[1].line, 4);  // the row above takes two lines
}

TEST(Table, ByteOrderMarkIsPassedOver) {
  EXPECT_EQ(parse_csv("\xEF\xBB\xBF"
                      "a,b\n",
                      "t.csv")
                .columns,
            (Cells{"a", "b"}));
}

TEST(Table, FaultyRowsAreReportedAndTheOthersKept) {
  const Table table = parse_csv("a,b\n1\n1,2,3\n5,6\n\"7\"x,8\n9,\"ten\n", "t.csv");
  ASSERT_EQ(table.rows.size(), 1U);
  EXPECT_EQ(table.rows[0].cells, (Cells{"5", "6"}));
  ASSERT_EQ(table.problems.size(), 4U);
  EXPECT_EQ(to_string(table.problems[0]), "t.csv:2: has 1 cells, the header names 2 columns");
  EXPECT_EQ(table.problems[1].line, 3);
  EXPECT_EQ(table.problems[2].line, 5);
  EXPECT_EQ(table.problems[3].line, 6);
}

TEST(Table, HeadersAreChecked) {
  EXPECT_EQ(parse_csv("", "t.csv").problems.size(), 1U);
  const Table table = parse_csv("a,b,a\n", "t.csv");
  ASSERT_EQ(table.problems.size(), 1U);
  EXPECT_EQ(to_string(table.problems[0]), "t.csv:1: a: is named twice in the header");
}

TEST(Table, CsvCellReadsBackAsItself) {
  for (const std::string text : {"plain", "a,b", "say \"hi\"", "two\nlines", ""}) {
    const Table table = parse_csv("a,b\nx," + csv_cell(text) + "\n", "t.csv");
    ASSERT_EQ(table.rows.size(), 1U) << text;
    EXPECT_EQ(table.rows[0].cells[1], text);
  }
}

}  // namespace
}  // namespace shardscape::validate
