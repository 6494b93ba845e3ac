// What every rank of a sweep does, rank 0 among them: it joins the others, and computes its part.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "results_schema/segments.h"
#include "sweep/cli/commands.h"
#include "sweep/ranks/ranks.h"
#include "sweep/runner/run_sweep.h"
#include "sweep/runner/shared_sweep.h"

namespace shardscape::cli {

/// The ranks that this process was started with; itself alone where it was started by itself, or has a part of
/// its own (`own_shard`) and nobody to talk to. BadInput where it was started as one of several that can't
/// share the work.
std::unique_ptr<ranks::Ranks> join_ranks(bool own_shard);

/// A rank is lost, so that there is no orderly end for the others to wait for.
class RankFailure : public Failure {
 public:
  using Failure::Failure;
};

/// Runs a command over its ranks to an orderly end: `lead` on rank 0, `follow` elsewhere. The exit code is what `lead`
/// returns, of the others always kDone: what is wrong, rank 0 says.
int run_together(ranks::Ranks& ranks, const std::function<int()>& lead, const std::function<void()>& follow);

/// A step that every rank takes part in: where it fails on one, the others can't be told, and are ended with it.
template <class Step>
auto in_common(const ranks::Ranks& ranks, const Step& step) {
  try {
    return step();
  } catch (const ranks::RankLost&) {
    throw;
  } catch (const std::exception& failure) {
    if (ranks.size() == 1) throw;
    throw RankFailure(failure.what(), "");
  }
}

/// Threads of one rank where the user says nothing: all that it may use, or its share of the machine where
/// others are there, too.
int default_threads(const ranks::Ranks& ranks);

/// Rank 0's word to the others, for which they wait: what to begin with, or that there is nothing to do. Where
/// rank 0 leaves before it has given a word, as by an exception, it is the latter.
class Word {
 public:
  explicit Word(ranks::Ranks& ranks) : ranks_(&ranks) {}
  ~Word();
  Word(const Word&) = delete;
  Word& operator=(const Word&) = delete;
  void begin(const std::filesystem::path& folder, const sweep::SharedStart& start);
  /// Where there is nothing more to say.
  void begin();

 private:
  ranks::Ranks* ranks_;
};

/// What the others hear.
struct Heard {
  bool begin = false;
  std::filesystem::path folder;
  sweep::SharedStart start;
};
Heard hear(ranks::Ranks& ranks);
/// Whether to begin, of a word without more.
bool hear_begin(ranks::Ranks& ranks);

/// How a rank's part ended.
struct RankResult {
  std::string problem;  ///< why it gave up; empty where it did not
  std::uint64_t rows = 0;
  sweep::StageTimes times;
  double cpu = 0;          ///< seconds
  double peak_memory = 0;  ///< bytes
};

/// Most that this process has had so far, in bytes.
double peak_memory_bytes();

/// Gives the store to seal in, which outlives the rank's part.
using OpenStore = std::function<const results::SegmentStore&()>;

/// This rank's part. Where it fails, all are asked to stop, and the result says why. RankLost on rank 0.
RankResult run_part(const sweep::SweepJob& job, const OpenStore& open, sweep::SweepOptions options,
                    sweep::SharedStart start, ranks::Ranks& ranks);

/// All results, by rank, on rank 0; nothing elsewhere. Every rank calls it. RankLost.
std::vector<RankResult> gather_results(const RankResult& own, ranks::Ranks& ranks);

}  // namespace shardscape::cli
