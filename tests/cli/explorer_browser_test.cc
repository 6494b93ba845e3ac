// Does the page of `explore` compute in a real browser what the program computes, and does it show it? Skipped where
// there is no Chromium, or no engine for browsers was built.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "tests/cli/program_under_test.h"
#include "tests/support/live_browser.h"
#include "tests/support/paths.h"

namespace shardscape::cli {
namespace {

using nlohmann::json;

/// The first place where two values differ by more than 1e-9; empty where there is none.
std::string difference(const json& a, const json& b, const std::string& where = "") {
  if (a.is_number() && b.is_number()) {
    const double left = a, right = b;
    if (std::abs(left - right) <= 1e-9 * std::max(std::abs(left), std::abs(right))) return "";
  } else if (a.is_object() && b.is_object() && a.size() == b.size()) {
    for (const auto& [key, value] : a.items()) {
      if (!b.contains(key)) return where + "/" + key + ": only on one side";
      if (std::string found = difference(value, b.at(key), where + "/" + key); !found.empty()) return found;
    }
    return "";
  } else if (a.is_array() && b.is_array() && a.size() == b.size()) {
    for (std::size_t i = 0; i < a.size(); ++i) {
      const std::string place = where + "/" + std::to_string(i);
      if (std::string found = difference(a[i], b[i], place); !found.empty()) return found;
    }
    return "";
  } else if (a == b) {
    return "";
  }
  return where + ": " + a.dump().substr(0, 80) + " is not " + b.dump().substr(0, 80);
}

class ExplorerBrowserTest : public ProgramTest {
 protected:
  void SetUp() override {
    const bool due = test::explorer_due();
    if (test::browser_on_path().empty() && !due) GTEST_SKIP() << "no Chromium on the path";
    ASSERT_NE(test::browser_on_path(), "");
    write("study.yaml", kSmallStudy);
    const Finished made = run({"explore", "study.yaml", "-o", "page.html"});
    if (made.code != 0 && contains(made.err, "emscripten") && !due) GTEST_SKIP() << made.err;
    ASSERT_EQ(made.code, 0) << made.err;
  }
  void TearDown() override {
    if (browser_)
      for (const std::string& said : browser_->console()) ADD_FAILURE() << said;
  }
  test::LiveBrowser& open_page(int width = 1280, const std::string& fragment = "", bool dark = false) {
    browser_.reset();
    browser_.emplace((work().parent_path() / "browser").string(), width, dark);
    return navigate(fragment);
  }
  test::LiveBrowser& navigate(const std::string& fragment) {
    browser_->open_page("about:blank");
    browser_->open_page("file://" + (work() / "page.html").string() + fragment);
    EXPECT_TRUE(browser_->holds("document.documentElement?.dataset.firstAnswerMs"));
    EXPECT_TRUE(browser_->holds("baseTexts.size > 0 && (settled() || !byId('problem-box').hidden)"));
    return *browser_;
  }
  /// Whether all that follows from the last change is on the page and in its address, which takes a while.
  bool settled() { return browser_->holds("settled()"); }
  /// What the program says of the same study.
  std::optional<json> simulated(const json& set, const std::string& point, bool operators = false,
                                const std::string& study = "study.yaml") {
    std::vector<std::string> words = {"simulate", study, "--json"};
    for (const std::string& change : set_before_) words.insert(words.end(), {"--set", change});
    for (const json& change : set) words.insert(words.end(), {"--set", change.get<std::string>()});
    if (!point.empty()) words.insert(words.end(), {"--point", point});
    if (operators) words.emplace_back("--explain");
    const Finished finished = run(words);
    return finished.code == 0 ? std::optional(json::parse(finished.out)) : std::nullopt;
  }
  /// Changes a text of the page as somebody who types does.
  static std::string type(const std::string& id, const std::string& text) {
    return "const box = byId(" + json(id).dump() + "); box.value = " + json(text).dump() +
           "; box.dispatchEvent(new Event('change'));";
  }
  /// As many settings at random: a feasible plan, and one to three numbers at half to twice what they are.
  json random_settings(int count, unsigned seed) {
    const json rows =
        browser_->in_page("return (await front.ask({ask: 'sweep', set: [], from: 0, count: 400})).rows;");
    const json fields = browser_->in_page(
        "return [...lines.values()].map(({field}) => field).filter(({value, kind}) => "
        "kind !== 'choice' && isValue(value) && value > 0);");
    std::mt19937 random(seed);
    std::vector<json> feasible;
    std::ranges::copy_if(rows, std::back_inserter(feasible),
                         [](const json& row) { return row.at("status") == "ok"; });
    json settings = json::array();
    EXPECT_FALSE(feasible.empty());
    EXPECT_GT(fields.size(), 50U);
    for (int i = 0; i < count && !feasible.empty(); ++i) {
      json changes = json::array();
      for (auto n = 1 + random() % 3; n > 0; --n) {
        const json& field = fields.at(random() % fields.size());
        const double factor = std::exp2(2.0 * static_cast<double>(random() % 1000) / 999.0 - 1);
        const double value = std::clamp(field.at("value").get<double>() * factor, field.value("low", 0.0),
                                        field.value("high", HUGE_VAL));
        changes.push_back({field, value});
      }
      settings.push_back({{"point", feasible[random() % feasible.size()].at("point")}, {"changes", changes}});
    }
    return settings;
  }
  /// Compares the page with the program at random settings; the number of those that both can compute.
  int compare_settings(const std::string& study, int count, unsigned seed) {
    json settings = random_settings(count, seed);
    settings = browser_->in_page(
        "const settings = " + settings.dump() +
        ";\nfor (const [i, setting] of settings.entries()) {"
        "  setting.set = setting.changes.map(([field, value]) => `${field.key}=${textOf(field, value)}`);"
        "  setting.answer = await front.ask({ask: 'predict', set: setting.set, point: setting.point, "
        "    schedule: true, operators: i % 5 === 0});"
        "} return settings;");
    int both = 0;
    for (std::size_t i = 0; i < settings.size(); ++i) {
      const json& setting = settings[i];
      const auto expected = simulated(setting.at("set"), setting.at("point"), i % 5 == 0, study);
      const json& answer = setting.at("answer");
      const std::string told = setting.at("set").dump() + " " + setting.at("point").dump();
      EXPECT_EQ(answer.contains("problems"), !expected.has_value()) << told << answer.dump().substr(0, 500);
      if (!expected || answer.contains("problems")) continue;
      EXPECT_EQ(difference(answer.at("prediction"), *expected), "") << told << ", seed " << seed;
      ++both;
    }
    return both;
  }
  std::optional<test::LiveBrowser> browser_;
  std::vector<std::string> set_before_;  ///< changes that the page was made with
};

TEST_F(ExplorerBrowserTest, FiftySettingsAreThoseOfTheProgram) {
  EXPECT_LT(fs::file_size(work() / "page.html"), 6'000'000U);
  open_page();
  std::printf(
      "page %.2f MB, first answer after %s ms\n",
      static_cast<double>(fs::file_size(work() / "page.html")) / 1e6,
      browser_->in_page("return document.documentElement.dataset.firstAnswerMs").get<std::string>().c_str());
  int compared = compare_settings("study.yaml", 35, 1);
  write("serving.yaml", kInferenceStudy);
  ASSERT_EQ(run({"explore", "serving.yaml", "-o", "page.html", "--force"}).code, 0);
  navigate("");
  compared += compare_settings("serving.yaml", 25, 2);
  EXPECT_GE(compared, 50);
  std::printf("%d settings of 60 can be computed\n", compared);
}

TEST_F(ExplorerBrowserTest, StudiesThatComeWithTheProgramAreFoundByName) {
  const Finished named = run({"explore", "llama3.1-70b-64xa100", "-o", "named.html"});
  EXPECT_EQ(named.code, 0) << named.err;
}

TEST_F(ExplorerBrowserTest, InputsMoveThePageAndALinkRestoresIt) {
  set_before_ = {"workload.global_batch=64"};
  ASSERT_EQ(run({"explore", "study.yaml", "--set", set_before_[0], "-o", "page.html", "--force"}).code, 0);
  test::LiveBrowser& page = open_page();
  const json before = page.in_page("return shown.prediction;");
  EXPECT_EQ(difference(before, *simulated(json::array(), "")), "");
  page.in_page(type("field-hardware.device.hbm.bandwidth_per_stack", "300 GB/s"));
  ASSERT_TRUE(page.holds("shown.prediction.step_time_s > " + before.at("step_time_s").dump()));
  ASSERT_TRUE(settled());
  page.in_page("document.querySelector('[data-spot=\"tp/2\"]').click();");
  ASSERT_TRUE(page.holds("shown.prediction.plan.tp > " + before.at("plan").at("tp").dump()));
  ASSERT_TRUE(settled());
  const json now = page.in_page(
      "return {prediction: shown.prediction, set: changesOf(state).set, point: changesOf(state).point, "
      "yaml: shown.yaml, hash: location.hash, command: document.querySelector('#share-command "
      "code').textContent, "
      "headline: byId('headline').textContent, tp: byId('axis-tp').value};");
  EXPECT_EQ(difference(now.at("prediction"), *simulated(now.at("set"), now.at("point"))), "");
  // The command and the YAML give the same.
  std::string command = now.at("command");
  ASSERT_TRUE(command.starts_with("shardscape simulate ")) << command;
  command.replace(0, std::string("shardscape").size(), "'" + test::program() + "'");
  command.replace(command.find("--explain"), std::string("--explain").size(), "--json");
  const std::string line = "cd '" + work().string() + "' && " + command + " > predicted.json";
  ASSERT_EQ(std::system(line.c_str()), 0) << line;
  EXPECT_EQ(difference(now.at("prediction"), json::parse(read_file(work() / "predicted.json"))), "");
  write("changed.yaml", now.at("yaml"));
  const auto of_yaml = simulated(json::array(), now.at("point"), false, "changed.yaml");
  ASSERT_TRUE(of_yaml) << now.at("yaml");
  EXPECT_EQ(difference(now.at("prediction"), *of_yaml), "");
  // Back takes the last step back; the link brings all of it again.
  page.in_page("history.back();");
  EXPECT_TRUE(page.holds("state.point.size === 0 && shown.prediction.plan.tp === " +
                         before.at("plan").at("tp").dump()));
  EXPECT_LT(now.at("hash").get<std::string>().size(), 80U);
  navigate(now.at("hash"));
  const json again = page.in_page(
      "return {prediction: shown.prediction, headline: byId('headline').textContent, tp: "
      "byId('axis-tp').value, "
      "text: byId('field-hardware.device.hbm.bandwidth_per_stack').value};");
  EXPECT_EQ(difference(again.at("prediction"), now.at("prediction")), "");
  EXPECT_EQ(again.at("headline"), now.at("headline"));
  EXPECT_EQ(again.at("tp"), now.at("tp"));
  EXPECT_EQ(again.at("text"), "300 GB/s");
}

TEST_F(ExplorerBrowserTest, ProblemsAreSaidWhereTheyAre) {
  test::LiveBrowser& page = open_page();
  const json before = page.in_page("return byId('headline').textContent;");
  const std::string id = "field-hardware.device.hbm.bandwidth_per_stack";
  page.in_page(type(id, "</script><b>fast"));
  ASSERT_TRUE(page.holds("!byId('problem-box').hidden"));
  const json wrong = page.in_page(
      "return {top: byId('problems').textContent, beside: byId('" + id +
      "-problem').textContent, "
      "marked: byId('" +
      id +
      "').getAttribute('aria-invalid'), stale: document.querySelectorAll('.stale').length, "
      "headline: byId('headline').textContent, markup: document.querySelectorAll('main b b, li b').length};");
  EXPECT_TRUE(contains(wrong.at("top"), "fast")) << wrong;
  EXPECT_TRUE(contains(wrong.at("beside"), "fast")) << wrong;
  EXPECT_EQ(wrong.at("marked"), "true");
  EXPECT_EQ(wrong.at("stale"), 2);
  EXPECT_EQ(wrong.at("headline"), before);  // the last good answer stays
  EXPECT_EQ(wrong.at("markup"), 0);
  page.in_page(type("axis-tp", "3"));
  EXPECT_TRUE(page.holds("byId('problems').children.length > 0"));
  page.in_page("byId('reset-all').click();");
  EXPECT_TRUE(page.holds("byId('problem-box').hidden && document.querySelectorAll('.stale').length === 0"));
  page.in_page(type("axis-tp", "3"));
  EXPECT_TRUE(page.holds("byId('plan-problem').textContent.includes('GPUs')"));
  // A link that says nonsense leaves the study to mend it with.
  navigate("#set=workload.nonsense=1&set==&point=tp=8&x");
  EXPECT_TRUE(page.holds("!byId('problem-box').hidden && lines.size > 0"));
  page.in_page("byId('reset-all').click();");
  EXPECT_TRUE(page.holds("byId('problem-box').hidden && shown"));
}

TEST_F(ExplorerBrowserTest, ASweepFindsWhatTheProgramFinds) {
  test::LiveBrowser& page = open_page();
  page.in_page("byId('sweep-start').click();");
  ASSERT_TRUE(page.holds("sweep.done > 0 && !sweep.isRunning"));
  const json found = page.in_page(
      "return {best: ranked()[0], feasible: sweep.rows.length, done: sweep.done, "
      "rows: byId('sweep-table').tBodies[0].rows.length};");
  ASSERT_EQ(run({"sweep", "study.yaml", "-o", "out.h5", "--progress", "none"}).code, 0);
  const Finished top = run({"top", "out.h5", "--format", "json", "-n", "100000"});
  ASSERT_EQ(top.code, 0) << top.err;
  const json all = json::parse(top.out);
  const json& rows = all.is_array() ? all : all.at("rows");
  EXPECT_EQ(found.at("feasible"), rows.size());
  EXPECT_EQ(found.at("rows"), 10);
  EXPECT_EQ(difference(found.at("best").at("time_s"), rows.at(0).at("step_time_s")), "");
  const auto expected = simulated(json::array(), found.at("best").at("point"));
  ASSERT_TRUE(expected);
  EXPECT_EQ(difference(found.at("best").at("time_s"), expected->at("step_time_s")), "");
  EXPECT_EQ(difference(found.at("best").at("memory_bytes"), expected->at("memory_peak_bytes")), "");
  page.in_page("document.querySelector('#sweep-table button').click();");
  EXPECT_TRUE(page.holds("shown.prediction.step_time_s === sweep.rows.find((row) => row.id === " +
                         found.at("best").at("id").dump() + ").time_s"));
}

// The page holds the trace itself: it computes the same where there is no such file.
TEST_F(ExplorerBrowserTest, AStudyWithATraceTakesItAlong) {
  std::string requests = "arrival_s,prompt_tokens,output_tokens\n";
  for (int i = 0; i < 120; ++i)
    requests += std::to_string(0.4 * i) + ',' + std::to_string(500 + 37 * (i % 11)) + ',' +
                std::to_string(40 + 13 * (i % 7)) + '\n';
  write("requests.csv", requests);
  write("trace.yaml",
        "study: traced\nmodel: llama3.1-8b\ncluster: dgx-h100\ngpus: 8\nstack: vllm\n"
        "workload: {phase: inference, precision: bf16, trace: requests.csv, client: {requests: 120, warm_up: "
        "0, "
        "statistic: run}}\n"
        "space: {tensor_parallel: [2, 4, 8], data_parallel: fill}\nobjectives: [e2e_s]\n");
  const Finished made = run({"explore", "trace.yaml", "-o", "page.html", "--force"});
  ASSERT_EQ(made.code, 0) << made.err;
  const auto expected = simulated(json::array(), "tp=4", false, "trace.yaml");
  ASSERT_TRUE(expected);
  fs::remove(work() / "requests.csv");
  const json answer =
      open_page().in_page("return await front.ask({ask: 'predict', set: [], point: 'tp=4'});");
  ASSERT_FALSE(answer.contains("problems")) << answer.dump().substr(0, 500);
  EXPECT_EQ(difference(answer.at("prediction"), *expected), "");
}

TEST_F(ExplorerBrowserTest, WorthIsTheDifferenceOfTwoPredictions) {
  test::LiveBrowser& page = open_page();
  const json found = page.in_page(
      "const key = 'hardware.device.hbm.bandwidth_per_stack';"
      "return {row: worth.rows.find((row) => row.key === key), value: lines.get(key).field.value, "
      "time: shown.prediction.step_time_s, shown: byId('worth-table').textContent};");
  const json& row = found.at("row");
  const double value = found.at("value"), time = found.at("time");
  for (const auto& [name, factor] : {std::pair("more_s", 1.05), std::pair("less_s", 0.95)}) {
    char text[128];
    std::snprintf(text, sizeof text, "hardware.device.hbm.bandwidth_per_stack=%.17g B/s", value * factor);
    EXPECT_EQ(difference(row.at(name), simulated({text}, "")->at("step_time_s")), "") << name;
  }
  const double slope = (row.at("more_s").get<double>() - row.at("less_s").get<double>()) / (0.1 * value);
  EXPECT_NEAR(row.at("per_unit_s").get<double>(), slope * 1e9, 1e-6 * std::abs(slope * 1e9));
  EXPECT_LT(row.at("more_s"), time);
  EXPECT_TRUE(contains(found.at("shown"), "hbm bandwidth"));
}

/// Texts that leave their cell or the page.
constexpr const char* kMisplaced = R"(
  const misplaced = [], page = document.documentElement;
  if (page.scrollWidth > page.clientWidth) misplaced.push(`page: ${page.scrollWidth} of ${page.clientWidth}`);
  const texts = "dt, dd, h1, h2, h3, .note, .controls label, .field, .field *, button, summary, li";
  for (const cell of document.querySelectorAll(texts)) {
    if (cell.offsetWidth === 0) continue;
    const right = cell.getBoundingClientRect().right;
    if (right > page.clientWidth + 0.5 && !cell.closest(".scroll")) misplaced.push(`outside: ${cell.textContent}`);
    const isClipped = cell.matches("label, small, p, dd") && cell.scrollWidth > cell.clientWidth + 1;
    if (isClipped) misplaced.push(`clipped: ${cell.textContent}`);
  }
  return misplaced;)";

TEST_F(ExplorerBrowserTest, EveryoneCanUseThePage) {
  const std::string rules = test::accessibility_rules(work().string());
  for (const bool dark : {false, true}) {
    test::LiveBrowser& page = open_page(1280, "#set=hardware.device.hbm.bandwidth_per_stack=300+GB/s", dark);
    page.in_page(
        "document.querySelectorAll('details').forEach((part) => { part.open = true; });"
        "byId('sweep-start').click();");
    ASSERT_TRUE(page.holds("sweep.done > 0 && !sweep.isRunning"));
    const bool problem = !dark;  // each once: the rules take seconds
    if (problem) page.in_page(type("field-hardware.device.sm.clock", "fast"));
    ASSERT_TRUE(page.holds(problem ? "!byId('problem-box').hidden" : "byId('problem-box').hidden"));
    for (const int width : {400, 1280}) {
      page.set_width(width);
      page.in_page("await new Promise((resolve) => { setTimeout(resolve, 300); });");  // charts follow
      EXPECT_EQ(page.in_page(kMisplaced), json::array()) << width;
      if (rules.empty() || dark != (width == 1280)) continue;
      EXPECT_EQ(page.violations(rules), json::array())
          << "at " << width << (dark ? " in the dark" : " with a problem");
    }
  }
  if (rules.empty())
    GTEST_SKIP() << "all but axe-core's rules, which npm does not give: " << read_file(work() / "npm.log");
}

}  // namespace
}  // namespace shardscape::cli
