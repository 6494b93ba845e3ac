// Problems found in a specification: every one is reported, none stops the search for the next.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace shardscape {

/// One violated rule. `field` is the dotted path inside the spec ("hbm.bandwidth"), `message` says what is
/// wrong and what would be right.
struct Problem {
  std::string field;
  std::string message;
};

/// Collects problems; empty means the spec is valid.
class Problems {
 public:
  void add(std::string field, std::string message) {
    list_.push_back({std::move(field), std::move(message)});
  }
  /// Records `message` against `field` unless `ok`.
  void require(bool ok, std::string field, std::string message) {
    if (!ok) add(std::move(field), std::move(message));
  }
  [[nodiscard]] bool empty() const { return list_.empty(); }
  [[nodiscard]] const std::vector<Problem>& list() const { return list_; }

 private:
  std::vector<Problem> list_;
};

}  // namespace shardscape
