// Does any command ever destroy a file it was not told to replace, or leave a part of one behind?
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "tests/cli/program_under_test.h"
#include "tests/support/paths.h"

namespace shardscape::cli {
namespace {

using Words = std::vector<std::string>;

class OutputsTest : public ProgramTest {
 protected:
  struct Command {
    Words words;        ///< without the option for the output
    std::string input;  ///< a file that the command reads
    bool force = true;  ///< has --force
  };

  void SetUp() override {
    write("study.yaml", kSmallStudy);
    write("case.json",
          R"({"topology": {"dims": [{"type": "ring", "shape": [4], "bw": 100e9, "lat": 5e-7}]},)"
          R"( "patterns": [{"op": "allreduce", "algo": "ring", "groups": [[0, 1, 2, 3]], "bytes": 65536}]})");
    write(
        "runs.csv",
        "m,n,k,tile_m,tile_n,tile_k,stages,grid_size,sm_clock_hz,measured_time_s\n"
        "16384,12288,4096,,,,,,1e9,0.0080\n8192,8192,8192,,,,,,1e9,0.0054\n4096,8192,8192,,,,,,1e9,0.0027\n");
    ASSERT_EQ(run({"sweep", "study.yaml", "-o", "a.h5", "--limit", "64"}).code, 0);
  }

  /// Every command that writes a file; the output's path follows the last word.
  static std::vector<Command> commands() {
    return {
        {{"sweep", "study.yaml", "--limit", "64", "--progress", "none", "-o"}, "study.yaml"},
        {{"simulate", "study.yaml", "--point", "tp=2,pp=2,dp=2", "--timeline"}, "study.yaml"},
        {{"network", "case.json", "--timeline"}, "case.json"},
        {{"export", "a.h5", "--csv"}, "a.h5"},
        {{"report", "a.h5", "-o"}, "a.h5"},
        {{"merge", "a.h5", "-o"}, "a.h5"},
        {{"validate", "runs.csv", "--predictions"}, "runs.csv"},
        {{"calibrate", "runs.csv", "--stack", "pytorch", "--device", "a100-sxm-80gb", "--folds", "0",
          "--quiet", "--device-output", "device.yaml", "-o"},
         "runs.csv"},
    };
  }

  Finished write_to(const Command& command, const std::string& output, bool force) {
    Words words = command.words;
    words.push_back(output);
    if (force) words.emplace_back("--force");
    return run(words);
  }

  void expect_refused(const Command& command, const std::string& output, bool force,
                      const std::string& says) {
    const auto before = left_behind();
    const Finished finished = write_to(command, output, force);
    const std::string what = command.words.front() + " to " + output;
    EXPECT_EQ(finished.code, 2) << what << '\n' << finished.err;
    EXPECT_TRUE(contains(finished.err, output + ": " + says)) << what << '\n' << finished.err;
    EXPECT_EQ(left_behind(), before) << what;
  }
};

TEST_F(OutputsTest, WhatIsThereStaysWithoutForceAndInputsStayAlways) {
  write("there", "precious");
  fs::create_symlink("nowhere", work() / "dangling");
  for (const Command& command : commands()) {
    const std::string input = read_file(work() / command.input);
    expect_refused(command, "there", false, "exists");
    expect_refused(command, "dangling", false, "exists, a link to");
    expect_refused(command, command.input, true, "is an input of this very command");
    EXPECT_EQ(read_file(work() / command.input), input) << command.words.front();
  }
  EXPECT_EQ(read_file(work() / "there"), "precious");
  EXPECT_FALSE(fs::exists(work() / "nowhere"));
}

TEST_F(OutputsTest, OnlyRegularFilesAreReplaced) {
  ASSERT_EQ(mkfifo((work() / "pipe").c_str(), 0600), 0);
  fs::create_directory(work() / "folder");
  // A device of our own, where we may make one: a program that fails here must not cost the machine its own.
  const bool device = mknod((work() / "device").c_str(), S_IFCHR | 0600, makedev(1, 3)) == 0;
  if (device) fs::create_symlink("device", work() / "null");
  for (const Command& command : commands()) {
    if (device) expect_refused(command, "device", true, "is a device");
    if (device) expect_refused(command, "null", true, "is a link to a device");
    expect_refused(command, "pipe", true, "is a pipe");
    expect_refused(command, "folder", true, "is a folder");
  }
  EXPECT_EQ(fs::is_character_file(work() / "device"), device);
  EXPECT_TRUE(fs::is_fifo(work() / "pipe"));
}

TEST_F(OutputsTest, ForceReplacesTheFileBehindALink) {
  fs::create_directory(work() / "elsewhere");
  for (const Command& command : commands()) {
    std::ofstream(work() / "elsewhere" / "real") << "old";
    fs::create_symlink("elsewhere/real", work() / "link");
    const Finished finished = write_to(command, "link", true);
    EXPECT_EQ(finished.code, 0) << command.words.front() << '\n' << finished.err;
    EXPECT_TRUE(fs::is_symlink(work() / "link")) << command.words.front();
    EXPECT_NE(read_file(work() / "elsewhere" / "real"), "old") << command.words.front();
    fs::remove(work() / "link");
    EXPECT_EQ(std::distance(fs::directory_iterator(work() / "elsewhere"), fs::directory_iterator()), 1);
  }
}

TEST_F(OutputsTest, FullDisksAreAMessageAndLeaveNothing) {
  // Beyond every input, below every output; no signal ends the program.
  const auto before = left_behind();
  limit_files(100);
  for (const Command& command : commands()) {
    const Finished finished = write_to(command, "out", false);
    EXPECT_EQ(finished.code, 1) << command.words.front() << '\n' << finished.err;
    EXPECT_EQ(finished.signal, 0) << command.words.front();
    EXPECT_EQ(left_behind(), before) << command.words.front();
  }
  const Finished traces = run({"simulate", "study.yaml", "--point", "tp=2,pp=2,dp=2", "--chakra", "traces"});
  EXPECT_EQ(traces.code, 1) << traces.err;
  EXPECT_TRUE(contains(traces.err, "traces: ")) << traces.err;
  EXPECT_TRUE(contains(traces.err, "File too large")) << traces.err;
  EXPECT_EQ(left_behind(), before);
}

TEST_F(OutputsTest, TracesGoToNewFolders) {
  const Words words = {"simulate", "study.yaml", "--point", "tp=2,pp=2,dp=2", "--chakra"};
  const auto to = [&](const std::string& folder) {
    Words all = words;
    all.push_back(folder);
    return run(all);
  };
  fs::create_directory(work() / "empty");
  EXPECT_EQ(to("empty").code, 0);
  EXPECT_EQ(to("new").code, 0);
  const auto before = left_behind();
  EXPECT_EQ(to("new").code, 2);
  EXPECT_EQ(to("study.yaml").code, 2);
  EXPECT_EQ(left_behind(), before);
}

TEST_F(OutputsTest, WhatAppearsDuringASweepIsKept) {
  const Words words = long_sweep("out.h5", {"--threads", "1"});
  Running running = start(words);
  await_segment(running, "out.h5");  // it is past its own looks at the output then
  running.send(SIGSTOP);
  ASSERT_FALSE(fs::exists(work() / "out.h5"));
  write("out.h5", "theirs");
  running.send(SIGCONT);
  const Finished finished = running.wait();
  EXPECT_EQ(finished.code, 1) << finished.err;
  EXPECT_TRUE(contains(finished.err, "out.h5: has appeared during the run")) << finished.err;
  EXPECT_EQ(read_file(work() / "out.h5"), "theirs");
  fs::remove(work() / "out.h5");
  Words resume = words;
  resume.emplace_back("--resume");
  EXPECT_EQ(run(resume).code, 0);
  EXPECT_EQ(run({"verify", "out.h5"}).code, 0);
}

TEST_F(OutputsTest, NamesThatResultFilesCannotHoldAreRefused) {
  const std::pair<std::string, std::string> cases[] = {
      {"\"a\\0b\"", "study.yaml:1:8: a text can't hold the control character"},
      {"\"a\\nb\"", "study.yaml:1:8: study: must be plain text on one line"},
      {"\"a\\u202Eb\"", "study.yaml:1:8: study: must be plain text on one line"},
      {"a\xC3(b", "is no UTF-8 text"},
      {std::string(70000, 'x'), "study.yaml:1:8: study: must be at most 200 bytes long; this one has 70000"}};
  const std::string text = kSmallStudy;
  for (const auto& [title, says] : cases) {
    write("study.yaml", "study: " + title + text.substr(text.find('\n')));
    const Finished finished = run({"sweep", "study.yaml", "-o", "out.h5"});
    EXPECT_EQ(finished.code, 2) << says;
    EXPECT_TRUE(contains(finished.err, says)) << finished.err.substr(0, 500);
    EXPECT_FALSE(fs::exists(work() / "out.h5"));
  }
  write("study.yaml", "study: " + std::string(200, 'x') + text.substr(text.find('\n')));
  ASSERT_EQ(run({"sweep", "study.yaml", "-o", "out.h5"}).code, 0);
  EXPECT_EQ(run({"verify", "out.h5"}).code, 0);
}

TEST_F(OutputsTest, LeftoversOfADeletionAreClearedByTheNextCommand) {
  for (const Words& words :
       {Words{"top", "a.h5"}, Words{"verify", "a.h5"}, Words{"export", "a.h5", "--csv", "-"},
        Words{"sweep", "study.yaml", "-o", "a.h5", "--limit", "64", "--resume"}}) {
    fs::create_directory(work() / "a.h5.parts.deleting");
    std::ofstream(work() / "a.h5.parts.deleting" / "blocks-000000000000-000000000001.h5") << "rows";
    EXPECT_EQ(run(words).code, 0) << words.front();
    EXPECT_FALSE(fs::exists(work() / "a.h5.parts.deleting")) << words.front();
  }
}

TEST_F(OutputsTest, ResumeAfterTheLastRenameIsDone) {
  // A kill between the rename of the file and the removal of the folder leaves both.
  ASSERT_EQ(run({"sweep", "study.yaml", "-o", "b.h5"}).code, 0);
  const std::string whole = read_file(work() / "b.h5");
  fs::create_directory(work() / "b.h5.parts");
  const Finished finished = run({"sweep", "study.yaml", "-o", "b.h5", "--resume"});
  EXPECT_EQ(finished.code, 0) << finished.err;
  EXPECT_TRUE(contains(finished.err, "is complete already")) << finished.err;
  EXPECT_EQ(read_file(work() / "b.h5"), whole);
  EXPECT_FALSE(fs::exists(work() / "b.h5.parts"));
}

}  // namespace
}  // namespace shardscape::cli
