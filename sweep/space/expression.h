// Boolean expressions over named values, compiled once and evaluated without allocation.
//
// Grammar, loosest first: or | and | not | comparison (== != < <= > >=) | + - | * / % | unary - | number |
// name | 'quoted text' | true | false | ( ). Comparisons do not chain. A name is a number, a truth value (0
// or 1, usable as a number, too) or a choice; a choice compares by == and != with one of its value names,
// bare or quoted ("recompute == full", "rank_order == 'tp-cp-dp-pp'"). The whole expression must be a truth
// value, but for one that is parsed as a value.
//
// A number may have a unit behind it: of time (ns us ms s min h), data (B kB MB GB TB KiB MiB GiB TiB), data per time
// (GB/s), frequency (GHz), 1/time (/s /min), or %. It is taken in SI units; where both sides of a comparison have one
// it must be the same. `40 %` before an operand is the remainder. Dots in a name are underscores; capitals do not count
// where no other name is meant.
//
// Arithmetic is that of double: x / 0 and x % 0 give infinity or NaN, and every comparison with NaN but != is
// false.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

namespace shardscape::sweep {

enum class NameKind : std::uint8_t { number, truth, choice };

/// A name that an expression may use. A choice has the values 0, 1, ... for its `choices`.
struct ExpressionName {
  std::string name;
  NameKind kind = NameKind::number;
  std::vector<std::string> choices = {};
  bool rate = false;       ///< per second, so that a number with the unit of a rate may be compared with it
  std::string unit = {};   ///< UDUNITS: "s", "byte", "byte s-1", "Hz"; "1": none; empty: not known, or a rate
  bool gigabytes = false;  ///< device memory: a number below 1e6 without a unit was not meant in bytes
  std::string zero = {};   ///< another name of the first choice
  std::vector<std::string> also = {};  ///< further names, such as headings: "step time", "tokens/s/GPU"
};

/// The index of the name that a text means: one that is spelt so; else one of which it is another name, or that differs
/// in capitals alone.
std::optional<std::size_t> find_name(std::span<const ExpressionName> names, std::string_view text);

struct ExpressionError {
  std::size_t offset = 0;  ///< 0-based position in the text
  std::string message;     ///< what is wrong, and what would be right
};

/// A compiled expression. Immutable; evaluate() may run on any number of threads.
class Expression {
 public:
  /// Parses a text. The table of names is needed only while parsing.
  static tl::expected<Expression, ExpressionError> parse(std::string_view text,
                                                         std::span<const ExpressionName> names);
  /// The same of any value: also a number, or a name of a choice alone.
  static tl::expected<Expression, ExpressionError> parse_value(std::string_view text,
                                                               std::span<const ExpressionName> names);

  /// Whether the expression holds, where `values[i]` is the value of `names[i]` in parse().
  [[nodiscard]] bool holds(std::span<const double> values) const { return value(values) != 0; }
  /// The number, the code of a choice, 0 or 1.
  [[nodiscard]] double value(std::span<const double> values) const;
  [[nodiscard]] bool is_truth() const { return truth_; }
  /// The index of the name that is all of the expression.
  [[nodiscard]] std::optional<std::size_t> lone_name() const {
    const bool lone = program_.size() == 1 && program_.front().op == Op::push_name;
    return lone ? std::optional<std::size_t>(program_.front().name) : std::nullopt;
  }
  [[nodiscard]] const std::string& text() const { return text_; }
  /// Indices of the names that the expression uses, ascending, each once.
  [[nodiscard]] const std::vector<std::size_t>& references() const { return references_; }

 private:
  friend class ExpressionParser;
  enum class Op : std::uint8_t {
    push_number,
    push_name,
    negate,
    logical_not,
    logical_or,
    logical_and,
    equal,
    not_equal,
    less,
    less_equal,
    greater,
    greater_equal,
    add,
    subtract,
    multiply,
    divide,
    modulo
  };
  struct Instruction {
    Op op = Op::push_number;
    std::uint32_t name = 0;
    double number = 0;
  };
  static double apply(Op op, double left, double right);

  std::string text_;
  std::vector<Instruction> program_;  ///< in postfix order
  std::vector<std::size_t> references_;
  bool truth_ = true;
};

}  // namespace shardscape::sweep
