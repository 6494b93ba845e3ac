// Does a real browser show the report, and does what it shows agree with the data? Skipped where there is
// none.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>

#include "tests/cli/program_under_test.h"
#include "tests/support/live_browser.h"
#include "tests/support/paths.h"
#include "tests/support/report_page.h"

namespace shardscape::cli {
namespace {

using nlohmann::json;

constexpr const char* kFaultsAndHardware =
    "hardware: {variant: {base: {}, other: {device.l2.capacity: 80 MiB}}}\n"
    "faults: {kind: soft_link, samples: 5, derate: {distribution: constant, value: 0.5}, seed: 1}\n";

/// Loads and settings of two kinds; two objectives.
constexpr const char* kServing =
    "study: serving\n"
    "model: llama3.1-8b\n"
    "cluster: dgx-h100\n"
    "gpus: 8\n"
    "stack: nim\n"
    "workload: {phase: inference, prompt_tokens: 1000, output_tokens: 200, concurrency: [8, 32, 64], "
    "precision: [bf16, fp8]}\n"
    "space:\n"
    "  tensor_parallel: powers_of_two\n"
    "  data_parallel: fill\n"
    "hardware: {device.hbm.bandwidth: [\"2 TB/s\", \"4 TB/s\"]}\n"
    "objectives: [ttft_s, tokens_per_s_per_gpu]\n";

constexpr const char* kTooLarge =
    "study: too large\n"
    "model: llama3.1-70b\n"
    "cluster: dgx-a100\n"
    "gpus: 8\n"
    "stack: megatron-lm\n"
    "workload: {phase: training, sequence_length: 8192, global_batch: 32, precision: bf16}\n"
    "space:\n"
    "  tensor_parallel: [1, 2]\n"
    "  pipeline_parallel: [1, 2]\n"
    "  data_parallel: fill\n"
    "objectives: [step_time_s, memory_peak_bytes]\n";

class ReportBrowserTest : public ProgramTest {
 protected:
  void SetUp() override {
    if (test::browser_on_path().empty()) GTEST_SKIP() << "no Chromium on the path";
  }
  void make_page(const std::string& study) {
    write("study.yaml", study);
    ASSERT_EQ(run({"sweep", "study.yaml", "-o", "out.h5", "--progress", "none"}).code, 0);
    ASSERT_EQ(run({"report", "out.h5", "-o", "page.html"}).code, 0);
  }
  /// The document of a file of the work folder as scripts leave it; fails where one of them fails.
  std::string dom_of(const std::string& file) {
    const std::string folder = work().string();
    const std::string command =
        "timeout 120 " + test::browser_on_path() +
        " --headless --no-sandbox --disable-gpu --allow-file-access-from-files --enable-logging=stderr "
        "--user-data-dir=" +
        folder + "/profile --window-size=1400,1200 --virtual-time-budget=5000 --dump-dom file://" + folder +
        "/" + file + " > " + folder + "/dom 2> " + folder + "/log";
    EXPECT_EQ(std::system(command.c_str()), 0);
    const std::string log = read_file(work() / "log");
    EXPECT_FALSE(contains(log, "CONSOLE")) << log;
    EXPECT_FALSE(contains(log, "Uncaught")) << log;
    return read_file(work() / "dom");
  }
  std::string shown(const std::string& study) {
    make_page(study);
    return dom_of("page.html");
  }
  /// What `script`, the body of an async function, returns inside of the page at a width of so many pixels.
  json in_page(int width, const std::string& script) {
    write("frame.html",
          "<body style='margin:0'><iframe src='page.html' style='border:0;height:1000px;width:" +
              std::to_string(width) +
              "px'></iframe><pre id='result'></pre>\n<script>document.querySelector('iframe').onload = async "
              "(event) => {\nlet result;\ntry { result = await event.target.contentWindow.eval(" +
              json("(async () => {" + script + "})()").dump() +
              "); } catch (error) { result = {error: String(error)}; }\n"
              "document.getElementById('result').textContent = "
              "encodeURIComponent(JSON.stringify(result));\n};</script>");
    const std::string dom = dom_of("frame.html"), open = "<pre id=\"result\">";
    const std::size_t begin = dom.find(open) + open.size();
    const std::string coded = dom.substr(begin, dom.find("</pre>", begin) - begin);
    std::string text;
    for (std::size_t i = 0; i < coded.size(); ++i) {
      if (coded[i] != '%') {
        text += coded[i];
        continue;
      }
      text += static_cast<char>(std::stoi(coded.substr(i + 1, 2), nullptr, 16));
      i += 2;
    }
    json result = json::parse(text, nullptr, false);
    EXPECT_FALSE(result.is_discarded()) << dom.substr(0, 2000);
    EXPECT_FALSE(result.is_object() && result.contains("error")) << result.dump();
    return result;
  }
  [[nodiscard]] json data() const { return test::page_data(read_file(work() / "page.html")); }
};

/// The columns of a page's data by row.
class PageColumns {
 public:
  explicit PageColumns(const json& data) : rows_(data.at("shown")) {
    for (const json& column : data.at("columns")) columns_[column.at("name")] = column;
  }
  [[nodiscard]] std::size_t rows() const { return rows_; }
  [[nodiscard]] const std::map<std::string, json>& all() const { return columns_; }
  [[nodiscard]] json at(const std::string& name, std::size_t row) const {
    const json& column = columns_.at(name);
    return column.contains("value") ? column.at("value") : column.at("values").at(row);
  }

 private:
  std::size_t rows_;
  std::map<std::string, json> columns_;
};

TEST_F(ReportBrowserTest, TicksOfALogarithmicAxisHaveRoom) {
  write("rate.yaml",
        "model: llama3.1-8b\ncluster: dgx-h100\ngpus: 8\nstack: vllm\nspace: {tensor_parallel: [1, 2, 4]}\n"
        "workload: {phase: inference, prompt_tokens: 1000, output_tokens: 100, client: {requests: 300}}\n"
        "promises: {ttft_p95: 1 s, tpot_p95: 25 ms}\n");
  ASSERT_EQ(
      run({"capacity", "rate.yaml", "--rate", "1,40", "--report", "page.html", "--progress", "none"}).code,
      0);
  const json places = in_page(1200,
                              "const axis = Chart.getChart('front').scales.y;"
                              "return axis.ticks.map(({value}) => axis.getPixelForValue(value));");
  ASSERT_GE(places.size(), 2U) << places;
  for (std::size_t i = 1; i < places.size(); ++i)
    EXPECT_GE(std::abs(places[i - 1].get<double>() - places[i].get<double>()), 14) << places;
}

TEST_F(ReportBrowserTest, WithoutABreakdownThereIsNoChartOfIt) {
  const auto hidden = [&](const std::string& store) {
    fs::remove(work() / "out.h5");
    fs::remove(work() / "page.html");
    const std::string dom = shown(kSmallStudy + store);
    std::string figures;
    for (const char* id : {"breakdown", "memory", "compare-chart"}) {
      const std::size_t at = dom.find("<canvas id=\"" + std::string(id)), begin = dom.rfind("<figure", at);
      EXPECT_NE(at, std::string::npos) << id;
      figures += dom.compare(begin, 15, "<figure hidden=") == 0 ? std::string(id) + ' ' : "";
    }
    return figures;
  };
  EXPECT_EQ(hidden(""), "");
  EXPECT_EQ(hidden("store: {columns: [tensor_parallel, mfu]}\n"), "breakdown memory compare-chart ");
}

TEST_F(ReportBrowserTest, TrainingWithFaultsAndHardware) {
  std::string study = kSmallStudy;
  study.replace(study.find("study: small"), 12, "study: \"</script><b>x</b>\"");
  const std::string dom = shown(study + kFaultsAndHardware);
  EXPECT_FALSE(contains(dom, "<b>x</b>"));
  for (const char* part :
       {"class=\"pick picked\"", "aria-sort=\"ascending\"", "memory capacity", "where its time goes",
        "its fullest device", "nvswitch: ", "id=\"hardware-charts\" class=\"pair\"><figure"})
    EXPECT_TRUE(contains(dom, part)) << part;
}

TEST_F(ReportBrowserTest, Inference) {
  const std::string dom = shown(kInferenceStudy);
  EXPECT_TRUE(contains(dom, "Where the request goes"));
  EXPECT_TRUE(contains(dom, "class=\"pick picked\""));
}

/// Texts that leave their cell, their row or the page; labels of the bar that do not fit their part.
constexpr const char* kMisplacedTexts = R"(
  const misplaced = [], page = document.documentElement;
  if (page.scrollWidth > page.clientWidth) misplaced.push(`page: ${page.scrollWidth} of ${page.clientWidth}`);
  const seen = (node) => node.offsetWidth > 0 && getComputedStyle(node).visibility !== "hidden";
  for (const cell of document.querySelectorAll(".stacks td, .stacks th, dt, dd, h1, h2, h3, .note, .controls label")) {
    if (!seen(cell)) continue;
    const box = cell.getBoundingClientRect();
    if (cell.scrollWidth > cell.clientWidth + 1 && getComputedStyle(cell).display !== "inline") misplaced.push(`clipped: ${cell.textContent}`);
    if (box.right > page.clientWidth + 0.5 && !cell.closest(".scroll")) misplaced.push(`outside: ${cell.textContent}`);
  }
  for (const table of document.querySelectorAll(".stacks")) {
    const boxes = [...table.querySelectorAll("td, th")].filter(seen).map((cell) => cell.getBoundingClientRect());
    boxes.forEach((a, i) => boxes.slice(i + 1).forEach((b) => {
      const across = Math.min(a.right, b.right) - Math.max(a.left, b.left), down = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
      if (across > 1 && down > 1) misplaced.push(`overlap in ${table.id}`);
    }));
  }
  for (const label of document.querySelectorAll("#verdict-bar b")) {
    const part = label.parentElement.getBoundingClientRect(), box = label.getBoundingClientRect();
    if (seen(label) && (box.left < part.left - 0.5 || box.right > part.right + 0.5)) misplaced.push(`label ${label.textContent}`);
  }
  if (document.querySelectorAll("#verdict-table td").length === 0) misplaced.push("no verdicts");
  return misplaced;
)";

TEST_F(ReportBrowserTest, NothingLeavesANarrowPage) {
  const std::string training =
      std::string(kSmallStudy) + kFaultsAndHardware + "constraints: [\"tp <= 4\", \"zero < 3 or dp > 1\"]\n";
  for (const std::string& study : {training, std::string(kServing), std::string(kTooLarge)}) {
    write("study.yaml", study);
    ASSERT_EQ(run({"sweep", "study.yaml", "-o", "out.h5", "--progress", "none", "--force"}).code, 0);
    ASSERT_EQ(run({"report", "out.h5", "-o", "page.html", "--force"}).code, 0);
    for (const int width : {400, 1280}) EXPECT_EQ(in_page(width, kMisplacedTexts), json::array()) << width;
  }
}

TEST_F(ReportBrowserTest, TheRankingStaysInView) {
  make_page(std::string(kSmallStudy) + kFaultsAndHardware);
  const json view = in_page(400, R"(
    const table = byId("plan-table"), box = table.closest(".scroll");
    box.scrollIntoView();
    box.scrollLeft = box.scrollWidth;
    const cells = [table.tHead.rows[0].cells[0], table.tBodies[0].rows[2].cells[0]], frame = box.getBoundingClientRect();
    return {scrolled: box.scrollLeft, head: cells[0].textContent, text: cells[1].textContent,
            inside: cells.every((cell) => { const r = cell.getBoundingClientRect(); return r.left >= frame.left - 1 && r.right <= frame.right; }),
            onTop: cells.every((cell) => {
              const r = cell.getBoundingClientRect();
              return cell.contains(document.elementFromPoint((r.left + r.right) / 2, (r.top + r.bottom) / 2));
            }),
            expected: formatValue(ranking, ranking.at(2))};
  )");
  EXPECT_GT(view.at("scrolled"), 50);
  EXPECT_TRUE(contains(view.at("head"), "step time"));
  EXPECT_EQ(view.at("text"), view.at("expected"));
  EXPECT_EQ(view.at("inside"), true);
  EXPECT_EQ(view.at("onTop"), true);
}

std::vector<std::vector<std::string>> csv_lines(const std::string& text) {
  std::vector<std::vector<std::string>> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    EXPECT_TRUE(line.ends_with('\r'));
    line.pop_back();
    lines.emplace_back();
    std::istringstream cells(line);
    for (std::string cell; std::getline(cells, cell, ',');) lines.back().push_back(cell);
    if (line.ends_with(',')) lines.back().emplace_back();
  }
  return lines;
}

TEST_F(ReportBrowserTest, CsvHoldsTheDataOfTheTable) {
  make_page(std::string(kSmallStudy) + kFaultsAndHardware);
  const json saved = in_page(1280, R"(
    let blob, name;
    URL.createObjectURL = (content) => { blob = content; return "#"; };
    HTMLAnchorElement.prototype.click = function () { name = this.download; };
    byId("count").value = "25";
    byId("count").dispatchEvent(new Event("change"));
    byId("plan-save").firstChild.click();
    const odd = csvText([["a,b", 'say "x"', "=1+1", "-x", null, -2]]);
    return {name, type: blob.type, text: await blob.text(), odd};
  )");
  EXPECT_EQ(saved.at("name"), "small-plans.csv");
  EXPECT_EQ(saved.at("type"), "text/csv");
  EXPECT_EQ(saved.at("odd"), "\"a,b\",\"say \"\"x\"\"\",'=1+1,'-x,,-2\r\n");
  const auto lines = csv_lines(saved.at("text"));
  const PageColumns columns(data());
  ASSERT_EQ(lines.size(), 26U);  // a head and as many plans as are shown
  ASSERT_EQ(lines.front().front(), "step_time_s");
  ASSERT_GT(lines.front().size(), 10U);
  for (std::size_t row = 0; row + 1 < lines.size(); ++row) {
    ASSERT_EQ(lines[row + 1].size(), lines.front().size());
    for (std::size_t i = 0; i < lines.front().size(); ++i) {
      const std::string& name = lines.front()[i];
      const json value = columns.at(name, row);
      const std::string& cell = lines[row + 1][i];
      if (value.is_null()) {
        EXPECT_EQ(cell, "") << name;
      } else if (const json& column = columns.all().at(name); column.contains("names")) {
        EXPECT_EQ(cell, column.at("names").at(value.get<std::size_t>())) << name;
      } else {
        EXPECT_EQ(std::stod(cell), value.get<double>()) << name;
      }
    }
  }
}

TEST_F(ReportBrowserTest, DifferencesOfTwoPlansAreThoseOfTheData) {
  make_page(std::string(kSmallStudy) + kFaultsAndHardware);
  const PageColumns columns(data());
  const std::size_t a = 3, b = columns.rows() - 1;
  const json found =
      in_page(1280,
              "for (const [side, row] of [['a', 3], ['b', COUNT - 1]]) {"
              "  byId(`compare-${side}`).value = COLUMNS.get('point_id').at(row);"
              "  byId(`compare-${side}`).dispatchEvent(new Event('change'));"
              "}"
              "return [...document.querySelectorAll('#compare-table tr[data-column]')].map((line) => "
              "({column: line.dataset.column, mark: line.classList[0], difference: "
              "Number(line.dataset.difference ?? NaN),"
              "  cells: [...line.cells].map((cell) => cell.textContent)}));");
  std::map<std::string, json> lines;
  std::vector<json> sums;
  for (const json& line : found) {
    if (line.at("column") == "together") sums.push_back(line);
    lines[line.at("column")] = line;
  }
  // Parts of a whole: each class that is there, and their sums.
  std::map<std::string, std::pair<double, double>> whole;
  for (const auto& [name, column] : columns.all()) {
    const std::string group = column.at("group");
    if (group != "breakdown" && group != "memory") continue;
    const double left = columns.at(name, a), right = columns.at(name, b);
    if (std::max(left, right) > 1e-9) {
      whole[group].first += left;
      whole[group].second += right;
    }
  }
  int compared = 0;
  for (const auto& [name, column] : columns.all()) {
    const std::string group = column.at("group");
    if (group != "breakdown" && group != "memory" && name != "step_time_s" && name != "mfu") continue;
    const double left = columns.at(name, a), right = columns.at(name, b);
    if (std::max(left, right) <= 1e-9) {
      EXPECT_FALSE(lines.contains(name)) << name;
      continue;
    }
    ASSERT_TRUE(lines.contains(name)) << name;
    const json& line = lines.at(name);
    EXPECT_EQ(line.at("difference"), right - left) << name;
    const bool better = column.at("better") == "larger" ? right > left : right < left;
    EXPECT_EQ(line.at("mark"), left == right ? "same" : better ? "better" : "worse") << name;
    const std::string sign = right > left ? "+" : right < left ? "\u2212" : "=";
    EXPECT_TRUE(line.at("cells").at(3).get<std::string>().starts_with(sign)) << name;
    ++compared;
  }
  EXPECT_GT(compared, 10);
  ASSERT_EQ(sums.size(), 2U);
  for (const auto& [sum, group] : {std::pair{sums[0], "breakdown"}, {sums[1], "memory"}}) {
    const double expected = whole.at(group).second - whole.at(group).first;
    EXPECT_NEAR(sum.at("difference").get<double>(), expected, 1e-9 * std::abs(expected)) << group;
  }
  EXPECT_EQ(lines.at("recompute").at("mark"),
            columns.at("recompute", a) == columns.at("recompute", b) ? "same" : "differs");
}

TEST_F(ReportBrowserTest, ParallelCoordinatesHaveALinePerPlan) {
  make_page(kSmallStudy);
  const json found = in_page(1280, R"(
    const canvas = byId("parallel"), pen = canvas.getContext("2d"), height = canvas.clientHeight;
    const image = pen.getImageData(0, 0, canvas.width, canvas.height).data;
    const colour = (x, y) => { const at = 4 * (Math.floor(y) * canvas.width + Math.floor(x)); return image.slice(at, at + 4).join(); };
    const empty = colour(2, height - 3);
    // Half way between neighbours every line leaves a mark that is not the ground's.
    let gaps = 0, looked = 0;
    for (const row of everyRow) {
      for (let i = 0; i + 1 < parallelAxes.length; ++i) {
        const from = parallelPlace(i, row, height), to = parallelPlace(i + 1, row, height);
        if (!from || !to) continue;
        const mark = colour((from.x + to.x) / 2, (from.y + to.y) / 2);
        ++looked;
        if (mark === empty) ++gaps;
      }
    }
    const all = {drawn: Number(canvas.dataset.drawn), kept: Number(canvas.dataset.kept)};
    // A click on tp = 2, then one on pp = 1.
    const click = (name, value) => {
      const index = parallelAxes.findIndex((axis) => axis.column.name === name), axis = parallelAxes[index];
      const box = canvas.getBoundingClientRect();
      const y = TOP + (1 - axis.share(value)) * (height - TOP - BOTTOM);
      canvas.dispatchEvent(new MouseEvent("click", {clientX: box.left + SIDE + index * BETWEEN + 4, clientY: box.top + y + 2, bubbles: true}));
      return Number(canvas.dataset.kept);
    };
    const tp2 = click("tensor_parallel", 2), tp2pp1 = click("pipeline_parallel", 1), drawn = Number(canvas.dataset.drawn);
    const says = byId("parallel-says").textContent;
    const lifted = (click("tensor_parallel", 2), click("pipeline_parallel", 1));
    return {gaps, looked, all, tp2, tp2pp1, drawn, lifted, says, axes: parallelAxes.map((axis) => axis.column.name)};
  )");
  const json page = data();
  const PageColumns columns(page);
  std::size_t tp2 = 0, tp2pp1 = 0;
  std::optional<std::size_t> best;
  for (std::size_t row = 0; row < columns.rows(); ++row) {
    if (columns.at("tensor_parallel", row) != 2) continue;
    ++tp2;
    if (columns.at("pipeline_parallel", row) != 1) continue;
    ++tp2pp1;
    if (!best || columns.at("step_time_s", row) < columns.at("step_time_s", *best)) best = row;
  }
  ASSERT_GT(tp2pp1, 0U);
  EXPECT_EQ(found.at("all").at("drawn"), page.at("shown"));
  EXPECT_EQ(found.at("all").at("kept"), page.at("shown"));
  EXPECT_EQ(found.at("gaps"), 0);
  EXPECT_EQ(found.at("looked"), columns.rows() * (found.at("axes").size() - 1));
  EXPECT_EQ(found.at("tp2"), tp2);
  EXPECT_EQ(found.at("tp2pp1"), tp2pp1);
  EXPECT_EQ(found.at("drawn"), page.at("shown"));  // points that do not pass stay visible as a shadow
  EXPECT_EQ(found.at("lifted"), page.at("shown"));
  EXPECT_TRUE(contains(found.at("says"), "point " + columns.at("point_id", *best).dump()))
      << found.at("says");
  // Every axis of the study, then both objectives.
  std::vector<std::string> expected;
  for (const json& axis : page.at("axes")) expected.push_back(axis.at("column"));
  expected.insert(expected.end(), {"memory_peak_bytes", "step_time_s"});
  EXPECT_EQ(found.at("axes"), expected);
}

TEST_F(ReportBrowserTest, CommandsPredictWhatThePageShows) {
  const std::string training =
      std::string(kSmallStudy) + "hardware: {device.hbm.bandwidth: [\"2 TB/s\", \"3 TB/s\"]}\n";
  const std::array<std::pair<std::string, const char*>, 2> studies = {
      {{kServing, "ttft_s"}, {training, "step_time_s"}}};
  for (const auto& [study, time] : studies) {
    write("study.yaml", study);
    ASSERT_EQ(run({"sweep", "study.yaml", "-o", "out.h5", "--progress", "none", "--force"}).code, 0);
    ASSERT_EQ(run({"report", "out.h5", "-o", "page.html", "--force"}).code, 0);
    const PageColumns columns(data());
    constexpr std::size_t kTried = 9;  // points spread from the best to the worst
    const json commands =
        in_page(1280,
                "return Array.from({length: 9}, (_, i) => { pick(Math.floor(i * (COUNT - 1) / 8));"
                "  return byId('detail').querySelector('code').textContent; });");
    for (std::size_t i = 0; i < kTried; ++i) {
      const std::size_t row = i * (columns.rows() - 1) / (kTried - 1);
      std::string command = commands.at(i);
      ASSERT_TRUE(command.starts_with("shardscape simulate study.yaml ")) << command;
      command.replace(0, std::string("shardscape").size(), "'" + test::program() + "'");
      command.replace(command.find("--explain"), std::string("--explain").size(), "--json");
      const std::string line = "cd '" + work().string() + "' && " + command + " > predicted.json";
      ASSERT_EQ(std::system(line.c_str()), 0) << command;
      const json predicted = json::parse(read_file(work() / "predicted.json"));
      const double expected = columns.at(time, row);
      EXPECT_NEAR(predicted.at(time).get<double>(), expected, 1e-6 * expected) << command;
    }
  }
}

// Bars lead from A's time to B's, and are seen: where a bar is, the canvas is not empty.
TEST_F(ReportBrowserTest, TheWaterfallOfAComparisonIsDrawn) {
  write("study.yaml", kSmallStudy);
  ASSERT_EQ(run({"compare", "study.yaml", "--point", "tp=8,pp=1,dp=1,recompute=full,mbs=1", "--point",
                 "tp=1,pp=1,dp=8,zero=1,recompute=none,mbs=2", "--report", "page.html"})
                .code,
            0);
  const json bars = in_page(1280, R"(
    const chart = charts.get(byId('waterfall')), scale = chart.currentDevicePixelRatio;
    const {width, height} = chart.canvas, {data} = chart.ctx.getImageData(0, 0, width, height);
    const seen = ({x, base, y}) => data[4 * (Math.round(y * scale) * width + Math.round((x + base) / 2 * scale)) + 3] > 0;
    return chart.getDatasetMeta(0).data.filter(({x, base}) => Math.abs(x - base) > 4).map(seen);)");
  EXPECT_GE(bars.size(), 3U) << bars;
  for (const json& seen : bars) EXPECT_TRUE(seen.get<bool>()) << bars;
}

TEST_F(ReportBrowserTest, APageWithoutFeasiblePointsHasACommandToo) {
  make_page(kTooLarge);
  const json command = in_page(400, "return byId('miss-command').querySelector('code').textContent;");
  std::string line = command;
  line.replace(0, std::string("shardscape").size(), "'" + test::program() + "'");
  EXPECT_EQ(std::system(("cd '" + work().string() + "' && " + line + " > /dev/null").c_str()), 0) << line;
}

TEST_F(ReportBrowserTest, EachLoadHasItsBestPlan) {
  make_page(kServing);
  const json found = in_page(1280, R"(
    const table = byId("load-table");
    return {hidden: byId("loads").hidden, up: byId("load-y").value, scatter: byId("y").value, heads: [...table.tHead.rows[0].cells].map((cell) => cell.textContent),
            csv: csvOfRows(loadColumns(), loadGroups(state.rows).map(({best}) => best)),
            lines: charts.get(byId("load-lines")).data.datasets.map(({data}) => data), rows: table.tBodies[0].rows.length};
  )");
  EXPECT_EQ(found.at("hidden"), false);
  EXPECT_EQ(found.at("up"), "tokens_per_s_per_gpu");  // the second objective
  EXPECT_EQ(found.at("scatter"), "tokens_per_s_per_gpu");
  EXPECT_EQ(found.at("heads").at(0), "concurrency");
  const PageColumns columns(data());
  struct Best {
    double ttft = HUGE_VAL, rate_there = 0, rate = 0;
  };
  std::map<int, Best> by_load;
  for (std::size_t row = 0; row < columns.rows(); ++row) {
    Best& best = by_load[columns.at("concurrency", row)];
    const double ttft = columns.at("ttft_s", row), rate = columns.at("tokens_per_s_per_gpu", row);
    if (std::pair(ttft, -rate) < std::pair(best.ttft, -best.rate_there))
      best.ttft = ttft, best.rate_there = rate;
    best.rate = std::max(best.rate, rate);
  }
  const auto lines = csv_lines(found.at("csv"));
  ASSERT_EQ(by_load.size(), 3U);
  ASSERT_EQ(lines.size(), 4U);
  EXPECT_EQ(found.at("rows"), 3);
  std::size_t i = 0;
  for (const auto& [load, best] : by_load) {
    EXPECT_EQ(std::stoi(lines[i + 1][0]), load);
    EXPECT_EQ(std::stod(lines[i + 1][1]), best.ttft);
    EXPECT_EQ(std::stod(lines[i + 1][2]), best.rate_there);
    EXPECT_EQ(found.at("lines").at(0).at(i), best.rate_there);
    EXPECT_EQ(found.at("lines").at(1).at(i), best.rate);
    ++i;
  }
}

TEST_F(ReportBrowserTest, ChartsAreSavedAndTermsAreExplained) {
  make_page(std::string(kSmallStudy) + kFaultsAndHardware);
  const json found = in_page(1280, R"(
    const copy = opaqueCopy(byId("scatter")), corner = [...copy.getContext("2d").getImageData(0, 0, 1, 1).data];
    const figures = [...document.querySelectorAll("figure")].filter((figure) => figure.querySelector("canvas"));
    const terms = [...document.querySelectorAll("#terms dt")].map((term) => term.textContent);
    const heads = planColumns().map(partName);
    const mode = colourOf("--card");
    dispatchEvent(new Event("beforeprint"));
    const paper = colourOf("--ground");
    dispatchEvent(new Event("afterprint"));
    return {corner, card: channelsOf(mode), image: copy.toDataURL("image/png").slice(0, 22), paper,
            figures: figures.length, saved: figures.filter((figure) => figure.querySelector("button.save")?.textContent === "PNG").length,
            unexplained: heads.filter((head) => !terms.includes(head)), unknown: document.querySelectorAll("#terms dd:empty").length};
  )");
  EXPECT_EQ(found.at("image"), "data:image/png;base64,");
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(found.at("corner").at(i), found.at("card").at(i));
  EXPECT_EQ(found.at("corner").at(3), 255);
  EXPECT_EQ(found.at("paper"), "#ffffff");
  EXPECT_GT(found.at("figures"), 10);
  EXPECT_EQ(found.at("saved"), found.at("figures"));
  EXPECT_EQ(found.at("unexplained"), json::array());
  EXPECT_EQ(found.at("unknown"), 0);
}

}  // namespace
}  // namespace shardscape::cli
