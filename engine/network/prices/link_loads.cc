// Works out how operations that send at once share links, finds the busiest link of several operations by classes of
// links, and averages the loads of stages.
#include "engine/network/prices/link_loads.h"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <utility>

#include "engine/network/prices/stage_loads.h"

namespace shardscape::network {

namespace {

/// The share of a link's bandwidth that an operation gets while another one uses the link, too. `use`: alone.
double share_of(const LinkLoad& mine, const LinkLoad& theirs, double use) {
  const double fair = mine.flows / (mine.flows + theirs.flows);
  return std::min(use, std::max(fair, 1 - theirs.use / theirs.active));
}

/// A pace above this counts as unhindered: sums of shares are rounded.
constexpr double kUnhindered = 1 - 1e-9;

double pace_of(const LinkLoad& mine, const LinkLoad& theirs) {
  const double use = mine.use / mine.active, kept = share_of(mine, theirs, use) / use;
  if (kept >= kUnhindered) return 1;
  return 1 / (1 - mine.active + mine.active / (1 - theirs.active + theirs.active * kept));
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
    paces.meet = true;
  }
  return paces;
}

KeptPaces least_paces(const LinkLoads& one, const LinkLoads& other) {
  KeptPaces paces;
  for (const LinkLoad& a : one) {
    for (const LinkLoad& b : other) {
      if (a.link != b.link) continue;
      paces.one = std::min(paces.one, pace_of(a, b));
      paces.other = std::min(paces.other, pace_of(b, a));
      paces.meet = true;
    }
  }
  return paces;
}

LinkLoads heaviest_by_link(LinkLoads loads) {
  std::ranges::sort(loads, [](const LinkLoad& a, const LinkLoad& b) {
    return a.link != b.link ? a.link < b.link : a.use > b.use;
  });
  const auto repeated =
      std::unique(loads.begin(), loads.end(),  // std::ranges::unique does not compile under clang 14
                  [](const LinkLoad& a, const LinkLoad& b) { return a.link == b.link; });
  loads.erase(repeated, loads.end());
  return loads;
}

namespace {

/// Sorts links into classes: links from which every operation looked at takes the same are one class.
class LinkClasses {
 public:
  using Uses = std::vector<double>;  ///< index: operation
  explicit LinkClasses(std::size_t operations) : classes_(1, Uses(operations)) {}

  /// Splits classes by how much of their links this operation takes.
  void split_by(std::size_t operation, const LinkLoads& loads) {
    std::map<std::pair<std::size_t, double>, std::size_t> parts;
    for (const LinkLoad& load : loads) {
      const auto link = static_cast<std::size_t>(load.link);
      if (class_of_.size() <= link) class_of_.resize(link + 1);
      const auto [part, fresh] = parts.try_emplace({class_of_[link], load.use}, classes_.size());
      if (fresh) {
        classes_.push_back(classes_[class_of_[link]]);
        classes_.back()[operation] = load.use;
      }
      class_of_[link] = part->second;
    }
  }

  [[nodiscard]] std::vector<Uses> take() { return std::move(classes_); }

 private:
  std::vector<std::size_t> class_of_;  ///< index: link; 0 at first
  std::vector<Uses> classes_;
};

}  // namespace

LinkUses::LinkUses(std::span<const LinkLoads* const> operations) : operations_(operations.size()) {
  LinkClasses classes(operations_);
  for (std::size_t i = 0; i < operations_; ++i) classes.split_by(i, *operations[i]);
  std::vector<LinkClasses::Uses> links = classes.take();
  const auto sum = [](const LinkClasses::Uses& uses) {
    return std::accumulate(uses.begin(), uses.end(), 0.0);
  };
  std::ranges::sort(links, std::greater<>(), sum);  // so that no link is outdone by a later one
  std::vector<LinkClasses::Uses> kept;
  for (LinkClasses::Uses& link : links) {
    const bool outdone = std::ranges::any_of(kept, [&](const LinkClasses::Uses& other) {
      return std::ranges::equal(link, other, std::less_equal<>());
    });
    if (outdone) continue;
    uses_.insert(uses_.end(), link.begin(), link.end());
    kept.push_back(std::move(link));
  }
}

Seconds LinkUses::busiest(std::span<const Seconds> sending) const {
  Seconds most;
  for (auto link = uses_.begin(); link != uses_.end(); link += static_cast<std::ptrdiff_t>(operations_)) {
    Seconds busy;
    for (std::size_t i = 0; i < operations_; ++i) busy += link[static_cast<std::ptrdiff_t>(i)] * sending[i];
    most = std::max(most, busy);
  }
  return most;
}

LinkLoads mean_loads(std::span<const StageLoads> stages) {
  double all = 0;
  std::vector<StageLoads> different;  // gathering often has the same loads as scattering
  for (const StageLoads& stage : stages) {
    all += stage.seconds;
    const auto known = std::ranges::find(different, stage.loads, &StageLoads::loads);
    if (known == different.end()) {
      different.push_back(stage);
    } else {
      known->seconds += stage.seconds;
    }
  }
  LinkLoads means, before;
  for (const StageLoads& stage : different) {
    const double share = stage.seconds / all;
    const bool behind =
        means.empty() || stage.loads->empty() || means.back().link < stage.loads->front().link;
    if (behind) {  // as for stages in separate dimensions, whose links follow each other
      means.reserve(means.size() + stage.loads->size());
      for (const LinkLoad& load : *stage.loads)
        means.push_back({load.link, load.flows, share * load.use, share * load.active});
      continue;
    }
    before.swap(means);
    means.clear();
    means.reserve(before.size() + stage.loads->size());
    auto known = before.begin();
    for (const LinkLoad& load : *stage.loads) {
      while (known != before.end() && known->link < load.link) means.push_back(*known++);
      means.push_back({load.link, load.flows, share * load.use, share * load.active});
      if (known == before.end() || known->link != load.link) continue;
      means.back().flows = std::max(load.flows, known->flows);
      means.back().use += known->use;
      means.back().active += known++->active;
    }
    means.insert(means.end(), known, before.end());
  }
  return means;
}

}  // namespace shardscape::network
