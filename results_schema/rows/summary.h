// The summary of a whole study: counts by status and reason, the Pareto front, the best points. Built in one pass over
// the rows, in any order, with memory for the result only.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/spec/prediction.h"
#include "results_schema/rows/columns.h"
#include "results_schema/rows/stored_rows.h"

namespace shardscape::results {

/// The number of rows with a code, and the smallest point_id among them.
struct CodeCount {
  std::uint8_t code = 0;
  std::uint64_t count = 0;
  std::uint64_t example = 0;
  friend bool operator==(const CodeCount&, const CodeCount&) = default;
};

/// A point with its values of the study's objectives, in their order.
struct RankedPoint {
  std::uint64_t point_id = 0;
  std::vector<double> values;
  friend bool operator==(const RankedPoint&, const RankedPoint&) = default;
};

struct Summary {
  /// The codes that occur, ascending; reason `none` is not counted.
  std::vector<CodeCount> statuses, reasons;
  std::vector<RankedPoint>
      pareto;  ///< ascending by the first objective (best first), then the next, then point_id
  std::vector<RankedPoint> top;  ///< best first by the first objective, then point_id
};

inline constexpr std::size_t kTopCount = 10;

class SummaryBuilder {
 public:
  /// Takes one direction per objective, smaller or larger.
  explicit SummaryBuilder(std::vector<Better> directions, std::size_t top_count = kTopCount);

  /// Adds a row. Only rows with status ok and without a NaN objective are ranked; of several with equal objectives the
  /// front keeps the smallest id. O(size of the front).
  void add(std::uint64_t point_id, Status status, Reason reason, std::span<const double> objectives);

  /// Adds all rows of a part of the study by its summary: the result is the same as from the rows.
  void add(const Summary& part);

  [[nodiscard]] Summary finish() const;

 private:
  struct Tally {
    std::uint64_t count = 0, example = 0;
  };
  static void count(Tally& tally, std::uint64_t point_id, std::uint64_t points = 1);
  static bool ranks_before(const PointCosts& a, const PointCosts& b);
  void offer_top(const PointCosts& point);
  [[nodiscard]] RankedPoint ranked(const PointCosts& point) const;

  std::vector<Better> directions_;
  std::size_t top_count_;
  std::array<Tally, 256> statuses_{}, reasons_{};  ///< tallies by code
  ParetoFront front_;
  std::vector<PointCosts> top_;
  PointCosts candidate_;
};

}  // namespace shardscape::results
