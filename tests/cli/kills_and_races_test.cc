// Does a sweep that is killed anywhere resume to the same file, and do sweeps that start at once on one
// output leave one whole file? SHARDSCAPE_TEST_SCALE=10 makes both ten times as long (see scripts/torture).
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <random>
#include <set>
#include <thread>

#include "tests/cli/program_under_test.h"
#include "tests/support/datasets_equal.h"
#include "tests/support/paths.h"

namespace shardscape::cli {
namespace {

int scale() {
  const char* const text = std::getenv("SHARDSCAPE_TEST_SCALE");
  return text == nullptr ? 1 : std::max(1, std::atoi(text));
}

class KillsAndRacesTest : public ProgramTest {
 protected:
  std::vector<std::string> sweep(const std::string& output, const std::vector<std::string>& more) const {
    std::vector<std::string> words = study_;
    words.insert(words.end(), {"-o", output, "--progress", "none"});
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  void expect_whole(const std::string& output, const std::string& reference) const {
    std::string difference;
    EXPECT_TRUE(test::datasets_equal(work() / output, work() / reference, &difference))
        << output << ": " << difference;
    EXPECT_FALSE(fs::exists(work() / (output + ".parts"))) << output;
  }

  std::vector<std::string> study_;
};

TEST_F(KillsAndRacesTest, KilledAnywhereItResumesToTheSameFile) {
  using Clock = std::chrono::steady_clock;
  const int kills = 20 * scale();
  study_ = {"sweep", test::source_dir() + "/sweep/studies/million.yaml", "--limit", "20000"};
  const Clock::time_point begin = Clock::now();
  ASSERT_EQ(run(sweep("whole.h5", {})).code, 0);
  const std::chrono::duration<double> whole = Clock::now() - begin;
  std::mt19937 random(12);
  std::uniform_real_distribution<double> moment(0, 1.1 * whole.count());
  int killed = 0, finished = 0;
  for (int i = 0; killed < kills; ++i) {
    ASSERT_LT(i, 20 * kills) << "it ends before it can be killed";
    const std::string output = "killed.h5";
    Running running = start(sweep(output, {"--resume"}));
    const Clock::time_point end = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                                     std::chrono::duration<double>(moment(random)));
    while (Clock::now() < end && !running.ended())
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    running.send(SIGKILL);
    const Finished last = running.wait();
    if (last.signal == SIGKILL) {
      ++killed;
      continue;
    }
    ASSERT_EQ(last.code, 0) << last.err;
    expect_whole(output, "whole.h5");
    fs::remove(work() / output);
    ++finished;
  }
  const Finished last = run(sweep("killed.h5", {"--resume"}));
  EXPECT_EQ(last.code, 0) << last.err;
  expect_whole("killed.h5", "whole.h5");
  const auto left = left_behind();
  EXPECT_EQ(left, (std::vector<std::string>{"killed.h5", "whole.h5"}));
}

TEST_F(KillsAndRacesTest, OfTwelveAtOnceOneWins) {
  constexpr int kProcesses = 12;
  const int rounds = 5 * scale();
  write("study.yaml", kSmallStudy);
  study_ = {"sweep", "study.yaml", "--limit", "64", "--threads", "1"};
  ASSERT_EQ(run(sweep("whole.h5", {})).code, 0);
  for (int round = 0; round < rounds; ++round) {
    // All plain; or a mixture of plain, resuming and forced ones.
    const std::string output = "out-" + std::to_string(round) + ".h5";
    std::vector<Running> running;
    for (int i = 0; i < kProcesses; ++i) {
      const int kind = round % 2 == 0 ? 0 : i % 3;
      const std::vector<std::string> options[] = {{}, {"--resume"}, {"--force"}};
      running.push_back(start(sweep(output, options[kind])));
    }
    int winners = 0;
    for (Running& one : running) {
      const Finished finished = one.wait();
      if (finished.code == 0) {
        ++winners;
        continue;
      }
      EXPECT_TRUE(finished.code == 1 || finished.code == 2) << finished.signal << finished.err;
      const bool told = contains(finished.err, "is in use") || contains(finished.err, ": exists; --force") ||
                        contains(finished.err, "holds an unfinished sweep") ||
                        contains(finished.err, "already holds a sweep");
      EXPECT_TRUE(told) << finished.err;
    }
    if (round % 2 == 0) {
      EXPECT_EQ(winners, 1) << output;
    }
    EXPECT_GE(winners, 1) << output;
    expect_whole(output, "whole.h5");
  }
  std::set<std::string> expected = {"study.yaml", "whole.h5"};
  for (int round = 0; round < rounds; ++round) expected.insert("out-" + std::to_string(round) + ".h5");
  const auto left = left_behind();
  EXPECT_EQ(std::set<std::string>(left.begin(), left.end()), expected);
}

}  // namespace
}  // namespace shardscape::cli
