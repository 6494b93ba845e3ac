#include "results_schema/rows/stored_rows.h"

#include <fmt/format.h>

#include "engine/base/joined.h"
#include "engine/base/words.h"

namespace shardscape::results {

namespace {

/// Takes the next word off the front of `text` and returns it; empty where there is none.
std::string_view take_word(std::string_view& text) {
  const std::size_t begin = std::min(text.find_first_not_of(' '), text.size());
  const std::size_t end = std::min(text.find(' ', begin), text.size());
  const std::string_view word = text.substr(begin, end - begin);
  text.remove_prefix(end);
  return word;
}

}  // namespace

const std::vector<std::string>& StoredRows::measures(const std::vector<std::string>& objectives) const {
  return choice == RowChoice::top ? objectives : front;
}

std::string to_string(const StoredRows& rows) {
  std::string text(name_of(rows.choice));
  if (rows.choice == RowChoice::top) text += fmt::format(" {}", rows.count);
  if (rows.choice == RowChoice::pareto) text += ' ' + joined(rows.front, " ");
  return text;
}

std::optional<StoredRows> parse_stored_rows(std::string_view text) {
  const auto choice = parse_enum<RowChoice>(take_word(text));
  if (!choice) return std::nullopt;
  StoredRows rows{*choice, 0, {}};
  std::string_view word = take_word(text);
  if (rows.choice == RowChoice::top) {
    rows.count = to_number<std::uint64_t>(word).value_or(0);
    if (rows.count == 0) return std::nullopt;
    word = take_word(text);
  }
  for (; rows.choice == RowChoice::pareto && !word.empty(); word = take_word(text))
    rows.front.emplace_back(word);
  const bool whole = word.empty() && (rows.choice != RowChoice::pareto || !rows.front.empty());
  return whole ? std::optional(rows) : std::nullopt;
}

}  // namespace shardscape::results
