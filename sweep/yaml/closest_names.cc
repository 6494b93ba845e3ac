#include "sweep/yaml/closest_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "engine/base/suggest.h"
#include "engine/base/words.h"

namespace shardscape::yaml {

namespace {

constexpr std::size_t kMaxCompared = 128;  // longer texts cannot be misspelt names
constexpr std::size_t kMaxListed = 40, kMostAlike = 3;

/// Distance between two texts regardless of case, or a large number where the candidate cannot be meant.
std::size_t similarity(std::string_view text, std::string_view candidate) {
  constexpr std::size_t kUnrelated = 1000;
  const std::string a = lower_case(text);
  const std::string b = lower_case(candidate);
  const std::size_t longer = std::max(a.size(), b.size()), shorter = std::min(a.size(), b.size());
  const std::size_t allowed = std::max<std::size_t>(1, longer / 3);
  if (longer - shorter <= allowed) {  // a distance is no less
    const std::size_t distance = edit_distance(a, b);
    if (distance <= allowed && distance < a.size()) return distance;
  }
  const bool part = a.size() >= 3 && (b.starts_with(a) || b.ends_with('-' + a));
  return part ? allowed + 1 : kUnrelated;
}

}  // namespace

std::vector<std::string> closest(std::string_view text, std::span<const std::string> candidates,
                                 std::size_t limit) {
  if (text.size() > kMaxCompared) return {};
  std::vector<std::pair<std::size_t, std::string>> ranked;
  for (const std::string& candidate : candidates) {
    const std::size_t distance = similarity(text, candidate);
    if (distance < 1000) ranked.emplace_back(distance, candidate);
  }
  std::ranges::stable_sort(ranked, {}, &std::pair<std::size_t, std::string>::first);
  std::vector<std::string> names;
  for (const auto& [distance, name] : ranked) {
    if (names.size() == limit) break;
    names.push_back(name);
  }
  return names;
}

std::string same_key(std::string_view path, std::span<const std::string> paths) {
  std::vector<std::string> same;
  for (std::string end = '.' + std::string(path); same.empty() && !end.empty();
       end.erase(0, end.find('.', 1)))
    std::ranges::copy_if(paths, std::back_inserter(same), [&](const auto& p) { return p.ends_with(end); });
  const std::vector<std::string> near = closest(path, same);
  if (!near.empty()) return near.front();
  return same.size() > kMostAlike ? "" : fmt::format("{}", fmt::join(same, "\" or \""));
}

std::string join(std::span<const std::string> names) {
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i == kMaxListed) return text + ", ...";
    text += (i == 0 ? "" : ", ") + names[i];
  }
  return text;
}

std::string suggestion(std::string_view text, std::span<const std::string> candidates,
                       std::string_view what) {
  const std::vector<std::string> near = closest(text, candidates);
  if (!near.empty()) return "; did you mean \"" + near.front() + "\"?";
  if (candidates.empty()) return "";
  return fmt::format("; known {}: {}", what, join(candidates));
}

}  // namespace shardscape::yaml
