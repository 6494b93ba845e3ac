#include "engine/network/link_loads.h"

#include <algorithm>

#include "engine/network/stage_loads.h"

namespace shardscape::network {

namespace {

/// What an operation gets of a link that another one uses, too.
double share_of(const LinkLoad& mine, const LinkLoad& theirs) {
  const double fair = mine.flows / (mine.flows + theirs.flows);
  return std::min(mine.use, std::max(fair, 1 - theirs.use));
}

/// Sums of shares differ by rounding.
constexpr double kUnhindered = 1 - 1e-9;

double pace_of(const LinkLoad& mine, const LinkLoad& theirs) {
  const double kept = share_of(mine, theirs) / mine.use;
  return kept < kUnhindered ? kept : 1;
}

}  // namespace

KeptPaces kept_paces(const LinkLoads& one, const LinkLoads& other) {
  KeptPaces paces;
  auto b = other.begin();
  for (const LinkLoad& a : one) {
    while (b != other.end() && b->link < a.link) ++b;
    if (b == other.end()) break;
    if (b->link != a.link) continue;
    paces.one = std::min(paces.one, pace_of(a, *b));
    paces.other = std::min(paces.other, pace_of(*b, a));
    paces.one_there = std::max(paces.one_there, a.use);
    paces.other_there = std::max(paces.other_there, b->use);
  }
  return paces;
}

void heaviest_by_link(LinkLoads& loads) {
  std::ranges::sort(loads, [](const LinkLoad& a, const LinkLoad& b) {
    return a.link != b.link ? a.link < b.link : a.use > b.use;
  });
  const auto repeated =
      std::unique(loads.begin(), loads.end(),  // std::ranges::unique does not compile under clang 14
                  [](const LinkLoad& a, const LinkLoad& b) { return a.link == b.link; });
  loads.erase(repeated, loads.end());
}

namespace {
constexpr std::int32_t kStage = -1;  ///< in place of a link: how long a stage takes
}

void end_stage(LinkLoads& loads, std::size_t first, double seconds) {
  for (std::size_t i = first; i < loads.size(); ++i) loads[i].use *= seconds;
  loads.push_back({kStage, 0, seconds});
}

void repeat_stage(LinkLoads& loads, std::size_t stage) {
  std::size_t begin = 0;
  const auto end = [&] {
    return static_cast<std::size_t>(std::ranges::find(loads.begin() + static_cast<std::ptrdiff_t>(begin),
                                                      loads.end(), kStage, &LinkLoad::link) -
                                    loads.begin());
  };
  for (; stage > 0; --stage) begin = end() + 1;
  const std::size_t last = end();
  for (std::size_t i = begin; i <= last; ++i) loads.push_back(LinkLoad(loads[i]));
}

LinkLoads mean_loads(LinkLoads loads) {
  std::ranges::stable_sort(loads, {}, &LinkLoad::link);
  LinkLoads means;
  double all = 0;
  for (const LinkLoad& load : loads) {
    if (load.link == kStage) {
      all += load.use;
    } else if (!means.empty() && means.back().link == load.link) {
      means.back().use += load.use;
      means.back().flows = std::max(means.back().flows, load.flows);
    } else {
      means.push_back(load);
    }
  }
  for (LinkLoad& load : means) load.use /= all;
  return means;
}

}  // namespace shardscape::network
