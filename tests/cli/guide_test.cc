// Do help, manual pages and completion say the same as the program, in lines that fit, and do documents name every
// option?
#include <algorithm>
#include <cstdlib>
#include <regex>
#include <set>
#include <sstream>

#include "engine/base/safe_text.h"
#include "tests/cli/program_under_test.h"

namespace shardscape::cli {
namespace {

class GuideTest : public ProgramTest {
 protected:
  std::vector<std::string> commands() {
    std::vector<std::string> names;
    std::istringstream lines(run({"--help"}).out);
    bool listed = false;
    static const std::regex kCommand("  ([a-z]+) +[A-Z].*");
    std::smatch match;
    for (std::string line; std::getline(lines, line);) {
      if (line == "Subcommands:") listed = true;
      if (listed && line.empty()) break;
      if (listed && std::regex_match(line, match, kCommand)) names.push_back(match[1]);
    }
    EXPECT_GT(names.size(), 20U);
    return names;
  }
  /// What bash completes behind these words.
  std::string completed(const std::string& words) {
    write("complete.sh",
          "source <(\"$1\" completion bash)\ncomplete -p shardscape >&2 || exit 1\nCOMP_WORDS=(shardscape " +
              words +
              ")\nCOMP_CWORD=$((${#COMP_WORDS[@]} - 1))\n_shardscape\nprintf '%s\\n' \"${COMPREPLY[@]}\"\n");
    const Finished finished = start_words({"bash", "complete.sh", test::program()}).wait();
    EXPECT_EQ(finished.code, 0) << finished.err;
    EXPECT_TRUE(contains(finished.err, "-F _shardscape shardscape")) << finished.err;
    return "\n" + finished.out;
  }
};

/// Whether documents name an option, or its one letter.
bool names_option(const std::string& documents, const std::string& help, const std::string& option) {
  const std::size_t at = help.find("," + option);
  const bool letter = at != std::string::npos && at > 2;
  return contains(documents, option) || (letter && contains(documents, help.substr(at - 2, 2)));
}

std::set<std::string> options_in(const std::string& help) {
  static const std::regex kOption("(?:^|\n)  (?:-[a-z],)?(--[a-z-]+)");
  std::set<std::string> options;
  for (std::sregex_iterator at(help.begin(), help.end(), kOption), end; at != end; ++at)
    options.insert((*at)[1]);
  return options;
}

TEST_F(GuideTest, TheListOfCommandsFitsANarrowTerminal) {
  std::istringstream lines(run({"--help"}).out);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(character_count(line), 80U) << line;
}

TEST_F(GuideTest, HelpFitsAndEveryOptionIsDocumented) {
  std::string documents;
  for (const auto& entry : fs::recursive_directory_iterator(test::source_dir() + "/sweep"))
    if (entry.path().extension() == ".md") documents += read_file(entry.path());
  for (const char* file : {"/engine/network/README.md", "/results_schema/README.md",
                           "/results_schema/report/README.md", "/hw_presets/README.md"})
    documents += read_file(test::source_dir() + file);
  for (const std::string& command : commands()) {
    const std::string help = run({command, "--help"}).out;
    EXPECT_TRUE(contains(help, "Examples:\n")) << command;
    std::istringstream lines(help);
    for (std::string line; std::getline(lines, line);)
      EXPECT_LE(character_count(line), 80U) << command << ": " << line;
    EXPECT_TRUE(contains(documents, "`" + command)) << command;
    for (const std::string& option : options_in(help)) {
      static const std::set<std::string> kEverywhere = {"--help", "--presets", "--quiet"};
      EXPECT_TRUE(kEverywhere.contains(option) || names_option(documents, help, option))
          << command << ' ' << option;
    }
  }
}

TEST_F(GuideTest, HelpOfTopics) {
  EXPECT_EQ(run({"help"}).out, run({"--help"}).out);
  EXPECT_EQ(run({"help", "sweep"}).out, run({"sweep", "--help"}).out);
  EXPECT_TRUE(contains(run({"help", "study"}).out, "# Studies"));
  const std::string faults = run({"help", "faults"}).out;
  EXPECT_TRUE(faults.starts_with("## Faults\n")) << faults.substr(0, 200);
  EXPECT_FALSE(contains(faults, "## Inference"));
  const std::string space = run({"help", "space"}).out;
  for (const char* part :
       {"\n  tensor_parallel (tp): from 1 on, both phases\n", "\n  zero_stage (zero): 0 to 3, training\n",
        "\n  recompute (recompute): none, selective, full, training\n",
        "\n  prefill_gpus: from 0 on, inference\n"})
    EXPECT_TRUE(contains(space, part)) << part << space;
  EXPECT_TRUE(contains(run({"help", "workload"}).out, "\n  global_batch (training): "));
  const std::string hardware = run({"help", "hardware"}).out;
  for (const char* part :
       {"\n  device.sm.clock: ", "\n  fabric.NAME.bandwidth: ", "\n  stack.serving.kv_share: "})
    EXPECT_TRUE(contains(hardware, part)) << part << hardware;
  for (const char* topic : {"constraints", "promises"})
    EXPECT_TRUE(run({"help", topic}).out.starts_with("## Promises and constraints\n")) << topic;
  const std::string values = run({"help", "values"}).out;
  for (const char* part :
       {"  space.recompute: none, selective, full\n", "  mode: hierarchical, flattened, checked\n",
        "  stack.communication.context_exchange: ring, gather\n",
        "  device.architecture: other, ampere, hopper, blackwell\n",
        "  workload.arrivals: poisson, gamma, constant\n", "  workload.client.statistic: run, steady\n",
        "  workload.client: aiperf, ", "  placement: plain, optimised\n"})
    EXPECT_TRUE(contains(values, part)) << part << values;
  EXPECT_TRUE(run({"help", "recompute"}).out.starts_with("  space.recompute: none, selective, full\n"));
  EXPECT_EQ(run({"help", "stack.communication.context_exchange"}).out,
            "  stack.communication.context_exchange: ring, gather\n");
  for (const char* topic : {"fabric.NAME.kind", "kind"})
    EXPECT_TRUE(run({"help", topic}).out.starts_with("  fabric.NAME.kind: ")) << topic;
  for (const char* topic : {"tp", "memory"})
    EXPECT_TRUE(run({"help", topic}).out.starts_with("column ")) << topic;
  EXPECT_EQ(run({"help", "and"}).code, 2);
  const Finished unknown = run({"help", "studdy"});
  EXPECT_EQ(unknown.code, 2);
  EXPECT_TRUE(contains(unknown.err, "TOPIC: nothing is called 'studdy' (did you mean 'study'?); topics: "))
      << unknown.err;
}

TEST_F(GuideTest, ManualPages) {
  const std::string all = run({"man"}).out, one = run({"man", "top"}).out;
  EXPECT_TRUE(all.starts_with(".TH SHARDSCAPE 1 "));
  EXPECT_TRUE(one.starts_with(".TH SHARDSCAPE\\-TOP 1 ")) << one.substr(0, 80);
  for (const std::string& command : commands()) {
    std::string heading = command;
    std::ranges::transform(heading, heading.begin(), [](unsigned char c) { return std::toupper(c); });
    EXPECT_TRUE(contains(all, "\n.SH " + heading + "\n")) << command;
  }
  for (const std::string& option : options_in(run({"top", "--help"}).out)) {
    const std::string written = std::regex_replace(option, std::regex("-"), "\\-");
    EXPECT_TRUE(contains(one, written)) << option;
  }
  // Only requests that the page means begin with a dot.
  std::istringstream lines(all);
  static const std::regex kRequest("\\.(TH|SH|PP|TP|B|nf|fi)( .*)?");
  for (std::string line; std::getline(lines, line);)
    EXPECT_TRUE((!line.starts_with('.') && !line.starts_with('\'')) || std::regex_match(line, kRequest))
        << line;
  write("page.1", one);
  if (start_words({"sh", "-c", "command -v man"}).wait().code != 0) return;
  const Finished shown = start_words({"man", "-l", "-Tascii", "page.1"}).wait();
  EXPECT_TRUE(shown.code == 0 && contains(shown.out, "Rows to show")) << shown.err;
  EXPECT_EQ(run({"man", "tpo"}).code, 2);
}

TEST_F(GuideTest, StepsBeforeALaunchNameIt) {
  for (const char* const command : {"new", "sweep", "top", "search"})
    EXPECT_TRUE(contains(run({command, "--help"}).out, "launch")) << command;
}

TEST_F(GuideTest, CompletionIsThatOfTheOptions) {
  EXPECT_TRUE(contains(completed("swe"), "\nsweep\n"));
  EXPECT_EQ(completed("top --bre"), "\n--breakdown\n");
  EXPECT_EQ(completed("top x.h5 --format y"), "\nyaml\n");
  EXPECT_EQ(completed("new --cluster dgx-h1"), "\ndgx-h100\n");
  EXPECT_TRUE(contains(completed("help s"), "\nsweep\n"));
  EXPECT_EQ(completed("launch x.yaml --for megatron"), "\nmegatron-lm\n");
  EXPECT_EQ(completed("simulate x.yaml --mode fl"), "\nflattened\n");
  EXPECT_EQ(completed("attention --kernel flash_"), "\nflash_alibi\n");
  EXPECT_EQ(completed("gemm --dtype tf"), "\ntf32\n");
  EXPECT_EQ(completed("capacity x.yaml --format j"), "\njson\n");
  EXPECT_EQ(completed("presets dgx-h1"), "\ndgx-h100\n");
  EXPECT_EQ(completed("check milli"), "\nmillion\n");
  EXPECT_EQ(completed("simulate million --point milli"), "\n\n");  // no study belongs there
  write("mine.yaml", "");
  EXPECT_EQ(completed("check mine"), "\nmine.yaml\n");
  for (const std::string& command : commands()) {
    const std::set<std::string> options = options_in(run({command, "--help"}).out);
    const std::string offered = completed(command + " --");
    for (const std::string& option : options)
      EXPECT_TRUE(contains(offered, "\n" + option + "\n")) << command << option;
  }
  const std::string fish = run({"completion", "fish"}).out, zsh = run({"completion", "zsh"}).out;
  EXPECT_TRUE(contains(fish, "complete -c shardscape -n '__fish_seen_subcommand_from top' -s v -l breakdown"))
      << fish;
  EXPECT_TRUE(zsh.starts_with("#compdef shardscape\n"));
  EXPECT_TRUE(contains(zsh, "'--breakdown:"));
  EXPECT_EQ(run({"completion", "csh"}).code, 2);
  EXPECT_EQ(start_words({"bash", "-c", "bash -n <(\"$0\" completion bash)", test::program()}).wait().code, 0);
}

// The files that the topic shows work as they stand there.
TEST_F(GuideTest, TheHardwareOfTheTopicWorks) {
  std::istringstream lines(run({"help", "hardware"}).out);
  std::vector<std::string> blocks;
  bool inside = false;
  for (std::string line; std::getline(lines, line);) {
    const bool fence = line.starts_with("```");
    if (fence && !inside) blocks.emplace_back();
    if (!fence && inside) blocks.back() += line + '\n';
    inside = inside != fence;
  }
  ASSERT_EQ(blocks.size(), 3U);
  const std::string &cluster = blocks[0], &stack = blocks[1], &device = blocks[2];
  write("my-accelerator.yaml", device);
  write("my-cluster.yaml", cluster);
  write("my-stack.yaml", stack);
  for (const char* file : {"my-accelerator.yaml", "my-cluster.yaml", "my-stack.yaml"}) {
    const Finished shown = run({"presets", file});
    EXPECT_EQ(shown.code, 0) << file << shown.err;
  }
  ASSERT_EQ(run({"new", "--model", "llama3.1-8b", "--cluster", "my-cluster.yaml", "--gpus", "16", "--phase",
                 "serving", "--stack", "my-stack.yaml"})
                .code,
            0);
  const Finished check = run({"check", "study.yaml", "--set", "device.hbm.bandwidth=6TB/s", "--set",
                              "fabric.node.bandwidth=[300 GB/s, 450 GB/s]"});
  EXPECT_EQ(check.code, 0) << check.err;
  EXPECT_TRUE(contains(check.out, "\n  ok ")) << check.out;
}

}  // namespace
}  // namespace shardscape::cli
