// The tokens of an expression: numbers with their units, names, quoted texts and signs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <utility>
#include <vector>

#include "sweep/space/expression.h"

namespace shardscape::sweep {

enum class TokenKind : std::uint8_t { end, number, word, quoted, symbol };

struct Token {
  TokenKind kind = TokenKind::end;
  std::size_t offset = 0;
  std::string_view text;  ///< text of the token, without quotes
  double number = 0;
  bool rate = false;           ///< a number with the unit of a rate
  std::string_view unit = {};  ///< of a number with another unit, as ExpressionName has it
};

using ExpressionFailure = tl::unexpected<ExpressionError>;
inline ExpressionFailure fail(std::size_t offset, std::string message) {
  return ExpressionFailure(ExpressionError{offset, std::move(message)});
}

/// Whether two texts differ in capitals alone.
bool same_letters(std::string_view a, std::string_view b);

/// Splits the text into tokens. A word may begin with a digit, such as "1f1b", and may be a name of several words, of
/// which those in `also` of `names` are known. Both must outlive the lexer.
class ExpressionLexer {
 public:
  ExpressionLexer(std::string_view text, std::span<const ExpressionName> names);

  /// The next token, at last those of the end.
  tl::expected<Token, ExpressionError> next();

 private:
  std::optional<Token> heading();
  std::optional<Token> number();
  void read_unit(Token& token);
  void read_rate(Token& token);
  Token word();
  tl::expected<Token, ExpressionError> quoted(char mark);
  tl::expected<Token, ExpressionError> symbol();

  std::string_view text_;
  std::size_t at_ = 0;
  std::vector<std::string_view> headings_;  ///< names of several words, the longest first
};

}  // namespace shardscape::sweep
