// Does the page hold what the file holds?
#include "results_schema/report/report_data.h"

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "results_schema/report/page.h"
#include "results_schema/report/page_rows.h"
#include "tests/unit/results_schema/results_fixture.h"

namespace shardscape::report {
namespace {

using nlohmann::json;
using results::ResultReader;

class ReportDataTest : public results::ResultsTest {
 protected:
  static ReportInput input(std::size_t max_points = 20'000) {
    ReportInput result;
    result.words = {[](const results::ColumnInfo& column) { return "h " + column.name; },
                    [](std::string_view reason) { return "because of " + std::string(reason); },
                    [](std::string_view) { return Status::indivisible; }};
    result.facts = {{"model", "none"}};
    result.max_points = max_points;
    return result;
  }
  std::filesystem::path fake_file(std::uint64_t points, const std::string& name = "out.h5") {
    const results::Manifest manifest = results::fake_manifest(points, 64);
    return finished(name, manifest, {{0, (points + 63) / 64}});
  }
  static std::map<std::string, json> columns_by_name(const json& data) {
    std::map<std::string, json> columns;
    for (const json& column : data.at("columns")) columns[column.at("name")] = column;
    return columns;
  }
  static json value_of(const json& column, std::size_t row) {
    return column.contains("value") ? column.at("value") : column.at("values").at(row);
  }
};

TEST_F(ReportDataTest, HoldsEveryFeasiblePointBestFirst) {
  const ResultReader reader(fake_file(500));
  const json data = json::parse(report_json(reader, input()));
  const auto columns = columns_by_name(data);
  const auto status = reader.read("status"), time = reader.read("step_time_s"),
             memory = reader.read("memory_peak_bytes");
  std::vector<std::pair<double, std::uint64_t>> expected;
  for (std::uint64_t row = 0; row < status.size(); ++row) {
    if (status[row] == 0) expected.emplace_back(time[row], row);
  }
  std::ranges::sort(expected);
  EXPECT_EQ(data.at("feasible"), expected.size());
  EXPECT_EQ(data.at("shown"), expected.size());
  EXPECT_EQ(data.at("ranking"), "step_time_s");
  ASSERT_EQ(columns.at("point_id").at("values").size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const auto [seconds, row] = expected[i];
    EXPECT_EQ(columns.at("point_id").at("values").at(i), row);
    EXPECT_EQ(value_of(columns.at("step_time_s"), i), seconds);
    EXPECT_NEAR(value_of(columns.at("memory_peak_bytes"), i).get<double>(), memory[row], 5e-7 * memory[row]);
    for (const char* name : {"mfu", "weights_bytes", "compute_s"}) {
      const double stored = reader.read(name, {row, row + 1}).at(0);
      EXPECT_NEAR(value_of(columns.at(name), i).get<double>(), stored, 5e-7 * std::abs(stored)) << name;
    }
  }
  EXPECT_EQ(columns.at("global_batch").at("value"), 128);  // the same everywhere: once
  EXPECT_FALSE(columns.contains("status"));
  EXPECT_EQ(columns.at("recompute").at("names"), json({"none", "selective", "full"}));
  EXPECT_EQ(columns.at("mfu").at("heading"), "h mfu");
}

TEST_F(ReportDataTest, CountsAreThoseOfTheRows) {
  const ResultReader reader(fake_file(500));
  const json data = json::parse(report_json(reader, input()));
  std::map<std::string, std::uint64_t> counts, listed;
  for (const double status : reader.read("status"))
    ++counts[std::string(name_of(static_cast<Status>(status)))];
  for (const json& status : data.at("statuses")) {
    listed[status.at("name")] = status.at("count");
    if (status.at("name") != "indivisible") {
      EXPECT_TRUE(status.at("reasons").empty());
    }
  }
  EXPECT_EQ(listed, counts);
  EXPECT_EQ(data.at("faults"), nullptr);
  // Every axis that varies, and each of its values with all points counted.
  std::set<std::string> axes;
  for (const json& axis : data.at("axes")) {
    axes.insert(axis.at("column"));
    std::uint64_t points = 0, feasible = 0;
    for (const json& value : axis.at("values")) {
      points += value.at("points").get<std::uint64_t>();
      feasible += value.at("feasible").get<std::uint64_t>();
    }
    EXPECT_EQ(points, 500U) << axis.at("column");
    EXPECT_EQ(feasible, counts["ok"]) << axis.at("column");
  }
  EXPECT_TRUE(axes.contains("tensor_parallel"));
  EXPECT_TRUE(axes.contains("device_hbm_bandwidth_bytes_per_s"));
  EXPECT_TRUE(axes.contains("fabric_algorithm"));
  EXPECT_FALSE(axes.contains("microbatches"));
  EXPECT_FALSE(axes.contains("global_batch"));
}

TEST_F(ReportDataTest, OnlyRowsThatStandForTheStudySayWhatAnAxisIsWorth) {
  const auto axes_of = [&](const std::string& name, results::SelectionKind kind, results::BlockRange blocks) {
    results::Manifest manifest = results::fake_manifest(500, 64);
    manifest.layout.selection = {kind, kind == results::SelectionKind::all ? 500U : 9000U};
    manifest.layout.blocks = blocks;
    const json data = json::parse(report_json(ResultReader(finished(name, manifest, {blocks})), input()));
    EXPECT_EQ(data.at("selection").at("kind"), name_of(kind));
    EXPECT_EQ(data.at("selection").at("study_points"), manifest.layout.selection.study_points);
    EXPECT_EQ(data.at("selection").at("stands_for_study"), !data.at("axes").empty());
    return data.at("axes").size();
  };
  using enum results::SelectionKind;
  EXPECT_GT(axes_of("all.h5", all, {0, 8}), 0U);
  EXPECT_GT(axes_of("sample.h5", sample, {0, 8}), 0U);
  EXPECT_EQ(axes_of("first.h5", first, {0, 8}), 0U);
  EXPECT_EQ(axes_of("shard.h5", all, {2, 3}), 0U);
  EXPECT_EQ(axes_of("part.h5", sample, {0, 4}), 0U);
}

TEST_F(ReportDataTest, OpensOnBothFirstObjectives) {
  const auto opening = [&](const std::string& name, std::vector<std::string> objectives) {
    results::Manifest manifest = results::fake_manifest(64, 64);
    manifest.study.objectives = std::move(objectives);
    return default_axes(ResultReader(finished(name, manifest, {{0, 1}})));
  };
  using Axes = std::pair<std::string, std::string>;
  EXPECT_EQ(opening("two.h5", {"step_time_s", "mfu"}), Axes("step_time_s", "mfu"));
  EXPECT_EQ(opening("rate.h5", {"mfu", "tokens_per_s_per_gpu", "step_time_s"}),
            Axes("mfu", "tokens_per_s_per_gpu"));
  EXPECT_EQ(opening("one.h5", {"step_time_s"}), Axes("step_time_s", "memory_peak_bytes"));
  EXPECT_EQ(opening("rate_alone.h5", {"mfu"}), Axes("mfu", "memory_peak_bytes"));
  EXPECT_EQ(opening("memory.h5", {"memory_peak_bytes"}), Axes("memory_peak_bytes", "step_time_s"));
}

TEST_F(ReportDataTest, CommandsAreInTheData) {
  ReportInput some = input();
  some.commands = {"a.yaml", 12, {{"--set x=1", "--set x=2"}, {""}}};
  const json data = json::parse(report_json(ResultReader(fake_file(64)), some));
  EXPECT_EQ(data.at("commands"),
            json({{"study", "a.yaml"}, {"plans", 12}, {"settings", {{"--set x=1", "--set x=2"}, {""}}}}));
}

TEST_F(ReportDataTest, NearMissesAreInTheData) {
  ReportInput some = input();
  some.near_misses = {
      {7, "tp=2", "", "1 GiB missing", 1073741824.0, 3, {{"recompute=full", 5e9, 2.5, "point 8"}}}};
  const json data = json::parse(report_json(ResultReader(fake_file(64)), some));
  const json& miss = data.at("near_misses").at(0);
  EXPECT_EQ(miss.at("point_id"), 7);
  EXPECT_EQ(miss.at("stage"), 3);
  EXPECT_EQ(miss.at("missing_bytes"), 1073742000);  // seven digits
  EXPECT_EQ(miss.at("fixes").at(0).at("change"), "recompute=full");
  EXPECT_EQ(miss.at("fixes").at(0).at("time_s"), 2.5);
}

TEST_F(ReportDataTest, ASampleKeepsTheFrontAndTheBest) {
  const ResultReader reader(fake_file(4000));
  const json data = json::parse(report_json(reader, input(900)));
  EXPECT_EQ(data.at("shown"), 900);
  std::set<std::uint64_t> shown;
  const auto columns = columns_by_name(data);
  for (const json& id : columns.at("point_id").at("values")) shown.insert(id.get<std::uint64_t>());
  EXPECT_EQ(shown.size(), 900U);
  for (const results::RankedPoint& point : reader.summary().pareto)
    EXPECT_TRUE(shown.contains(point.point_id));
  for (const auto& [name, sign] :
       {std::pair{"step_time_s", 1.0}, {"mfu", -1.0}, {"memory_peak_bytes", 1.0}}) {
    const auto status = reader.read("status"), values = reader.read(name);
    std::vector<std::pair<double, std::uint64_t>> ranked;
    for (std::uint64_t row = 0; row < values.size(); ++row) {
      if (status[row] == 0) ranked.emplace_back(sign * values[row], row);
    }
    std::ranges::sort(ranked);
    for (std::size_t i = 0; i < kBestKept; ++i)
      EXPECT_TRUE(shown.contains(ranked[i].second)) << name << " " << i;
  }
}

TEST_F(ReportDataTest, PartsGiveTheSameDataAsTheFinishedFile) {
  const results::Manifest manifest = results::fake_manifest(700, 64);
  const ResultReader whole(
      finished("whole.h5", manifest, {{0, 11}}, {"later", "0.1.0", "abc123", "g++", "elsewhere", "", 9}));
  auto store = results::SegmentStore::create(results::parts_folder(file("parts.h5")), manifest);
  seal(store, {{0, 4}, {4, 7}});
  const ResultReader parts(file("parts.h5"));
  json a = json::parse(report_json(whole, input(300))), b = json::parse(report_json(parts, input(300)));
  EXPECT_EQ(a.at("complete"), true);
  EXPECT_EQ(b.at("complete"), false);
  b["complete"] = true;
  EXPECT_EQ(a, b);
}

TEST_F(ReportDataTest, NothingFeasibleIsAPageToo) {
  // The fewest points of which none is feasible.
  std::uint64_t points = 0;
  while (results::FakePoint(points).prediction.status != Status::ok) ++points;
  ASSERT_GT(points, 0U);
  const ResultReader reader(fake_file(points));
  const json data = json::parse(report_json(reader, input()));
  EXPECT_EQ(data.at("feasible"), 0);
}

TEST_F(ReportDataTest, NoTextOfAFileLeavesItsPlace) {
  results::Manifest manifest = results::fake_manifest(64, 64);
  manifest.study.title = "</script><b>\"bold\"</b> & <!-- {{data}} \xff";
  const ResultReader reader(finished("out.h5", manifest, {{0, 1}}));
  ReportInput hostile = input();
  hostile.facts = {{"model", "</script><img src=x onerror=alert(1)>"}};
  const std::string data = report_json(reader, hostile);
  EXPECT_EQ(data.find('<'), std::string::npos);
  const json document = json::parse(data);
  EXPECT_EQ(document.at("facts").at(0).at(1), "</script><img src=x onerror=alert(1)>");
  const std::string page = html_page(manifest.study.title, data);
  EXPECT_EQ(page.find("<b>\"bold"), std::string::npos);
  EXPECT_NE(page.find("<title>&lt;/script&gt;&lt;b&gt;&quot;bold&quot;&lt;/b&gt; &amp; &lt;!-- {{data}} "),
            std::string::npos);
  EXPECT_NE(page.find(data), std::string::npos);
}

TEST(HtmlPage, IsWholeAndAlone) {
  const std::string page = html_page("a title", R"({"x":"{{script}} {{library}}"})");
  const auto count = [&](const std::string& part) {
    std::size_t found = 0;
    for (std::size_t at = page.find(part); at != std::string::npos; at = page.find(part, at + 1)) ++found;
    return found;
  };
  EXPECT_TRUE(page.starts_with("<!DOCTYPE html>"));
  EXPECT_EQ(count("{\"x\":\"{{script}} {{library}}\"}"), 1U);  // marks inside the data stay text
  EXPECT_EQ(count("<script"), count("</script>"));
  EXPECT_EQ(count("Released under the MIT License"), 2U);  // Chart.js and the colour library in it
  for (const char* outside : {" src=", "<link", "@import", "url(http", "fetch(", "XMLHttpRequest"})
    EXPECT_EQ(count(outside), 0U) << outside;
}

TEST(EscapeHtml, EveryCharacterThatMeansSomething) {
  EXPECT_EQ(escape_html("a<b>&\"'é"), "a&lt;b&gt;&amp;&quot;&#39;é");
}

}  // namespace
}  // namespace shardscape::report
