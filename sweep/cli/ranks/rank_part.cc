// Runs a command over its ranks to an orderly end, carries rank 0's word to the others, computes a rank's part of a
// sweep, and gathers the results.
#include "sweep/cli/ranks/rank_part.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <oneapi/tbb/info.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "engine/base/safe_text.h"
#include "results_schema/segments/rank_notes.h"
#include "sweep/cli/terminal/cpu_time.h"
#include "sweep/ranks/launch.h"

namespace shardscape::sweep {
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(StageTimes, evaluate, encode, write)
}  // namespace shardscape::sweep

namespace shardscape::cli {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(RankResult, problem, rows, times, cpu, peak_memory)

namespace {

std::string one_of_several(int size) {
  return size > 0 ? fmt::format("this is one of {} processes", size) : "this is one of several processes";
}

/// The note of this rank; none where it is the only rank, which the folder's lock stands for.
std::optional<results::RankNote> note_of(const ranks::Ranks& ranks, const std::filesystem::path& folder) {
  if (ranks.size() == 1) return std::nullopt;
  return results::RankNote(folder, ranks.rank(),
                           fmt::format("{}, process {}", ranks.name(ranks.rank()), getpid()));
}

}  // namespace

std::unique_ptr<ranks::Ranks> join_ranks(const CommonOptions& common, bool own_shard) {
  if (common.stop != nullptr) return ranks::alone();
  const ranks::Launch launch = ranks::launch_of([](const char* name) { return std::getenv(name); });
  const auto module = ranks::mpi_module();
  if (launch.start == ranks::Start::together && module) {
    auto joined = ranks::join_with_mpi(*module);
    if (launch.size == 0 || joined->size() == launch.size) return joined;
    throw BadInput(fmt::format(
        "{}, but MPI knows of {}: the program was built with another MPI than that of the mpirun or srun",
        one_of_several(launch.size), joined->size()));
  }
  if (launch.start == ranks::Start::alone || own_shard) return ranks::alone();
  const bool copies = launch.start == ranks::Start::copies;
  throw BadInput(one_of_several(launch.size) +
                 (copies ? " that srun started without MPI" : ", and this program was built without MPI") +
                 ": each would sweep the whole study; " +
                 (copies ? "srun --mpi=pmix lets them share it" : "build it with -DSHARDSCAPE_MPI=ON") +
                 ", --shard I/N gives each a part of its own");
}

int run_together(ranks::Ranks& ranks, const std::function<int()>& lead, const std::function<void()>& follow) {
  int code = kDone;
  try {
    if (ranks.rank() == 0) {
      code = lead();
    } else {
      follow();
    }
  } catch (const RankFailure&) {
    throw;
  } catch (const ranks::RankLost&) {
    throw;
  } catch (...) {
    if (ranks.rank() == 0) ranks.close();
    throw;
  }
  ranks.close();
  return code;
}

int default_threads(const ranks::Ranks& ranks) {
  const int usable = tbb::info::default_concurrency();
  const auto cores = static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
  return ranks.size() == 1 ? usable : std::clamp(cores / ranks.on_this_machine(), 1, usable);
}

// ---- rank 0's message to the others ----

Word::~Word() {
  try {
    if (ranks_ != nullptr) ranks_->broadcast("");
  } catch (const ranks::RankLost&) {  // whoever started the other ranks will end them
  }
}

void Word::begin(const std::filesystem::path& folder, const sweep::SharedStart& start) {
  nlohmann::json missing = nlohmann::json::array();
  for (const results::BlockRange& range : start.missing) missing.push_back({range.first, range.count});
  const nlohmann::json word = {
      {"folder", folder.string()}, {"missing", missing}, {"rows_before", start.rows_before}};
  std::exchange(ranks_, nullptr)->broadcast(json_text(word));
}

void Word::begin() { std::exchange(ranks_, nullptr)->broadcast("begin"); }

bool hear_begin(ranks::Ranks& ranks) { return !ranks.broadcast("").empty(); }

Heard hear(ranks::Ranks& ranks) {
  const std::string text = ranks.broadcast("");
  if (text.empty()) return {};
  const auto json = nlohmann::json::parse(text);
  Heard heard;
  heard.begin = true;
  heard.folder = json.at("folder").get<std::string>();
  json.at("rows_before").get_to(heard.start.rows_before);
  for (const auto& range : json.at("missing")) heard.start.missing.push_back({range.at(0), range.at(1)});
  return heard;
}

// ---- a rank's part ----

double peak_memory_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return 1024.0 * static_cast<double>(usage.ru_maxrss);  // Linux reports KiB
}

RankResult run_part(const sweep::SweepJob& job, const OpenStore& open, sweep::SweepOptions options,
                    sweep::SharedStart start, ranks::Ranks& ranks) {
  const double cpu_before = cpu_seconds();
  sweep::SweepOutcome outcome;
  RankResult result;
  try {
    const results::SegmentStore& store = open();
    std::optional<results::RankNote> note = note_of(ranks, store.folder());
    start.took = [&](results::BlockRange blocks) {
      if (note) note->took(blocks);
    };
    start.sealed = [&] {
      if (note) note->remove();
    };
    outcome = run_shared_sweep(job, store, std::move(options), start, ranks);
  } catch (const ranks::RankLost&) {
    throw;
  } catch (const std::exception& failure) {
    result.problem = failure.what();
    ranks.ask_to_stop();
    ranks.report({.finished = true});
  }
  result.cpu = cpu_seconds() - cpu_before;
  result.peak_memory = peak_memory_bytes();
  result.rows = outcome.progress.rows_evaluated;
  result.times = outcome.times;
  return result;
}

std::vector<RankResult> gather_results(const RankResult& own, ranks::Ranks& ranks) {
  std::vector<RankResult> results;
  for (const std::string& text : ranks.gather(json_text(nlohmann::json(own))))
    results.push_back(nlohmann::json::parse(text).get<RankResult>());
  return results;
}

}  // namespace shardscape::cli
