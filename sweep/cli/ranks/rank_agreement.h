// Checks that all ranks of a sweep mean the same sweep: each reads the study for itself, and may find another one in
// another folder, with other presets or with another build of the program.
#pragma once

#include <exception>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "results_schema/hdf5/manifest.h"
#include "sweep/cli/command.h"
#include "sweep/ranks/ranks.h"
#include "sweep/yaml/catalog.h"

namespace shardscape::cli {

/// A fact that must be equal on all ranks.
struct SharedFact {
  std::string what;      ///< "the version of the program"
  std::string value;     ///< the value that is compared
  bool readable = true;  ///< whether messages show the value
};

/// What a rank gets from its command line: the facts of its sweep, or why there is no sweep.
struct RankView {
  std::vector<SharedFact> facts;
  std::vector<std::string> problems;
  int threads = 0;
};

/// The facts that determine the rows, and the files in which they are sealed.
std::vector<SharedFact> facts_of(const results::Manifest& manifest, const std::string& output,
                                 bool reference);

/// The texts of all presets, for commands that look presets up as they go.
std::vector<SharedFact> facts_of(const yaml::Catalog& presets);

/// Sends rank 0 this rank's view. Returns the views of all ranks, by rank, on rank 0, and nothing elsewhere; on rank 0
/// it throws where the ranks cannot work together, including its own `failure`. Every rank must call it. RankLost.
std::vector<RankView> agree_on(const RankView& view, const std::exception_ptr& failure, ranks::Ranks& ranks);

/// Calls `make`, which prepares a rank's work; an exception is kept for agree_on() and added to the view's problems.
template <class Make>
std::exception_ptr note_failure(RankView& view, const Make& make) {
  try {
    make();
  } catch (const BadInput& bad) {
    view.problems = bad.problems();
    return std::current_exception();
  } catch (const std::exception& problem) {
    view.problems = {problem.what()};
    return std::current_exception();
  }
  return nullptr;
}

/// Why these ranks cannot do one sweep together: a line for each way in which some differ from rank 0, whose view has
/// no problems; empty where they can. `name` gives the name of a rank.
std::vector<std::string> disagreements(std::span<const RankView> views,
                                       const std::function<std::string(int)>& name);

}  // namespace shardscape::cli
