// Words as POSIX shells read them.
#pragma once

#include <string>
#include <string_view>

namespace shardscape {

/// Whether a shell takes the word as it is.
inline bool is_plain_word(std::string_view word) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=.,:/@%";
  return !word.empty() && word.find_first_not_of(kPlain) == std::string_view::npos;
}

/// In single quotes, which zsh, fish and roff read, too.
inline std::string single_quoted(std::string text) {
  for (std::size_t at = 0; (at = text.find('\'', at)) != std::string::npos; at += 4)
    text.replace(at, 1, "'\\''");
  return "'" + text + "'";
}

}  // namespace shardscape
