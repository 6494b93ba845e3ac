// Reads `speculation:` of a workload: who drafts, how many tokens, and how many of them are accepted.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "engine/spec/speculation.h"
#include "sweep/yaml/diagnostics.h"
#include "sweep/yaml/node.h"
#include "sweep/yaml/visitors.h"

namespace shardscape::sweep {

struct ParsedSpeculation {
  Speculation speculation;  ///< without draft_tokens, and without the draft model (load_study.cc)
  std::vector<std::int64_t> draft_tokens;     ///< an axis; empty where it could not be read
  yaml::Node resolved;                        ///< the block in full
  std::vector<std::filesystem::path> tables;  ///< those that were read
  std::string assumption;                     ///< as in Study::assumptions; empty where there is none
};

/// `acceptance`: a rate at which each draft is accepted where those before it are, or the share of iterations in which
/// each position is, or the table of lengths that has them (acceptance_file.h), from `folder` on. Problems go to
/// `state` and `diagnostics`.
ParsedSpeculation parse_speculation(const yaml::Node& node, const std::string& path,
                                    const std::filesystem::path& folder, yaml::ReadState& state,
                                    yaml::Diagnostics& diagnostics);

}  // namespace shardscape::sweep
