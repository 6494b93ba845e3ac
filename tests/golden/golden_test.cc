// Is what the program predicts still what it predicted? Rows of every study with all their columns, and
// summaries of single plans, against the data beside this file. A change that is meant to move predictions
// makes them again with `scripts/golden update`, and its diff is reviewed; any other change leaves them alone.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <set>
#include <sstream>

#include "tests/cli/program_under_test.h"
#include "tests/support/csv.h"

namespace shardscape::cli {
namespace {

/// libm differs between machines; what a last bit can do to a step is below this.
constexpr double kRelative = 1e-9;
/// Classes of time are kept in 32 bits.
constexpr double kSingle = 2.5e-7;
constexpr std::size_t kRows = 10;

constexpr const char* kAgain =
    "; if this is meant, build golden_tests, run `scripts/golden update BUILD_FOLDER` and review the diff";

bool updates() { return std::getenv("SHARDSCAPE_GOLDEN_UPDATE") != nullptr; }

fs::path golden(const std::string& name) { return fs::path(test::source_dir()) / "tests/golden" / name; }

bool is_integer(const std::string& text) {
  return !text.empty() && text.find_first_not_of("-0123456789") == std::string::npos;
}

/// How far numbers of this name may lie apart whatever their size: what is left of a step after subtractions
/// has no relative accuracy of its own. `whole` is the step or the request in seconds.
double floor_of(const std::string& name, double whole) {
  if (name.ends_with("_s")) return kRelative * whole;
  return name.find("slowdown") != std::string::npos || name.ends_with("share") ? kRelative : 0;
}

/// Names, codes and whole numbers exactly; other numbers relative, or to within `floor`.
bool agree(const std::string& kept, const std::string& now, double relative, double floor) {
  if (kept == now) return true;
  if (kept.empty() || now.empty() || (is_integer(kept) && is_integer(now))) return false;
  std::size_t used_kept = 0, used_now = 0;
  try {
    const double a = std::stod(kept, &used_kept), b = std::stod(now, &used_now);
    return used_kept == kept.size() && used_now == now.size() &&
           std::abs(a - b) <= relative * std::max(std::abs(a), std::abs(b)) + floor;
  } catch (const std::exception&) {
    return false;  // a name, or a number that no double holds
  }
}

/// Columns that a result file keeps in 32 bits: /points' classes of time (results_schema/rows/columns.cc).
bool is_single(const std::string& column) {
  static const std::set<std::string> names = {
      "compute_s", "recompute_s", "tp_comm_s",   "cp_comm_s", "pp_comm_s",
      "dp_comm_s", "bubble_s",    "optimizer_s", "host_s",    "kv_transfer_exposed_s"};
  return names.contains(column);
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

/// Rows without what the evidence file says of them, which changes with every table that is added, though no prediction
/// does, and without what tokens cost, which their rate and one number of the device say: tests of their own hold both.
std::vector<std::string> without_evidence(const std::vector<std::string>& lines) {
  static const std::set<std::string> evidence = {"expected_error", "evidence", "evidence_gap",
                                                 "energy_per_token_j", "cost_per_million_tokens"};
  const std::vector<std::string> columns = test::split_csv_line(lines.at(0));
  std::vector<std::string> kept;
  for (const std::string& line : lines) {
    const std::vector<std::string> cells = test::split_csv_line(line);
    std::string& text = kept.emplace_back();
    for (std::size_t i = 0; i < cells.size(); ++i) {
      if (evidence.contains(columns.at(i))) continue;
      const bool quoted = cells[i].find(',') != std::string::npos;
      text += (text.empty() ? "" : ",") + (quoted ? '"' + cells[i] + '"' : cells[i]);
    }
  }
  return kept;
}

void write_lines(const fs::path& file, const std::vector<std::string>& lines) {
  std::ofstream out(file);
  for (const std::string& line : lines) out << line << '\n';
}

// ---- Studies

struct Study {
  const char* name;  ///< name of the data file, tests/golden/NAME.csv
  const char* file;  ///< below the source folder
  int sample;        ///< points; 0: all
  const char* set;   ///< one --set, or ""
};

constexpr Study kStudies[] = {
    {"a100-variants", "sweep/studies/a100-variants.yaml", 300, ""},
    {"gpt-175b-a100-to-b200", "sweep/studies/gpt-175b-a100-to-b200.yaml", 300, ""},
    {"gpt-recompute-memory", "sweep/studies/gpt-recompute-memory.yaml", 0, ""},
    {"llama2-13b-dram", "sweep/studies/llama2-13b-dram.yaml", 0, ""},
    {"llama3.1-405b-16k", "sweep/studies/llama3.1-405b-16k.yaml", 150, ""},
    {"llama3.1-70b-64xa100-faults", "sweep/studies/llama3.1-70b-64xa100-faults.yaml", 60, ""},
    {"llama3.1-70b-64xa100", "sweep/studies/llama3.1-70b-64xa100.yaml", 300, ""},
    {"llama3.1-70b-mapping", "sweep/studies/llama3.1-70b-mapping.yaml", 12, ""},
    {"llama3.1-70b-serving-16xa100", "sweep/studies/llama3.1-70b-serving-16xa100.yaml", 0, ""},
    {"million", "sweep/studies/million.yaml", 300, ""},
    {"technology-nodes", "sweep/studies/technology-nodes.yaml", 300, ""},
    {"llama", "tests/golden/studies/llama.yaml", 300, ""},
    {"llama-flattened", "tests/golden/studies/llama.yaml", 16, "mode=flattened"},
    {"gpt", "tests/golden/studies/gpt.yaml", 300, ""},
    {"faults", "tests/golden/studies/faults.yaml", 0, ""},
    {"exhaustive", "tests/golden/studies/exhaustive.yaml", 0, ""},
    {"serving", "tests/golden/studies/serving.yaml", 120, ""},
    {"serving-flattened", "tests/golden/studies/serving.yaml", 20, "mode=flattened"},
    {"serving-faults", "tests/golden/studies/serving-faults.yaml", 0, ""},
};

/// The header and some rows: feasible ones spread over the file, and the first of each other verdict.
std::vector<std::string> chosen_rows(const std::vector<std::string>& lines) {
  std::vector<std::size_t> feasible, chosen;
  std::set<std::string> verdicts;
  for (std::size_t i = 1; i < lines.size(); ++i) {
    const std::vector<std::string> cells = test::split_csv_line(lines[i]);
    if (cells.at(1) == "ok") {
      feasible.push_back(i);
    } else if (verdicts.size() < 3 && verdicts.insert(cells.at(1) + cells.at(2)).second) {
      chosen.push_back(i);
    }
  }
  const std::size_t room = std::min(kRows - chosen.size(), feasible.size());
  for (std::size_t i = 0; i < room; ++i) chosen.push_back(feasible[i * feasible.size() / room]);
  std::ranges::sort(chosen);
  std::vector<std::string> rows = {lines.at(0)};
  for (const std::size_t i : chosen) rows.push_back(lines[i]);
  return rows;
}

class GoldenStudies : public ProgramTest, public testing::WithParamInterface<Study> {};

TEST_P(GoldenStudies, KeepTheirRows) {
  const Study& study = GetParam();
  std::vector<std::string> sweep = {"sweep",      test::source_dir() + "/" + study.file,
                                    "-o",         "out.h5",
                                    "--threads",  "2",
                                    "--progress", "none",
                                    "--confirm",  "0"};
  if (study.sample > 0) sweep.insert(sweep.end(), {"--sample", std::to_string(study.sample)});
  if (*study.set != '\0') sweep.insert(sweep.end(), {"--set", study.set});
  const Finished swept = run(sweep);
  ASSERT_EQ(swept.code, 0) << swept.err;
  const Finished exported = run({"export", "out.h5", "--csv", "-"});
  ASSERT_EQ(exported.code, 0) << exported.err;
  const std::vector<std::string> lines = without_evidence(lines_of(exported.out));
  const fs::path file = golden(std::string(study.name) + ".csv");
  if (updates()) return write_lines(file, chosen_rows(lines));

  ASSERT_TRUE(fs::exists(file)) << file << " is not there" << kAgain;
  const std::vector<std::string> kept = lines_of(read_file(file));
  ASSERT_EQ(kept.at(0), lines.at(0)) << study.name << ": other columns" << kAgain;
  const std::vector<std::string> columns = test::split_csv_line(lines[0]);
  std::map<std::string, std::vector<std::string>> now;  // key: point_id
  for (std::size_t i = 1; i < lines.size(); ++i) {
    std::vector<std::string> cells = test::split_csv_line(lines[i]);
    const std::string id = cells.at(0);
    now[id] = std::move(cells);
  }
  for (std::size_t i = 1; i < kept.size(); ++i) {
    const std::vector<std::string> row = test::split_csv_line(kept[i]);
    ASSERT_TRUE(now.contains(row.at(0))) << study.name << ": no point " << row.at(0) << kAgain;
    const std::vector<std::string>& cells = now[row.at(0)];
    ASSERT_EQ(row.size(), cells.size());
    double whole = 0;
    for (std::size_t c = 0; c < row.size(); ++c) {
      if (!row[c].empty() && (columns[c] == "step_time_s" || columns[c] == "e2e_s"))
        whole = std::stod(row[c]);
    }
    for (std::size_t c = 0; c < row.size(); ++c)
      EXPECT_TRUE(
          agree(row[c], cells[c], is_single(columns[c]) ? kSingle : kRelative, floor_of(columns[c], whole)))
          << study.name << ", point " << row[0] << ", " << columns[c] << ": " << row[c] << " was kept, "
          << cells[c] << " is predicted" << kAgain;
  }
}

INSTANTIATE_TEST_SUITE_P(All, GoldenStudies, testing::ValuesIn(kStudies), [](const auto& instance) {
  std::string name = instance.param.name;
  std::ranges::replace_if(
      name, [](char c) { return c == '-' || c == '.'; }, '_');
  return name;
});

// ---- Plans

struct Plan {
  std::string name, study;
  std::vector<std::string> options;
};

/// The plans with a * in tests/golden/plans.txt.
std::vector<Plan> marked_plans() {
  std::vector<Plan> plans;
  for (const std::string& line : lines_of(read_file(golden("plans.txt")))) {
    if (line.empty() || line[0] != '*') continue;
    std::istringstream words(line.substr(1));
    Plan plan;
    words >> plan.name >> plan.study;
    for (std::string word; words >> word;) plan.options.push_back(word);
    plans.push_back(plan);
  }
  return plans;
}

/// Name -> value, as text with all digits.
using Summary = std::map<std::string, std::string>;

std::string number_text(const nlohmann::json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

/// Every leaf of a document under its path.
void add_leaves(Summary& summary, const std::string& path, const nlohmann::json& value) {
  if (value.is_object()) {
    for (const auto& [key, member] : value.items()) add_leaves(summary, path + "." + key, member);
  } else if (value.is_array()) {
    for (std::size_t i = 0; i < value.size(); ++i)
      add_leaves(summary, path + "." + std::to_string(i), value[i]);
  } else {
    summary[path] = number_text(value);
  }
}

/// Events by kind, and the sum and the latest end of what lasts.
void add_timeline(Summary& summary, const nlohmann::json& timeline) {
  std::map<std::string, std::int64_t> kinds;
  double sum_us = 0, end_us = 0;
  for (const nlohmann::json& event : timeline.at("traceEvents")) {
    ++kinds[event.at("ph").get<std::string>()];
    if (!event.contains("dur")) continue;
    const double start = event.at("ts").get<double>(), length = event.at("dur").get<double>();
    sum_us += length;
    end_us = std::max(end_us, start + length);
  }
  for (const auto& [kind, count] : kinds) summary["timeline.events." + kind] = std::to_string(count);
  summary["timeline.sum_us"] = nlohmann::json(sum_us).dump();
  summary["timeline.end_us"] = nlohmann::json(end_us).dump();
}

class GoldenPlans : public ProgramTest, public testing::WithParamInterface<Plan> {};

TEST_P(GoldenPlans, KeepTheirNumbers) {
  const Plan& plan = GetParam();
  std::vector<std::string> simulate = {"simulate", golden("studies/" + plan.study + ".yaml").string(),
                                       "--json", "--explain"};
  simulate.insert(simulate.end(), plan.options.begin(), plan.options.end());
  const bool trains = plan.study.find("serving") == std::string::npos;
  if (trains) simulate.insert(simulate.end(), {"--timeline", "timeline.json", "--chakra", "traces"});
  const Finished done = run(simulate);
  ASSERT_EQ(done.code, 0) << done.err;

  Summary summary;
  const nlohmann::json document = nlohmann::json::parse(done.out);
  for (const auto& [key, value] : document.items()) {
    const bool follows = key == "energy_per_token_j" || key == "cost_per_million_tokens";
    if (key != "operators" && key != "placement" && !follows) add_leaves(summary, key, value);
  }
  std::map<std::string, double> seconds;  // key: phase; time of its operators
  for (const nlohmann::json& row : document.at("operators"))
    seconds[row.at("phase").get<std::string>()] +=
        row.at("count").get<double>() * row.at("time_s").get<double>();
  for (const auto& [phase, sum] : seconds) summary["operators." + phase + "_s"] = nlohmann::json(sum).dump();
  summary["operators.rows"] = std::to_string(document.at("operators").size());
  if (trains) {
    add_timeline(summary, nlohmann::json::parse(read_file(work() / "timeline.json")));
    std::uintmax_t traces = 0;
    for (const auto& entry : fs::directory_iterator(work() / "traces"))
      traces += entry.is_regular_file() ? 1 : 0;
    summary["chakra.files"] = std::to_string(traces);
    // "wrote 5,104 nodes of 16 ranks to traces"
    for (const std::string& line : lines_of(done.err)) {
      if (contains(line, " nodes of ")) summary["chakra.nodes"] = line;
    }
    EXPECT_TRUE(summary.contains("chakra.nodes")) << done.err;
  }

  const fs::path file = golden("plan-" + plan.name + ".csv");
  std::vector<std::string> lines = {"what,value"};
  for (const auto& [what, value] : summary) lines.push_back(what + ",\"" + value + "\"");
  if (updates()) return write_lines(file, lines);

  ASSERT_TRUE(fs::exists(file)) << file << " is not there" << kAgain;
  Summary kept;
  for (const test::CsvRow& row : test::read_csv(file)) kept[row.at("what")] = row.at("value");
  const double whole = std::stod(kept.at(trains ? "step_time_s" : "e2e_s"));
  for (const auto& [what, value] : kept) {
    ASSERT_TRUE(summary.contains(what)) << plan.name << ": no " << what << " any more" << kAgain;
    EXPECT_TRUE(agree(value, summary[what], kRelative, floor_of(what, whole)))
        << plan.name << ", " << what << ": " << value << " was kept, " << summary[what] << " is predicted"
        << kAgain;
  }
  for (const auto& [what, value] : summary)
    EXPECT_TRUE(kept.contains(what)) << plan.name << ": new " << what << kAgain;
}

INSTANTIATE_TEST_SUITE_P(All, GoldenPlans, testing::ValuesIn(marked_plans()), [](const auto& instance) {
  std::string name = instance.param.name;
  std::ranges::replace(name, '-', '_');
  return name;
});

}  // namespace
}  // namespace shardscape::cli
