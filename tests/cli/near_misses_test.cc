// Where no point is feasible: are the nearest misses shown, and do the changes that are offered make one fit?
#include <cmath>
#include <map>
#include <sstream>

#include "results_schema/reading/reader.h"
#include "tests/cli/program_under_test.h"
#include "tests/support/report_page.h"

namespace shardscape::cli {
namespace {

using nlohmann::json;

constexpr double kGiB = 1024.0 * 1024 * 1024;

/// The words "key=value" of both, those of `changes` winning.
std::string changed_plan(const std::string& plan, const std::string& changes) {
  std::map<std::string, std::string> words;
  std::istringstream text(plan + "," + changes);
  for (std::string word; std::getline(text, word, ',');) words[word.substr(0, word.find('='))] = word;
  std::string joined;
  for (const auto& [key, word] : words) joined += (joined.empty() ? "" : ",") + word;
  return joined;
}

class NearMissesTest : public ProgramTest {
 protected:
  std::vector<std::string> with_memory(const std::string& command, const std::string& gigabytes) {
    return {command, "study.yaml", "--set", "hardware={device.hbm.capacity: " + gigabytes + " GiB}"};
  }
  Finished sweep(const std::string& study, const std::string& gigabytes) {
    write("study.yaml", study);
    auto words = with_memory("sweep", gigabytes);
    words.insert(words.end(), {"-o", "out.h5", "--force"});
    Finished finished = run(words);
    EXPECT_EQ(finished.code, 0) << finished.err;
    return finished;
  }
  json misses() {
    EXPECT_EQ(run({"report", "out.h5", "-o", "page.html", "--force"}).code, 0);
    return test::page_data(read_file(work() / "page.html")).at("near_misses");
  }
  json simulate(const std::string& gigabytes, const std::string& plan) {
    auto words = with_memory("simulate", gigabytes);
    words.insert(words.end(), {"--point", plan, "--json"});
    const Finished finished = run(words);
    EXPECT_EQ(finished.code, 0) << finished.err;
    return json::parse(finished.out);
  }
  /// A study whose plans keep all activations and all states.
  static std::string greedy() {
    std::string study = kSmallStudy;
    const auto replace = [&](const std::string& from, const std::string& to) {
      study.replace(study.find(from), from.size(), to);
    };
    replace("zero_stage: [0, 1, 3]", "zero_stage: [0]");
    replace("recompute: [none, selective, full]", "recompute: [none]");
    replace("microbatch_size: [1, 2, 4]", "microbatch_size: [2, 4]");
    return study;
  }
};

TEST_F(NearMissesTest, TheNearestByMissingMemoryAndWhatMakesThemFit) {
  const Finished swept = sweep(greedy(), "24");
  ASSERT_TRUE(contains(swept.out, "no point is feasible")) << swept.out;
  const json list = misses();
  ASSERT_GE(list.size(), 3U);
  const results::ResultReader reader(work() / "out.h5");
  const auto peak = reader.read("memory_peak_bytes"), status = reader.read("status"),
             stage = reader.read("peak_stage");
  double least = HUGE_VAL;
  for (std::size_t row = 0; row < peak.size(); ++row) {
    if (static_cast<Status>(status[row]) == Status::memory) least = std::min(least, peak[row]);
  }
  EXPECT_NEAR(list.at(0).at("missing_bytes").get<double>(), least - 24 * kGiB, 1e-6 * least);
  int plan_changes = 0;
  for (const json& miss : list) {
    const std::size_t row = miss.at("point_id");
    const std::string plan = miss.at("plan");
    EXPECT_EQ(miss.at("stage"), stage[row]);
    EXPECT_NEAR(miss.at("missing_bytes").get<double>(), peak[row] - 24 * kGiB, 1e-6 * peak[row]);
    EXPECT_TRUE(
        contains(miss.at("problem"), "missing on stage " + std::to_string(static_cast<int>(stage[row]))));
    const json as_it_is = simulate("24", plan);
    EXPECT_EQ(as_it_is.at("status"), "memory");
    EXPECT_EQ(as_it_is.at("memory_peak_bytes"), peak[row]);
    for (const json& fix : miss.at("fixes")) {
      const std::string change = fix.at("change");
      json fixed;
      if (fix.at("where") == "device.hbm.capacity") {
        const auto gigabytes = static_cast<int>(std::ceil(peak[row] / kGiB));
        EXPECT_TRUE(contains(change, std::to_string(gigabytes) + ".00 GiB")) << change;
        fixed = simulate(std::to_string(gigabytes), plan);
        EXPECT_EQ(simulate(std::to_string(gigabytes - 1), plan).at("status"), "memory");
      } else {
        ++plan_changes;
        EXPECT_EQ(fix.at("where"), "not in the study's space");  // where nothing fits
        fixed = simulate("24", changed_plan(plan, change));
      }
      EXPECT_EQ(fixed.at("status"), "ok") << change;
      EXPECT_NEAR(fixed.at("memory_peak_bytes").get<double>(), fix.at("memory_bytes").get<double>(),
                  1e-6 * fix.at("memory_bytes").get<double>());
      EXPECT_NEAR(fixed.at("step_time_s").get<double>(), fix.at("time_s").get<double>(),
                  1e-6 * fix.at("time_s").get<double>());
    }
  }
  EXPECT_GT(plan_changes, 0);
  // The commands say the same.
  const Finished top = run({"top", "out.h5"});
  EXPECT_EQ(top.code, 0) << top.err;
  for (const std::string& said : {swept.out, top.out}) {
    for (const json& miss : list) {
      EXPECT_TRUE(contains(said, miss.at("problem"))) << said;
      for (const json& fix : miss.at("fixes")) EXPECT_TRUE(contains(said, fix.at("change"))) << said;
    }
  }
  // Machine-readable output has rows only, and no near misses.
  EXPECT_EQ(run({"top", "out.h5", "--format", "json"}).out, "[]\n");
}

TEST_F(NearMissesTest, NothingIsShownWhereAPointIsFeasible) {
  const Finished swept = sweep(kSmallStudy, "80");
  EXPECT_FALSE(contains(swept.out, "nearest misses"));
  EXPECT_TRUE(misses().empty());
  EXPECT_FALSE(contains(run({"top", "out.h5"}).out, "nearest misses"));
  // A condition that only infeasible points meet has misses of its own.
  const std::string said = run({"top", "out.h5", "--where", "memory_peak_bytes > 90e9"}).out;
  EXPECT_TRUE(contains(said, "nearest misses")) << said;
  EXPECT_TRUE(contains(said, "missing on stage")) << said;
}

TEST_F(NearMissesTest, RulesOtherThanMemoryAreNamed) {
  const Finished constrained = sweep(std::string(kSmallStudy) + "constraints: [\"tp == 3\"]\n", "80");
  EXPECT_TRUE(contains(constrained.out, "a constraint of the study rejects it")) << constrained.out;
  EXPECT_TRUE(contains(constrained.out, "and without the constraint")) << constrained.out;
  const json list = misses();
  ASSERT_EQ(list.size(), 1U);
  EXPECT_TRUE(list.at(0).at("missing_bytes").is_null());
}

TEST_F(NearMissesTest, ServingStudiesToo) {
  write("study.yaml", kInferenceStudy);
  auto words = with_memory("sweep", "2");
  words.insert(words.end(), {"-o", "out.h5"});
  const Finished swept = run(words);
  ASSERT_EQ(swept.code, 0) << swept.err;
  EXPECT_TRUE(contains(swept.out, "nearest misses")) << swept.out;
  EXPECT_TRUE(contains(swept.out, "missing on stage 0")) << swept.out;
  EXPECT_TRUE(contains(swept.out, "devices with ")) << swept.out;
}

}  // namespace
}  // namespace shardscape::cli
