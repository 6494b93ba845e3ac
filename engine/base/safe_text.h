// Text from outside on its way to a terminal, a spreadsheet or a JSON file: shown, but never obeyed.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <system_error>

namespace shardscape {

/// Longest piece of a foreign text that a message repeats, in characters.
constexpr std::size_t kLongestEcho = 200;
/// Longest message, in characters: lists of every column or preset fit.
constexpr std::size_t kLongestMessage = 6000;

/// Bytes of the UTF-8 character (RFC 3629: nothing overlong, no surrogates) at `at`; 0 where there is none.
inline std::size_t utf8_length(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[at + i]); };
  const unsigned char lead = byte(0);
  const std::size_t length = lead < 0x80   ? 1
                             : lead < 0xC2 ? 0
                             : lead < 0xE0 ? 2
                             : lead < 0xF0 ? 3
                             : lead < 0xF5 ? 4
                                           : 0;
  if (length == 0 || at + length > text.size()) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  const bool odd = (lead == 0xE0 && byte(1) < 0xA0) || (lead == 0xED && byte(1) > 0x9F) ||
                   (lead == 0xF0 && byte(1) < 0x90) || (lead == 0xF4 && byte(1) > 0x8F);
  return odd ? 0 : length;
}

/// Whether the whole text is valid UTF-8.
inline bool is_utf8(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = utf8_length(text, at);
    if (length == 0) return false;
    at += length;
  }
  return true;
}

/// Number of characters of the text; a byte that is no UTF-8 counts as one.
inline std::size_t character_count(std::string_view text) {
  std::size_t count = 0;
  for (std::size_t at = 0; at < text.size(); ++count) {
    const std::size_t length = utf8_length(text, at);
    at += length == 0 ? 1 : length;
  }
  return count;
}

namespace detail {

inline std::uint32_t code_point(std::string_view character) {
  const auto first = static_cast<unsigned char>(character[0]);
  if (character.size() == 1) return first;
  std::uint32_t value = first & (0xFFU >> (character.size() + 1));
  for (const char c : character.substr(1)) value = value << 6U | (static_cast<unsigned char>(c) & 0x3FU);
  return value;
}

/// Characters that a terminal obeys, and those that hide or reorder what stands around them: the controls C0
/// and C1, line and paragraph separators, zero-width characters, and the bidirectional controls that Unicode
/// Technical Report 36 warns of.
inline bool misleads(std::uint32_t c) {
  return c < 0x20 || (c >= 0x7F && c < 0xA0) || c == 0x061C || (c >= 0x200B && c <= 0x200F) ||
         (c >= 0x2028 && c <= 0x202E) || (c >= 0x2060 && c <= 0x2069) || c == 0xFEFF;
}

inline std::string hexadecimal(std::uint32_t value, std::size_t digits) {
  std::string text(digits, '0');
  for (std::size_t i = digits; i-- > 0; value >>= 4U) text[i] = "0123456789abcdef"[value & 0xFU];
  return text;
}

inline std::string cut(std::string_view text, std::size_t longest) {
  const std::size_t count = character_count(text);
  if (count <= longest) return std::string(text);
  std::size_t end = 0;
  for (std::size_t i = 0; i < longest; ++i) end += std::max<std::size_t>(1, utf8_length(text, end));
  return fmt::format("{}... ({} characters)", text.substr(0, end), count);
}

}  // namespace detail

/// The text as one line that a terminal shows and does not obey: control characters, bytes that are no UTF-8
/// and marks that hide or reorder text become \n, \t, \x1b, \u202e. Doing it twice changes nothing.
inline std::string printable(std::string_view text) {
  std::string line;
  line.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = utf8_length(text, at);
    const std::string_view character = text.substr(at, length == 0 ? 1 : length);
    const std::uint32_t code = detail::code_point(character);
    at += character.size();
    if (length > 0 && !detail::misleads(code)) {
      line += character;
    } else if (code == '\n' || code == '\r' || code == '\t') {
      line += code == '\n' ? "\\n" : code == '\r' ? "\\r" : "\\t";
    } else if (length < 2) {
      line += "\\x" + detail::hexadecimal(code, 2);
    } else {
      line += "\\u" + detail::hexadecimal(code, 4);
    }
  }
  return line;
}

/// Repeats in a message what somebody wrote: made printable, and cut to kLongestEcho characters.
inline std::string echo(std::string_view text) { return detail::cut(printable(text), kLongestEcho); }

namespace detail {

/// Whether a quoted part begins at `at`: an apostrophe inside a word opens nothing.
inline bool opens_quote(std::string_view text, std::size_t at) {
  constexpr std::string_view kBefore = " :=([{,";
  return (text[at] == '"' || text[at] == '\'') &&
         (at == 0 || kBefore.find(text[at - 1]) != std::string_view::npos);
}

/// The end of the quoted part or of the word that begins at `at`.
inline std::size_t part_end(std::string_view text, std::size_t at) {
  if (opens_quote(text, at)) {
    const std::size_t close = text.find(text[at], at + 1);
    if (close != std::string_view::npos) return close + 1;
  }
  for (std::size_t end = at + 1; end < text.size(); ++end) {
    if (text[end] == ' ' || opens_quote(text, end)) return end;
  }
  return text.size();
}

/// A part of a message, cut like by echo() between its quotes or before a punctuation mark at its end.
inline std::string echo_part(std::string_view part) {
  if (part.size() <= kLongestEcho) return std::string(part);
  constexpr std::string_view kMarks = "\"':;,.)?";
  const std::size_t head = part[0] == '"' || part[0] == '\'' ? 1 : 0;
  const std::size_t tail = kMarks.find(part.back()) != std::string_view::npos ? 1 : 0;
  std::string text(part.substr(0, head));
  text += cut(part.substr(head, part.size() - head - tail), kLongestEcho);
  return text.append(part.substr(part.size() - tail));
}

}  // namespace detail

/// A message on one line, whatever the texts it repeats hold: printable, each word and each quoted part cut
/// as by echo(), the whole to kLongestMessage characters.
inline std::string message_line(std::string_view message) {
  const std::string text = printable(message);
  std::string line;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = detail::part_end(text, at);
    line += detail::echo_part(std::string_view(text).substr(at, end - at));
    at = end;
  }
  return detail::cut(line, kLongestMessage);
}

/// The text as one CSV field (RFC 4180), quoted only where it has to be. A spreadsheet takes a cell that
/// begins with = + - @, a tab or a carriage return for a formula, even in quotes; an apostrophe before it
/// makes it text there. Numbers stay as they are.
inline std::string csv_cell(std::string_view text) {
  constexpr std::string_view kFormula = "=+-@\t\r";
  bool formula = !text.empty() && kFormula.find(text.front()) != std::string_view::npos;
  if (formula) {
    double number = 0;
    const std::string_view digits = text.substr(text.front() == '+' ? 1 : 0);
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    formula = error == std::errc::invalid_argument || end != digits.data() + digits.size();
  }
  const std::string guarded = (formula ? "'" : "") + std::string(text);
  if (!formula && guarded.find_first_of(",\"\r\n") == std::string::npos) return guarded;
  std::string cell = "\"";
  for (const char c : guarded) {
    if (c == '"') cell += '"';
    cell += c;
  }
  return cell + '"';
}

/// The document (nlohmann) as text. Its dump() throws at bytes that are no UTF-8; here they become U+FFFD.
template <class Json>
std::string json_text(const Json& document, int indent = -1) {
  return document.dump(indent, ' ', false, Json::error_handler_t::replace);
}

}  // namespace shardscape
