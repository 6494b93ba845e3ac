// Do fault studies run from the command line: samples, rankings, export, one draw alone?
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "results_schema/reading/reader.h"
#include "tests/cli/program_under_test.h"
#include "tests/support/datasets_equal.h"
#include "tests/support/paths.h"

namespace shardscape::cli {
namespace {

using nlohmann::json;

class FaultsTest : public ProgramTest {
 protected:
  /// The ready study at a reduced size.
  std::vector<std::string> sweep(const std::string& output, std::vector<std::string> more = {}) {
    std::vector<std::string> words = {
        "sweep", test::source_dir() + "/sweep/studies/llama3.1-70b-64xa100-faults.yaml",
        "-o",    output,
        "--set", "space.zero_stage=1",
        "--set", "space.microbatch_size=1",
        "--set", "faults.samples=25"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  std::string write_study(const std::string& name, const std::string& faults) {
    write(name, std::string(kSmallStudy) + faults);
    return name;
  }
};

TEST_F(FaultsTest, ReadyStudyIsTheSameForOneAndTwoThreads) {
  ASSERT_EQ(run(sweep("one.h5", {"--threads", "1"})).code, 0);
  ASSERT_EQ(run(sweep("two.h5", {"--threads", "2"})).code, 0);
  std::string difference;
  EXPECT_TRUE(test::datasets_equal(work() / "one.h5", work() / "two.h5", &difference)) << difference;
  const results::ResultReader reader(work() / "one.h5");
  const auto status = reader.read("status"), samples = reader.read("fault_samples");
  const auto mean = reader.read("slowdown_mean"), max = reader.read("slowdown_max");
  std::uint64_t rows = 0;
  for (std::size_t i = 0; i < status.size(); ++i) {
    EXPECT_EQ(samples[i], status[i] == 0 ? 25 : 0);
    rows += static_cast<std::uint64_t>(samples[i]);
    if (status[i] != 0) continue;
    EXPECT_GE(mean[i], 0);
    EXPECT_LE(mean[i], max[i]);
  }
  EXPECT_EQ(rows, reader.samples().row_count());
  EXPECT_GT(rows, 1000U);
}

TEST_F(FaultsTest, AThousandDrawsAreThoseOfThePlainPath) {
  const std::vector<std::string> few = {"--set", "space.recompute=selective", "faults.samples=16"};
  const auto with = [&](const std::string& more) {
    std::vector<std::string> words = few;
    if (!more.empty()) words.push_back(more);
    return words;
  };
  ASSERT_EQ(run(sweep("fast.h5", with(""))).code, 0);
  ASSERT_EQ(run(sweep("plain.h5", with("--reference"))).code, 0);
  const results::ResultReader fast(work() / "fast.h5"), plain(work() / "plain.h5");
  ASSERT_GE(fast.samples().row_count(), 1000U);
  ASSERT_EQ(fast.samples().point_ids(), plain.samples().point_ids());
  EXPECT_EQ(fast.samples().read("link_id"), plain.samples().read("link_id"));
  EXPECT_EQ(fast.samples().read("derate"), plain.samples().read("derate"));
  const auto time = fast.samples().read("step_time_s"), plain_time = plain.samples().read("step_time_s");
  const auto slowdown = fast.samples().read("slowdown"), plain_slowdown = plain.samples().read("slowdown");
  for (std::size_t i = 0; i < time.size(); ++i) {
    ASSERT_NEAR(time[i] / plain_time[i], 1, 1e-9) << "row " << i;
    ASSERT_NEAR(slowdown[i], plain_slowdown[i], 1e-9) << "row " << i;
  }
}

// Thirty-two faults at a time: segments fill up with their rows.
TEST_F(FaultsTest, KilledInTheMiddleResumesToEqualSamples) {
  const std::vector<std::string> many = {"--set",
                                         "faults.kind=[slow_device, hbm_derate]",
                                         "faults.derate=0.5",
                                         "faults.simultaneous=32",
                                         "faults.samples=300",
                                         "--progress",
                                         "none"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), many.begin(), many.end());
    return more;
  };
  Running running = start(sweep("killed.h5", with({"--threads", "2"})));
  await_segment(running, "killed.h5");
  running.send(SIGKILL);
  ASSERT_EQ(running.wait().signal, SIGKILL);
  ASSERT_FALSE(fs::exists(work() / "killed.h5"));

  // The sealed part of an unfinished sweep can be looked at.
  const Finished partly = run({"sensitivity", "killed.h5"});
  EXPECT_EQ(partly.code, 0) << partly.err;
  EXPECT_TRUE(contains(partly.out, "so far")) << partly.out;

  const Finished resumed = run(sweep("killed.h5", with({"--threads", "2", "--resume"})));
  ASSERT_EQ(resumed.code, 0) << resumed.err;
  EXPECT_TRUE(contains(resumed.out, "of them in this run")) << resumed.out;
  ASSERT_EQ(run(sweep("whole.h5", with({"--threads", "1"}))).code, 0);
  std::string difference;
  EXPECT_TRUE(test::datasets_equal(work() / "whole.h5", work() / "killed.h5", &difference)) << difference;
  EXPECT_GT(results::ResultReader(work() / "killed.h5").samples().row_count(), 1U << 20U);
}

TEST_F(FaultsTest, ATargetStopsEachPointWhereItsIntervalIsThatNarrow) {
  constexpr double kTarget = 0.05;
  const std::vector<std::string> target = {"--set", "faults.samples=400", "faults.target_ci=5%"};
  const auto with = [&](const char* threads) {
    std::vector<std::string> words = target;
    words.insert(words.end(), {"--threads", threads});
    return words;
  };
  ASSERT_EQ(run(sweep("one.h5", with("1"))).code, 0);
  ASSERT_EQ(run(sweep("two.h5", with("2"))).code, 0);
  std::string difference;
  EXPECT_TRUE(test::datasets_equal(work() / "one.h5", work() / "two.h5", &difference)) << difference;

  const results::ResultReader reader(work() / "one.h5");
  std::map<std::uint64_t, std::vector<double>> by_point;
  const auto points = reader.samples().point_ids();
  const auto slowdown = reader.samples().read("slowdown");
  for (std::size_t i = 0; i < points.size(); ++i) by_point[points[i]].push_back(slowdown[i]);
  const auto width = [](const std::vector<double>& values, std::size_t count) {
    double sum = 0, squares = 0;
    for (std::size_t i = 0; i < count; ++i) sum += values[i];
    const auto n = static_cast<double>(count);
    for (std::size_t i = 0; i < count; ++i) squares += (values[i] - sum / n) * (values[i] - sum / n);
    return 2 * 1.959963984540054 * std::sqrt(squares / (n - 1) / n);
  };
  std::set<std::size_t> counts;
  for (const auto& [id, values] : by_point) {
    const std::size_t count = values.size();
    counts.insert(count);
    EXPECT_GE(count, 30U);
    EXPECT_LE(count, 400U);
    if (count < 400) {
      EXPECT_LE(width(values, count), kTarget * (1 + 1e-9)) << id;
    }
    if (count > 30) {
      EXPECT_GT(width(values, count - 1), kTarget * (1 - 1e-9)) << id;
    }
  }
  EXPECT_GT(counts.size(), 10U);
}

TEST_F(FaultsTest, ExhaustiveMeetsEveryPlaceOnce) {
  for (const auto& [kind, places] :
       std::map<std::string, std::size_t>{{"hard_link", 192}, {"slow_device", 64}, {"nic_down", 64}}) {
    const std::string derate = kind == "slow_device" ? ", derate: 0.8" : "";
    const Finished finished = run(
        {"sweep", test::source_dir() + "/sweep/studies/llama3.1-70b-64xa100-faults.yaml", "-o", kind + ".h5",
         "--set", "space.zero_stage=1", "space.microbatch_size=1", "space.recompute=selective",
         "faults={kind: " + kind + ", placement: exhaustive" + derate + "}"});
    ASSERT_EQ(finished.code, 0) << finished.err;
    const results::ResultReader reader(work() / (kind + ".h5"));
    const auto points = reader.samples().point_ids();
    const auto place = reader.samples().read(kind == "hard_link" ? "link_id" : "device");
    std::map<std::uint64_t, std::set<double>> met;
    for (std::size_t i = 0; i < points.size(); ++i)
      EXPECT_TRUE(met[points[i]].insert(place[i]).second) << kind << points[i];
    EXPECT_GT(met.size(), 10U);
    for (const auto& [point, all] : met) EXPECT_EQ(all.size(), places) << kind << point;
  }
}

TEST_F(FaultsTest, CheckCountsTheSearchesOfPlacements) {
  write_study("plain.yaml", "");
  write_study("both.yaml", "placement: [plain, optimised]\n");
  const auto counts = [&](const std::string& study) {
    const Finished check = run({"check", study});
    EXPECT_EQ(check.code, 0) << check.err;
    return check.out;
  };
  const std::string plain = counts("plain.yaml"), both = counts("both.yaml");
  EXPECT_FALSE(contains(plain, "searches"));
  ASSERT_EQ(run({"sweep", "plain.yaml", "-o", "a.h5"}).code, 0);
  const results::ResultReader reader(work() / "a.h5");
  const auto status = reader.read("status");
  const auto feasible = std::ranges::count(status, static_cast<double>(Status::ok));
  EXPECT_TRUE(contains(both, "searches  about " + std::to_string(feasible) + " of ")) << both;
}

TEST_F(FaultsTest, CheckCountsPlacesAndDraws) {
  write_study(
      "study.yaml",
      "faults: {kind: [{kind: soft_link, weight: 3}, slow_device], samples: 40, derate: {distribution: "
      "beta, alpha: 4, beta: 2}, seed: 3}\nreliability: {device_mtbf: 1.8e8 s, checkpoint_write: 60 s, "
      "restart: 600 s}\n");
  const Finished check = run({"check", "study.yaml"});
  ASSERT_EQ(check.code, 0) << check.err;
  EXPECT_EQ(left_behind(), std::vector<std::string>{"study.yaml"});
  ASSERT_EQ(run({"sweep", "study.yaml", "-o", "a.h5"}).code, 0);
  const results::ResultReader reader(work() / "a.h5");
  std::string draws = std::to_string(reader.samples().row_count());
  if (draws.size() > 3) draws.insert(draws.size() - 3, ",");
  EXPECT_TRUE(contains(check.out, "draws          about " + draws + ": 40 of each feasible point"))
      << check.out;
  // Eight GPUs on one switch: eight cables.
  EXPECT_TRUE(contains(check.out, "soft_link at 8 places (75.0 %), slow_device at 8 places (25.0 %)"))
      << check.out;
  EXPECT_TRUE(contains(check.out, "distribution: beta")) << check.out;
  EXPECT_TRUE(contains(check.out, "of it on faults")) << check.out;
  // The expected text is 1.8e8 s / 8.
  EXPECT_TRUE(contains(check.out, "6,250 h 0 min of the machine")) << check.out;
}

TEST_F(FaultsTest, SensitivityRanksAsTheSamplesSay) {
  ASSERT_EQ(run(sweep("a.h5")).code, 0);
  const Finished finished = run({"sensitivity", "a.h5", "--format", "json"});
  ASSERT_EQ(finished.code, 0) << finished.err;
  const json report = json::parse(finished.out);

  // Brute force from the tables.
  const results::ResultReader reader(work() / "a.h5");
  std::map<std::uint64_t, std::pair<double, int>> by_point;
  std::map<double, std::pair<double, int>> by_link;
  const auto points = reader.samples().point_ids();
  const auto link = reader.samples().read("link_id"), slowdown = reader.samples().read("slowdown");
  const auto sample = reader.samples().read("sample"), derate = reader.samples().read("derate");
  std::map<double, std::pair<double, std::set<double>>> drawn;  // by link: sum of derates, samples
  for (std::size_t i = 0; i < points.size(); ++i) {
    by_point[points[i]].first += slowdown[i], ++by_point[points[i]].second;
    by_link[link[i]].first += slowdown[i], ++by_link[link[i]].second;
    drawn[link[i]].first += derate[i], drawn[link[i]].second.insert(sample[i]);
  }
  const auto step = reader.read("step_time_s");
  double before = 0;
  ASSERT_EQ(report.at("by_plan").size(), by_point.size());
  for (const json& plan : report.at("by_plan")) {
    const auto id = plan.at("point_id").get<std::uint64_t>();
    const auto [sum, count] = by_point.at(id);
    const double expected = step[id] * (1 + sum / count);
    EXPECT_NEAR(plan.at("expected_s").get<double>() / expected, 1, 1e-12);
    EXPECT_GE(plan.at("expected_s").get<double>(), before);
    before = plan.at("expected_s").get<double>();
    // No other plan beats a starred one everywhere.
    for (const json& other : report.at("by_plan")) {
      const bool better = other.at("healthy_s") < plan.at("healthy_s") &&
                          other.at("slowdown_p95") < plan.at("slowdown_p95") &&
                          other.at("memory_peak_bytes") < plan.at("memory_peak_bytes");
      EXPECT_FALSE(better && plan.at("pareto").get<bool>());
    }
  }
  ASSERT_EQ(report.at("by_link").size(), by_link.size());
  double worst = 0;
  double worst_link = -1;
  for (const auto& [id, sum] : by_link)
    if (sum.first / sum.second > worst) worst = sum.first / sum.second, worst_link = id;
  EXPECT_NEAR(report.at("by_link")[0].at("slowdown_mean").get<double>(), worst, 1e-12);
  EXPECT_EQ(report.at("by_link")[0].at("draws"), drawn.at(worst_link).second.size());
  EXPECT_NEAR(report.at("by_link")[0].at("rate_left_mean").get<double>(),
              drawn.at(worst_link).first / by_link.at(worst_link).second, 1e-12);
  EXPECT_EQ(report.at("by_dimension").size(), 2U);
  const json& distribution = report.at("distribution");
  EXPECT_EQ(distribution.back().at("slowdown"), *std::ranges::max_element(slowdown));

  const Finished csv = run({"sensitivity", "a.h5", "--by-link", "--format", "csv"});
  EXPECT_EQ(std::ranges::count(csv.out, '\n'), static_cast<std::ptrdiff_t>(by_link.size()) + 1);
  EXPECT_TRUE(contains(run({"sensitivity", "a.h5"}).out, "plans by mean time under faults, 10 of"));
  EXPECT_EQ(run({"sensitivity", "a.h5", "--format", "csv"}).code, 2);
}

TEST_F(FaultsTest, ExportHoldsEveryRow) {
  ASSERT_EQ(run(sweep("a.h5")).code, 0);
  const results::ResultReader reader(work() / "a.h5");
  ASSERT_EQ(run({"export", "a.h5", "--csv", "samples.csv", "--table", "fault_samples"}).code, 0);
  ASSERT_EQ(run({"export", "a.h5", "--csv", "points.csv"}).code, 0);
  std::istringstream samples(read_file(work() / "samples.csv"));
  std::string line;
  std::getline(samples, line);
  EXPECT_EQ(line, "point_id,sample,fault,status,kind,link_id,device,derate,step_time_s,slowdown");
  const auto time = reader.samples().read("step_time_s");
  std::size_t row = 0;
  for (; std::getline(samples, line); ++row) {
    const std::string field = line.substr(0, line.rfind(','));
    ASSERT_EQ(std::stod(field.substr(field.rfind(',') + 1)), time[row]);
  }
  EXPECT_EQ(row, time.size());
  EXPECT_EQ(std::ranges::count(read_file(work() / "points.csv"), '\n'),
            static_cast<std::ptrdiff_t>(reader.row_count()) + 1);
}

TEST_F(FaultsTest, OneDrawAloneIsTheRowOfTheSweep) {
  write_study(
      "study.yaml",
      "faults: {kind: [soft_link, slow_device, hbm_derate, nic_down], samples: 8, derate: 0.5, seed: 3}\n");
  ASSERT_EQ(run({"sweep", "study.yaml", "-o", "a.h5"}).code, 0);
  const results::ResultReader reader(work() / "a.h5");
  const auto tp = reader.read("tensor_parallel"), pp = reader.read("pipeline_parallel");
  const auto zero = reader.read("zero_stage"), mbs = reader.read("microbatch_size");
  const auto recompute = reader.read("recompute"), schedule = reader.read("schedule");
  const auto points = reader.samples().point_ids();
  const auto time = reader.samples().read("step_time_s"), sample = reader.samples().read("sample");
  int compared = 0;
  for (std::size_t row = 0; row < points.size() && compared < 16; ++row) {
    const std::uint64_t id = points[row];
    const bool wanted =
        zero[id] == 1 && recompute[id] == 1 && schedule[id] == 1 && mbs[id] == 1 && pp[id] <= 2;
    if (!wanted) continue;
    const std::string point = "tp=" + std::to_string(static_cast<int>(tp[id])) +
                              ",pp=" + std::to_string(static_cast<int>(pp[id])) +
                              ",zero=1,recompute=selective,mbs=1,schedule=1f1b";
    const Finished finished = run({"simulate", "study.yaml", "--point", point, "--draw",
                                   std::to_string(static_cast<int>(sample[row])), "--json"});
    ASSERT_EQ(finished.code, 0) << finished.err;
    const json draw = json::parse(finished.out).at("draw");
    if (std::isnan(time[row])) {
      EXPECT_TRUE(draw.at("time_s").is_null());
    } else {
      EXPECT_EQ(draw.at("time_s").get<double>(), time[row]);
    }
    ++compared;
  }
  EXPECT_EQ(compared, 16);
}

/// The shortest text of a number that reads back the same.
std::string exact_text(double value) {
  std::array<char, 32> text{};
  return {text.data(), std::to_chars(text.data(), text.data() + text.size(), value).ptr};
}

TEST_F(FaultsTest, EveryKindOnTheCommandLineIsTheDrawOfTheStudy) {
  const std::string head =
      "study: s\nmodel: llama3.1-8b\ncluster: dgx-a100\ngpus: 16\nstack: megatron-lm\n"
      "workload: {phase: training, sequence_length: 4096, global_batch: 32, precision: bf16}\n"
      "space: {tensor_parallel: [8], pipeline_parallel: [2], data_parallel: fill}\n";
  for (const std::string kind :
       {"soft_link", "hard_link", "hbm_derate", "slow_device", "nic_down", "switch_down"}) {
    const bool derates = kind == "soft_link" || kind == "hbm_derate" || kind == "slow_device";
    std::string faults = "faults: {kind: " + kind + ", samples: 3, seed: 5";
    if (derates) faults += ", derate: {distribution: uniform, min: 0.2, max: 0.8}";
    if (kind == "soft_link") faults += ", added_latency: 7 us";
    write("study.yaml", head + faults + "}\n");
    for (int sample = 0; sample < 3; ++sample) {
      const Finished drawn = run({"simulate", "study.yaml", "--draw", std::to_string(sample), "--json"});
      ASSERT_EQ(drawn.code, 0) << kind << drawn.err;
      const json draw = json::parse(drawn.out).at("draw");
      const json& fault = draw.at("faults").at(0);
      std::string text = fault.contains("link") ? std::to_string(fault.at("link").get<int>())
                                                : kind + ":" + std::to_string(fault.at("device").get<int>());
      if (derates) text += "=" + exact_text(fault.at("derate").get<double>());
      if (kind == "soft_link") text += "+7us";
      if (kind == "hard_link") text += "=dead";
      const Finished given = run({"simulate", "study.yaml", "--fault", text, "--json"});
      ASSERT_EQ(given.code, 0) << text << given.err;
      const json result = json::parse(given.out);
      if (draw.at("time_s").is_null()) {
        EXPECT_EQ(result.at("status"), "unreachable") << text;
      } else {
        EXPECT_EQ(result.at("step_time_s"), draw.at("time_s")) << text;
        if (derates && kind != "soft_link") {
          EXPECT_GT(draw.at("slowdown").get<double>(), 1e-4) << text;
        }
      }
    }
  }
}

TEST_F(FaultsTest, FaultsOfTheCommandLineAreChecked) {
  write("study.yaml", kSmallStudy);
  const std::map<std::string, std::string> wrong = {
      {"0-1=1.5", "DERATE from 1e-06 to 1"},
      {"0-1=-1", "DERATE from 1e-06 to 1"},
      {"0-1=0.5+5", "LINK=DERATE+LATENCY"},
      {"0-1=0.5+-5us", "LINK=DERATE+LATENCY"},
      {"0-99=0.5", "there is no such link"},
      {"slow_device:99=0.5", "there is no such place; they are 0 .. 7"},
      {"slow_device:1=0", "must be from 1e-06 to 1"},
      {"slow_device:1=2", "must be from 1e-06 to 1"},
      {"slow_device:1", "slow_device:RANK=SHARE"},
      {"nic_down:1=0.5", "nic_down:RANK"},
      {"switch_down:0", "there is no such place; they are 8"},
      {"soft_link:0-8=0.5", "without its kind"},
      {"slow_devcie:1=0.5", "there is no such link"}};
  for (const auto& [text, reason] : wrong) {
    const Finished finished = run({"simulate", "study.yaml", "--fault", text});
    EXPECT_EQ(finished.code, 2) << text;
    EXPECT_TRUE(contains(finished.err, "--fault " + text + ": ")) << finished.err;
    EXPECT_TRUE(contains(finished.err, reason)) << finished.err;
  }
  const Finished flattened =
      run({"simulate", "study.yaml", "--fault", "slow_device:1=0.5", "--mode", "flattened"});
  EXPECT_EQ(flattened.code, 0) << flattened.err;
}

TEST_F(FaultsTest, FaultsOfTheCommandLineSayWhatTheyCost) {
  write("study.yaml", kSmallStudy);
  const std::vector<std::string> sick = {"simulate", "study.yaml", "--fault", "slow_device:1=0.5"};
  std::vector<std::string> words = sick;
  words.emplace_back("--json");
  const json found = json::parse(run(words).out),
             healthy = json::parse(run({"simulate", "study.yaml", "--json"}).out);
  EXPECT_FALSE(healthy.contains("faults"));
  const json& cost = found.at("faults");
  EXPECT_EQ(cost.at("given"), json({"slow_device:1=0.5"}));
  EXPECT_EQ(cost.at("healthy_time_s"), healthy.at("step_time_s"));
  EXPECT_EQ(cost.at("time_s"), found.at("step_time_s"));
  const double slowdown = found.at("step_time_s").get<double>() / healthy.at("step_time_s").get<double>() - 1;
  EXPECT_GT(slowdown, 0.1);
  EXPECT_NEAR(cost.at("slowdown").get<double>(), slowdown, 1e-12);
  EXPECT_TRUE(run(sick).out.starts_with("faults\n  slow_device:1=0.5\n  time ")) << run(sick).out;
}

// Where GPUs meet in a switch there is no link between two of them: those that there are stand in the message, and are
// links as they stand there.
TEST_F(FaultsTest, ALinkThatIsNoneNamesThoseOfItsEnd) {
  write("study.yaml", kSmallStudy);
  for (const char* none : {"2-1=0.5", "nvswitch: 2-1=0.5"}) {
    const std::string message = run({"simulate", "study.yaml", "--fault", none}).err;
    const std::string before = "of what you name there is '";
    const std::size_t found = message.find(before), from = found + before.size();
    ASSERT_NE(found, std::string::npos) << message;
    const std::string link = message.substr(from, message.find('\'', from) - from);
    EXPECT_TRUE(contains(link, ": 2 -> ")) << link;
    EXPECT_EQ(run({"simulate", "study.yaml", "--fault", link + "=0.5"}).code, 0) << link;
  }
  const Finished no_kind = run({"simulate", "study.yaml", "--fault", "nic:2=0.5"});
  EXPECT_EQ(no_kind.code, 2);
  EXPECT_FALSE(contains(no_kind.err, "of what you name")) << no_kind.err;
  EXPECT_TRUE(contains(no_kind.err, "or a kind of fault: ") && contains(no_kind.err, "nic_down:RANK"))
      << no_kind.err;
}

TEST_F(FaultsTest, CutFabricsAreUnreachableAndTheSweepGoesOn) {
  // Eight GPUs under one switch: without it nobody reaches anybody.
  write_study("study.yaml", "faults: {kind: switch_down, placement: exhaustive}\n");
  const Finished finished = run({"sweep", "study.yaml", "-o", "a.h5", "--progress", "none"});
  ASSERT_EQ(finished.code, 0) << finished.err;
  const results::ResultReader reader(work() / "a.h5");
  const auto status = reader.samples().read("status");
  EXPECT_TRUE(std::ranges::count(status, 4.0) > 0);
  const auto share = reader.read("unreachable_share"), verdict = reader.read("status");
  EXPECT_TRUE(std::ranges::count(verdict, 0.0) > 0);
  EXPECT_GT(*std::ranges::max_element(share, {}, [](double s) { return std::isnan(s) ? -1 : s; }), 0);
  EXPECT_EQ(run({"sensitivity", "a.h5"}).code, 0);
}

TEST_F(FaultsTest, BadInputIsLocatedAndNothingIsWritten) {
  write_study("study.yaml", "faults: {kind: soft_link, derate: 2, placement: {dimension: nvlnk}}\n");
  const Finished finished = run({"sweep", "study.yaml", "-o", "a.h5"});
  EXPECT_EQ(finished.code, 2);
  EXPECT_TRUE(contains(finished.err,
                       "study.yaml:18:35: faults.derate: must be a share that remains, from 1e-06 to 1"));
  EXPECT_TRUE(contains(finished.err, "faults.placement.dimension: the fabric has no dimension \"nvlnk\""));
  EXPECT_EQ(left_behind(), std::vector<std::string>{"study.yaml"});
}

TEST_F(FaultsTest, EveryBadStudyIsLocated) {
  const std::vector<std::pair<std::string, std::string>> wrong = {
      {"{kind: soft_link, derate: 0}", "18:35: faults.derate: must be a share that remains, from 1e-06 to 1"},
      {"{kind: soft_link, derate: -0.5}",
       "18:35: faults.derate: must be a share that remains, from 1e-06 to 1"},
      {"{kind: soft_link, derate: 1.01}",
       "18:35: faults.derate: must be a share that remains, from 1e-06 to 1"},
      {"{kind: soft_link, derate: {distribution: uniform, min: 0.9, max: 0.2}}", "min must not exceed max"},
      {"{kind: soft_link, derate: {distribution: beta, alpha: 0, beta: 2}}",
       "alpha must be from 0.001 to 1e+06"},
      {"{kind: soft_link, derate: {distribution: normal, mean: 30, std: 0.1}}",
       "has no mass between min and max"},
      {"{kind: soft_link, derate: {distribution: empirical, values: [0.2], min: 0.5}}", "none of the values"},
      {"{kind: soft_link, derate: {distribution: empirical, values: []}}", "must be a list of numbers"},
      {"{kind: sick_link, derate: 0.5}", "18:16: faults.kind: "},
      {"{kind: hard_link, samples: 0}", "18:36: faults.samples: "},
      {"{kind: [{kind: hard_link, weight: 0}, nic_down]}", "weight must be from 1e-09 to 1e+09"},
      {"{kind: [{kind: hard_link, weight: -1}, nic_down]}", "weight must be from 1e-09 to 1e+09"},
      {"{kind: hard_link, placement: {dimension: torus}}", "the fabric has no dimension \"torus\""},
      {"{kind: hard_link, placement: {links: [[0, 1]]}}", "there is no link between 0 and 1"},
      {"{kind: hard_link, placement: {links: [[0, 1000]]}}", "18:51: faults.placement.links: "},
      {"{kind: hard_link, placement: {links: []}}", "must be a list of pairs"},
      {"{kind: hard_link, simultaneous: 300}", "18:41: faults.simultaneous: "},
      {"{kind: hard_link, target_ci: 0%}", "must be a width in percent above 0"},
      {"{kind: hard_link, placement: exhaustive, target_ci: 1%}", "has no effect"},
      {"{kind: slow_device}", "faults.derate"},
      {"[soft_link]", "faults: must be a map"}};
  for (const auto& [faults, reason] : wrong) {
    write_study("study.yaml", "faults: " + faults + "\n");
    const Finished finished = run({"check", "study.yaml"});
    EXPECT_EQ(finished.code, 2) << faults;
    EXPECT_TRUE(contains(finished.err, "study.yaml:18:")) << faults << "\n" << finished.err;
    EXPECT_TRUE(contains(finished.err, reason)) << faults << "\n" << finished.err;
  }
}

TEST_F(FaultsTest, FaultCommandsNeedFaults) {
  write("study.yaml", kSmallStudy);
  ASSERT_EQ(run({"sweep", "study.yaml", "-o", "a.h5"}).code, 0);
  EXPECT_EQ(run({"sensitivity", "a.h5"}).code, 2);
  EXPECT_EQ(run({"export", "a.h5", "--csv", "b.csv", "--table", "fault_samples"}).code, 2);
  EXPECT_EQ(run({"simulate", "study.yaml", "--draw", "0"}).code, 2);
  EXPECT_EQ(run({"sweep", "study.yaml", "-o", "c.h5", "--set", "objectives=[slowdown_p95]"}).code, 2);
  write_study("faulty.yaml", "faults: {kind: hard_link, samples: 4}\n");
  EXPECT_EQ(run({"simulate", "faulty.yaml", "--draw", "4"}).code, 2);
  EXPECT_EQ(run({"simulate", "faulty.yaml", "--draw", "3"}).code, 0);
}

}  // namespace
}  // namespace shardscape::cli
