// Does the page of results begin with its answer, understand its readers, and can everyone read it, in a real browser?
// Skipped where there is none.
#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "tests/cli/program_under_test.h"
#include "tests/support/live_browser.h"
#include "tests/support/paths.h"

namespace shardscape::cli {
namespace {

using nlohmann::json;

class PageBrowserTest : public ProgramTest {
 protected:
  void SetUp() override {
    if (test::browser_on_path().empty() && !test::explorer_due()) GTEST_SKIP() << "no Chromium on the path";
    ASSERT_NE(test::browser_on_path(), "");
  }
  void TearDown() override {
    if (browser_)
      for (const std::string& said : browser_->console()) ADD_FAILURE() << said;
  }
  void done(const std::vector<std::string>& words) {
    const Finished finished = run(words);
    ASSERT_EQ(finished.code, 0) << words.front() << ": " << finished.err;
  }
  test::LiveBrowser& open_page(const std::string& file, int width = 1400, bool dark = false) {
    browser_.reset();
    browser_.emplace((work().parent_path() / "browser").string(), width, dark);
    browser_->open_page("file://" + (work() / file).string());
    EXPECT_TRUE(browser_->holds("document.readyState === 'complete' && document.querySelector('#facts dd')"));
    return *browser_;
  }
  test::LiveBrowser& page_of(const std::string& study) {
    write("study.yaml", study);
    done({"sweep", "study.yaml", "-o", "out.h5", "--progress", "none", "--force"});
    done({"report", "out.h5", "-o", "page.html", "--force"});
    return open_page("page.html");
  }
  static std::string study_of(const std::string& name) {
    return test::source_dir() + "/sweep/studies/" + name + ".yaml";
  }
  /// What a shell prints for a command of a page, run in a folder; its program is the one under test.
  std::string output_of(std::string command, const std::string& folder) {
    const std::string name = "shardscape";
    EXPECT_TRUE(command.starts_with(name)) << command;
    command.replace(0, name.size(), "'" + test::program() + "'");
    const std::string out = (work() / "command.out").string();
    const int code =
        std::system(("cd '" + folder + "' && " + command + " > '" + out + "' 2> '" + out + ".err'").c_str());
    EXPECT_EQ(code, 0) << command << read_file(out + ".err");
    return read_file(out);
  }

  std::optional<test::LiveBrowser> browser_;
};

TEST_F(PageBrowserTest, TheAnswerIsFirstAndIsTheOneThatTopConfirms) {
  done({"sweep", study_of("llama3.1-70b-64xa100"), "-o", "out.h5", "--progress", "none"});
  done({"report", "out.h5", "-o", "page.html"});
  const json found = open_page("page.html").in_page(R"js(
    const [first] = document.querySelectorAll("main > section"), id = COLUMNS.get("point_id");
    return {first: first.id, point: id.at(ANSWER), executed: EXECUTED.at(ANSWER), picked: state.picked === ANSWER,
            figures: [...document.querySelectorAll("#answer-figures dt")].map((term) => term.textContent),
            says: byId("answer").textContent, command: byId("answer-command").querySelector("code").textContent,
            links: [...document.querySelectorAll("#contents a")].map(
                (link) => document.querySelector(link.getAttribute("href"))?.tagName),
            sections: document.querySelectorAll("main > section:not([hidden])")
                         .length
};)js");
  EXPECT_EQ(found.at("first"), "answer");
  EXPECT_EQ(found.at("links"), json(std::vector<std::string>(found.at("sections"), "SECTION")));
  EXPECT_EQ(found.at("picked"), true);
  EXPECT_EQ(found.at("figures"),
            json({"step time", "executed", "tokens/s/GPU", "MFU", "memory", "expected error"}));
  // The first line of top's table is the same plan.
  const std::string table = run({"top", "out.h5"}).out;
  const std::string point = std::to_string(found.at("point").get<int>());
  const std::size_t head = table.find("\npoint"), line = table.find('\n', head + 1) + 1;
  EXPECT_EQ(std::stoi(table.substr(line)), found.at("point")) << table;
  const json rows = json::parse(run({"top", "out.h5", "--confirm", "10", "--format", "json"}).out);
  for (const json& row : rows) {
    if (row.at("point_id") != found.at("point")) continue;
    EXPECT_NEAR(row.at("executed_step_time_s").get<double>(), found.at("executed").get<double>(), 1e-5);
  }
  EXPECT_TRUE(contains(found.at("says"), "executed: the order")) << found.at("says");
  EXPECT_TRUE(contains(found.at("says"), "one sigma")) << found.at("says");
  const std::string command = found.at("command");
  EXPECT_TRUE(command.starts_with("shardscape launch ") && contains(command, "--for=megatron-lm")) << command;
  EXPECT_TRUE(contains(output_of(command, work().string()), "--tensor-model-parallel-size 4"));
}

TEST_F(PageBrowserTest, AnAnswerThatIsNotExecutedSaysSo) {
  test::LiveBrowser& page = page_of(std::string(kSmallStudy) + "mode: flattened\n");
  EXPECT_TRUE(contains(page.in_page("return byId('answer').textContent;"),
                       "Messages were not executed: the file holds executed times"));
  write("large.yaml",
        "study: none\nmodel: llama3.1-70b\ncluster: dgx-a100\ngpus: 8\nstack: megatron-lm\n"
        "workload: {phase: training, sequence_length: 8192, global_batch: 32, precision: bf16}\n"
        "space: {tensor_parallel: [1], pipeline_parallel: [1], data_parallel: fill}\n");
  done({"sweep", "large.yaml", "-o", "none.h5", "--progress", "none"});
  done({"report", "none.h5", "-o", "none.html"});
  const std::string says = open_page("none.html").in_page("return byId('answer').textContent;");
  EXPECT_TRUE(contains(says, "No plan of this study is feasible. Point 0 comes nearest")) << says;
}

// The study lies elsewhere, and the sweep changed it: the page's commands predict what the page shows all the same.
TEST_F(PageBrowserTest, CommandsWorkWhereTheStudyWasSwept) {
  fs::create_directories(work() / "today's studies");
  write("today's studies/study.yaml", kSmallStudy);
  done({"sweep", "-o", "out.h5", "--set", "workload.global_batch=64", "workload.sequence_length=2048",
        "today's studies/study.yaml", "--progress", "none"});
  done({"report", "out.h5", "-o", "page.html"});
  const json found = open_page("page.html").in_page(R"js(
    return {command: byId("detail").querySelector("code").textContent,
            time: COLUMNS.get("step_time_s").at(state.picked)};)js");
  std::string command = found.at("command");
  command.replace(command.find("--explain"), std::string("--explain").size(), "--json");
  const double expected = found.at("time");
  const json predicted = json::parse(output_of(command, work().string()));
  EXPECT_NEAR(predicted.at("step_time_s").get<double>(), expected, 1e-6 * expected) << command;
}

TEST_F(PageBrowserTest, ConditionsTakeLabelsAndRefuseUnitsOfAnotherKind) {
  test::LiveBrowser& page = page_of(kSmallStudy);
  const auto kept = [&](const std::string& condition) {
    return page.in_page("try { const holds = parseCondition(" + json(condition).dump() +
                        "); return everyRow.filter(holds).length; } catch (error) { return error.message; }");
  };
  const auto top = [&](const std::string& condition) {
    const Finished finished =
        run({"top", "out.h5", "-n", "100000", "--format", "json", "--where", condition});
    return finished.code == 0 ? json(json::parse(finished.out).size()) : json(finished.err);
  };
  const double time = page.in_page("return 1.0005 * ranking.at(10);");
  const std::string limit = std::to_string(time);
  const std::vector<std::pair<std::string, std::string>> same = {
      {"step time < " + limit, "step_time_s < " + limit},
      {"Step  Time < " + limit + " s", "step_time < " + limit + " s"},
      {"tokens/s/GPU > 100 and MFU > 10 %", "tokens_per_s_per_gpu > 100 and mfu > 10 %"},
      {"tp comm < 5 % and not (dp comm > 1 s)", ""},
      {"memory < 40 GiB", "memory_peak_bytes < 40 GiB"},
      {"recompute == full or step time + bubble < " + limit + " s",
       "recompute == full or step_time + bubble < " + limit + " s"},
      {"2 * step time / 2 < " + limit + " s", "2 * step_time / 2 < " + limit + " s"},
      {"workload.global_batch == 32", "workload.global_batch == 32"},
      {"tp * pp * dp == 8", "tp * pp * dp == 8"}};
  for (const auto& [said, by_name] : same) {
    const json here = kept(said);
    if (by_name.empty()) {
      EXPECT_TRUE(here.is_string()) << said << here;  // of times, no shares
    } else {
      EXPECT_EQ(here, top(by_name)) << said;
      EXPECT_GT(here, 0) << said;
    }
  }
  const std::vector<std::pair<std::string, std::string>> refused = {
      {"step_time < 70 GB",
       "'step_time' does not compare with '70 GB': numbers for it have no unit or one of ns, us, ms, s, min, "
       "h"},
      {"70 s > memory",
       "'memory' does not compare with '70 s': numbers for it have no unit or one of B, kB, MB"},
      {"tp <= 4 GiB", "'tp' does not compare with '4 GiB': numbers for it have no unit, or are in %"},
      {"step time + 1 s < 2 MB", "'step time + 1 s' does not compare with '2 MB'"},
      {"steptime < 3", "unknown name 'steptime'; did you mean 'step_time_s'? Names: step_time_s, "},
      {"recompte == full", "unknown name 'recompte'; did you mean 'recompute'?"},
      {std::string(100'000, '('), "the condition is too long"},
      {"qqqqqq < 3", "unknown name 'qqqqqq' Names: "}};
  for (const auto& [said, message] : refused) {
    const json here = kept(said);
    ASSERT_TRUE(here.is_string()) << said << here;
    EXPECT_TRUE(contains(here, message)) << said << "\n" << here;
  }
  // Units of one kind that the program refuses, too.
  for (const char* said : {"step_time < 70 GB", "70 s > memory", "tp <= 4 GiB"})
    EXPECT_TRUE(top(said).is_string()) << said;
  const json names = page.in_page(
      "const box = byId('where'); box.value = 'step time < 70 GB'; box.oninput();"
      "await new Promise((resolve) => { setTimeout(resolve, 600); });"
      "return {says: byId('where-says').textContent, wrong: box.getAttribute('aria-invalid'), "
      "known: byId('where-known').textContent, labels: DATA.columns.map(partName)};");
  EXPECT_EQ(names.at("wrong"), "true");
  EXPECT_TRUE(contains(names.at("says"), "'step time' does not compare")) << names.at("says");
  for (const json& label : names.at("labels")) EXPECT_TRUE(contains(names.at("known"), label)) << label;
}

TEST_F(PageBrowserTest, PoolsAreNamedWhereThereAreSome) {
  done({"sweep", study_of("llama3.1-70b-serving-16xa100"), "-o", "out.h5", "--progress", "none"});
  done({"report", "out.h5", "-o", "page.html"});
  const json found = open_page("page.html").in_page(R"js(
    const pool = COLUMNS.get("prefill_data_parallel"), without = everyRow.filter((row) => !(pool.at(row) > 0));
    const heads = () => [...byId("plan-table").tHead.rows[0].cells].map(
        (cell) => cell.textContent.replace(/ [▲▼]$/, ""));
    const cells = (row, name) => byId("plan-table").tBodies[0].querySelector(`tr[data-row="${row}"]`)
        .cells[heads().indexOf(name)].textContent;
    const result = {without: without.length, all: COUNT, heads: heads(),
                    cell: cells(without[0], "prefill tp"), text: planText(without[0]),
                    tooltip: tooltipLines(without[0]).join()};
    pick(without[0]);
    result.detail = [...byId("detail").querySelectorAll("dt")].map((term) => term.textContent);
    state.rows = without;
    changed("rows");
    result.left = heads();
    return result;)js");
  ASSERT_GT(found.at("without"), 0);
  ASSERT_LT(found.at("without"), found.at("all"));
  const auto named = [](const json& list) {
    return std::ranges::count_if(list, [](const json& one) { return contains(one, "prefill"); });
  };
  EXPECT_EQ(named(found.at("heads")), 2);
  EXPECT_EQ(named(found.at("left")), 0) << found.at("left");
  EXPECT_EQ(named(found.at("detail")), 0) << found.at("detail");
  EXPECT_EQ(found.at("cell"), "–");
  EXPECT_FALSE(contains(found.at("text"), "prefill")) << found.at("text");
  EXPECT_FALSE(contains(found.at("tooltip"), "prefill")) << found.at("tooltip");
}

TEST_F(PageBrowserTest, TermsStandOnceAndSlowdownsAreInPercent) {
  const json found =
      page_of(std::string(kSmallStudy) +
              "faults: {kind: soft_link, samples: 5, derate: {distribution: constant, value: 0.5}, "
              "seed: 1}\n")
          .in_page(R"js(
    const terms = [...document.querySelectorAll("#terms dt")].map((term) => term.textContent);
    const ticks = ["cdf", "places"].flatMap((id) => charts.get(byId(id)).scales.x.ticks.map(({label}) => label));
    return {twice: terms.filter((term, i) => terms.indexOf(term) !== i), ticks,
            factor: relativeText(1, 25.5), spread: spreadText({spread: 5.142})};)js");
  EXPECT_EQ(found.at("twice"), json::array());
  ASSERT_GT(found.at("ticks").size(), 4U);
  for (const json& tick : found.at("ticks")) EXPECT_TRUE(tick.get<std::string>().ends_with("%")) << tick;
  EXPECT_EQ(found.at("factor"), "+2,450\u00a0%");
  EXPECT_EQ(found.at("spread"), "the best differ by up to 514.2\u00a0%");
}

// On paper: charts are as wide as it is, tables stand beside them, and nothing is cut off.
TEST_F(PageBrowserTest, PaperHoldsThePage) {
  done({"sweep", study_of("llama3.1-70b-64xa100"), "-o", "out.h5", "--progress", "none"});
  done({"report", "out.h5", "-o", "page.html"});
  const json found = open_page("page.html", 704).in_page(R"js(
    dispatchEvent(new Event("beforeprint"));
    await new Promise((resolve) => { setTimeout(resolve, 300); });
    const paper = document.body.getBoundingClientRect();
    const charts = [...document.querySelectorAll("figure canvas")].filter((canvas) => canvas.offsetParent);
    const reaches = (canvas) => canvas.getBoundingClientRect().right > paper.right + 1;
    const result = {narrow: charts.filter((canvas) => canvas.clientWidth < 180).map(({id}) => id),
                    scatter: byId("scatter").clientWidth,
                    outside: charts.filter((canvas) => canvas.id !== "parallel" && reaches(canvas))
                        .map(({id}) => id)};
    dispatchEvent(new Event("afterprint"));
    return result;)js");
  EXPECT_EQ(found.at("narrow"), json::array());
  EXPECT_EQ(found.at("outside"), json::array());
  EXPECT_GT(found.at("scatter"), 500);
}

// The bars of the two times are as long as the times, and each side says its error and what runs it.
TEST_F(PageBrowserTest, BarsOfAComparisonBeginAtZero) {
  done({"compare", study_of("llama3.1-70b-64xa100"), "--point", "tp=4,pp=4,dp=4,zero=1,recompute=selective",
        "--point", "tp=4,pp=4,dp=4,zero=1", "--report", "waterfall.html"});
  const json found = open_page("waterfall.html", 1400, false).in_page(R"js(
    const chart = Chart.getChart("waterfall");
    return {least: chart.scales.x.min, bars: chart.data.datasets[0].data, times: DATA.figures[0],
            commands: [...byId("runs").querySelectorAll("code")].map((code) => code.textContent),
            says: byId("runs").textContent};)js");
  EXPECT_EQ(found.at("least"), 0);
  EXPECT_EQ(found.at("bars").front(), json::array({0, found.at("times").at("a")}));
  EXPECT_EQ(found.at("bars").back(), json::array({0, found.at("times").at("b")}));
  ASSERT_EQ(found.at("commands").size(), 2U);
  for (const json& command : found.at("commands"))
    EXPECT_TRUE(command.get<std::string>().starts_with("shardscape launch ")) << command;
  EXPECT_TRUE(contains(found.at("says").get<std::string>(), "Expected error: ±")) << found.at("says");
}

TEST_F(PageBrowserTest, EveryoneCanReadThePages) {
  const std::string rules = test::accessibility_rules(work().string());
  if (rules.empty()) GTEST_SKIP() << "npm does not give axe-core's rules: " << read_file(work() / "npm.log");
  done({"sweep", study_of("llama3.1-70b-64xa100"), "-o", "demo.h5", "--progress", "none"});
  done({"report", "demo.h5", "-o", "demo.html"});
  done({"sweep", study_of("llama3.1-70b-serving-16xa100"), "-o", "serving.h5", "--progress", "none"});
  done({"report", "serving.h5", "-o", "serving.html"});
  write("faults.yaml",
        std::string(kSmallStudy) +
            "hardware: {device.hbm.bandwidth: [\"2 TB/s\", \"3 TB/s\"]}\n"
            "faults: {kind: soft_link, samples: 5, derate: {distribution: constant, value: 0.5}, seed: 1}\n");
  done({"sweep", "faults.yaml", "-o", "faults.h5", "--progress", "none"});
  done({"report", "faults.h5", "-o", "faults.html"});
  done({"capacity", study_of("llama3.1-70b-rate-h100"), "--rate", "2", "--report", "capacity.html"});
  done({"compare", study_of("llama3.1-70b-64xa100"), "--point", "tp=4,pp=4,dp=4,zero=1,recompute=selective",
        "--point", "tp=8,pp=2,dp=4,zero=1", "--report", "waterfall.html"});
  for (const char* file : {"demo.html", "serving.html", "faults.html", "capacity.html", "waterfall.html"}) {
    for (const bool dark : {false, true}) {
      test::LiveBrowser& page = open_page(file, dark ? 400 : 1400, dark);
      page.in_page("document.querySelectorAll('details').forEach((part) => { part.open = true; });");
      EXPECT_EQ(page.violations(rules), json::array()) << file << (dark ? " in the dark" : "");
      EXPECT_EQ(
          page.in_page("const page = document.documentElement; return page.scrollWidth - page.clientWidth;"),
          0)
          << file << (dark ? " at 400" : " at 1400");
    }
  }
}

}  // namespace
}  // namespace shardscape::cli
