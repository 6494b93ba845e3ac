// Do numbers read as a person would write them, at the edges of their ranges too?
#include "sweep/cli/terminal/format.h"

#include <gtest/gtest.h>

#include <limits>
#include <sstream>

#include "sweep/cli/terminal/text_table.h"

namespace shardscape::cli {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

TEST(Format, CountsAreGroupedByThousands) {
  EXPECT_EQ(format_count(0), "0");
  EXPECT_EQ(format_count(999), "999");
  EXPECT_EQ(format_count(1000), "1,000");
  EXPECT_EQ(format_count(1234567), "1,234,567");
  EXPECT_EQ(format_count(~std::uint64_t{0}), "18,446,744,073,709,551,615");
}

TEST(Format, CountsHaveTheirPlural) {
  EXPECT_EQ(counted(1, "row"), "1 row");
  EXPECT_EQ(counted(0, "row"), "0 rows");
  EXPECT_EQ(counted(1234, "microbatch", "es"), "1,234 microbatches");
}

TEST(Format, SmallRatesKeepTheirDigits) {
  EXPECT_EQ(format_rate(8), "8.000");
  EXPECT_EQ(format_rate(0), "0.000");
  EXPECT_EQ(format_rate(0.05), "0.050");
  EXPECT_EQ(format_rate(0.000388712), "0.000389");
}

TEST(Format, PrefixesKeepFourDigits) {
  EXPECT_EQ(format_si(312e12, "FLOP/s"), "312.0 TFLOP/s");
  EXPECT_EQ(format_si(2.039e12, "B/s"), "2.039 TB/s");
  EXPECT_EQ(format_si(999.96, "B"), "1.000 kB");  // rounds into the next prefix
  EXPECT_EQ(format_si(999.94, "B"), "999.9 B");
  EXPECT_EQ(format_si(1, "B"), "1.000 B");
  EXPECT_EQ(format_si(-2500, "B"), "-2.500 kB");
  EXPECT_EQ(format_si(0.5e-9, "s"), "5e-10 s");
  EXPECT_EQ(format_si(kNaN, "s"), "-");
}

TEST(Format, SecondsAndDurations) {
  EXPECT_EQ(format_seconds(0), "0 s");
  EXPECT_EQ(format_seconds(6.643), "6.643 s");
  EXPECT_EQ(format_seconds(12.345e-3), "12.35 ms");
  EXPECT_EQ(format_seconds(5e-6), "5.000 us");
  EXPECT_EQ(format_seconds(12345), "12,345 s");
  EXPECT_EQ(format_seconds(kNaN), "-");
  EXPECT_EQ(format_duration(0.156), "156.0 ms");
  EXPECT_EQ(format_duration(3.25), "3.2 s");
  EXPECT_EQ(format_duration(59.6), "1 min 0 s");
  EXPECT_EQ(format_duration(200), "3 min 20 s");
  EXPECT_EQ(format_duration(7500), "2 h 5 min");
}

TEST(Format, SharesReadInPercent) {
  EXPECT_EQ(format_percent(0.4127), "41.3 %");
  EXPECT_EQ(format_percent(0.00012, 2), "0.01 %");
  EXPECT_EQ(format_signed_percent(0.4127), "+41.3 %");
  EXPECT_EQ(format_signed_percent(-0.0021, 2), "-0.21 %");
  EXPECT_EQ(format_signed_percent(0), "+0.0 %");
  EXPECT_EQ(format_signed_percent(kNaN), "-");
}

// As the page has them (formatSlowdown).
TEST(Format, LargeSlowdownsAreFactors) {
  EXPECT_EQ(format_slowdown(0.0654, 2), "6.54 %");
  EXPECT_EQ(format_slowdown(8.999, 2), "899.90 %");
  EXPECT_EQ(format_slowdown(9, 2), "10.0x");
  EXPECT_EQ(format_slowdown(42.51, 2), "43.5x");
  EXPECT_EQ(format_slowdown(1000, 2), "1,001x");
  EXPECT_EQ(format_slowdown(kNaN, 2), "-");
}

TEST(Format, BytesAreBinary) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(1023), "1023 B");
  EXPECT_EQ(format_bytes(80.0 * 1024 * 1024 * 1024), "80.00 GiB");
  EXPECT_EQ(format_bytes(1536), "1.50 KiB");
  EXPECT_EQ(format_bytes(kNaN), "-");
}

TEST(Format, ValuesFollowTheUnitOfTheirColumn) {
  EXPECT_EQ(format_value(2e12, "byte s-1"), "2.000 TB/s");
  EXPECT_EQ(format_value(826e-6, "m2"), "826.0 mm2");
  EXPECT_EQ(format_value(1.41e9, "Hz"), "1.410 GHz");
  EXPECT_EQ(format_value(4096, "1"), "4096");
  EXPECT_EQ(format_value(0.41234, "1"), "0.4123");
  EXPECT_EQ(format_percent(0.4134), "41.3 %");
  EXPECT_EQ(format_parameters(70.5537e9), "70.55 B parameters");
  EXPECT_EQ(format_parameters(124.4e6), "124.4 M parameters");
}

TEST(Format, BarsStayInTheirBox) {
  EXPECT_EQ(bar(0.5, 4), "##..");
  EXPECT_EQ(bar(0, 4), "....");
  EXPECT_EQ(bar(7, 4), "####");
  EXPECT_EQ(bar(-1, 4), "....");
}

TEST(TextTable, ColumnsAreAsWideAsTheirWidestCell) {
  TextTable table;
  table.add_column("name", TextTable::Align::left);
  table.add_column("n");
  table.add_row({"a", "1"});
  table.add_row({"longer", "1000"});
  std::ostringstream out;
  table.print(out, 2);
  EXPECT_EQ(out.str(),
            "  name       n\n"
            "  a          1\n"
            "  longer  1000\n");
}

TEST(TextTable, NarrowTerminalsGetBlocksOfColumns) {
  TextTable table;
  for (const char* heading : {"point", "tp", "step", "memory"}) table.add_column(heading);
  table.add_row({"10", "8", "22.09 s", "76.18 GiB"});
  std::ostringstream out;
  // Indent 2, then 5 + 2 + 2 + 2 + 7 + 2 + 9 = 29 characters; 24 hold all but the last column.
  table.print(out, 2, 31);
  EXPECT_EQ(out.str(),
            "  point  tp     step     memory\n"
            "     10   8  22.09 s  76.18 GiB\n");
  out.str("");
  table.print(out, 2, 30);
  EXPECT_EQ(out.str(),
            "  point  tp     step\n"
            "     10   8  22.09 s\n"
            "\n"
            "  point     memory\n"
            "     10  76.18 GiB\n");
}

TEST(TextTable, LongTextsTakeSeveralLines) {
  TextTable table = TextTable::pairs();
  table.add_row({"plan", "tp=2,sp=1,cp=4,pp=8,dp=1,zero=1,recompute=none"});
  table.add_row({"step", "22 s"});
  std::ostringstream out;
  table.print(out, 0, 30);
  EXPECT_EQ(out.str(),
            "plan  tp=2,sp=1,cp=4,pp=8,\n"
            "      dp=1,zero=1,\n"
            "      recompute=none\n"
            "step  22 s\n");
}

TEST(TextTable, CellsHoldNothingThatATerminalObeys) {
  TextTable table = TextTable::pairs();
  table.add_row({"a\nb", "\x1b[2J"});
  table.add_row({"\u00b5s", "time"});
  std::ostringstream out;
  table.print(out);
  EXPECT_EQ(out.str(),
            "a\\nb  \\x1b[2J\n"
            "\u00b5s    time\n");  // two characters wide, three bytes
}

TEST(TextTable, WordsAreKeptWhole) {
  EXPECT_EQ(wrapped("one two three", 7), (std::vector<std::string>{"one two", "three"}));
  EXPECT_EQ(wrapped("abcdefghij", 4), (std::vector<std::string>{"abcd", "efgh", "ij"}));
  EXPECT_EQ(wrapped("", 4), std::vector<std::string>{""});
}

}  // namespace
}  // namespace shardscape::cli
