// Is what the README files say so? Their links and the paths they name lead somewhere, their commands run and
// print what is shown, and a reader finds the lines short.
#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "tests/cli/program_under_test.h"
#include "tests/support/paths.h"

namespace shardscape::cli {
namespace {

using Lines = std::vector<std::string>;

Lines lines_of(const std::string& text) {
  Lines lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

/// All markdown files of the source tree, as paths from its root.
Lines documents() {
  const fs::path root = test::source_dir();
  std::set<std::string> found;
  for (auto entry = fs::recursive_directory_iterator(root); entry != fs::recursive_directory_iterator();
       ++entry) {
    const std::string name = entry->path().filename().string();
    if (entry->is_directory()) {
      if (name.starts_with('.') || (entry.depth() == 0 && (name == "build" || name == "out")))
        entry.disable_recursion_pending();
    } else if (entry->path().extension() == ".md") {
      found.insert(fs::relative(entry->path(), root).generic_string());
    }
  }
  return {found.begin(), found.end()};
}

struct DocumentLine {
  std::string text;
  int number = 0;       ///< of the line in the document, from 1
  bool fenced = false;  ///< in a block of code or output, or one of its two fences
};

std::vector<DocumentLine> read_document(const std::string& document) {
  std::vector<DocumentLine> lines;
  bool fenced = false;
  for (const std::string& text : lines_of(read_file(fs::path(test::source_dir()) / document))) {
    const bool fence = text.starts_with("```");
    lines.push_back({text, static_cast<int>(lines.size()) + 1, fenced || fence});
    if (fence) fenced = !fenced;
  }
  EXPECT_FALSE(fenced) << document << ": a block without an end";
  return lines;
}

/// What a link to a heading says after '#': small letters, no punctuation, hyphens for spaces.
std::string anchor_of(const std::string& heading) {
  std::string anchor;
  for (const char c : heading) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_') {
      anchor += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    } else if (c == ' ') {
      anchor += '-';
    }
  }
  return anchor;
}

std::set<std::string> anchors_of(const std::string& document) {
  std::set<std::string> anchors;
  for (const DocumentLine& line : read_document(document)) {
    const std::size_t hashes = line.text.find_first_not_of('#');
    if (line.fenced || hashes == 0 || hashes == std::string::npos || line.text[hashes] != ' ') continue;
    EXPECT_TRUE(anchors.insert(anchor_of(line.text.substr(hashes + 1))).second)
        << document << ":" << line.number << ": a heading that stands twice";
  }
  return anchors;
}

std::string without_code(const std::string& text) {
  static const std::regex code("`[^`]*`");
  return std::regex_replace(text, code, "");
}

/// Calls `see(line number, first group)` for what `pattern` finds outside of blocks.
template <class See>
void find_all(const std::string& document, const std::regex& pattern, bool in_code, const See& see) {
  const std::vector<DocumentLine> lines = read_document(document);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (lines[i].fenced) continue;
    const std::string text = in_code ? lines[i].text : without_code(lines[i].text);
    for (std::sregex_iterator at(text.begin(), text.end(), pattern), end; at != end; ++at)
      see(lines[i].number, (*at)[1].str());
  }
}

TEST(Documents, LinksLeadSomewhere) {
  const fs::path root = fs::weakly_canonical(test::source_dir());
  std::size_t links = 0;
  for (const std::string& document : documents()) {
    find_all(document, std::regex(R"(\]\(([^)\s]+)\))"), false, [&](int number, const std::string& link) {
      if (link.starts_with("https://") || link.starts_with("http://")) return;
      ++links;
      const std::string where = document + ":" + std::to_string(number) + ": " + link;
      const std::string path = link.substr(0, link.find('#'));
      const fs::path file =
          path.empty() ? root / document : fs::weakly_canonical((root / document).parent_path() / path);
      const std::string name = fs::relative(file, root).generic_string();
      ASSERT_FALSE(name.starts_with("..")) << where << " leads out of the tree";
      ASSERT_TRUE(fs::exists(file)) << where << " leads nowhere";
      if (path.size() == link.size()) return;
      ASSERT_TRUE(name.ends_with(".md")) << where;
      EXPECT_TRUE(anchors_of(name).contains(link.substr(path.size() + 1))) << where << " names no heading";
    });
  }
  EXPECT_GT(links, 100U);
}

// `engine/spec/plan.h` is a path from the root, `spec/plan.h` in engine/README.md one from its folder.
TEST(Documents, PathsThatTheyNameExist) {
  const fs::path root = test::source_dir();
  const std::regex from_root(
      R"(`((engine|sweep|results_schema|tests|bench|hw_presets|models|scripts)/[A-Za-z0-9_./-]+)[^`]*`)");
  const std::regex source("`([a-z0-9_]+(/[a-z0-9_]+)*[.](h|cc))`");
  std::size_t paths = 0;
  for (const std::string& document : documents()) {
    const fs::path folder = (root / document).parent_path();
    for (const std::regex* pattern : {&from_root, &source}) {
      find_all(document, *pattern, true, [&](int number, const std::string& path) {
        ++paths;
        EXPECT_TRUE(fs::exists(root / path) || fs::exists(folder / path))
            << document << ":" << number << ": there is no " << path;
      });
    }
  }
  EXPECT_GT(paths, 50U);
}

// Tables and blocks of the reference may be longer than 120 columns, prose may not; on the front page nothing
// may. Tables of SCHEMA.md are written by a program.
TEST(Documents, LinesAreShort) {
  for (const std::string& document : documents()) {
    if (document == "results_schema/SCHEMA.md") continue;
    const std::vector<DocumentLine> lines = read_document(document);
    const bool front = document == "README.md";
    EXPECT_TRUE(!front || lines.size() <= 200) << document << " has " << lines.size() << " lines";
    for (const DocumentLine& line : lines) {
      if (!front && (line.fenced || line.text.starts_with('|'))) continue;
      EXPECT_LE(line.text.size(), 120U) << document << ":" << line.number;
    }
  }
}

struct Command {
  std::string text;  ///< for the shell
  int number = 0;    ///< its line
  Lines shown;       ///< the part of its output that the document shows
};

/// Commands `$ shardscape ...`, or `S ...`, of the blocks of a document, each going on where a line ends in a
/// backslash, with the lines below them.
std::vector<Command> commands_of(const std::string& document) {
  std::vector<Command> commands;
  bool goes_on = false, shows = false;
  for (const DocumentLine& line : read_document(document)) {
    std::string text = line.text;
    if (!line.fenced || text.starts_with("```")) {
      goes_on = shows = false;
      continue;
    }
    const bool ours = text.starts_with("$ shardscape ") || text.starts_with("S ");
    if (goes_on) {
      commands.back().text += text;
    } else if (ours) {
      commands.push_back({text.starts_with("$ ") ? text.substr(2) : text, line.number, {}});
      shows = true;
    } else if (text.starts_with("$ ")) {
      shows = false;
    } else if (shows) {
      commands.back().shown.push_back(text);
    }
    if (!goes_on && !ours) continue;
    goes_on = commands.back().text.ends_with('\\');
    if (goes_on) commands.back().text.pop_back();
  }
  return commands;
}

/// Blocks whose fence names a file, as in "```yaml study.yaml": name and content.
std::map<std::string, std::string> files_of(const std::string& document) {
  static const std::regex named("```[a-z]+ ([a-z0-9_.-]+)");
  std::map<std::string, std::string> files;
  std::string* file = nullptr;
  for (const DocumentLine& line : read_document(document)) {
    std::smatch match;
    if (std::regex_match(line.text, match, named)) {
      file = &files[match[1]];
    } else if (line.text.starts_with("```")) {
      file = nullptr;
    } else if (file != nullptr) {
      *file += line.text + '\n';
    }
  }
  return files;
}

/// A line of output without what hangs on the machine: times that the program itself took, rates, sizes of pages.
/// Bars and columns may be as wide as they like.
std::string lasting(std::string line) {
  static const std::vector<std::pair<std::regex, std::string>> passing = {
      {std::regex(R"(\bin ([0-9.,]+ (ns|us|ms|s|min|h)\b ?)+)"), "in T "},
      {std::regex(R"(([0-9.,]+ (us|ms|s|min|h) )+of CPU)"), "T of CPU"},
      {std::regex(R"(takes about .*)"), "takes about"},
      {std::regex(R"([0-9.,]+[kM]? points/s)"), "P points/s"},
      {std::regex(R"(\([0-9.]+ [KM]iB\))"), "(B)"},
      {std::regex(R"([#.]{10,})"), ""},
      {std::regex(R"(\s+)"), " "},
      {std::regex(R"(^ | $)"), ""}};
  for (const auto& [pattern, instead] : passing) line = std::regex_replace(line, pattern, instead);
  return line;
}

/// Studies that take longer than a test should: a sample of their points instead, in the document that shows none of
/// their output.
constexpr const char* kDocumentOfStudies = "sweep/studies/README.md";
constexpr const char* kLargeStudies[] = {
    "llama3.1-70b-64xa100-faults", "llama3.1-70b-mapping", "gpt-175b-a100-to-b200",
    "llama3.1-405b-16k",           "technology-nodes",     "a100-variants",
    "gpt-recompute-memory"};

/// Steps to fit a stack to: the times are rough ones, for `calibrate` to have something to read.
std::string rough_measurements() {
  std::string table =
      "id,phase,model,cluster,stack,gpus,tensor_parallel,sequence_parallel,context_parallel,pipeline_"
      "parallel,"
      "data_parallel,zero_stage,recompute,schedule,virtual_stages,microbatch_size,num_microbatches,global_"
      "batch,"
      "sequence_length,prompt_tokens,output_tokens,concurrency,measured_step_time_s\n";
  for (int row = 0; row < 12; ++row) {
    const int tp = 1 << (row % 3), dp = 1 << (row / 3 % 2), pp = 1 << (row / 6);
    table += "r" + std::to_string(row) + ",training,nanotron-1.3b,dgx-h100,nanotron-a,," +
             std::to_string(tp) + ",1,1," + std::to_string(pp) + ',' + std::to_string(dp) +
             ",0,none,1f1b,1,1,," + std::to_string(8 * dp) + ",4096,,,," + std::to_string(2.0 / tp / pp) +
             '\n';
  }
  return table;
}

class DocumentCommands : public ProgramTest, public testing::WithParamInterface<std::string> {
 protected:
  /// Everything runs where the reader would be, in the project's folder; what is written goes elsewhere.
  void SetUp() override {
    for (const auto& entry : fs::directory_iterator(test::source_dir())) {
      const std::string name = entry.path().filename().string();
      if (entry.is_directory() && !name.starts_with('.') && name != "build" && name != "out")
        fs::create_directory_symlink(entry.path(), work() / name);
    }
    write("study.yaml", kSmallStudy);
    write("runs.csv", rough_measurements());
    for (const auto& [name, text] : files_of(GetParam())) write(name, text);
    std::string cases;
    for (const char* study : kLargeStudies)
      if (GetParam() == kDocumentOfStudies)
        cases +=
            std::string("    \"sweep sweep/studies/") + study + ".yaml \"*) set -- \"$@\" --sample 20 ;;\n";
    start_ = "cd '" + work().string() + "' || exit 125\nshardscape() {\n  case \"$* \" in\n" + cases +
             "  esac\n  '" + test::program() + "' \"$@\"\n}\nS() { shardscape \"$@\"; }\n";
  }
  /// Exit code, and both outputs together.
  std::pair<int, std::string> run_in_shell(const std::string& command) {
    const fs::path script = work().parent_path() / "command.sh", out = work().parent_path() / "command.out";
    std::ofstream(script) << start_ << command << '\n';
    const int status = std::system(("sh '" + script.string() + "' >'" + out.string() + "' 2>&1").c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, read_file(out)};
  }

 private:
  std::string start_;
};

TEST_P(DocumentCommands, RunAndPrintWhatIsShown) {
  for (const Command& command : commands_of(GetParam())) {
    const std::string where = GetParam() + ":" + std::to_string(command.number) + ": " + command.text;
    const auto [code, out] = run_in_shell(command.text);
    ASSERT_EQ(code, 0) << where << "\n" << out;
    std::set<std::string> printed;
    for (const std::string& line : lines_of(out)) printed.insert(lasting(line));
    for (const std::string& line : command.shown) {
      if (lasting(line).ends_with("...")) continue;  // cut short; a bar of dots is not
      EXPECT_TRUE(printed.contains(lasting(line))) << where << "\ndoes not print\n"
                                                   << line << "\nbut\n"
                                                   << out;
    }
  }
}

TEST(DocumentNumbers, CountToTheLastDigit) {
  EXPECT_EQ(lasting("  compute   14.34 s  ###################....."),
            lasting("  compute 14.34 s  ####################...."));
  EXPECT_EQ(lasting("18.17 s in 30.67 ms of CPU"), lasting("18.17 s in 1.2 s of CPU"));
  EXPECT_NE(lasting("bubble 10.8 %"), lasting("bubble 10.7 %"));
  EXPECT_EQ(lasting("  bubble  2.252 s  12.4 %  ###....................."), "bubble 2.252 s 12.4 %");
  EXPECT_TRUE(lasting("Korthikanti et al. 2022, Table 5 ...").ends_with("..."));
  EXPECT_NE(lasting("22.05 s"), lasting("22.05 ms"));
}

// The README's figures of MLPerf Training are those of the table of all errors, which a command writes.
TEST(DocumentNumbers, OfMlperfAreThoseOfTheTable) {
  const auto text_of = [](const char* document) {
    return std::regex_replace(read_file(fs::path(test::source_dir()) / document), std::regex(R"(\s+)"), " ");
  };
  const std::string table = text_of("tests/validation/README.md"), readme = text_of("README.md");
  const std::regex row(
      R"(\| the same, all \| (\d+) \| step time \| mean ([0-9.]+) %, median ([0-9.]+) %, max ([0-9.]+) %)");
  std::smatch figures;
  ASSERT_TRUE(std::regex_search(table, figures, row));
  EXPECT_NE(readme.find("On " + figures.str(1) + " results of MLPerf Training"), std::string::npos);
  EXPECT_NE(readme.find(figures.str(2) + " % off in the mean, " + figures.str(3) + " % in the median, " +
                        figures.str(4) + " % at worst"),
            std::string::npos);
}

Lines documents_with_commands() {
  Lines with;
  for (const std::string& document : documents()) {
    if (!commands_of(document).empty()) with.push_back(document);
  }
  return with;
}

INSTANTIATE_TEST_SUITE_P(All, DocumentCommands, testing::ValuesIn(documents_with_commands()),
                         [](const testing::TestParamInfo<std::string>& document) {
                           return std::regex_replace(document.param, std::regex("[^A-Za-z0-9]"), "_");
                         });

}  // namespace
}  // namespace shardscape::cli
