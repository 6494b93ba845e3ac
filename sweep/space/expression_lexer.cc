// Goes through the text once, from token to token; what looks like a number is one only where no letters follow that
// are no unit.
#include "sweep/space/expression_lexer.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <functional>

#include "engine/base/words.h"
#include "sweep/space/axis_names.h"

namespace shardscape::sweep {

namespace {

struct NumberUnit {
  std::string_view text;
  std::string_view unit;
  double factor = 1, divisor = 1;  ///< powers of ten on either side stay exact
};
inline constexpr auto kNumberUnits = std::to_array<NumberUnit>({
    {"ns", "s", 1, 1e9},
    {"us", "s", 1, 1e6},
    {"ms", "s", 1, 1e3},
    {"s", "s"},
    {"min", "s", 60},
    {"h", "s", 3600},
    {"B", "byte"},
    {"kB", "byte", 1e3},
    {"MB", "byte", 1e6},
    {"GB", "byte", 1e9},
    {"TB", "byte", 1e12},
    {"PB", "byte", 1e15},
    {"KiB", "byte", 0x1p10},
    {"MiB", "byte", 0x1p20},
    {"GiB", "byte", 0x1p30},
    {"TiB", "byte", 0x1p40},
    {"MB/s", "byte s-1", 1e6},
    {"GB/s", "byte s-1", 1e9},
    {"TB/s", "byte s-1", 1e12},
    {"Hz", "Hz"},
    {"MHz", "Hz", 1e6},
    {"GHz", "Hz", 1e9},
});

inline bool is_word_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/// The unit that a text begins with, as a whole word; null where there is none.
inline const NumberUnit* unit_at(std::string_view text) {
  std::size_t length = 0;
  while (length < text.size() && (is_word_char(text[length]) || (text[length] == '/' && length > 0)))
    ++length;
  const auto known = std::ranges::find(kNumberUnits, text.substr(0, length), &NumberUnit::text);
  return known == kNumberUnits.end() ? nullptr : &*known;
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

/// Whether an operand follows, so that a '%' before it is the remainder of a division.
bool operand_begins(std::string_view rest) {
  while (!rest.empty() && is_space(rest.front())) rest.remove_prefix(1);
  if (rest.empty()) return false;
  const auto is_operator = [&](std::string_view word) {
    return rest.starts_with(word) && (rest.size() == word.size() || !is_word_char(rest[word.size()]));
  };
  if (is_operator("and") || is_operator("or")) return false;
  return is_word_char(rest.front()) || rest.front() == '(' || rest.front() == '.' || rest.front() == '-';
}

}  // namespace

bool same_letters(std::string_view a, std::string_view b) {
  return a.size() == b.size() && lower_case(a) == lower_case(b);
}

ExpressionLexer::ExpressionLexer(std::string_view text, std::span<const ExpressionName> names) : text_(text) {
  for (const ExpressionName& name : names)
    for (const std::string& also : name.also)
      if (!std::ranges::all_of(also, is_word_char)) headings_.push_back(also);
  std::ranges::sort(headings_, std::greater(), &std::string_view::size);
}

tl::expected<Token, ExpressionError> ExpressionLexer::next() {
  while (at_ < text_.size() && is_space(text_[at_])) ++at_;
  if (at_ == text_.size()) return Token{TokenKind::end, at_, {}, 0};
  const char c = text_[at_];
  if (c == '\'' || c == '"') return quoted(c);
  if (const std::optional<Token> name = heading()) return *name;
  const bool fraction = c == '.' && at_ + 1 < text_.size() && is_digit(text_[at_ + 1]);
  if (is_digit(c) || fraction) {
    if (const std::optional<Token> token = number()) return *token;
  }
  if (is_word_char(c)) return word();
  return symbol();
}

/// The longest name of several words that stands here.
std::optional<Token> ExpressionLexer::heading() {
  for (const std::string_view name : headings_) {
    const std::size_t stop = at_ + name.size();
    if (!same_letters(text_.substr(at_, name.size()), name)) continue;
    if (stop < text_.size() && is_word_char(text_[stop])) continue;
    const Token token{TokenKind::word, at_, text_.substr(at_, name.size()), 0};
    at_ = stop;
    return token;
  }
  return std::nullopt;
}

std::optional<Token> ExpressionLexer::number() {
  Token token{TokenKind::number, at_, {}, 0};
  const char* const begin = text_.data() + at_;
  const char* const end = text_.data() + text_.size();
  const auto [stop, error] = std::from_chars(begin, end, token.number);
  if (error != std::errc()) return std::nullopt;
  const std::string_view behind(stop, static_cast<std::size_t>(end - stop));
  if (!behind.empty() && is_word_char(behind.front()) && unit_at(behind) == nullptr)
    return std::nullopt;  // a name such as 1f1b
  token.text = text_.substr(at_, static_cast<std::size_t>(stop - begin));
  at_ += token.text.size();
  read_unit(token);
  return token;
}

/// Takes the unit behind a number, which no name may follow.
void ExpressionLexer::read_unit(Token& token) {
  const std::size_t first = text_.find_first_not_of(' ', at_);
  if (first == std::string_view::npos) return;
  const std::string_view rest = text_.substr(first);
  const auto take = [&](std::size_t length) { at_ = first + length; };
  if (rest.front() == '%' && !operand_begins(rest.substr(1))) {
    token.number /= 100;
    token.unit = "1";
    return take(1);
  }
  const NumberUnit* const known = unit_at(rest);
  if (known == nullptr) return read_rate(token);
  token.number = token.number * known->factor / known->divisor;
  token.unit = known->unit;
  take(known->text.size());
}

/// Takes the unit of a rate: 4 /s, 180 /min.
void ExpressionLexer::read_rate(Token& token) {
  const std::size_t slash = text_.find_first_not_of(' ', at_);
  constexpr std::pair<std::string_view, double> kUnits[] = {{"/s", 1}, {"/min", 60}};
  for (const auto& [unit, seconds] : kUnits) {
    if (slash == std::string_view::npos || !text_.substr(slash).starts_with(unit)) continue;
    const std::size_t end = slash + unit.size();
    if (end < text_.size() && is_word_char(text_[end])) continue;
    token.number /= seconds;  // rounded as parse_request_rate() does
    token.rate = true;
    at_ = end;
  }
}

Token ExpressionLexer::word() {
  std::size_t stop = at_;
  const auto is_dot = [&](std::size_t at) {  // between the parts of a path
    return text_[at] == '.' && !is_digit(text_[at_]) && at + 1 < text_.size() && is_word_char(text_[at + 1]);
  };
  while (stop < text_.size() && (is_word_char(text_[stop]) || is_dot(stop))) ++stop;
  const Token token{TokenKind::word, at_, text_.substr(at_, stop - at_), 0};
  at_ = stop;
  return token;
}

tl::expected<Token, ExpressionError> ExpressionLexer::quoted(char mark) {
  const std::size_t close = text_.find(mark, at_ + 1);
  if (close == std::string_view::npos) return fail(at_, "this quote is never closed");
  const Token token{TokenKind::quoted, at_, text_.substr(at_ + 1, close - at_ - 1), 0};
  at_ = close + 1;
  return token;
}

tl::expected<Token, ExpressionError> ExpressionLexer::symbol() {
  static constexpr auto kSymbols =
      std::to_array<std::string_view>({"==", "!=", "<=", ">=", "<", ">", "+", "-", "*", "/", "%", "(", ")"});
  const std::string_view rest = text_.substr(at_);
  for (const std::string_view candidate : kSymbols) {
    if (rest.starts_with(candidate)) {
      const Token token{TokenKind::symbol, at_, rest.substr(0, candidate.size()), 0};
      at_ += candidate.size();
      return token;
    }
  }
  if (rest.starts_with("&&")) return fail(at_, "unknown operator '&&': write 'and'");
  if (rest.starts_with("||")) return fail(at_, "unknown operator '||': write 'or'");
  if (rest.front() == '=') return fail(at_, "unknown operator '=': write '=='");
  if (rest.front() == '!') return fail(at_, "unknown operator '!': write 'not'");
  const auto byte = static_cast<unsigned char>(rest.front());
  const bool printable = byte >= 0x20 && byte < 0x7f;
  return fail(at_, printable ? "unexpected character " + quote(rest.substr(0, 1)) : "unexpected character");
}

}  // namespace shardscape::sweep
