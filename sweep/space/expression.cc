// Expressions in three steps: ExpressionLexer splits the text into tokens; ExpressionParser, by recursive descent,
// checks types and emits postfix code; Expression::holds() evaluates that code on a stack of fixed size.
#include "sweep/space/expression.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "engine/base/check.h"
#include "engine/base/suggest.h"
#include "sweep/space/axis_names.h"
#include "sweep/space/expression_lexer.h"

namespace shardscape::sweep {

namespace {

constexpr std::size_t kMaxStack = 32;    ///< most values held at once while evaluating
constexpr std::size_t kMaxNesting = 64;  ///< parentheses, "not" and unary minus inside one another

std::string describe(const Token& token) {
  return token.kind == TokenKind::end ? "the end of the expression" : quote(token.text);
}

}  // namespace

std::optional<std::size_t> find_name(std::span<const ExpressionName> names, std::string_view text) {
  const auto first = [&](const auto& is_it) -> std::optional<std::size_t> {
    const auto found = std::ranges::find_if(names, is_it);
    if (found == names.end()) return std::nullopt;
    return static_cast<std::size_t>(found - names.begin());
  };
  if (const auto own = first([&](const ExpressionName& name) { return name.name == text; })) return own;
  if (text == "true" || text == "false") return std::nullopt;
  const auto spelt = [&](std::string_view name) { return same_letters(name, text); };
  return first(
      [&](const ExpressionName& name) { return spelt(name.name) || std::ranges::any_of(name.also, spelt); });
}

/// A recursive-descent parser that emits postfix code as it goes.
class ExpressionParser {
 public:
  ExpressionParser(std::string_view text, std::span<const ExpressionName> names)
      : lexer_(text, names), names_(names) {
    result_.text_ = std::string(text);
  }

  /// `condition`: the whole must be a truth value.
  tl::expected<Expression, ExpressionError> parse(bool condition) {
    if (auto started = advance(); !started) return ExpressionFailure(started.error());
    if (token_.kind == TokenKind::end) return fail(0, "empty expression; write a condition such as 'a <= 8'");
    auto whole = disjunction();
    if (!whole) return ExpressionFailure(whole.error());
    const bool resolved = whole->type != Type::word;
    if (auto due = condition || !resolved ? require_truth(*whole) : Done(); !due)
      return ExpressionFailure(due.error());
    result_.truth_ = whole->type == Type::truth;
    if (token_.kind != TokenKind::end) {
      return fail(token_.offset, "unexpected " + describe(token_) + "; an operator or the end is due here");
    }
    std::ranges::sort(result_.references_);
    const auto repeated = std::unique(result_.references_.begin(), result_.references_.end());
    result_.references_.erase(repeated, result_.references_.end());
    return std::move(result_);
  }

 private:
  using Op = Expression::Op;
  enum class Type : std::uint8_t { number, truth, choice, word };
  /// The value that a sub-expression has left on the stack. A `word` is not resolved yet and has left nothing.
  struct Operand {
    Type type = Type::number;
    Token token;                            ///< its first number or name
    std::size_t name = 0;                   ///< index of the name of a choice
    bool rate = false, per_second = false;  ///< has numbers with the unit of a rate; has names of rates
    std::string_view unit = {};             ///< empty: not known
    bool quantity = false;                  ///< has a number with a unit
    bool bare = false;                      ///< is one number without a unit
    bool gigabytes = false;                 ///< is one name of device memory
    Token beside = {};  ///< what is no rate and has a number with the unit of one added to it, or taken off
  };
  using Parsed = tl::expected<Operand, ExpressionError>;
  using Done = tl::expected<void, ExpressionError>;

  Done advance() {
    auto token = lexer_.next();
    if (!token) return ExpressionFailure(token.error());
    token_ = *token;
    return {};
  }
  [[nodiscard]] bool at_symbol(std::string_view symbol) const {
    return token_.kind == TokenKind::symbol && token_.text == symbol;
  }
  [[nodiscard]] bool at_word(std::string_view word) const {
    return token_.kind == TokenKind::word && token_.text == word;
  }

  Done emit(Op op, std::size_t offset, std::size_t name = 0, double number = 0) {
    const bool push = op == Op::push_number || op == Op::push_name;
    const bool unary = op == Op::negate || op == Op::logical_not;
    if (push && ++depth_ > kMaxStack) return fail(offset, "the expression is nested too deeply");
    if (!push && !unary) --depth_;
    result_.program_.push_back({op, static_cast<std::uint32_t>(name), number});
    return {};
  }

  ExpressionFailure unknown(const Token& token) const {
    std::vector<std::string> known;
    for (const ExpressionName& name : names_) known.push_back(name.name);
    std::vector<std::string> all = known;
    for (const ExpressionName& name : names_) all.insert(all.end(), name.also.begin(), name.also.end());
    std::string hint = did_you_mean(token.text, all);
    constexpr std::size_t kFew = 64;  // whoever has more lists them where they are asked for
    if (hint.empty() && known.size() <= kFew) hint = "; known names: " + join_names(known);
    return fail(token.offset, "unknown name " + quote(token.text) + hint);
  }

  Done require_number(const Operand& operand) const {
    if (operand.type == Type::word) return unresolved(operand.token);
    if (operand.type != Type::choice) return {};
    return fail(operand.token.offset, quote(operand.token.text) +
                                          " is not a number; compare it with one of its names: " +
                                          join_names(names_[operand.name].choices));
  }
  Done require_truth(const Operand& operand) const {
    if (operand.type == Type::word) return unresolved(operand.token);
    if (operand.type == Type::truth) return {};
    const char* const example = operand.type == Type::choice ? " == ..." : " > 1";
    return fail(operand.token.offset, "a condition is due here, not a plain value; compare it, as in " +
                                          quote(std::string(operand.token.text) + example));
  }
  [[nodiscard]] Done unresolved(const Token& token) const {
    if (token.kind != TokenKind::quoted) return unknown(token);
    return fail(token.offset,
                "text " + quote(token.text) + " has no meaning here; compare a name with it by == or !=");
  }

  /// Parses one level of left-associative `and` or `or`.
  template <class Next>
  Parsed logical(std::string_view word, Op op, Next next) {
    Parsed left = next();
    while (left && at_word(word)) {
      if (auto ok = require_truth(*left); !ok) return ExpressionFailure(ok.error());
      const std::size_t offset = token_.offset;
      if (auto ok = advance(); !ok) return ExpressionFailure(ok.error());
      Parsed right = next();
      if (!right) return right;
      if (auto ok = require_truth(*right); !ok) return ExpressionFailure(ok.error());
      if (auto ok = emit(op, offset); !ok) return ExpressionFailure(ok.error());
      left->type = Type::truth;
    }
    return left;
  }
  Parsed disjunction() {
    return logical("or", Op::logical_or, [this] { return conjunction(); });
  }
  Parsed conjunction() {
    return logical("and", Op::logical_and, [this] { return negation(); });
  }

  Parsed negation() {
    if (!at_word("not")) return comparison();
    return prefixed(
        Op::logical_not, Type::truth, [this] { return negation(); },
        [this](const Operand& operand) { return require_truth(operand); });
  }
  /// An operator before what it works on. `require(operand)`: whether that has the right type.
  template <class Next, class Require>
  Parsed prefixed(Op op, Type result, const Next& next, const Require& require) {
    const Token first = token_;
    if (++nesting_ > kMaxNesting) return fail(first.offset, "the expression is nested too deeply");
    if (auto ok = advance(); !ok) return ExpressionFailure(ok.error());
    Parsed operand = next();
    --nesting_;
    if (!operand) return operand;
    if (auto ok = require(*operand); !ok) return ExpressionFailure(ok.error());
    if (auto ok = emit(op, first.offset); !ok) return ExpressionFailure(ok.error());
    operand->type = result;
    return operand;
  }

  [[nodiscard]] std::optional<Op> comparison_op() const {
    static constexpr std::array<std::pair<std::string_view, Op>, 6> kOps = {{{"==", Op::equal},
                                                                             {"!=", Op::not_equal},
                                                                             {"<", Op::less},
                                                                             {"<=", Op::less_equal},
                                                                             {">", Op::greater},
                                                                             {">=", Op::greater_equal}}};
    for (const auto& [symbol, op] : kOps) {
      if (at_symbol(symbol)) return op;
    }
    return std::nullopt;
  }

  Parsed comparison() {
    Parsed left = sum();
    if (!left) return left;
    const std::optional<Op> op = comparison_op();
    if (!op) return left;
    const Token sign = token_;
    if (auto ok = advance(); !ok) return ExpressionFailure(ok.error());
    Parsed right = left->type == Type::choice ? choice_value(left->name) : sum();
    if (!right) return right;
    if (auto ok = check_comparison(*left, sign, *right); !ok) return ExpressionFailure(ok.error());
    if (auto ok = emit(*op, sign.offset); !ok) return ExpressionFailure(ok.error());
    if (comparison_op()) {
      return fail(token_.offset, "comparisons do not chain; write 'a < b and b < c'");
    }
    return Operand{Type::truth, left->token, 0};
  }

  /// Checks that both sides are numbers, or that they are a choice and the code of one of its values.
  Done check_comparison(const Operand& left, const Token& sign, const Operand& right) {
    const bool choice = left.type == Type::choice || right.type == Type::choice;
    if (choice && sign.text != "==" && sign.text != "!=") {
      return fail(sign.offset, "names have no order; compare them by == or !=");
    }
    // choice_value() has already replaced the right side by its code.
    if (left.type == Type::choice) return {};
    if (right.type == Type::choice && left.type == Type::word) return emit_value(right.name, left.token);
    if (auto ok = require_number(left); !ok) return ok;
    if (auto ok = require_number(right); !ok) return ok;
    if ((left.quantity || right.quantity) && !left.unit.empty() && !right.unit.empty() &&
        left.unit != right.unit) {
      const Operand& number = left.quantity ? left : right;
      const Operand& other = left.quantity ? right : left;
      const auto words = [](std::string_view unit) {
        return unit == "1" ? std::string("no unit") : "the unit " + quote(unit);
      };
      return fail(number.token.offset, quote(other.token.text) + " has " + words(other.unit) +
                                           ", and is compared with a number that has " + words(number.unit));
    }
    constexpr double kLeastBytes = 1e6, kLeastMegabytes = 1000;
    for (const auto& [number, other] : {std::pair(&left, &right), std::pair(&right, &left)}) {
      if (!number->bare || !other->gigabytes || number->token.number <= 0 ||
          number->token.number >= kLeastBytes)
        continue;
      const char letter = number->token.number < kLeastMegabytes ? 'G' : 'M';
      return fail(number->token.offset,
                  fmt::format("{0} is in bytes; write the number with its unit, as {1} {2}B or {1} {2}iB",
                              quote(other->token.text), number->token.text, letter));
    }
    if (left.rate == right.rate || left.per_second || right.per_second) return {};
    if (const Token& beside = (left.rate ? left : right).beside; beside.kind != TokenKind::end)
      return fail(beside.offset, quote(beside.text) +
                                     " stands beside a number per second or minute and is no rate, as "
                                     "request_rate is one; leave the unit out");
    return fail((left.rate ? left : right).token.offset,
                "a number per second or minute is compared with a rate alone, which " +
                    quote((left.rate ? right : left).token.text) + " is not; leave its unit out");
  }

  Parsed choice_value(std::size_t name) {
    const Token token = token_;
    if (token.kind != TokenKind::word && token.kind != TokenKind::quoted) {
      return fail(token.offset, quote(names_[name].name) +
                                    " compares with one of its names: " + join_names(names_[name].choices));
    }
    if (auto ok = advance(); !ok) return ExpressionFailure(ok.error());
    if (auto ok = emit_value(name, token); !ok) return ExpressionFailure(ok.error());
    return Operand{Type::number, token, 0};
  }

  Done emit_value(std::size_t name, const Token& token) {
    const std::vector<std::string>& choices = names_[name].choices;
    const auto found = std::ranges::find(choices, token.text);
    if (found != choices.end())
      return emit(Op::push_number, token.offset, 0, static_cast<double>(found - choices.begin()));
    if (!token.text.empty() && token.text == names_[name].zero)
      return emit(Op::push_number, token.offset, 0, 0);
    return fail(token.offset, quote(names_[name].name) + " is never " + quote(token.text) +
                                  did_you_mean(token.text, choices) + "; it is one of " +
                                  join_names(choices));
  }

  /// Parses one level of left-associative arithmetic.
  template <class Next>
  Parsed arithmetic(std::span<const std::pair<std::string_view, Op>> ops, Next next) {
    Parsed left = next();
    while (left) {
      const auto op = std::ranges::find_if(ops, [this](const auto& entry) { return at_symbol(entry.first); });
      if (op == ops.end()) break;
      if (auto ok = require_number(*left); !ok) return ExpressionFailure(ok.error());
      const std::size_t offset = token_.offset;
      if (auto ok = advance(); !ok) return ExpressionFailure(ok.error());
      const bool divides = op->second == Op::divide || op->second == Op::modulo;
      if (divides && token_.kind == TokenKind::number && token_.number == 0) {
        return fail(token_.offset, "a division by 0 has no value");
      }
      Parsed right = next();
      if (!right) return right;
      if (auto ok = require_number(*right); !ok) return ExpressionFailure(ok.error());
      if (auto ok = emit(op->second, offset); !ok) return ExpressionFailure(ok.error());
      const bool adds = op->second == Op::add || op->second == Op::subtract;
      if (adds && left->rate != right->rate && left->beside.kind == TokenKind::end)
        left->beside = (left->rate ? *right : *left).token;
      if (left->unit.empty()) {
        left->unit = adds || op->second == Op::multiply ? right->unit : "";
      } else if (!right->unit.empty() && (!adds || right->unit != left->unit)) {
        left->unit = "";
      }
      left->quantity = left->quantity || right->quantity;
      left->bare = left->gigabytes = false;
      left->type = Type::number;
      left->rate = left->rate || right->rate;
      left->per_second = left->per_second || right->per_second;
    }
    return left;
  }
  Parsed sum() {
    static constexpr std::array<std::pair<std::string_view, Op>, 2> kOps = {
        {{"+", Op::add}, {"-", Op::subtract}}};
    return arithmetic(kOps, [this] { return product(); });
  }
  Parsed product() {
    static constexpr std::array<std::pair<std::string_view, Op>, 3> kOps = {
        {{"*", Op::multiply}, {"/", Op::divide}, {"%", Op::modulo}}};
    return arithmetic(kOps, [this] { return unary(); });
  }

  Parsed unary() {
    if (!at_symbol("-")) return primary();
    return prefixed(
        Op::negate, Type::number, [this] { return unary(); },
        [this](const Operand& operand) { return require_number(operand); });
  }

  Parsed primary() {
    const Token token = token_;
    if (at_symbol("(")) return parenthesised();
    const bool operand =
        token.kind == TokenKind::number || token.kind == TokenKind::word || token.kind == TokenKind::quoted;
    if (!operand || at_word("and") || at_word("or") || at_word("not")) {
      return fail(token.offset, "a number, a name or '(' is due here, not " + describe(token));
    }
    if (auto ok = advance(); !ok) return ExpressionFailure(ok.error());
    if (token.kind == TokenKind::number) return push_number(token, token.number, Type::number);
    if (token.kind == TokenKind::quoted) return Operand{Type::word, token, 0};
    const std::optional<std::size_t> found = find_name(names_, without_path(token.text));
    if (found) return push_name(token, *found);
    if (token.text == "true") return push_number(token, 1, Type::truth);
    if (token.text == "false") return push_number(token, 0, Type::truth);
    return Operand{Type::word, token, 0};
  }

  Parsed parenthesised() {
    const Token open = token_;
    if (++nesting_ > kMaxNesting) return fail(open.offset, "the expression is nested too deeply");
    if (auto ok = advance(); !ok) return ExpressionFailure(ok.error());
    Parsed inside = disjunction();
    --nesting_;
    if (!inside) return inside;
    if (!at_symbol(")")) {
      return fail(token_.offset, fmt::format("')' is due here, not {}; the '(' at position {} is not closed",
                                             describe(token_), open.offset + 1));
    }
    if (auto ok = advance(); !ok) return ExpressionFailure(ok.error());
    return inside;
  }

  Parsed push_number(const Token& token, double number, Type type) {
    if (auto ok = emit(Op::push_number, token.offset, 0, number); !ok) return ExpressionFailure(ok.error());
    Operand operand{type, token, 0, token.rate};
    operand.unit = token.unit;
    operand.quantity = !token.unit.empty();
    operand.bare = token.kind == TokenKind::number && !operand.quantity;
    return operand;
  }
  Parsed push_name(const Token& token, std::size_t name) {
    if (auto ok = emit(Op::push_name, token.offset, name); !ok) return ExpressionFailure(ok.error());
    result_.references_.push_back(name);
    const NameKind kind = names_[name].kind;
    const Type type = kind == NameKind::choice  ? Type::choice
                      : kind == NameKind::truth ? Type::truth
                                                : Type::number;
    Operand operand{type, token, name, false, names_[name].rate};
    operand.unit = names_[name].unit;
    operand.gigabytes = names_[name].gigabytes;
    return operand;
  }

  ExpressionLexer lexer_;
  std::span<const ExpressionName> names_;
  Token token_;
  Expression result_;
  std::size_t depth_ = 0;
  std::size_t nesting_ = 0;
};

tl::expected<Expression, ExpressionError> Expression::parse(std::string_view text,
                                                            std::span<const ExpressionName> names) {
  return ExpressionParser(text, names).parse(true);
}

tl::expected<Expression, ExpressionError> Expression::parse_value(std::string_view text,
                                                                  std::span<const ExpressionName> names) {
  return ExpressionParser(text, names).parse(false);
}

double Expression::apply(Op op, double left, double right) {
  switch (op) {
    case Op::logical_or:
      return left != 0 || right != 0 ? 1 : 0;
    case Op::logical_and:
      return left != 0 && right != 0 ? 1 : 0;
    case Op::equal:
      return left == right ? 1 : 0;
    case Op::not_equal:
      return left != right ? 1 : 0;
    case Op::less:
      return left < right ? 1 : 0;
    case Op::less_equal:
      return left <= right ? 1 : 0;
    case Op::greater:
      return left > right ? 1 : 0;
    case Op::greater_equal:
      return left >= right ? 1 : 0;
    case Op::add:
      return left + right;
    case Op::subtract:
      return left - right;
    case Op::multiply:
      return left * right;
    case Op::divide:
      return left / right;
    case Op::modulo:
      return std::fmod(left, right);
    case Op::push_number:
    case Op::push_name:
    case Op::negate:
    case Op::logical_not:
      break;
  }
  SHARDSCAPE_CHECK(false, "not a binary operator", static_cast<int>(op));
}

double Expression::value(std::span<const double> values) const {
  std::array<double, kMaxStack> stack;  // the parser has made sure that the depth suffices
  std::size_t top = 0;
  for (const Instruction& step : program_) {
    switch (step.op) {
      case Op::push_number:
        stack[top++] = step.number;
        break;
      case Op::push_name:
        stack[top++] = values[step.name];
        break;
      case Op::negate:
        stack[top - 1] = -stack[top - 1];
        break;
      case Op::logical_not:
        stack[top - 1] = stack[top - 1] == 0 ? 1 : 0;
        break;
      default:
        --top;
        stack[top - 1] = apply(step.op, stack[top - 1], stack[top]);
    }
  }
  return stack[0];
}

}  // namespace shardscape::sweep
