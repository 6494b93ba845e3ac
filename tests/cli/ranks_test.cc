// Is a sweep over MPI ranks the sweep of one process, whoever is killed on the way, and do ranks that mean
// different sweeps say so?
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <sstream>
#include <thread>

#include "results_schema/reading/reader.h"
#include "tests/cli/program_under_test.h"
#include "tests/support/datasets_equal.h"
#include "tests/support/paths.h"

namespace shardscape::cli {
namespace {

using Words = std::vector<std::string>;

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

/// Whether the shell would find this program.
bool is_installed(const std::string& name) {
  const char* const path = std::getenv("PATH");
  std::istringstream folders(path == nullptr ? "" : path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    if (access((folder + "/" + name).c_str(), X_OK) == 0) return true;
  }
  return false;
}

class RanksTest : public ProgramTest {
 protected:
  void SetUp() override {
    if (!is_installed("mpirun")) GTEST_SKIP() << "no mpirun here (scripts/install-deps installs it)";
    ASSERT_TRUE(fs::exists(fs::path(test::program()).parent_path() / "shardscape_mpi.so"))
        << "mpirun is there, but the program was built without MPI: configure it again";
  }

  /// Words that start the program as so many ranks; more may follow after ":".
  static Words mpirun(int ranks, const Words& arguments) {
    Words words = {"mpirun", "--allow-run-as-root", "--oversubscribe",
                   "-n",     std::to_string(ranks), test::program()};
    words.insert(words.end(), arguments.begin(), arguments.end());
    return words;
  }
  /// Two ranks that were given different arguments.
  Finished run_two(const Words& first, const Words& second) {
    Words words = mpirun(1, first);
    words.insert(words.end(), {":", "-n", "1", test::program()});
    words.insert(words.end(), second.begin(), second.end());
    return start_words(words).wait();
  }
  static Words sweep_of(const Words& study, const std::string& output, const Words& more = {}) {
    Words words = {"sweep"};
    words.insert(words.end(), study.begin(), study.end());
    words.insert(words.end(), {"-o", output});
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  void expect_same(const std::string& output, const std::string& reference) const {
    std::string difference;
    EXPECT_TRUE(test::datasets_equal(work() / output, work() / reference, &difference))
        << output << ": " << difference;
    EXPECT_FALSE(fs::exists(work() / (output + ".parts"))) << output;
  }
  void expect_one_error(const Finished& finished, const std::string& text) const {
    EXPECT_EQ(finished.code, 2) << finished.err;
    EXPECT_EQ(count_of(finished.err, text), 1U) << text << " in: " << finished.err;
    EXPECT_EQ(count_of(finished.err, "nothing was written or changed"), 1U) << finished.err;
    EXPECT_FALSE(fs::exists(work() / "out.h5"));
    EXPECT_FALSE(fs::exists(work() / "out.h5.parts"));
  }

  /// A sweep of ten CPU-seconds and more: two jobs that are ended by force after a second or two do not finish it.
  static Words long_study() {
    return {test::source_dir() + "/sweep/studies/million.yaml", "--sample", "2500000"};
  }
  [[nodiscard]] fs::path note(int rank) const {
    return work() / "out.h5.parts" / ("rank-00000" + std::to_string(rank));
  }
  /// The process that is this rank, once it has taken blocks and so many segments are sealed.
  std::optional<pid_t> process_of(int rank, const Running& job, int segments) const {
    while (!job.ended()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      const std::string text = read_file(note(rank));
      const std::size_t at = text.find(", process ");
      if (at == std::string::npos || count_of(text, "\n") < 2 || sealed_segments("out.h5") < segments)
        continue;
      return std::atoi(text.c_str() + at + std::string(", process ").size());
    }
    return std::nullopt;
  }
  /// The sweep goes on with another number of ranks each time, at last with one process by itself.
  void expect_killed_ranks_lose_nothing() {
    const std::vector<std::pair<int, int>> kills = {{3, 1}, {2, 0}};  // ranks, the one that is killed
    std::string named;
    for (const auto& [ranks, victim] : kills) {
      Running job =
          start_words(mpirun(ranks, sweep_of(long_study(), "out.h5", {"--resume", "--threads", "1"})));
      const int before = sealed_segments("out.h5");
      const auto process = process_of(victim, job, before + 2);
      ASSERT_TRUE(process) << "it ended before it could be killed: " << job.wait().err;
      kill(*process, SIGKILL);
      const int kept = sealed_segments("out.h5");
      const Finished finished = job.wait();
      EXPECT_NE(finished.code, 0);
      EXPECT_TRUE(named.empty() || contains(finished.err, named)) << named << " in: " << finished.err;
      EXPECT_GE(sealed_segments("out.h5"), kept) << "sealed segments are lost";
      named = "rank " + std::to_string(victim) + " of " + std::to_string(ranks);
      // By rank 0, if it gets as far in the second that mpirun leaves it, or by mpirun.
      EXPECT_TRUE(contains(finished.err, "rank " + std::to_string(victim))) << finished.err;
      named += " (";
      EXPECT_TRUE(fs::exists(note(victim))) << finished.err;
    }
    const Finished last = run(sweep_of(long_study(), "out.h5", {"--resume"}));
    EXPECT_EQ(last.code, 0) << last.err;
    EXPECT_TRUE(contains(last.err, named) && contains(last.err, "did not end in order")) << last.err;
    expect_same("out.h5", "whole.h5");
  }
  /// One is asked to stop, as by a Slurm that sends it a signal: all finish their blocks, and rank 0 says so.
  void expect_interrupted_it_goes_on() {
    Running job = start_words(mpirun(2, sweep_of(long_study(), "out.h5", {"--threads", "1"})));
    const auto process = process_of(1, job, 2);
    ASSERT_TRUE(process) << job.wait().err;
    kill(*process, SIGTERM);
    const Finished finished = job.wait();
    EXPECT_EQ(finished.code, 130) << finished.err;
    EXPECT_EQ(count_of(finished.err, "points are safe; continue with"), 1U) << finished.err;
    EXPECT_FALSE(fs::exists(note(0)) || fs::exists(note(1)));
    const Finished last = start_words(mpirun(3, sweep_of(long_study(), "out.h5", {"--resume"}))).wait();
    EXPECT_EQ(last.code, 0) << last.err;
    EXPECT_FALSE(contains(last.err, "did not end in order")) << last.err;
    expect_same("out.h5", "whole.h5");
  }
  /// The process in our folder that Open MPI started as this rank.
  std::optional<pid_t> process_started_as(int rank, const Running& job) const {
    const std::string wanted = "OMPI_COMM_WORLD_RANK=" + std::to_string(rank) + '\0';
    for (; !job.ended(); std::this_thread::sleep_for(std::chrono::milliseconds(20))) {
      std::error_code error;
      for (fs::directory_iterator it("/proc", error), end; !error && it != end; it.increment(error)) {
        const std::string name = it->path().filename().string();
        if (name.find_first_not_of("0123456789") != std::string::npos) continue;
        std::error_code gone;
        if (fs::read_symlink(it->path() / "cwd", gone) != fs::canonical(work()) || gone) continue;
        if (contains(read_file(it->path() / "environ"), wanted)) return std::atoi(name.c_str());
      }
    }
    return std::nullopt;
  }
};

TEST_F(RanksTest, TheSameFileForAnyNumberOfRanks) {
  const Words study = {test::source_dir() + "/sweep/studies/million.yaml", "--limit", "20000"};
  ASSERT_EQ(run(sweep_of(study, "whole.h5")).code, 0);
  for (const int ranks : {1, 2, 4}) {
    const std::string output = std::to_string(ranks) + ".h5";
    const Finished finished = start_words(mpirun(ranks, sweep_of(study, output, {"--stats"}))).wait();
    EXPECT_EQ(finished.code, 0) << finished.err;
    EXPECT_EQ(count_of(finished.out, "results in " + output), 1U) << finished.out;
    EXPECT_TRUE(contains(finished.out, "20,000 points")) << finished.out;
    EXPECT_EQ(contains(finished.err, "  ranks "), ranks > 1) << finished.err;
    expect_same(output, "whole.h5");
  }
}

// Ranks do not know what the others have found: each drops what it can.
TEST_F(RanksTest, TheSameRowsAreStoredForAnyNumberOfRanks) {
  for (const char* rows : {"feasible", "top 100", "pareto"}) {
    const Words study = {test::source_dir() + "/sweep/studies/million.yaml", "--limit", "20000", "--set",
                         std::string("store.rows=") + rows};
    ASSERT_EQ(run(sweep_of(study, "whole.h5", {"--force"})).code, 0);
    ASSERT_EQ(start_words(mpirun(2, sweep_of(study, "two.h5", {"--force"}))).wait().code, 0);
    expect_same("two.h5", "whole.h5");
  }
}

/// Over TCP between machines Open MPI may have no windows; the setting takes them away on one machine. Another
/// MPI does not know it.
TEST_F(RanksTest, TheSameFileWhereTheNetworkHasNoWindows) {
  const Words study = {test::source_dir() + "/sweep/studies/million.yaml", "--limit", "20000"};
  ASSERT_EQ(run(sweep_of(study, "whole.h5")).code, 0);
  Words words = {"/usr/bin/env", "OMPI_MCA_osc=^sm,rdma,ucx,pt2pt,monitoring"};
  for (const std::string& word : mpirun(3, sweep_of(study, "out.h5"))) words.push_back(word);
  const Finished finished = start_words(words).wait();
  EXPECT_EQ(finished.code, 0) << finished.err;
  expect_same("out.h5", "whole.h5");
}

TEST_F(RanksTest, FaultsAndShardsAndFewBlocks) {
  write("faults.yaml", std::string(kSmallStudy) +
                           "faults: {kind: soft_link, samples: 5, derate: {distribution: normal, mean: 0.5, "
                           "std: 0.1}, seed: 1}\n");
  for (const Words& more : {Words{}, Words{"--shard", "2/3"}, Words{"--limit", "3"}}) {
    Words study = {"faults.yaml"};
    study.insert(study.end(), more.begin(), more.end());
    ASSERT_EQ(run(sweep_of(study, "whole.h5", {"--force"})).code, 0);
    const Finished finished = start_words(mpirun(3, sweep_of(study, "out.h5", {"--force"}))).wait();
    EXPECT_EQ(finished.code, 0) << finished.err;
    expect_same("out.h5", "whole.h5");
    EXPECT_EQ(run({"verify", "out.h5"}).code, 0);
  }
}

/// Each point stops after as many samples as its own interval asks for, whoever takes it.
TEST_F(RanksTest, ATargetOfFaultsIsMetAlikeOnAnyNumberOfRanks) {
  write("faults.yaml",
        std::string(kSmallStudy) +
            "faults: {kind: soft_link, samples: 60, target_ci: 5%, derate: {distribution: normal, "
            "mean: 0.5, std: 0.1}, seed: 1}\n");
  ASSERT_EQ(run(sweep_of({"faults.yaml"}, "whole.h5")).code, 0);
  for (const int ranks : {1, 2, 4}) {
    const std::string output = std::to_string(ranks) + ".h5";
    const Finished finished = start_words(mpirun(ranks, sweep_of({"faults.yaml"}, output))).wait();
    EXPECT_EQ(finished.code, 0) << finished.err;
    expect_same(output, "whole.h5");
  }
}

/// But the line that says how long it took.
std::string without_first_line(const std::string& text) {
  return text.substr(std::min(text.size(), text.find('\n')));
}

TEST_F(RanksTest, ASearchIsTheSameForAnyNumberOfRanksAndThreads) {
  write("study.yaml", std::string(kSmallStudy) +
                          "hardware:\n  device.hbm.bandwidth: [\"1500 GB/s\", \"2039 GB/s\"]\n"
                          "  device.hbm.capacity: [\"40 GiB\", \"80 GiB\"]\n");
  const auto search_of = [](const std::string& output, const Words& more) {
    Words words = {"search", "study.yaml", "-o", output, "--progress", "none", "--confirm", "0"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  };
  for (const Words& goal : {Words{"-n", "5"}, Words{"--pareto", "step_time_s,memory_peak_bytes"}}) {
    const auto with = [&](const char* threads) {
      Words more = {"--force", "--threads", threads};
      more.insert(more.end(), goal.begin(), goal.end());
      return more;
    };
    const Finished whole = run(search_of("whole.h5", with("1")));
    ASSERT_EQ(whole.code, 0) << whole.err;
    ASSERT_TRUE(contains(whole.out, "exact: no point that was not visited belongs here")) << whole.out;
    const Finished threads = run(search_of("threads.h5", with("3")));
    EXPECT_EQ(without_first_line(threads.out), without_first_line(whole.out));
    expect_same("threads.h5", "whole.h5");
    for (const int ranks : {1, 2, 4}) {
      const Finished finished = start_words(mpirun(ranks, search_of("out.h5", with("2")))).wait();
      EXPECT_EQ(finished.code, 0) << finished.err;
      EXPECT_EQ(without_first_line(finished.out), without_first_line(whole.out));
      expect_same("out.h5", "whole.h5");
    }
  }
}

/// What executes best is found by all ranks together, asked for alone or beside prices.
TEST_F(RanksTest, ExecutedStepsAreTheSameForAnyNumberOfRanks) {
  write("study.yaml", kSmallStudy);
  const Words few = {"--set",      "space.rank_order=[tp-cp-dp-pp]",
                     "--set",      "space.microbatch_size=[1]",
                     "-n",         "2",
                     "--progress", "none"};
  const auto search_of = [&](const Words& more) {
    Words words = {"search", "study.yaml"};
    words.insert(words.end(), few.begin(), few.end());
    words.insert(words.end(), more.begin(), more.end());
    return words;
  };
  const Words executed = {"--mode", "flattened", "-o", "out.h5", "--force"};
  const Finished alone = run(search_of(executed));
  ASSERT_EQ(alone.code, 0) << alone.err;
  const auto said = [](const std::string& out) {  // but what it took
    const std::string text = out.substr(std::min(out.size(), out.find("executed: point")));
    return text.substr(0, text.find(" of CPU"));
  };
  const auto of_all = [&](const std::string& out) {
    const std::string text = said(out);
    return text.substr(0, text.rfind(", "));
  };
  const Finished asked = run(search_of({"--confirm", "2"}));
  EXPECT_TRUE(contains(asked.out, " is the best of all")) << asked.out;
  for (const int ranks : {2, 3}) {
    const Finished finished = start_words(mpirun(ranks, search_of(executed))).wait();
    EXPECT_EQ(finished.code, 0) << finished.err;
    EXPECT_EQ(without_first_line(finished.out), without_first_line(alone.out));
    const Finished beside = start_words(mpirun(ranks, search_of({"--confirm", "2"}))).wait();
    EXPECT_EQ(beside.code, 0) << beside.err;
    EXPECT_EQ(of_all(beside.out), of_all(asked.out));
  }
}

/// A budget of points is that of all ranks: a little may be left with those that find nothing more to visit.
TEST_F(RanksTest, ABudgetOfPointsIsSharedByTheRanks) {
  for (const int ranks : {1, 2, 4}) {
    const Finished finished =
        start_words(mpirun(ranks, {"search", test::source_dir() + "/sweep/studies/million.yaml", "-n", "3000",
                                   "--budget", "9000 points", "-o", "out.h5", "--force", "--threads", "1"}))
            .wait();
    ASSERT_EQ(finished.code, 0) << finished.err;
    EXPECT_TRUE(contains(finished.out, "stopped: ")) << finished.out;
    const std::uint64_t visited = results::ResultReader(work() / "out.h5").row_count();
    EXPECT_GT(visited, 8500U) << ranks;
    EXPECT_LT(visited, 9100U) << ranks;  // points of one region are visited together
  }
}

TEST_F(RanksTest, DifferentSearchesAreOneError) {
  write("a.yaml", kSmallStudy);
  const Words own = {"search", "a.yaml", "-o", "out.h5"};
  const auto with = [&](const Words& more) {
    Words words = own;
    words.insert(words.end(), more.begin(), more.end());
    return words;
  };
  expect_one_error(run_two(own, with({"-n", "3"})), "--count is 3, on rank 0 10");
  expect_one_error(run_two(own, with({"--set", "workload.global_batch=64"})),
                   "the study with its settings (--set) is not what rank 0 reads");
  expect_one_error(run_two(with({"--within", "many"}), own), "--within: 'many' is not a share");
}

/// Nothing bounds the memory alone: the ranks share the sweep that takes the place of the search, and the file is that
/// of one.
TEST_F(RanksTest, ASearchWithoutBoundsIsSweptByAllRanks) {
  write("study.yaml", kSmallStudy);
  const auto search_of = [](const std::string& output) {
    return Words{"search", "study.yaml", "-o",
                 output,   "--force",    "--confirm",
                 "0",      "--set",      "objectives=[memory_peak_bytes]"};
  };
  const Finished alone = run(search_of("whole.h5"));
  ASSERT_EQ(alone.code, 0) << alone.err;
  for (const int ranks : {1, 2, 4}) {
    const Finished finished = start_words(mpirun(ranks, search_of("out.h5"))).wait();
    EXPECT_EQ(finished.code, 0) << finished.err;
    EXPECT_EQ(count_of(finished.err, "every point is evaluated, all "), 1U) << finished.err;
    EXPECT_FALSE(contains(finished.err, "by rank 0 alone")) << finished.err;
    EXPECT_EQ(finished.out, alone.out);
    expect_same("out.h5", "whole.h5");
    EXPECT_FALSE(fs::exists(work() / "out.h5.parts"));
  }
}

TEST_F(RanksTest, AKilledRankOfASearchIsNamed) {
  Running job = start_words(mpirun(
      2, {"search", test::source_dir() + "/sweep/studies/all-axes.yaml", "-o", "out.h5", "--threads", "1"}));
  const auto process = process_started_as(1, job);
  ASSERT_TRUE(process) << job.wait().err;
  std::this_thread::sleep_for(std::chrono::seconds(1));
  kill(*process, SIGKILL);
  const Finished finished = job.wait();
  EXPECT_NE(finished.code, 0);
  EXPECT_TRUE(contains(finished.err, "rank 1")) << finished.err;
  EXPECT_FALSE(fs::exists(work() / "out.h5"));
}

TEST_F(RanksTest, ValidationSaysTheSameOnAnyNumberOfRanks) {
  const std::string table = test::source_dir() + "/sweep/published/megatron-a100.yaml";
  for (const Words& how : {Words{"validate", table, "--rows", "--predictions", "out.csv", "--force"},
                           Words{"validate", table, "--json"}, Words{"validate", "--worst", "3"}}) {
    const Finished alone = run(how);
    ASSERT_EQ(alone.code, 0) << alone.err;
    const std::string predictions = read_file(work() / "out.csv");
    for (const int ranks : {1, 2, 4}) {
      const Finished finished = start_words(mpirun(ranks, how)).wait();
      EXPECT_EQ(finished.code, 0) << finished.err;
      EXPECT_EQ(finished.out, alone.out) << ranks;
      EXPECT_EQ(read_file(work() / "out.csv"), predictions) << ranks;
    }
  }
}

/// A row that can't be predicted is refused by the same words, a table that is another on one rank by one error.
TEST_F(RanksTest, ValidationRefusesAlike) {
  std::string text = read_file(test::source_dir() + "/sweep/published/megatron-a100.yaml");
  const auto edited = [&](const std::string& from, const std::string& to) {
    std::string other = text;
    const std::size_t at = other.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return other.replace(at, from.size(), to);
  };
  write("a.yaml", text);
  fs::create_directory(work() / "elsewhere");
  write("elsewhere/a.yaml", text + "# changed\n");
  const Finished finished = run_two({"validate", "a.yaml"}, {"validate", "elsewhere/a.yaml"});
  EXPECT_EQ(finished.code, 2) << finished.err;
  EXPECT_EQ(count_of(finished.err, "all ranks need the same files, program and options"), 1U) << finished.err;
  fs::create_directories(work() / "mine/models");
  fs::copy(test::source_dir() + "/models/gpt-175b.yaml", work() / "mine/models");
  std::ofstream(work() / "mine/models/gpt-175b.yaml", std::ios::app) << "# changed\n";
  expect_one_error(run_two({"validate", "a.yaml"}, {"validate", "a.yaml", "--presets", "mine"}),
                   "the model preset gpt-175b is not what rank 0 reads");
  write("bad.yaml", edited("model: gpt-175b", "model: gpt-176b"));
  const Finished alone = run({"validate", "bad.yaml"});
  EXPECT_NE(alone.code, 0);
  const Finished shared = start_words(mpirun(3, {"validate", "bad.yaml"})).wait();
  EXPECT_EQ(shared.out, alone.out);
  EXPECT_EQ(count_of(shared.err, "gpt-176b"), count_of(alone.err, "gpt-176b")) << shared.err;
}

TEST_F(RanksTest, ProgressIsThatOfAll) {
  write("study.yaml", kSmallStudy);
  const Finished finished =
      start_words(mpirun(2, sweep_of({"study.yaml"}, "out.h5", {"--progress", "json"}))).wait();
  ASSERT_EQ(finished.code, 0) << finished.err;
  std::istringstream lines(finished.out);
  nlohmann::json last;
  for (std::string line; std::getline(lines, line);) last = nlohmann::json::parse(line);
  EXPECT_EQ(last.at("event"), "done");
  EXPECT_EQ(count_of(finished.out, "\"done\""), 1U);
  const Finished again = start_words(mpirun(2, sweep_of({"study.yaml"}, "out.h5", {"--resume"}))).wait();
  EXPECT_EQ(again.code, 0);
  EXPECT_EQ(count_of(again.err, "is complete already"), 1U) << again.err;
}

/// The sweep without any interruption, ten CPU-seconds, is made once for both parts.
TEST_F(RanksTest, AKilledRankLosesNoSealedSegmentAndInterruptedItGoesOn) {
  ASSERT_EQ(run(sweep_of(long_study(), "whole.h5")).code, 0);
  expect_killed_ranks_lose_nothing();
  if (HasFatalFailure()) return;
  fs::remove(work() / "out.h5");
  expect_interrupted_it_goes_on();
}

TEST_F(RanksTest, DifferentSweepsAreOneError) {
  write("a.yaml", kSmallStudy);
  std::string other = kSmallStudy;
  other.replace(other.find("microbatch_size: [1, 2, 4]"), 26, "microbatch_size: [1, 2, 8]");
  fs::create_directory(work() / "elsewhere");
  write("elsewhere/a.yaml", other);
  const Words own = sweep_of({"a.yaml"}, "out.h5");
  expect_one_error(run_two(own, sweep_of({"elsewhere/a.yaml"}, "out.h5")), "rank 1 of 2 (");
  expect_one_error(run_two(own, sweep_of({"elsewhere/a.yaml"}, "out.h5")), "is not what rank 0 reads");
  expect_one_error(run_two(own, sweep_of({"a.yaml"}, "out.h5", {"--set", "workload.global_batch=64"})),
                   "the study with its settings (--set) is not what rank 0 reads");
  expect_one_error(run_two(own, sweep_of({"a.yaml"}, "out.h5", {"--limit", "100"})),
                   "the choice of points is 100 ");
  expect_one_error(run_two(own, sweep_of({"a.yaml"}, "b.h5")), "the output is b.h5, on rank 0 out.h5");
  expect_one_error(run_two(own, sweep_of({"a.yaml"}, "out.h5", {"--reference"})), "--reference is given");
}

TEST_F(RanksTest, DifferentPresetsAreOneError) {
  write("a.yaml", kSmallStudy);
  fs::create_directories(work() / "mine/models");
  fs::copy(test::source_dir() + "/models/llama3.1-8b.yaml", work() / "mine/models");
  std::ofstream(work() / "mine/models/llama3.1-8b.yaml", std::ios::app) << "# changed\n";
  const Words own = sweep_of({"a.yaml"}, "out.h5");
  const Finished finished = run_two(own, sweep_of({"a.yaml"}, "out.h5", {"--presets", "mine"}));
  expect_one_error(finished, "llama3.1-8b.yaml is not what rank 0 reads");
}

TEST_F(RanksTest, ProblemsOfOneOrAllAreSaidOnce) {
  write("a.yaml", kSmallStudy);
  std::string bad = kSmallStudy;
  bad.replace(bad.find("llama3.1-8b"), 11, "llama3.1-9b");
  write("bad.yaml", bad);
  const Words good = sweep_of({"a.yaml"}, "out.h5"), wrong = sweep_of({"bad.yaml"}, "out.h5");
  expect_one_error(run_two(good, wrong), "llama3.1-9b");
  expect_one_error(run_two(wrong, good), "llama3.1-9b");
  expect_one_error(start_words(mpirun(3, wrong)).wait(), "llama3.1-9b");
}

TEST_F(RanksTest, AnOutputThatIsThereStays) {
  write("a.yaml", kSmallStudy);
  write("out.h5", "mine");
  const Finished finished = start_words(mpirun(2, sweep_of({"a.yaml"}, "out.h5"))).wait();
  EXPECT_EQ(finished.code, 2);
  EXPECT_EQ(count_of(finished.err, "--force replaces it"), 1U) << finished.err;
  EXPECT_EQ(read_file(work() / "out.h5"), "mine");
}

class LaunchedTest : public ProgramTest {};

/// A copy of the program that lacks its MPI module, as a build without MPI does, and tasks of srun without MPI.
TEST_F(LaunchedTest, ManyProcessesThatCannotTalkAreRefused) {
  write("a.yaml", kSmallStudy);
  const fs::path bare = work() / "shardscape";
  fs::copy_file(test::program(), bare);
  const auto start_in = [&](const std::string& variable, const fs::path& program, const Words& more) {
    Words words = {"/usr/bin/env", variable, program.string(), "sweep", "a.yaml", "-o", "out.h5"};
    words.insert(words.end(), more.begin(), more.end());
    return start_words(words).wait();
  };
  const Finished mpi = start_in("OMPI_COMM_WORLD_SIZE=4", bare, {});
  EXPECT_EQ(mpi.code, 2);
  EXPECT_TRUE(contains(mpi.err, "one of 4 processes, and this program was built without MPI")) << mpi.err;
  const Finished copies = start_in("SLURM_STEP_NUM_TASKS=3", test::program(), {});
  EXPECT_EQ(copies.code, 2);
  EXPECT_TRUE(contains(copies.err, "one of 3 processes that srun started without MPI")) << copies.err;
  EXPECT_FALSE(fs::exists(work() / "out.h5"));
  EXPECT_EQ(start_in("SLURM_STEP_NUM_TASKS=3", test::program(), {"--shard", "1/2"}).code, 0);
  EXPECT_EQ(start_in("OMPI_COMM_WORLD_SIZE=1", bare, {"--force"}).code, 0);
}

}  // namespace
}  // namespace shardscape::cli
