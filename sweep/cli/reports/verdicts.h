// Verdicts on points, in words and numbers.
#pragma once

#include <cstdint>
#include <filesystem>
#include <ostream>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/spec/plan.h"
#include "engine/spec/prediction.h"
#include "engine/spec/scenario.h"
#include "results_schema/rows/limits.h"
#include "results_schema/rows/summary.h"

namespace shardscape::cli {

/// The name of a reason's code; files have names of their own, those of the bounds of their study among them.
std::string reason_name(const std::vector<std::string>& names, std::size_t code);

/// The meaning of a reason, by its name, as half a sentence: "the number of heads does not divide by tp".
std::string describe(std::string_view reason);

/// The status of a point with this reason, by its name.
Status status_of(std::string_view reason);

/// A bound on a result: "ttft_p95 <= 2 s".
std::string limit_words(const results::Limit& limit);

/// Above this share of a device's memory a plan that fits may fail when it runs: allocators reserve 2 to 10 % more than
/// is allocated (`memory.fragmentation` of the stacks, which predictions count of activations alone), and peaks are
/// predicted within 0.5 to 9 % in the mean (tests/validation/README.md).
inline constexpr double kTightMemory = 0.95;
/// A line about a plan that fits by less than that; empty for all others.
std::string tight_memory(double bytes, double capacity);

/// Of a plan that takes more of a GPU's memory than this, what decides it is named: the part of memory whose format the
/// stack or the precision chooses.
inline constexpr double kFullMemory = 0.9;
/// What is to be known of the memory of a plan, a line each: tight_memory(), and gradients (or the key-value cache)
/// with their bytes and format where it is full. Empty where the memory was not counted.
std::vector<std::string> memory_notes(const Setting& setting, const Prediction& prediction);
/// Of a plan in whose memory the longest request of a trace does not fit: its line in that file and its tokens, and
/// (unless there are two pools) for how many there is room. Empty for all others, and where there is no room for any.
std::string long_request(const std::filesystem::path& trace, const Setting& setting, const ParallelPlan& plan,
                         const Prediction& prediction);

struct VerdictCounts {
  std::vector<results::CodeCount> statuses, reasons;  ///< codes that occur
  std::vector<std::string> reason_names;              ///< by code
  std::uint64_t points = 0;
  bool examples = false;  ///< whether CodeCount::example is valid
};
/// The codes that occur; `by_status` and `by_reason` count the points with each code.
VerdictCounts verdict_counts(std::span<const std::uint64_t> by_status,
                             std::span<const std::uint64_t> by_reason, std::uint64_t points,
                             std::vector<std::string> reason_names);

/// Prints one line per status, and below it one per reason: count, share, the first point where that is known, and the
/// meaning.
void print_verdicts(std::ostream& out, const VerdictCounts& counts);

/// The bounds that feasible points miss, each with the number of those that miss it by most: "ttft_p95 <= 2 s (12
/// points)"; empty where there are none.
std::string missed_text(std::span<const results::CodeCount> reasons, const std::vector<std::string>& names);

}  // namespace shardscape::cli
