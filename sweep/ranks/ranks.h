// The processes that do one piece of work together: how many there are, which one this is, and the little
// that they say to each other.
//
// They share counters, one for each of them, from which any takes the number of its next piece of work, and rank 0
// hears from each several times a second. Texts are gathered and broadcast where all have come to the same place. Every
// rank calls gather() and broadcast() equally often and in the same order; all else is for any rank at any
// time. Any thread may call, one at a time where the calls are collective.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace shardscape::ranks {

/// What a rank says of its work so far. Sent as its bytes: all ranks run the same program.
struct Report {
  std::uint64_t rows = 0, feasible = 0;
  double best_value = 0;
  std::uint64_t best_point = 0;
  bool has_best = false;
  bool finished = false;  ///< it takes no more work
};

/// A rank is gone, or hangs: it has not been heard of for so long that nothing is to be expected of it.
class RankLost : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class Ranks {
 public:
  virtual ~Ranks() = default;

  [[nodiscard]] virtual int rank() const = 0;  ///< 0 .. size() - 1; 0 leads
  [[nodiscard]] virtual int size() const = 0;
  /// How many of them share this machine, this one included.
  [[nodiscard]] virtual int on_this_machine() const = 0;
  /// "rank 3 of 8 (node17)". On rank 0 for any rank, elsewhere for the own one.
  [[nodiscard]] virtual std::string name(int rank) const = 0;

  /// Every rank's text, by rank, on rank 0; nothing elsewhere. RankLost on rank 0.
  virtual std::vector<std::string> gather(const std::string& text) = 0;
  /// Rank 0's text, everywhere.
  virtual std::string broadcast(const std::string& text) = 0;

  /// The next number of one of the common counters, 0 .. size() - 1: 0, 1, 2 ..., each given to one rank only.
  virtual std::uint64_t take(int counter) = 0;
  /// Replaces what this rank says of itself.
  virtual void report(const Report& report) = 0;
  /// On rank 0: what each has said last, by rank. RankLost where one has fallen silent.
  virtual std::vector<Report> reports() = 0;
  /// Asks all ranks to take no more work.
  virtual void ask_to_stop() = 0;
  [[nodiscard]] virtual bool asked_to_stop() const = 0;

  /// The orderly end, which waits for that of all others. Without it the others are ended by whoever started
  /// them.
  virtual void close() = 0;
};

/// One process by itself.
std::unique_ptr<Ranks> alone();

}  // namespace shardscape::ranks
