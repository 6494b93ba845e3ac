// The data of the page: what it shows of a result file, as one compact JSON document.
//
// It is a function of the file's rows, of the study and of the program's version. Time, host and threads of
// the run stay out, so that the same results always make the same page.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/spec/prediction.h"
#include "results_schema/reading/reader.h"

namespace shardscape::report {

/// The words of the program's own tables, which the page uses, too.
struct Words {
  std::string (*heading)(const results::ColumnInfo& column) = nullptr;  ///< "tp" for tensor_parallel
  std::string (*meaning)(std::string_view reason) = nullptr;  ///< half a sentence, by the reason's name
  Status (*status_of)(std::string_view reason) = nullptr;
};

/// A cumulative distribution, ascending: pairs of a share of the samples and the slowdown that they do not exceed.
struct Distribution {
  std::string name;
  std::vector<std::pair<double, double>> points;
};

/// Fault samples of one place, or of one group of places.
struct FaultPlace {
  std::string name;
  std::uint64_t samples = 0, unreachable = 0;
  double mean = 0, max = 0, above_1pct = 0;  ///< slowdowns; NaN where no samples are left
};

struct FaultFigures {
  std::vector<Distribution> distributions;
  std::vector<FaultPlace> places;  ///< the worst places, worst first
  std::uint64_t place_count = 0;   ///< number of all places
  std::vector<FaultPlace> dimensions;
};

/// A change that would make a point feasible.
struct Fix {
  std::string change;  ///< "recompute=full", "96 GiB of memory"
  /// Figures after the change: memory of the fullest device in bytes; time of a step or request in seconds.
  double memory_bytes = 0, time_s = 0;
  std::string where;  ///< "point 17 of the study", "not in the study's space"
};

/// A point that is nearly feasible, in a study where no point is.
struct NearMiss {
  std::uint64_t point_id = 0;
  std::string plan, setting;
  std::string problem;       ///< "12.10 GiB missing on stage 3: needs 92.10 GiB of 80.00 GiB"
  double missing_bytes = 0;  ///< NaN where memory is not what is missing
  std::int32_t stage = -1;   ///< stage of the pipeline where it is missing
  std::vector<Fix> fixes;    ///< changes of the plan, the fastest first, then more memory
  bool fits = false;         ///< it is feasible, and misses a bound of the study
};

/// The plan that answers the study's question, and what is known of it beyond the file's columns.
struct Answer {
  std::optional<std::uint64_t> point;  ///< nothing: the first by rank
  std::vector<std::size_t> rows = {};  ///< of the file: that plan's and those with times below
  /// The time that was executed, message by message, of some of the best rows, by point; no column where nothing was.
  std::optional<results::ColumnInfo> executed;
  std::map<std::uint64_t, double> times = {};
  std::string confirmed;                 ///< "10 rows executed: the order holds"
  std::string framework, refused;        ///< what `launch` runs the plan in, or why it does not; may be empty
  std::vector<std::string> assumptions;  ///< what the results rest on beyond the inputs
  std::vector<std::string> remarks;      ///< what else is to be known of the first plans
};

/// The parts of a `shardscape simulate` command for a point.
struct Commands {
  /// Words of the shell: the study where the sweep found it, and the options that changed it.
  std::string study = "STUDY.yaml";
  /// Number of plans per setting; 0 where the study cannot be read, so that no settings are known.
  std::uint64_t plans = 0;
  /// For each axis of settings, the slowest first: the options that choose each of its values, such as "--set
  /// 'hardware.device.hbm.bandwidth=2 TB/s'". The setting of a point is its id divided by `plans`.
  std::vector<std::vector<std::string>> settings;
};

struct ReportInput {
  Words words;
  std::vector<std::pair<std::string, std::string>> facts;  ///< facts about the study: (label, text)
  FaultFigures faults;                                     ///< empty without fault samples
  /// The part of the study's points that are shown, in words; empty where all are.
  std::string of_the_study;
  std::vector<NearMiss> near_misses;  ///< filled where no point is feasible
  Commands commands;
  Answer answer;
  std::size_t max_points = 20'000;  ///< most feasible points shown, see SampledRows
};

/// The column of the load on a server.
inline constexpr const char* kLoadColumn = "concurrency";

/// The column that ranks the points: the first objective, or step_time_s or e2e_s.
const results::ColumnInfo& ranking_column(const results::ResultReader& reader);

/// The columns of the scatter when the page opens: across the column that ranks, up the second objective, or without
/// one the memory (the time, where memory ranks).
std::pair<std::string, std::string> default_axes(const results::ResultReader& reader);

/// The document, in UTF-8. It is valid JSON whatever a file holds and contains no '<', so that it can stand in a script
/// element. Memory does not grow with the number of rows.
std::string report_json(const results::ResultReader& reader, const ReportInput& input);

}  // namespace shardscape::report
