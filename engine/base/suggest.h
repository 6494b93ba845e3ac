// Suggests a name for a misspelt one: "Did you mean ...?".
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/base/words.h"

namespace shardscape {

/// Edits (insert, delete, replace, swap of neighbours) that turn `a` into `b`; case does not count.
/// O(|a| * |b|).
inline std::size_t edit_distance(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
  std::vector<std::vector<std::size_t>> cost(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) cost[i][0] = i;
  for (std::size_t j = 0; j <= b.size(); ++j) cost[0][j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const bool same = lower(a[i - 1]) == lower(b[j - 1]);
      cost[i][j] = std::min({cost[i - 1][j] + 1, cost[i][j - 1] + 1, cost[i - 1][j - 1] + (same ? 0U : 1U)});
      const bool swapped =
          i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) && lower(a[i - 2]) == lower(b[j - 1]);
      if (swapped) cost[i][j] = std::min(cost[i][j], cost[i - 2][j - 2] + 1);
    }
  }
  return cost[a.size()][b.size()];
}

namespace detail {

/// In lower case and without '_' and '-', as "steptime" is meant for "step_time_s".
inline std::string without_joints(std::string_view name) {
  std::string plain = lower_case(name);
  std::erase_if(plain, [](char c) { return c == '_' || c == '-'; });
  return plain;
}

}  // namespace detail

/// The candidates nearest to `word`, at most `most`, nearest first and of equals in their order; none where none is
/// near enough to be a slip of the keyboard: at most a third of the word's letters, at least one edit, and not all of
/// the word; '_' and '-' may be left out or put in. A word of three letters and more that begins a name or, behind a
/// '-', ends it is farther than one edit and nearer than two; of such names the shorter is nearer. `candidates`: any
/// range of things that convert to string_view.
template <class Names>
std::vector<std::string> nearest_names(std::string_view word, const Names& candidates, std::size_t most) {
  constexpr std::size_t kLongest = 128;  // longer words are not misspelt names
  constexpr std::size_t kEdit = 2, kPart = 3;
  std::vector<std::pair<std::size_t, std::string>> near;
  if (word.size() > kLongest) return {};
  const std::string plain = detail::without_joints(word), end = lower_case('-' + std::string(word));
  const std::size_t allowed = std::max<std::size_t>(1, word.size() / 3);
  const auto edits = [&](std::string_view a, std::string_view b) {
    const auto [shorter, longer] = std::minmax({a.size(), b.size()});
    return longer - shorter > allowed ? kLongest : edit_distance(a, b);
  };
  for (const auto& candidate : candidates) {
    const std::string name(candidate), plain_name = detail::without_joints(name);
    const std::size_t distance = std::min(edits(word, name), edits(plain, plain_name));
    const bool slip = distance <= allowed && distance < word.size();
    const bool part = plain.size() >= 3 && (plain_name.starts_with(plain) || lower_case(name).ends_with(end));
    if (slip || part) near.emplace_back(std::min(kEdit * distance, part ? kPart : kEdit * kLongest), name);
  }
  std::ranges::stable_sort(near, {}, [](const auto& entry) {
    return std::pair(entry.first, entry.first == kPart ? entry.second.size() : 0);
  });
  std::vector<std::string> names;
  for (auto& [rank, name] : near)
    if (names.size() < most) names.push_back(std::move(name));
  return names;
}

/// The nearest of them, or nothing.
template <class Names>
std::optional<std::string> nearest_name(std::string_view word, const Names& candidates) {
  const std::vector<std::string> names = nearest_names(word, candidates, 1);
  return names.empty() ? std::nullopt : std::optional(names.front());
}

/// Returns " (did you mean 'x'?)", or "" where no name is near.
template <class Names>
std::string did_you_mean(std::string_view word, const Names& candidates) {
  const std::optional<std::string> name = nearest_name(word, candidates);
  return name ? " (did you mean '" + *name + "'?)" : std::string();
}

/// Joins names as "a, b, c".
template <class Names>
std::string join_names(const Names& names) {
  return joined(names);
}

}  // namespace shardscape
