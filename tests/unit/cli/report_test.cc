// Do text, CSV and JSON of a report say the same, each in its own way?
#include "sweep/cli/reports/report.h"

#include <gtest/gtest.h>

#include <limits>
#include <sstream>

namespace shardscape::cli {
namespace {

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

Rows some_rows() {
  Rows rows({{left("plan"), "plan"}, {"time", "time_s"}, {"busy"}, Rows::hidden("bytes")});
  rows.add({cell::words("tp=8, pp=4"), cell::seconds(0.5), cell::share(0.25), cell::bytes(2048)});
  rows.add({cell::words("tp=1"), cell::seconds(kUnknown), cell::share(1), cell::bytes(1)});
  return rows;
}

TEST(Report, RowsArePrintedWithoutWhatIsForProgramsAlone) {
  std::ostringstream out;
  some_rows().print(out, 2);
  EXPECT_EQ(out.str(),
            "  plan            time     busy\n"
            "  tp=8, pp=4  500.0 ms   25.0 %\n"
            "  tp=1               -  100.0 %\n");
}

TEST(Report, NoMoreRowsThanAskedForArePrinted) {
  std::ostringstream out;
  some_rows().print(out, 0, 1);
  EXPECT_NE(out.str().find("tp=8"), std::string::npos);
  EXPECT_EQ(out.str().find("tp=1"), std::string::npos);
}

TEST(Report, ProgramsGetExactValuesOfNamedColumns) {
  EXPECT_EQ(some_rows().json(), Json::parse(R"([{"plan": "tp=8, pp=4", "time_s": 0.5, "bytes": 2048.0},
                                                {"plan": "tp=1", "time_s": null, "bytes": 1.0}])"));
  std::ostringstream out;
  some_rows().print_csv(out);
  EXPECT_EQ(out.str(), "plan,time_s,bytes\n\"tp=8, pp=4\",0.5,2048.0\ntp=1,,1.0\n");
}

TEST(Report, DiscardedValuesAreLackingInTheirObject) {
  Rows rows({{left("operator"), "operator"}, {left("algorithm"), "algorithm"}});
  rows.add({cell::words("gemm"), {"", Json::value_t::discarded}});
  EXPECT_EQ(rows.json(), Json::parse(R"([{"operator": "gemm"}])"));
}

TEST(Report, FactsAreLinesOrOneObject) {
  Facts facts;
  facts.add_text("kernel", "flash");
  facts.add("time", "time_s", cell::seconds(0.002));
  facts.add_value("flops", 3);
  std::ostringstream text, json;
  facts.print(text, false);
  facts.print(json, true);
  EXPECT_EQ(text.str(), "kernel  flash\ntime    2.000 ms\n");
  EXPECT_EQ(Json::parse(json.str()), Json::parse(R"({"time_s": 0.002, "flops": 3})"));
}

}  // namespace
}  // namespace shardscape::cli
