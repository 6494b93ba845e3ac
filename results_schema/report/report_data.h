// The data of the page: what it shows of a result file, as one compact JSON document.
//
// It is a function of the file's rows, of the study and of the program's version. Time, host and threads of
// the run stay out, so that the same results always make the same page.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "engine/prediction.h"
#include "results_schema/reader.h"

namespace shardscape::report {

/// How the page calls things: the words that the program's own tables use.
struct Words {
  std::string (*heading)(const results::ColumnInfo& column) = nullptr;  ///< "tp" for tensor_parallel
  std::string (*meaning)(Reason reason) = nullptr;                      ///< half a sentence
  Status (*status_of)(Reason reason) = nullptr;
};

/// A cumulative distribution: (share of the samples, slowdown that they do not exceed), ascending.
struct Distribution {
  std::string name;
  std::vector<std::pair<double, double>> points;
};

/// What the fault samples say of one place, or of one group of places.
struct FaultPlace {
  std::string name;
  std::uint64_t samples = 0, unreachable = 0;
  double mean = 0, max = 0, above_1pct = 0;  ///< NaN where nothing is left
};

struct FaultFigures {
  std::vector<Distribution> distributions;
  std::vector<FaultPlace> places;  ///< the worst ones, worst first
  std::uint64_t place_count = 0;   ///< of all
  std::vector<FaultPlace> dimensions;
};

/// One change that would make a point feasible.
struct Fix {
  std::string change;                   ///< "recompute=full", "96 GiB of memory"
  double memory_bytes = 0, time_s = 0;  ///< with it: of the fullest device; of a step or request
  std::string where;                    ///< "point 17 of the study", "not in the study's space"
};

/// A point that nearly is feasible, in a study where none is.
struct NearMiss {
  std::uint64_t point_id = 0;
  std::string plan, setting;
  std::string problem;       ///< "12.10 GiB missing on stage 3: needs 92.10 GiB of 80.00 GiB"
  double missing_bytes = 0;  ///< NaN where it is not memory that is missing
  std::int32_t stage = -1;   ///< of the pipeline, on which
  std::vector<Fix> fixes;    ///< those of the plan, the fastest first, then more memory
};

/// What makes a `shardscape simulate` command of a point.
struct Commands {
  std::string study = "STUDY.yaml";  ///< a word of the shell
  std::uint64_t plans = 0;  ///< per setting; 0 where the study can't be read, then no settings are known
  /// Per axis of settings, the slowest first: the words that choose each of its values,
  /// "--set 'hardware.device.hbm.bandwidth=2 TB/s'". The setting of a point is its id by `plans`.
  std::vector<std::vector<std::string>> settings;
};

struct ReportInput {
  Words words;
  std::vector<std::pair<std::string, std::string>> facts;  ///< what the study is about: (label, text)
  FaultFigures faults;                                     ///< empty without fault samples
  std::string of_the_study;                                ///< which points these are; empty where all are
  std::vector<NearMiss> near_misses;                       ///< where no point is feasible
  Commands commands;
  std::size_t max_points = 20'000;  ///< feasible points shown, see SampledRows
};

/// The column that says how much is asked of a server.
inline constexpr const char* kLoadColumn = "concurrency";

/// The column that ranks the points: the first objective, or step_time_s or e2e_s.
const results::ColumnInfo& ranking_column(const results::ResultReader& reader);

/// What the scatter shows as the page opens: across the column that ranks, up the second objective, or where
/// there is none the memory (the time, where memory ranks).
std::pair<std::string, std::string> default_axes(const results::ResultReader& reader);

/// The document. UTF-8; whatever a file holds, it stays valid JSON, and no '<' is in it, so that it can stand
/// in a script element as it is. Memory does not grow with the number of rows.
std::string report_json(const results::ResultReader& reader, const ReportInput& input);

}  // namespace shardscape::report
