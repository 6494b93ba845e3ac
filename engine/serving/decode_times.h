// How long decode iterations take, as straight pieces: those of one batch differ only in the tokens that its sequences
// meet, of which their time is a convex, piecewise linear function (Timer). So a row of them is summed up in closed
// form, and which of them runs at a moment is the root of a quadratic. Where pieces meet is known to the token: exact
// for whole numbers of them, and within what one token adds for the parts of tokens that accepted drafts leave.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/serving/server.h"

namespace shardscape::serving {

/// The time a + b x of iterations that meet `begin` + x tokens, for up to `end` tokens.
struct DecodePiece {
  double begin = 0, end = 0;  ///< tokens, of all sequences together
  IterationTime at_begin{}, per_token{};
  double seconds = 0, seconds_per_token = 0;  ///< total seconds at `begin`, and per further token
};

/// Iterations of the same sequences, which meet `growth` tokens more in each; all lie on one piece.
struct DecodeRun {
  const DecodePiece* piece = nullptr;
  double begin = 0;   ///< moment at which the first one begins
  double cached = 0;  ///< tokens that the first one meets
  double sequences = 0;
  std::int64_t iterations = 0;
  double growth = 0;  ///< tokens: one for each sequence, or more where drafts are accepted

  [[nodiscard]] double first() const {
    return piece->seconds + piece->seconds_per_token * (cached - piece->begin);
  }
  [[nodiscard]] double step() const { return piece->seconds_per_token * growth; }
  /// Seconds of the first `count` iterations.
  [[nodiscard]] double seconds(std::int64_t count) const {
    const auto n = static_cast<double>(count);
    return n * (first() + 0.5 * step() * (n - 1));
  }
  void add_to(IterationTime& spent, std::int64_t count) const;
  /// Number of iterations that have ended before `moment`.
  [[nodiscard]] std::int64_t ended_before(double moment) const;
};

class DecodeTimes {
 public:
  /// `timer` must outlive this object.
  DecodeTimes(const Load& load, const Timer& timer) : load_(load), timer_(timer) {}

  /// The run from `begin` on, with `sequences` that meet `cached` tokens in its first iteration, of at most `most`
  /// iterations, or fewer where the piece ends. It may refer to `own`, which must not change meanwhile and is used for
  /// batches that are not worth a table. `growth`: tokens per iteration.
  [[nodiscard]] DecodeRun run(double begin, std::int64_t sequences, double cached, std::int64_t most,
                              DecodePiece& own, double growth);
  [[nodiscard]] DecodeRun run(double begin, std::int64_t sequences, double cached, std::int64_t most,
                              DecodePiece& own) {
    return run(begin, sequences, cached, most, own, static_cast<double>(sequences));
  }

 private:
  struct Batch {
    std::int32_t timed = 0;  ///< iterations that were timed one by one
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
  std::vector<Batch> batches_;  ///< by number of sequences
};

/// Whether the middle one of three times lies on the line between the others, `share` of the way from a to b, within
/// the rounding of sums of their classes.
bool on_line(const IterationTime& a, const IterationTime& b, const IterationTime& middle, double share);

}  // namespace shardscape::serving
