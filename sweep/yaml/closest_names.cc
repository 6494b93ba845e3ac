#include "sweep/yaml/closest_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "engine/base/suggest.h"

namespace shardscape::yaml {

namespace {

constexpr std::size_t kMaxListed = 40, kMostAlike = 3;

}  // namespace

std::string same_key(std::string_view path, std::span<const std::string> paths) {
  std::vector<std::string> same;
  for (std::string end = '.' + std::string(path); same.empty() && !end.empty();
       end.erase(0, end.find('.', 1)))
    std::ranges::copy_if(paths, std::back_inserter(same), [&](const auto& p) { return p.ends_with(end); });
  if (const auto near = nearest_name(path, same)) return *near;
  return same.size() > kMostAlike ? "" : fmt::format("{}", fmt::join(same, "\" or \""));
}

std::string join(std::span<const std::string> names) {
  return join_names(names.first(std::min(names.size(), kMaxListed))) +
         (names.size() > kMaxListed ? ", ..." : "");
}

std::string suggestion(std::string_view text, std::span<const std::string> candidates,
                       std::string_view what) {
  if (const auto near = nearest_name(text, candidates)) return "; did you mean \"" + *near + "\"?";
  if (candidates.empty()) return "";
  return fmt::format("; known {}: {}", what, join(candidates));
}

}  // namespace shardscape::yaml
