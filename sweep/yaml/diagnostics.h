// Problems of input files with their places: all of them are collected, and none stops the search for the next.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace shardscape::yaml {

/// Where a piece of input was written. Lines and columns count from 1; line 0 stands for the source as a
/// whole (a command-line override, a file that cannot be opened).
struct Location {
  std::shared_ptr<const std::string> source;  ///< file name as the user knows it; never null once located
  int line = 0;
  int column = 0;
};

/// The place as "file:line:column", or "file" alone for line 0.
std::string to_string(const Location& where);

struct Diagnostic {
  Location where;
  std::string path;     ///< dotted path inside the file ("space.zero_stage"); empty for the file as a whole
  std::string message;  ///< what is wrong, and what would be right
};

/// The problem as "file:line:column: path: message".
std::string to_string(const Diagnostic& diagnostic);

/// An ordered collection of diagnostics; empty means that the input is good.
class Diagnostics {
 public:
  /// Adds a problem unless an equal one (place, path and message) is there already.
  void add(Location where, std::string path, std::string message);
  void add(const Diagnostic& diagnostic);
  void append(const Diagnostics& other);
  /// Sorts by line and column inside each file; files stay in the order of their first problem.
  void sort();

  [[nodiscard]] bool empty() const { return list_.empty(); }
  /// Number of all problems that were added, whether kept or only counted.
  [[nodiscard]] std::size_t size() const { return list_.size() + further_; }
  /// Whether further problems are only counted: nobody reads a thousand of them, and no file should make us search the
  /// nearest name for each of a million keys.
  [[nodiscard]] bool full() const { return list_.size() >= kMostKept; }
  [[nodiscard]] const std::vector<Diagnostic>& list() const { return list_; }
  /// One line per problem, each ended by a newline: ready for stderr.
  [[nodiscard]] std::string to_string() const;

 private:
  static constexpr std::size_t kMostKept = 200;
  std::vector<Diagnostic> list_;
  std::size_t further_ = 0;
};

}  // namespace shardscape::yaml
