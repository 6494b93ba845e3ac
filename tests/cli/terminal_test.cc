// Does the program fit the terminal it prints on, and print in full width where there is none?
#include <pty.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <sstream>

#include "engine/base/safe_text.h"
#include "tests/cli/program_under_test.h"

namespace shardscape::cli {
namespace {

class TerminalTest : public ProgramTest {
 protected:
  /// Returns what the program prints on a terminal that is `columns` wide. Once it has printed `until`, where that is
  /// not empty, it is interrupted.
  std::string on_terminal(const std::vector<std::string>& arguments, unsigned short columns,
                          const char* no_color = "1", int code = 0, std::string until = "") {
    std::vector<std::string> words = {test::program()};
    words.insert(words.end(), arguments.begin(), arguments.end());
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    const std::string folder = work().string();
    winsize size{};
    size.ws_row = 40;
    size.ws_col = columns;
    int terminal = -1;
    const pid_t pid = forkpty(&terminal, nullptr, nullptr, &size);
    if (pid == 0) {
      unsetenv("COLUMNS");
      setenv("TERM", "xterm", 1);
      no_color != nullptr ? setenv("NO_COLOR", no_color, 1) : unsetenv("NO_COLOR");
      if (chdir(folder.c_str()) != 0) _exit(125);
      execv(argv[0], argv.data());
      _exit(126);
    }
    std::string text;
    char buffer[4096];
    for (ssize_t got = 0; (got = read(terminal, buffer, sizeof buffer)) > 0;) {
      text.append(buffer, static_cast<std::size_t>(got));
      if (until.empty() || !contains(text, until)) continue;
      kill(pid, SIGINT);
      until.clear();
    }
    int status = 0;
    waitpid(pid, &status, 0);
    close(terminal);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == code) << text;
    std::erase(text, '\r');
    return text;
  }

  static std::size_t widest(const std::string& text) {
    std::size_t width = 0;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) width = std::max(width, character_count(line));
    return width;
  }
};

/// The text from the line that begins with `start` on.
std::string from_line(const std::string& text, const std::string& start) {
  const std::size_t at = ("\n" + text).find("\n" + start);
  return at == std::string::npos ? "" : text.substr(at);
}

TEST_F(TerminalTest, TablesFitSixtyColumns) {
  write("study.yaml", kSmallStudy);
  ASSERT_EQ(run({"sweep", "study.yaml", "-o", "out.h5", "--progress", "none"}).code, 0);
  const std::string narrow = from_line(on_terminal({"top", "out.h5", "-n", "3"}, 60), "point");
  EXPECT_LE(widest(narrow), 60U) << narrow;
  EXPECT_TRUE(contains(narrow, "memory")) << narrow;  // nothing is left out
  EXPECT_GE(std::ranges::count(narrow, '\n'), 2 * 4 + 1) << narrow;
  // Where nobody looks, or there is room, it is one table.
  // (Executed rows end with what that took, which differs from run to run.)
  const std::string piped = from_line(run({"top", "out.h5", "-n", "3", "--confirm", "0"}).out, "point");
  EXPECT_GT(widest(piped), 60U);
  // The heading, three points, and below them their error, what is assumed, and which are as good as the first.
  EXPECT_EQ(std::ranges::count(piped, '\n'), 7) << piped;
  EXPECT_EQ(from_line(on_terminal({"top", "out.h5", "-n", "3", "--confirm", "0"}, 300), "point"), piped);
}

TEST_F(TerminalTest, LongTextsOfReportsWrap) {
  write("study.yaml", kSmallStudy);
  const std::string text = on_terminal({"simulate", "study.yaml", "--point", "tp=4,dp=2"}, 60);
  EXPECT_LE(widest(text.substr(0, text.find("verdict"))), 60U) << text;
  EXPECT_TRUE(contains(text, "microbatches")) << text;
}

TEST_F(TerminalTest, ColoursAreForTerminalsThatWantThem) {
  write("study.yaml", kSmallStudy);
  ASSERT_EQ(run({"sweep", "study.yaml", "-o", "out.h5", "--progress", "none"}).code, 0);
  const std::vector<std::string> top = {"top", "out.h5", "-n", "1", "--confirm", "0"};
  const std::string coloured = on_terminal(top, 300, nullptr), plain = on_terminal(top, 300);
  EXPECT_TRUE(contains(coloured, "\x1b[1mpoint")) << coloured;
  EXPECT_FALSE(contains(plain, "\x1b")) << plain;
  EXPECT_EQ(on_terminal(top, 300, ""), coloured);  // an empty NO_COLOR says nothing (no-color.org)
  std::string stripped = coloured;
  for (const std::string mark : {"\x1b[1m", "\x1b[0m"})
    for (std::size_t at = 0; (at = stripped.find(mark)) != std::string::npos;)
      stripped.erase(at, mark.size());
  EXPECT_EQ(stripped, plain);
  EXPECT_FALSE(contains(run(top).out, "\x1b"));
  EXPECT_TRUE(contains(on_terminal({"top", "none.h5"}, 300, nullptr, 1), "\x1b[31mshardscape: ")) << plain;
}

// How far a sweep is stands in eighty columns; what leaves first is the plan. The sweep goes on until it has been said,
// however fast the machine is.
TEST_F(TerminalTest, ProgressFitsEightyColumns) {
  const std::vector<std::string> words = {
      "sweep", test::source_dir() + "/sweep/studies/million.yaml", "-o", "out.h5", "--confirm", "0"};
  const std::string text = on_terminal(words, 80, "1", 130, ", best ");
  EXPECT_TRUE(contains(text, " points (") && contains(text, "/s, ") && contains(text, ", ETA ")) << text;
  EXPECT_TRUE(contains(text, "interrupted")) << text;
  EXPECT_FALSE(contains(text, "best plan tp=")) << text;
}

}  // namespace
}  // namespace shardscape::cli
