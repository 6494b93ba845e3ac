// Is every hostile input refused: with the exit code that is due, a message that names the place and what
// would be right, and nothing changed on disk? The inputs are tables, one file per kind, in hostile/.
//
// A table: `what` it holds; `base`, files of hostile/base that are there before; `give`, results that the
// program has written before (small.h5, faults.h5, traces); `run`, the words of the command; `cases`. A case
// says what `is` wrong, how the files come about (`edit: [old, new]` of the table's `target` or its own;
// `text` instead of all of it; `files`, `folders`, `remove`, `copy`, `damage`), may have a command of its
// own, `prints: true`: the sound rest of the input is reported on stdout. A case also has the exit `code` (2
// where it is left out) and fragments of the message (`says`). In texts and words <<HEX>> stands for bytes
// and <<N*TEXT>> for N repetitions.
#include <sys/resource.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "engine/base/safe_text.h"
#include "tests/cli/program_under_test.h"

namespace shardscape::cli {
namespace {

fs::path hostile_folder() { return fs::path(test::source_dir()) / "tests" / "cli" / "hostile"; }

std::vector<std::string> table_names() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(hostile_folder())) {
    if (entry.path().extension() == ".yaml") names.push_back(entry.path().stem().string());
  }
  std::ranges::sort(names);
  return names;
}

YAML::Node load_table(const std::string& name) {
  return YAML::LoadFile((hostile_folder() / (name + ".yaml")).string());
}

/// One marked part: bytes in hexadecimal, or N*TEXT.
std::string expand_mark(const std::string& mark) {
  std::string text;
  if (const std::size_t star = mark.find('*'); star != std::string::npos) {
    for (int i = std::stoi(mark.substr(0, star)); i > 0; --i) text += mark.substr(star + 1);
    return text;
  }
  for (std::size_t i = 0; i + 1 < mark.size(); i += 2)
    text += static_cast<char>(std::stoi(mark.substr(i, 2), nullptr, 16));
  return text;
}

std::string expand(const std::string& text) {
  std::string result;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t begin = text.find("<<", at);
    const std::size_t end = begin == std::string::npos ? begin : text.find(">>", begin);
    result += text.substr(at, begin == std::string::npos ? begin : begin - at);
    if (end == std::string::npos) break;
    result += expand_mark(text.substr(begin + 2, end - begin - 2));
    at = end + 2;
  }
  return result;
}

std::vector<std::string> words_of(const YAML::Node& node) {
  std::vector<std::string> words;
  if (node && node.IsScalar()) return {expand(node.as<std::string>())};
  for (const YAML::Node& word : node) words.push_back(expand(word.as<std::string>()));
  return words;
}

/// Path below the folder -> "folder" or the file's bytes.
using Snapshot = std::map<std::string, std::string>;

Snapshot snapshot(const fs::path& folder) {
  Snapshot files;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    const std::string name = fs::relative(entry.path(), folder).string();
    files[name] = entry.is_directory() ? "folder" : "file " + read_file(entry.path());
  }
  return files;
}

std::vector<std::string> changes(const Snapshot& before, const Snapshot& after) {
  std::vector<std::string> names;
  for (const auto& [name, content] : before) {
    const auto found = after.find(name);
    if (found == after.end() || found->second != content) names.push_back(name);
  }
  for (const auto& [name, content] : after) {
    if (!before.contains(name)) names.push_back(name);
  }
  return names;
}

class HostileInputs : public ProgramTest, public testing::WithParamInterface<std::string> {
 protected:
  void SetUp() override {
    table_ = load_table(GetParam());
    bool wanted = static_cast<bool>(table_["give"]);
    for (const YAML::Node& one : table_["cases"]) wanted |= static_cast<bool>(one["give"]);
    if (wanted) make_results();
  }

  /// Makes what the cases damage: results of sweeps, and a folder of traces.
  void make_results() {
    given_ = work().parent_path() / "given";
    fs::copy(hostile_folder() / "base", work(), fs::copy_options::recursive);
    for (const std::vector<std::string>& words :
         std::vector<std::vector<std::string>>{{"sweep", "study.yaml", "-o", "small.h5"},
                                               {"sweep", "faults.yaml", "-o", "faults.h5"},
                                               {"simulate", "study.yaml", "--set", "gpus=2", "--set",
                                                "space={tensor_parallel: 2}", "--chakra", "traces"}}) {
      const Finished finished = run(words);
      ASSERT_EQ(finished.code, 0) << words[1] << "\n" << finished.err;
    }
    fs::rename(work(), given_);
  }

  void prepare(const YAML::Node& one) {
    fs::remove_all(work());
    fs::create_directory(work());
    const YAML::Node& base = one["base"] ? one["base"] : table_["base"];
    for (const std::string& name : words_of(base)) fs::copy(hostile_folder() / "base" / name, work() / name);
    for (const YAML::Node& list : {table_["give"], one["give"]}) {
      for (const std::string& name : words_of(list))
        fs::copy(given_ / name, work() / name, fs::copy_options::recursive);
    }
    edit_target(one);
    for (const auto& file : one["files"]) {
      const std::string name = file.first.as<std::string>();
      fs::create_directories((work() / name).parent_path());
      write(name, expand(file.second.as<std::string>()));
    }
    for (const std::string& name : words_of(one["folders"])) fs::create_directories(work() / name);
    for (const std::string& name : words_of(one["remove"])) ASSERT_GT(fs::remove_all(work() / name), 0U);
    for (const YAML::Node& pair : one["copy"])
      fs::copy(work() / pair[0].as<std::string>(), work() / pair[1].as<std::string>());
    for (const YAML::Node& damage : one["damage"]) damage_file(damage);
  }

  void edit_target(const YAML::Node& one) {
    const YAML::Node& named = one["target"] ? one["target"] : table_["target"];
    if (one["text"]) write(named.as<std::string>(), expand(one["text"].as<std::string>()));
    if (!one["edit"]) return;
    const std::string name = named.as<std::string>();
    std::string text = read_file(work() / name);
    const std::vector<std::string> edit = words_of(one["edit"]);
    const std::size_t at = text.find(edit.at(0));
    ASSERT_NE(at, std::string::npos) << edit[0];
    write(name, text.replace(at, edit[0].size(), edit.at(1)));
  }

  void damage_file(const YAML::Node& damage) {
    const std::string name = damage["file"].as<std::string>();
    std::string bytes = read_file(work() / name);
    if (damage["keep"]) bytes.resize(damage["keep"].as<std::size_t>());
    if (damage["find"]) {
      const std::size_t at = bytes.find(expand(damage["find"].as<std::string>()));
      ASSERT_NE(at, std::string::npos) << name;
      const std::string with = expand(damage["with"].as<std::string>());
      bytes.replace(at, with.size(), with);
    }
    write(name, bytes);
  }

  void check(const YAML::Node& one) {
    SCOPED_TRACE(GetParam() + ": " + one["is"].as<std::string>());
    prepare(one);
    const Snapshot before = snapshot(work());
    const Finished finished = run_for_a_while(words_of(one["run"] ? one["run"] : table_["run"]));
    EXPECT_EQ(finished.signal, 0) << finished.err;
    EXPECT_EQ(finished.code, one["code"] ? one["code"].as<int>() : 2) << finished.err;
    if (!table_["prints"]) {
      EXPECT_EQ(finished.out, "");
    }
    EXPECT_EQ(changes(before, snapshot(work())), std::vector<std::string>{});
    for (const std::string& fragment : words_of(one["says"]))
      EXPECT_TRUE(contains("\n" + finished.err, fragment)) << fragment << "\nis not in\n" << finished.err;
    check_lines(finished.err);
  }

  /// An input that is never refused has 20 seconds of CPU until the kernel ends it.
  Finished run_for_a_while(const std::vector<std::string>& words) {
    constexpr rlimit kSeconds{20, 20};
    Running running = start(words);
    (void)prlimit(running.pid(), RLIMIT_CPU, &kSeconds, nullptr);
    return running.wait();
  }

  /// The program's own line comes last and once; nothing in the lines can be obeyed by a terminal or runs on.
  static void check_lines(const std::string& text) {
    std::vector<std::string> lines;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = std::min(text.find('\n', at), text.size());
      lines.push_back(text.substr(at, end - at));
      at = end + 1;
    }
    ASSERT_GE(lines.size(), 2U) << text;
    for (const std::string& line : lines) {
      EXPECT_EQ(line, printable(line));
      EXPECT_LE(character_count(line), kLongestMessage + 40);
      EXPECT_EQ(line.starts_with("shardscape: "), &line == &lines.back()) << text;
    }
  }

  YAML::Node table_;
  fs::path given_;
};

TEST_P(HostileInputs, AreRefusedAndChangeNothing) {
  ASSERT_FALSE(HasFatalFailure());
  for (const YAML::Node& one : table_["cases"]) check(one);
}

INSTANTIATE_TEST_SUITE_P(Tables, HostileInputs, testing::ValuesIn(table_names()),
                         [](const auto& name) { return name.param; });

TEST(HostileTables, HoldHundredsOfInputsAndNoneTwice) {
  std::size_t count = 0;
  for (const std::string& name : table_names()) {
    std::set<std::string> titles, inputs;
    const YAML::Node table = load_table(name);
    for (const YAML::Node& one : table["cases"]) {
      ++count;
      EXPECT_TRUE(titles.insert(one["is"].as<std::string>()).second) << name << ": " << one["is"];
      YAML::Node input = YAML::Clone(one);
      for (const char* key : {"is", "code", "says"}) input.remove(key);
      EXPECT_TRUE(inputs.insert(YAML::Dump(input)).second) << name << ": " << one["is"];
      EXPECT_FALSE(words_of(one["says"]).empty()) << name << ": " << one["is"];
    }
  }
  EXPECT_GE(count, 300U);
}

}  // namespace
}  // namespace shardscape::cli
