// The processes that do one piece of work together: how many there are, which one this is, and the little
// that they say to each other.
//
// They share counters, one for each of them, from which any takes the number of its next piece of work, and rank 0
// hears from each several times a second. Texts are gathered and broadcast where all have come to the same place. Every
// rank calls gather() and broadcast() equally often and in the same order; all else is for any rank at any
// time. Any thread may call, one at a time where the calls are collective.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace shardscape::ranks {

/// The progress of a rank, as it reports it. Sent byte by byte, as all ranks run the same program.
struct Report {
  std::uint64_t rows = 0, feasible = 0;
  double best_value = 0;
  std::uint64_t best_point = 0;
  bool has_best = false;
  bool finished = false;  ///< the rank takes no more work
};

/// A rank is gone or hangs: it has been silent for longer than a working rank ever is.
class RankLost : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class Ranks {
 public:
  virtual ~Ranks() = default;

  [[nodiscard]] virtual int rank() const = 0;  ///< 0 .. size() - 1; rank 0 leads
  [[nodiscard]] virtual int size() const = 0;
  /// How many of the ranks run on this machine, this one included.
  [[nodiscard]] virtual int on_this_machine() const = 0;
  /// The name of a rank, such as "rank 3 of 8 (node17)". Rank 0 knows those of all, other ranks only their own.
  [[nodiscard]] virtual std::string name(int rank) const = 0;

  /// Gathers a text from every rank: on rank 0 all of them, by rank; empty elsewhere. Throws RankLost on rank 0.
  virtual std::vector<std::string> gather(const std::string& text) = 0;
  /// Sends rank 0's text to all ranks and returns it.
  virtual std::string broadcast(const std::string& text) = 0;

  /// Takes the next number of a common counter, 0 .. size() - 1. Each counts 0, 1, 2 ... and gives a number only once.
  virtual std::uint64_t take(int counter) = 0;
  /// Replaces what this rank last said of its progress.
  virtual void report(const Report& report) = 0;
  /// The latest report of each rank, by rank; on rank 0 only. Throws RankLost where one has fallen silent.
  virtual std::vector<Report> reports() = 0;
  /// Asks all ranks to take no more work.
  virtual void ask_to_stop() = 0;
  [[nodiscard]] virtual bool asked_to_stop() const = 0;

  /// Ends in an orderly way: waits until all other ranks do the same. Without it, whoever started the ranks ends the
  /// others.
  virtual void close() = 0;
};

/// Makes the ranks of a process that runs by itself.
std::unique_ptr<Ranks> alone();

// Values as bytes in the texts that ranks exchange: they can be copied as they are, as all ranks run the same program.

template <class T>
void append_value(const T& value, std::string& text) {
  static_assert(std::is_trivially_copyable_v<T>);
  text.append(reinterpret_cast<const char*>(&value), sizeof(T));
}

/// Takes a value from the front of a text.
template <class T>
void take_value(T& value, std::string_view& text) {
  static_assert(std::is_trivially_copyable_v<T>);
  std::memcpy(&value, text.data(), sizeof(T));
  text.remove_prefix(sizeof(T));
}

template <class T>
void append_value(const std::vector<T>& values, std::string& text) {
  append_value(std::uint64_t{values.size()}, text);
  for (const T& value : values) append_value(value, text);
}

template <class T>
void take_value(std::vector<T>& values, std::string_view& text) {
  std::uint64_t size = 0;
  take_value(size, text);
  values.resize(size);
  for (T& value : values) take_value(value, text);
}

}  // namespace shardscape::ranks
