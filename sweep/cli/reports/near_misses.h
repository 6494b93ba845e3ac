// For a study without feasible points: the points that come closest, what they lack, and which single change would make
// one of them fit.
#pragma once

#include <functional>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "results_schema/reading/reader.h"
#include "results_schema/report/report_data.h"
#include "sweep/study/study.h"

namespace shardscape::cli {

/// The study that a result file holds, and its points.
struct StoredStudy {
  sweep::Study study;
  sweep::DesignSpace space;
};
/// Nothing where this program reads the study differently from the program that wrote it, as its point ids then mean
/// something else.
std::optional<StoredStudy> stored_study(const results::ResultReader& reader);
/// The same in two steps, as listing the points of a large study takes a while.
std::optional<sweep::Study> read_study(const results::ResultReader& reader);
std::optional<StoredStudy> with_points(const results::ResultReader& reader,
                                       std::optional<sweep::Study> study);

/// The nearest misses among the rows that `keep` accepts, none of which is feasible: those that lack the least memory,
/// one for each amount, the least first; where memory rejects none, the first point for each reason. Changes are single
/// moves of engine/neighbours.h and a device with more memory, each tried with the simulator; if no single move helps
/// any of the nearest, the fewest moves that do. Without a stored study only the needs are given.
std::vector<report::NearMiss> near_misses(const results::ResultReader& reader,
                                          const std::function<bool(std::size_t row)>& keep);
/// The nearest misses among all rows; nothing where one is feasible.
std::vector<report::NearMiss> near_misses(const results::ResultReader& reader);

/// Prints two tables: the misses, and the changes that make one fit. Nothing where there are no misses.
void print_near_misses(std::ostream& out, const std::vector<report::NearMiss>& misses);

}  // namespace shardscape::cli
