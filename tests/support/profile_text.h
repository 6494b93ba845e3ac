// Profiles that `shardscape calibrate` writes, as text.
#pragma once

#include <sstream>
#include <string>
#include <vector>

namespace shardscape::test {

/// How the first line of a fitted profile begins; the command follows.
inline constexpr const char* kFittedBy = "# Fitted: shardscape ";

/// The words of a line of the shell: blanks part them, but not inside single quotes.
inline std::vector<std::string> words_of(const std::string& line) {
  std::vector<std::string> words(1);
  bool quoted = false;
  for (const char c : line) {
    if (c == '\'') {
      quoted = !quoted;
    } else if (c == ' ' && !quoted) {
      words.emplace_back();
    } else {
      words.back() += c;
    }
  }
  return words;
}

/// The lines of a profile without comments.
inline std::vector<std::string> keys_of(const std::string& text) {
  std::vector<std::string> keys;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    line = line.substr(0, line.find('#'));
    line = line.substr(0, line.find_last_not_of(' ') + 1);
    if (!line.empty()) keys.push_back(line);
  }
  return keys;
}

}  // namespace shardscape::test
