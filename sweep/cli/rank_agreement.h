// Do the ranks of a sweep mean the same sweep? Each reads the study for itself: from another folder, with other
// presets or by another build of the program it may find another one.
#pragma once

#include <exception>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "results_schema/manifest.h"
#include "sweep/cli/commands.h"
#include "sweep/ranks/ranks.h"
#include "sweep/yaml/catalog.h"

namespace shardscape::cli {

/// Something that all ranks have to have alike.
struct SharedFact {
  std::string what;      ///< "the version of the program"
  std::string value;     ///< compared
  bool readable = true;  ///< whether a message shows the value
};

/// What a rank makes of its command line: the facts of its sweep, or why there is none.
struct RankView {
  std::vector<SharedFact> facts;
  std::vector<std::string> problems;
  int threads = 0;
};

/// What decides the rows and the files they are sealed in.
std::vector<SharedFact> facts_of(const results::Manifest& manifest, const std::string& output,
                                 bool reference);

/// The texts of all presets, for commands that look them up by name as they go.
std::vector<SharedFact> facts_of(const yaml::Catalog& presets);

/// For its way to rank 0 and back.
std::string to_text(const RankView& view);
RankView view_from(const std::string& text);

/// Tells rank 0 what this rank makes of its command line. On rank 0 the views of all ranks, by rank; an exception there
/// says why they can't work together, be it a `failure` of its own. Elsewhere nothing. Every rank calls it. RankLost.
std::vector<RankView> agree_on(const RankView& view, const std::exception_ptr& failure, ranks::Ranks& ranks);

/// Makes what a rank works from; what it throws is kept for agree_on(), and among the problems of the view.
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

/// Why these ranks can't do one sweep together, a line for each way in which some differ from rank 0, whose
/// view has no problems; nothing where they can. `name` names a rank.
std::vector<std::string> disagreements(std::span<const RankView> views,
                                       const std::function<std::string(int)>& name);

}  // namespace shardscape::cli
