// Constraints of a study: small boolean expressions over the plan ("tp * cp <= 16", "pp <= 8 or mbs == 1").
//
// Grammar, loosest first: or | and | not | comparison (== != < <= > >=) | + - | * / % | unary - | number |
// name | ( ). Names: tp cp dp pp sp zero mbs vpp gpus microbatches recompute schedule sequence_length
// global_batch concurrency; recompute and schedule compare with their value names ("recompute == full").
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

#include "engine/spec/plan.h"
#include "engine/spec/workload.h"

namespace shardscape::sweep {

struct ConstraintError {
  std::size_t offset = 0;  ///< 0-based position in the text
  std::string message;
};

/// A compiled expression: parsed once, evaluated per point without allocation.
class Constraint {
 public:
  static tl::expected<Constraint, ConstraintError> parse(std::string_view text);

  /// True where the plan satisfies the expression.
  [[nodiscard]] bool holds(const ParallelPlan& plan, const WorkloadSpec& workload) const;
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  struct Instruction {
    std::uint8_t op = 0;
    std::uint8_t name = 0;
    double number = 0;
  };
  std::string text_;
  std::vector<Instruction> program_;  ///< postfix
};

}  // namespace shardscape::sweep
