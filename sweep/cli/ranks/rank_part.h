// What every rank of a sweep, also rank 0, does: it joins the others, and computes its part.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "results_schema/segments/segments.h"
#include "sweep/cli/command.h"
#include "sweep/ranks/ranks.h"
#include "sweep/runner/run_sweep.h"
#include "sweep/runner/shared_sweep.h"

namespace shardscape::cli {

/// The ranks that this process was started with; only itself where it was started alone, or computes a shard of its own
/// (`own_shard`) and has no way to talk to others, or where the command runs inside another program. BadInput where it
/// was started as one of several that cannot share work.
std::unique_ptr<ranks::Ranks> join_ranks(const CommonOptions& common, bool own_shard = false);

/// Thrown where a rank is lost, so that the others cannot come to an orderly end.
class RankFailure : public Failure {
 public:
  using Failure::Failure;
};

/// Runs a command over its ranks to an orderly end: `lead` on rank 0, `follow` elsewhere. The exit code is that of
/// `lead`; other ranks always return kDone, as rank 0 reports what is wrong.
int run_together(ranks::Ranks& ranks, const std::function<int()>& lead, const std::function<void()>& follow);

/// Runs a step that every rank takes part in. If it fails on one rank, the others cannot be told and are ended with it.
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

/// Threads of a rank where the user gives no number: all that it may use, or its share of the machine if there are
/// other ranks on it.
int default_threads(const ranks::Ranks& ranks);

/// Rank 0's message to the others, which wait for it: what to begin with, or that there is nothing to do. If rank 0
/// leaves without having sent one, as by an exception, the others get the latter.
class Word {
 public:
  explicit Word(ranks::Ranks& ranks) : ranks_(&ranks) {}
  ~Word();
  Word(const Word&) = delete;
  Word& operator=(const Word&) = delete;
  void begin(const std::filesystem::path& folder, const sweep::SharedStart& start);
  /// Sends the message that the others should begin, without data.
  void begin();

 private:
  ranks::Ranks* ranks_;
};

/// The message as the others receive it.
struct Heard {
  bool begin = false;
  std::filesystem::path folder;
  sweep::SharedStart start;
};
Heard hear(ranks::Ranks& ranks);
/// Receives a message without data; returns whether to begin.
bool hear_begin(ranks::Ranks& ranks);

/// The result of a rank's part.
struct RankResult {
  std::string problem;  ///< why it gave up; empty where it did not
  std::uint64_t rows = 0;
  sweep::StageTimes times;
  double cpu = 0;          ///< CPU time in seconds
  double peak_memory = 0;  ///< in bytes
};

/// The most memory that this process has used so far, in bytes.
double peak_memory_bytes();

/// Opens the store to seal in, which must outlive the rank's part.
using OpenStore = std::function<const results::SegmentStore&()>;

/// Computes this rank's part. If it fails, all ranks are asked to stop, and the result says why. RankLost on rank 0.
RankResult run_part(const sweep::SweepJob& job, const OpenStore& open, sweep::SweepOptions options,
                    sweep::SharedStart start, ranks::Ranks& ranks);

/// The results of all ranks, by rank, on rank 0; nothing elsewhere. Every rank must call it. RankLost.
std::vector<RankResult> gather_results(const RankResult& own, ranks::Ranks& ranks);

}  // namespace shardscape::cli
