// Is the report a whole page of the file, alone and the same every time?
#include <hdf5.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "results_schema/reading/reader.h"
#include "tests/cli/program_under_test.h"
#include "tests/support/paths.h"
#include "tests/support/report_page.h"
#include "tests/support/result_changes.h"

namespace shardscape::cli {
namespace {

using nlohmann::json;

class ReportTest : public ProgramTest {
 protected:
  void sweep(const std::string& study, const std::string& output) {
    write("study.yaml", study);
    const Finished finished = run({"sweep", "study.yaml", "-o", output, "--progress", "none"});
    ASSERT_EQ(finished.code, 0) << finished.err;
  }
  std::string page(const std::string& file, std::vector<std::string> more = {}) {
    more.insert(more.begin(), {"report", file, "-o", "page.html", "--force"});
    const Finished finished = run(more);
    EXPECT_EQ(finished.code, 0) << finished.err;
    return read_file(work() / "page.html");
  }
  static json data_of(const std::string& html) { return test::page_data(html); }
  static std::map<std::string, std::string> facts_of(const json& data) {
    std::map<std::string, std::string> facts;
    for (const json& fact : data.at("facts")) facts[fact.at(0)] = fact.at(1);
    return facts;
  }
};

// A file of a later program, or a damaged one, may count reasons that this program has no words for.
TEST_F(ReportTest, ReasonsWithoutAMeaningAreSaidToHaveNone) {
  std::string study = kSmallStudy;  // 24 does not divide by 16
  sweep(study.replace(study.find("global_batch: 32"), 16, "global_batch: 24"), "out.h5");
  std::uint8_t codes[256];
  test::change_and_renew(work() / "out.h5", [&](hid_t file) {
    const hid_t column = H5Dopen2(file, "/summary/reason_counts/reason", H5P_DEFAULT),
                space = H5Dget_space(column);
    const hssize_t count = H5Sget_simple_extent_npoints(space);
    ASSERT_TRUE(count > 0 && count <= 256);
    ASSERT_GE(H5Dread(column, H5T_NATIVE_UINT8, H5S_ALL, H5S_ALL, H5P_DEFAULT, codes), 0);
    codes[0] = 200;
    ASSERT_GE(H5Dwrite(column, H5T_NATIVE_UINT8, H5S_ALL, H5S_ALL, H5P_DEFAULT, codes), 0);
    H5Sclose(space);
    H5Dclose(column);
  });
  std::vector<std::string> meanings;
  const json data = data_of(page("out.h5"));
  for (const json& status : data.at("statuses"))
    for (const json& reason : status.at("reasons")) meanings.push_back(reason.at("meaning"));
  EXPECT_EQ(std::ranges::count(meanings, "?"), 1);
}

TEST_F(ReportTest, SaysWhatTheStudyIsAndWhatBecameOfItsPoints) {
  sweep(std::string(kSmallStudy) + "constraints: [\"tp <= 4\"]\n", "out.h5");
  const std::string html = page("out.h5");
  EXPECT_TRUE(contains(html, "<title>small</title>"));
  EXPECT_LT(html.size(), 2U << 20U);
  const json data = data_of(html);
  EXPECT_EQ(data.at("complete"), true);
  const auto facts = facts_of(data);
  EXPECT_EQ(facts.at("model"), "llama3.1-8b");
  EXPECT_EQ(facts.at("cluster"), "dgx-a100, 8 x a100-sxm-80gb");
  EXPECT_EQ(facts.at("stack"), "megatron-lm");
  EXPECT_EQ(facts.at("workload"), "training, sequence length 4096, global batch 32, bf16");
  EXPECT_EQ(facts.at("constraints"), "tp <= 4");
  std::map<std::string, std::uint64_t> expected, found;
  const results::ResultReader reader(work() / "out.h5");
  for (const double status : reader.read("status"))
    ++expected[std::string(name_of(static_cast<Status>(status)))];
  for (const json& status : data.at("statuses")) {
    found[status.at("name")] = status.at("count");
    std::uint64_t of_reasons = 0;
    for (const json& reason : status.at("reasons")) of_reasons += reason.at("count").get<std::uint64_t>();
    if (status.at("name") != "ok") {
      EXPECT_EQ(of_reasons, status.at("count")) << status.at("name");
    }
  }
  EXPECT_EQ(found, expected);
  EXPECT_TRUE(found.contains("constraint"));
  // The order of the page is the order of `top`.
  const json best = json::parse(run({"top", "out.h5", "-n", "50", "--format", "json"}).out);
  for (const json& column : data.at("columns")) {
    if (column.at("name") != "point_id") continue;
    for (std::size_t i = 0; i < best.size(); ++i)
      EXPECT_EQ(column.at("values").at(i), best[i].at("point_id")) << i;
  }
}

TEST_F(ReportTest, IsTheSameEveryTime) {
  sweep(kSmallStudy, "out.h5");
  const std::string first = page("out.h5");
  EXPECT_EQ(page("out.h5"), first);
  ASSERT_EQ(run({"sweep", "study.yaml", "-o", "again.h5", "--threads", "1"}).code, 0);
  EXPECT_EQ(page("again.h5"), first);
  const auto names = left_behind();
  EXPECT_TRUE(std::ranges::none_of(names, [](const std::string& name) { return name.ends_with(".tmp"); }));
}

TEST_F(ReportTest, FaultFiguresAreThoseOfTheSamples) {
  sweep(std::string(kSmallStudy) +
            "faults: {kind: [soft_link, slow_device], samples: 12, derate: {distribution: uniform, min: 0.3, "
            "max: 0.9}, seed: 3}\n",
        "out.h5");
  const json data = data_of(page("out.h5"));
  const json& faults = data.at("faults");
  const results::ResultReader reader(work() / "out.h5");
  const auto distribution_holds = [](const json& points, std::vector<double> slowdowns) {
    std::ranges::sort(slowdowns);
    EXPECT_EQ(points.back().at(0), 1);
    EXPECT_NEAR(points.back().at(1).get<double>(), slowdowns.back(), 1e-6);
    for (const json& point : points) {
      const double share = point.at(0), slowdown = point.at(1);
      const double room = 1e-6 * std::abs(slowdown) + 1e-12;  // seven digits are kept
      const auto not_above = std::ranges::count_if(slowdowns, [&](double s) { return s <= slowdown + room; });
      const auto below = std::ranges::count_if(slowdowns, [&](double s) { return s < slowdown - room; });
      const auto all = static_cast<double>(slowdowns.size());
      EXPECT_GE(static_cast<double>(not_above), share * all - 1e-6) << share;
      EXPECT_LT(static_cast<double>(below), share * all) << share;
    }
  };
  std::vector<double> all = reader.samples().read("slowdown");
  std::erase_if(all, [](double s) { return std::isnan(s); });
  distribution_holds(faults.at("distributions").at(0).at("points"), all);

  const std::string name = faults.at("distributions").at(1).at("name");
  const std::uint64_t point = std::stoull(name.substr(name.rfind(' ') + 1));
  const auto ids = reader.samples().point_ids();
  const auto slowdowns = reader.samples().read("slowdown");
  std::vector<double> of_plan;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] == point) of_plan.push_back(slowdowns[i]);
  }
  ASSERT_EQ(of_plan.size(), 12U);
  distribution_holds(faults.at("distributions").at(1).at("points"), of_plan);

  const json links =
      json::parse(run({"sensitivity", "out.h5", "--by-link", "--format", "json"}).out).at("by_link");
  EXPECT_EQ(faults.at("place_count"), links.size());
  for (std::size_t i = 0; i < faults.at("places").size(); ++i) {
    EXPECT_EQ(faults.at("places").at(i).at("name"), links[i].at("place"));
    EXPECT_NEAR(faults.at("places").at(i).at("mean").get<double>(),
                links[i].at("slowdown_mean").get<double>(), 1e-6);
  }
  EXPECT_FALSE(faults.at("dimensions").empty());
}

TEST_F(ReportTest, InferenceAndHardwareAxes) {
  sweep(std::string(kInferenceStudy) + "hardware: {device.hbm.bandwidth: [\"2 TB/s\", \"4 TB/s\"]}\n",
        "out.h5");
  const json data = data_of(page("out.h5"));
  EXPECT_EQ(data.at("ranking"), "e2e_s");
  EXPECT_EQ(data.at("x"), "e2e_s");
  EXPECT_EQ(facts_of(data).at("hardware axes"), "device.hbm.bandwidth");
  const auto axis = std::ranges::find_if(data.at("axes"), [](const json& entry) {
    return entry.at("column") == "device_hbm_bandwidth_bytes_per_s";
  });
  ASSERT_NE(axis, data.at("axes").end());
  ASSERT_EQ(axis->at("values").size(), 2U);
  const json best = json::parse(
      run({"top", "out.h5", "--per", "device_hbm_bandwidth_bytes_per_s", "--format", "json"}).out);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(axis->at("values").at(i).at("best_point"), best[i].at("point_id"));
    EXPECT_NEAR(axis->at("values").at(i).at("best").get<double>(), best[i].at("e2e_s").get<double>(), 1e-5);
  }
}

TEST_F(ReportTest, TheAnswerIsExecutedAndCommandsNameTheStudyAsItWasSwept) {
  fs::create_directories(work() / "it's here");
  write("it's here/study.yaml", kSmallStudy);
  ASSERT_EQ(
      run({"sweep", "-o", "out.h5", "--set", "workload.global_batch=64", "workload.sequence_length=2048",
           "it's here/study.yaml", "--set=objectives=[mfu]", "--progress", "none"})
          .code,
      0);
  const json data = data_of(page("out.h5", {"--confirm", "12"}));
  EXPECT_EQ(data.at("commands").at("study"),
            "'it'\\''s here/study.yaml' --set workload.global_batch=64 --set workload.sequence_length=2048 "
            "'--set=objectives=[mfu]'");
  const json& answer = data.at("answer");
  const std::string table = run({"top", "out.h5", "-n", "12", "--confirm", "12"}).out;
  const std::size_t line = table.find('\n', table.find("\npoint") + 1);
  EXPECT_EQ(answer.at("point"), std::stoi(table.substr(line))) << table;
  EXPECT_TRUE(answer.at("confirmed").get<std::string>().starts_with("12 rows executed: the order")) << answer;
  EXPECT_EQ(answer.at("framework"), "megatron-lm");
  EXPECT_EQ(answer.at("refused"), "");
  std::map<std::string, json> columns;
  for (const json& column : data.at("columns")) columns[column.at("name")] = column;
  const json rows =
      json::parse(run({"top", "out.h5", "-n", "12", "--confirm", "12", "--format", "json"}).out);
  const json &ids = columns.at("point_id").at("values"),
             &executed = columns.at("executed_step_time_s").at("values");
  std::size_t found = 0;
  for (const json& row : rows) {
    const auto place = std::ranges::find(ids, row.at("point_id")) - ids.begin();
    if (row.at("executed_step_time_s").is_null()) continue;
    EXPECT_NEAR(executed.at(static_cast<std::size_t>(place)).get<double>(),
                row.at("executed_step_time_s").get<double>(), 1e-5);
    ++found;
  }
  EXPECT_EQ(found, 12U);
}

TEST_F(ReportTest, SettingsHaveTheirOptions) {
  // 2 x 1 settings of hardware and 2 loads x 2 formats; tp in {1, 2, 4, 8} and dp fills: 4 plans in each.
  std::string study = kInferenceStudy;
  study.replace(study.find("precision: bf16"), 15, "precision: [bf16, fp8]");
  sweep(study + "hardware: {device.hbm.bandwidth: [\"2 TB/s\", \"4 TB/s\"], device.l2.capacity: [80 MiB]}\n",
        "out.h5");
  const json data = data_of(page("out.h5"));
  const json& commands = data.at("commands");
  EXPECT_EQ(commands.at("study"), "study.yaml");
  EXPECT_EQ(commands.at("plans"), 4);
  EXPECT_EQ(data.at("total_points"), 4 * 2 * 4);
  const json& settings = commands.at("settings");
  ASSERT_EQ(settings.size(), 3U);
  EXPECT_EQ(settings.at(0), json({"--set 'hardware.device.hbm.bandwidth=2 TB/s'",
                                  "--set 'hardware.device.hbm.bandwidth=4 TB/s'"}));
  EXPECT_EQ(settings.at(1), json({""}));  // the only one: nothing to choose
  ASSERT_EQ(settings.at(2).size(), 4U);
  std::set<std::string> loads(settings.at(2).begin(), settings.at(2).end());
  EXPECT_EQ(loads.size(), 4U);
  EXPECT_TRUE(loads.contains("--set workload.precision=fp8 --set workload.concurrency=32"));
}

TEST_F(ReportTest, NamesInAFileAreText) {
  std::string study = kSmallStudy;
  study.replace(study.find("study: small"), 12, "study: \"</script><b>x</b>\"");
  sweep(study + "hardware: {variant: {\"a<script>\": {}, other: {device.l2.capacity: 80 MiB}}}\n", "out.h5");
  const std::string html = page("out.h5");
  EXPECT_FALSE(contains(html, "<b>x"));
  EXPECT_TRUE(contains(html, "<title>&lt;/script&gt;&lt;b&gt;x&lt;/b&gt;</title>"));
  EXPECT_FALSE(contains(html, "a<script>"));
  EXPECT_EQ(data_of(html).at("title"), "</script><b>x</b>");
}

TEST_F(ReportTest, ASweepThatIsNotFinished) {
  Running running = start(long_sweep("out.h5", {"--threads", "1"}));
  await_segment(running, "out.h5");
  running.send(SIGKILL);
  ASSERT_EQ(running.wait().signal, SIGKILL);
  const json some = data_of(page("out.h5"));
  EXPECT_EQ(some.at("complete"), false);
  EXPECT_LT(some.at("rows"), some.at("total_points"));
  EXPECT_EQ(page("out.h5.parts"), page("out.h5"));
  ASSERT_EQ(run(long_sweep("out.h5", {"--resume"})).code, 0);
  const json all = data_of(page("out.h5", {"--points", "3000"}));
  EXPECT_EQ(all.at("complete"), true);
  EXPECT_EQ(all.at("rows"), kLongSweep);
  EXPECT_GT(all.at("feasible"), 3000);
  EXPECT_GE(all.at("shown"), 3000);
}

/// Rows are few then, and no measure of how far the sweep is.
TEST_F(ReportTest, ASweepOfSomeRowsThatIsNotFinished) {
  Running running = start(long_sweep("out.h5", {"--threads", "1", "--set", "store.rows=top 7"}));
  await_segment(running, "out.h5");
  running.send(SIGKILL);
  ASSERT_EQ(running.wait().signal, SIGKILL);
  const std::uint64_t points = results::ResultReader(work() / "out.h5.parts").point_count();
  std::string said = run({"report", "out.h5", "-o", "page.html"}).out;
  std::erase(said, ',');
  EXPECT_TRUE(contains(said, "report on " + std::to_string(points) + " of 600000 points")) << said;
}

TEST_F(ReportTest, RefusesWhatItCannotDoAndWritesNothing) {
  sweep(kSmallStudy, "out.h5");
  write("taken.html", "mine");
  write("text.h5", "no HDF5");
  const auto before = left_behind();
  const auto refused = [&](const std::vector<std::string>& words, int code, const std::string& reason) {
    const Finished finished = run(words);
    EXPECT_EQ(finished.code, code) << reason;
    EXPECT_TRUE(contains(finished.err, reason)) << finished.err;
    EXPECT_EQ(left_behind(), before) << reason;
  };
  refused({"report", "out.h5", "-o", "taken.html"}, 2, "taken.html: exists; --force replaces it");
  refused({"report", "out.h5", "-o", "out.h5", "--force"}, 2, "is an input of this very command");
  refused({"report", "out.h5", "-o", ".", "--force"}, 2, "is a folder");
  refused({"report", "out.h5"}, 2, "--output is required");
  refused({"report", "out.h5", "-o", "page.html", "--points", "0"}, 2, "--points");
  refused({"report", "none.h5", "-o", "page.html"}, 1, "none.h5: no such file");
  refused({"report", "text.h5", "-o", "page.html"}, 1, "text.h5: is not a readable HDF5 file");
  refused({"report", "out.h5", "-o", "no/such/folder/page.html"}, 1,
          "the folder no/such/folder does not exist");
  EXPECT_EQ(read_file(work() / "taken.html"), "mine");
  const Finished help = run({"report", "--help"});
  EXPECT_EQ(help.code, 0);
  EXPECT_TRUE(contains(help.out, "Examples:"));
}

}  // namespace
}  // namespace shardscape::cli
