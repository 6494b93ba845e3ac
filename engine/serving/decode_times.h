// How long decode iterations take, as straight pieces: those of one batch differ only in the tokens that its sequences
// meet, of which their time is a convex, piecewise linear function (Timer). So a row of them is summed up in closed
// form, and which of them runs at a moment is the root of a quadratic.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/serving/server.h"

namespace shardscape::serving {

/// a + b x: the time of iterations that meet `begin` + x tokens, up to `end`.
struct DecodePiece {
  double begin = 0, end = 0;  ///< tokens, of all sequences together
  IterationTime at_begin{}, per_token{};
  double seconds = 0, seconds_per_token = 0;  ///< their totals
};

/// Iterations of the same sequences, each of which meets one token more from one to the next: all on one piece.
struct DecodeRun {
  const DecodePiece* piece = nullptr;
  double begin = 0;   ///< moment
  double cached = 0;  ///< tokens met in the first one
  double sequences = 0;
  std::int64_t iterations = 0;

  [[nodiscard]] double first() const {
    return piece->seconds + piece->seconds_per_token * (cached - piece->begin);
  }
  [[nodiscard]] double step() const { return piece->seconds_per_token * sequences; }
  /// Of the first `count` iterations.
  [[nodiscard]] double seconds(std::int64_t count) const {
    const auto n = static_cast<double>(count);
    return n * (first() + 0.5 * step() * (n - 1));
  }
  void add_to(IterationTime& spent, std::int64_t count) const;
  /// How many iterations have ended before a moment.
  [[nodiscard]] std::int64_t ended_before(double moment) const;
};

class DecodeTimes {
 public:
  /// `timer` must outlive this object.
  DecodeTimes(const Load& load, const Timer& timer) : load_(load), timer_(timer) {}

  /// From `begin` on, `sequences` that meet `cached` tokens in the first of at most `most` iterations. Stops where the
  /// piece does. The run is good until `own` changes, which serves batches not worth a table.
  [[nodiscard]] DecodeRun run(double begin, std::int64_t sequences, double cached, std::int64_t most,
                              DecodePiece& own);

 private:
  struct Batch {
    std::int32_t timed = 0;  ///< iterations, one by one
    std::vector<DecodePiece> pieces;
  };
  struct Point {
    double cached = 0;
    IterationTime time{};
  };
  [[nodiscard]] Point at(std::int64_t sequences, double cached) const;
  void make_table(std::int64_t sequences, Batch& batch) const;
  void add_pieces(std::int64_t sequences, const Point& a, const Point& b,
                  std::vector<DecodePiece>& pieces) const;

  const Load load_;
  const Timer& timer_;
  std::vector<Batch> batches_;  ///< by sequences
};

/// Whether the middle of three times lies on the line between the others, `share` of the way from a to b, up to the
/// rounding of sums of its classes.
bool on_line(const IterationTime& a, const IterationTime& b, const IterationTime& middle, double share);

}  // namespace shardscape::serving
