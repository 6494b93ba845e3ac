// A folder of Chakra execution traces: PREFIX.RANK.et for each rank, and the process groups in a JSON file
// beside them, {"NAME": [RANK, ...], ...}.
#pragma once

#include <filesystem>
#include <string>
#include <tl/expected.hpp>
#include <vector>

#include "engine/timeline/execution_trace.h"
#include "engine/timeline/linked_trace.h"

namespace shardscape::chakra {

constexpr const char* kGroupsFile = "comm_groups.json";

struct LoadedTrace {
  timeline::ExecutionTrace trace;
  std::filesystem::path folder;
  std::vector<std::filesystem::path> files;  ///< index: rank
  std::filesystem::path groups_file;         ///< empty: there is no such file
};

/// Reads the traces of ranks 0, 1, .. and the groups: comm_groups.json, or else the only .json file of the
/// folder. The error has a line per problem, "FILE: node N 'NAME' (rank R): what".
tl::expected<LoadedTrace, std::string> load(const std::filesystem::path& folder);

/// Lists problems of link() and replay() in the form of load()'s error.
std::string located(const timeline::TraceProblems& problems, const LoadedTrace& loaded);

/// Creates a folder and writes the groups, then one rank after the other. Throws std::runtime_error where the disk
/// refuses.
class TraceWriter {
 public:
  /// `dimensions` is the number of dimensions of the fabric, for the attribute involved_dim.
  TraceWriter(std::filesystem::path folder, const std::vector<timeline::ProcessGroup>& groups,
              std::size_t dimensions);
  void write_rank(std::int32_t rank, const timeline::RankTrace& trace);

 private:
  std::filesystem::path folder_;
  const std::vector<timeline::ProcessGroup>& groups_;
  std::size_t dimensions_;
};

}  // namespace shardscape::chakra
