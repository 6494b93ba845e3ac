// Do the sources keep to the house's rules? Includes point downwards only, and the engine touches nothing
// outside itself.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "tests/support/paths.h"

namespace shardscape {
namespace {

namespace fs = std::filesystem;

/// Folder -> the folders it may include from, besides itself. The order of the list is the order of the
/// storeys, lowest first.
const std::vector<std::pair<std::string, std::set<std::string>>>& storeys() {
  static const std::vector<std::pair<std::string, std::set<std::string>>> kStoreys = {
      {"engine/base", {}},
      {"engine/spec", {"engine/base"}},
      {"engine/compute", {"engine/spec", "engine/base"}},
      {"engine/network/fabric", {"engine/spec", "engine/base"}},
      {"engine/network/groups", {"engine/network/fabric", "engine/spec", "engine/base"}},
      {"engine/network/collectives",
       {"engine/network/groups", "engine/network/fabric", "engine/spec", "engine/base"}},
      {"engine/network/flows", {"engine/network/collectives", "engine/base"}},
      {"engine/network/placement",
       {"engine/network/groups", "engine/network/fabric", "engine/spec", "engine/base"}},
      {"engine/network/prices",
       {"engine/network/placement", "engine/network/flows", "engine/network/collectives",
        "engine/network/groups", "engine/network/fabric", "engine/spec", "engine/base"}},
      {"engine/schedule", {"engine/spec", "engine/base"}},
      {"engine/execution",
       {"engine/network/prices", "engine/network/flows", "engine/network/collectives",
        "engine/network/groups", "engine/spec", "engine/base"}},
      {"engine/serving/load", {"engine/spec", "engine/base"}},
      {"engine/serving",
       {"engine/execution", "engine/network/flows", "engine/network/collectives", "engine/spec",
        "engine/base"}},
      {"engine/serving/live",
       {"engine/serving/load", "engine/serving", "engine/network/flows", "engine/spec", "engine/base"}},
      {"engine/timeline",
       {"engine/serving/live", "engine/execution", "engine/schedule", "engine/network/prices",
        "engine/network/collectives", "engine/network/groups", "engine/network/fabric", "engine/spec",
        "engine/base"}},
      {"engine/model/attention", {"engine/model", "engine/compute", "engine/spec"}},
      {"engine/model/mlp", {"engine/model", "engine/spec"}},
      {"engine/model",
       {"engine/model/attention", "engine/model/mlp", "engine/compute", "engine/network/collectives",
        "engine/spec", "engine/base"}},
      {"engine/memory", {"engine/model", "engine/schedule", "engine/spec"}},
      {"engine/step", {"engine/model", "engine/schedule", "engine/network/groups", "engine/spec"}},
      {"engine/step/layers",
       {"engine/execution", "engine/memory", "engine/serving", "engine/model", "engine/schedule",
        "engine/compute", "engine/network/prices", "engine/network/groups", "engine/spec", "engine/base"}},
      {"engine/step/training",
       {"engine/step/layers", "engine/execution", "engine/timeline", "engine/model", "engine/schedule",
        "engine/network/prices", "engine/network/collectives", "engine/network/groups", "engine/spec",
        "engine/base"}},
      {"engine/step/serving",
       {"engine/step/training", "engine/step/layers", "engine/execution", "engine/memory",
        "engine/serving/live", "engine/serving", "engine/model", "engine/network/prices",
        "engine/network/collectives", "engine/network/groups", "engine/spec", "engine/base"}},
      {"engine/evaluate",
       {"engine/step/serving", "engine/step/training", "engine/step/layers", "engine/step",
        "engine/execution", "engine/timeline", "engine/model", "engine/network/prices",
        "engine/network/fabric", "engine/spec", "engine/base", "engine"}},
      {"engine",
       {"engine/evaluate", "engine/step/training", "engine/step/layers", "engine/step", "engine/model",
        "engine/network/prices", "engine/schedule", "engine/spec", "engine/base"}},
      {"results_schema/disk", {"engine/base"}},
      {"results_schema/rows", {"results_schema/disk", "engine/spec", "engine/base"}},
      {"results_schema/hdf5", {"results_schema/rows", "results_schema/disk", "engine/base"}},
      {"results_schema/segments",
       {"results_schema/hdf5", "results_schema/rows", "results_schema/disk", "engine/base"}},
      {"results_schema/reading",
       {"results_schema/segments", "results_schema/hdf5", "results_schema/rows", "results_schema/disk",
        "engine/spec", "engine/base"}},
      {"results_schema", {"results_schema/hdf5", "results_schema/rows"}},
      {"results_schema/report",
       {"results_schema/reading", "results_schema/rows", "results_schema/disk", "engine/spec",
        "engine/base"}},
      {"sweep/modules", {}},
      {"sweep/input", {}},
      {"sweep/technology", {"engine/spec", "engine/base"}},
      {"sweep/yaml", {"sweep/input", "sweep/technology", "engine/spec", "engine/base"}},
      {"sweep/evidence", {"sweep/yaml", "engine/spec", "engine/base"}},
      {"sweep/network_case",
       {"sweep/input", "engine/network/collectives", "engine/network/fabric", "engine/spec", "engine/base"}},
      {"sweep/chakra", {"sweep/input", "sweep/network_case", "engine/timeline", "engine/base"}},
      {"sweep/space", {"engine/spec", "engine/base"}},
      {"sweep/faults",
       {"results_schema/reading", "results_schema/rows", "engine/network/fabric", "engine/spec",
        "engine/base"}},
      {"sweep/study",
       {"sweep/input", "sweep/evidence", "sweep/faults", "sweep/yaml", "sweep/technology", "sweep/space",
        "results_schema/rows", "results_schema/disk", "engine/serving/load", "engine/network/fabric",
        "engine/spec", "engine/base"}},
      {"sweep/launch", {"sweep/space", "sweep/yaml", "engine", "engine/model", "engine/spec", "engine/base"}},
      {"sweep/compare", {"engine", "engine/network/groups", "engine/spec"}},
      {"sweep/explorer",
       {"sweep/study", "sweep/yaml", "sweep/input", "results_schema/report", "engine", "engine/spec",
        "engine/base"}},
      {"sweep/placement", {"engine/network/placement", "engine/base"}},
      {"sweep/ranks", {"sweep/modules", "engine/base"}},
      {"sweep/runner",
       {"sweep/ranks", "sweep/placement", "sweep/study", "sweep/evidence", "sweep/faults", "sweep/space",
        "results_schema/segments", "results_schema/hdf5", "results_schema/rows", "engine",
        "engine/network/prices", "engine/network/placement", "engine/network/fabric", "engine/spec",
        "engine/base"}},
      {"sweep/search",
       {"sweep/runner", "sweep/ranks", "sweep/study", "sweep/space", "results_schema/rows", "engine",
        "engine/model", "engine/spec", "engine/base"}},
      {"sweep/capacity",
       {"sweep/runner", "sweep/study", "sweep/space", "results_schema/rows", "engine", "engine/spec",
        "engine/base"}},
      {"sweep/validate",
       {"sweep/evidence", "sweep/input", "sweep/ranks", "sweep/space", "sweep/yaml", "engine",
        "engine/network/prices", "engine/network/collectives", "engine/network/fabric", "engine/compute",
        "engine/spec", "engine/base"}},
      {"sweep/calibrate",
       {"sweep/modules", "sweep/validate", "sweep/space", "sweep/yaml", "engine/spec", "engine/base"}},
      {"sweep/cli/terminal", {"engine/base"}},
      {"sweep/cli",
       {"sweep/cli/terminal", "sweep/modules", "sweep/study", "sweep/yaml", "results_schema/reading",
        "results_schema/segments", "results_schema/hdf5", "results_schema/rows", "results_schema/disk",
        "engine/base"}},
      {"sweep/cli/reports",
       {"sweep/cli/terminal",
        "sweep/input",
        "sweep/cli",
        "sweep/evidence",
        "sweep/calibrate",
        "sweep/validate",
        "sweep/search",
        "sweep/capacity",
        "sweep/runner",
        "sweep/placement",
        "sweep/launch",
        "sweep/explorer",
        "sweep/compare",
        "sweep/study",
        "sweep/faults",
        "sweep/network_case",
        "sweep/space",
        "sweep/yaml",
        "results_schema/reading",
        "results_schema/rows",
        "results_schema/disk",
        "results_schema/report",
        "engine",
        "engine/network/placement",
        "engine/network/flows",
        "engine/network/collectives",
        "engine/network/fabric",
        "engine/model",
        "engine/spec",
        "engine/base"}},
      {"sweep/cli/ranks",
       {"sweep/cli/terminal", "sweep/cli", "sweep/runner", "sweep/ranks", "sweep/yaml",
        "results_schema/segments", "results_schema/hdf5", "results_schema/rows", "results_schema/disk",
        "engine/base"}},
      {"sweep/cli/commands",
       {"sweep/cli/reports",
        "sweep/cli/ranks",
        "sweep/cli/terminal",
        "sweep/cli",
        "sweep/evidence",
        "sweep/calibrate",
        "sweep/validate",
        "sweep/search",
        "sweep/capacity",
        "sweep/runner",
        "sweep/launch",
        "sweep/explorer",
        "sweep/modules",
        "sweep/input",
        "sweep/study",
        "sweep/faults",
        "sweep/chakra",
        "sweep/space",
        "sweep/yaml",
        "results_schema/report",
        "results_schema/reading",
        "results_schema/segments",
        "results_schema/hdf5",
        "results_schema/rows",
        "results_schema/disk",
        "engine",
        "engine/timeline",
        "engine/compute",
        "engine/network/collectives",
        "engine/network/fabric",
        "engine/spec",
        "engine/base"}},
      {"sweep/explorer/wasm",
       {"sweep/explorer", "sweep/cli/reports", "sweep/placement", "sweep/study", "sweep/space", "sweep/yaml",
        "results_schema/disk", "results_schema/rows", "engine", "engine/timeline", "engine/schedule",
        "engine/spec", "engine/base"}},
      {"sweep/python",
       {"sweep/cli/commands", "sweep/cli/reports", "sweep/cli/terminal", "sweep/cli", "sweep/validate",
        "sweep/runner", "sweep/study", "sweep/space", "sweep/yaml", "results_schema/rows",
        "results_schema/disk", "engine", "engine/spec", "engine/base"}},
  };
  return kStoreys;
}

struct Include {
  std::string file, target;
  int line = 0;
};

std::vector<Include> includes_of(const fs::path& file, bool quoted) {
  const std::regex pattern(quoted ? "^\\s*#\\s*include\\s+\"([^\"]+)\".*"
                                  : "^\\s*#\\s*include\\s+<([^>]+)>.*");
  std::vector<Include> found;
  std::ifstream in(file);
  std::string line;
  for (int number = 1; std::getline(in, line); ++number) {
    std::smatch match;
    if (std::regex_match(line, match, pattern)) found.push_back({file.string(), match[1], number});
  }
  return found;
}

std::vector<fs::path> sources_in(const std::string& folder, bool recursive) {
  std::vector<fs::path> files;
  const fs::path root = fs::path(test::source_dir()) / folder;
  const auto take = [&](const fs::path& path) {
    if (path.extension() == ".h" || path.extension() == ".cc") files.push_back(path);
  };
  if (recursive) {
    for (const auto& entry : fs::recursive_directory_iterator(root)) take(entry.path());
  } else {
    for (const auto& entry : fs::directory_iterator(root)) take(entry.path());
  }
  return files;
}

TEST(Architecture, JsonIsWrittenByTheOneFunctionThatTakesAnyBytes) {
  int checked = 0;
  for (const char* folder : {"engine", "results_schema", "sweep"}) {
    for (const fs::path& file : sources_in(folder, true)) {
      if (file.filename() == "safe_text.h") continue;
      std::ifstream in(file);
      const std::string text{std::istreambuf_iterator<char>(in), {}};
      EXPECT_EQ(text.find(".dump("), std::string::npos) << file << ": json_text() writes JSON";
      ++checked;
    }
  }
  EXPECT_GT(checked, 100);
}

TEST(Architecture, IncludesPointDownwardsOnly) {
  int checked = 0;
  for (const auto& [folder, allowed] : storeys()) {
    ASSERT_TRUE(fs::is_directory(fs::path(test::source_dir()) / folder)) << folder;
    for (const fs::path& file : sources_in(folder, false)) {
      for (const Include& include : includes_of(file, true)) {
        const std::string target = fs::path(include.target).parent_path().string();
        if (target.empty()) continue;  // generated beside the build, not in the tree
        EXPECT_TRUE(target == folder || allowed.contains(target))
            << include.file << ":" << include.line << ": " << folder << " must not include "
            << include.target;
        ++checked;
      }
    }
  }
  EXPECT_GT(checked, 100);
}

TEST(Architecture, EveryFolderHasAStorey) {
  std::set<std::string> known;
  for (const auto& [folder, allowed] : storeys()) known.insert(folder);
  for (const char* top : {"engine", "results_schema", "sweep"}) {
    for (const fs::path& file : sources_in(top, true)) {
      const std::string folder = fs::relative(file.parent_path(), test::source_dir()).string();
      EXPECT_TRUE(known.contains(folder)) << folder << " is in no storey";
    }
  }
}

TEST(Architecture, EngineHasNoFilesThreadsOrClocks) {
  const std::set<std::string> forbidden = {
      "fstream",   "iostream", "filesystem", "thread",     "mutex",  "atomic",       "chrono",
      "ctime",     "random",   "unistd.h",   "sys/time.h", "future", "shared_mutex", "condition_variable",
      "tbb/tbb.h", "hdf5.h"};
  for (const fs::path& file : sources_in("engine", true)) {
    for (const Include& include : includes_of(file, false)) {
      EXPECT_FALSE(forbidden.contains(include.target) || include.target.starts_with("tbb/") ||
                   include.target.starts_with("yaml-cpp/"))
          << include.file << ":" << include.line << ": the engine must not include <" << include.target
          << ">";
    }
  }
}

TEST(Architecture, EngineHasNoMutableStatics) {
  // A function-local or namespace-scope `static` variable that is neither const nor constexpr. Static member
  // functions and constants pass.
  const std::regex mutable_static(
      "^\\s*(static|thread_local)\\s+(?!const\\b|constexpr\\b|_?assert|inline\\b)[^()]*[;=]\\s*.*");
  for (const fs::path& file : sources_in("engine", true)) {
    std::ifstream in(file);
    std::string line;
    for (int number = 1; std::getline(in, line); ++number) {
      EXPECT_FALSE(std::regex_match(line, mutable_static)) << file << ":" << number << ": " << line;
      EXPECT_EQ(line.find("getenv"), std::string::npos) << file << ":" << number;
    }
  }
}

}  // namespace
}  // namespace shardscape
