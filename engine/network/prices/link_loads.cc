// Works out how operations that send at once share links, finds the busiest link of several operations by classes of
// links, and averages the loads of stages.
#include "engine/network/prices/link_loads.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <numeric>
#include <utility>

namespace shardscape::network {

namespace {

/// The share of a link's bandwidth that an operation gets while another one uses the link, too. `use`: alone.
double share_of(const LinkLoad& mine, const LinkLoad& theirs, double use) {
  const double fair = mine.flows / (mine.flows + theirs.flows);
  return std::min(use, std::max(fair, 1 - theirs.use / theirs.active));
}

/// A pace above this counts as unhindered: sums of shares are rounded.
constexpr double kUnhindered = 1 - 1e-9;

/// The pace that an operation keeps while both use the link, of its own pace there.
double kept_there(const LinkLoad& mine, const LinkLoad& theirs) {
  const double use = mine.use / mine.active, kept = share_of(mine, theirs, use) / use;
  return kept >= kUnhindered ? 1 : kept;
}

/// The paces of both if this link alone slows them.
KeptPaces paces_there(const LinkLoad& one, const LinkLoad& other) {
  const double there = one.active / kept_there(one, other), longer = 1 - one.active + there;
  const double theirs = other.active / (1 - there / longer * (1 - kept_there(other, one)));
  const double of_other = 1 / (1 - other.active + theirs);
  return {1 - theirs * of_other * (1 - 1 / longer), of_other, true};
}

void keep_slower(const KeptPaces& there, KeptPaces& paces) {
  paces = {std::min(paces.one, there.one), std::min(paces.other, there.other), true};
}

}  // namespace

const LinkLoad* load_of(const LinkLoads& loads, std::int32_t link) {
  const auto load = std::ranges::upper_bound(loads, link, {}, &LinkLoad::link);
  return load != loads.begin() && link < std::prev(load)->end() ? &*std::prev(load) : nullptr;
}

KeptPaces kept_paces(const LinkLoads& one, const LinkLoads& other) {
  KeptPaces paces;
  auto from = other.begin();
  for (const LinkLoad& a : one) {
    while (from != other.end() && from->end() <= a.link) ++from;
    for (auto b = from; b != other.end() && b->link < a.end(); ++b) keep_slower(paces_there(a, *b), paces);
  }
  return paces;
}

KeptPaces least_paces(const LinkLoads& one, const LinkLoads& other) {
  KeptPaces paces;
  for (const LinkLoad& a : one) {
    for (const LinkLoad& b : other)
      if (a.link == b.link) keep_slower(paces_there(a, b), paces);
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
      const auto end = static_cast<std::size_t>(load.end());
      if (class_of_.size() < end) class_of_.resize(end);
      for (auto link = static_cast<std::size_t>(load.link); link < end;) {
        const std::size_t before = class_of_[link];
        const auto [part, fresh] = parts.try_emplace({before, load.use}, classes_.size());
        if (fresh) {
          classes_.push_back(classes_[before]);
          classes_.back()[operation] = load.use;
        }
        for (; link < end && class_of_[link] == before; ++link) class_of_[link] = part->second;
      }
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

namespace {

/// The loads of both; on links that both load the most flows, and the sums of the rest.
LinkLoads added(const LinkLoads& one, const LinkLoads& other) {
  constexpr std::int32_t kBehindAll = std::numeric_limits<std::int32_t>::max();
  LinkLoads sum;
  sum.reserve(one.size() + other.size());
  auto a = one.begin(), b = other.begin();
  for (std::int32_t at = 0; a != one.end() || b != other.end();) {
    const std::int32_t from_a = a == one.end() ? kBehindAll : std::max(at, a->link),
                       from_b = b == other.end() ? kBehindAll : std::max(at, b->link),
                       from = std::min(from_a, from_b);
    const bool has_a = from_a == from, has_b = from_b == from;
    LinkLoad load = has_a ? *a : *b;
    if (has_a && has_b) {
      load.flows = std::max(load.flows, b->flows);
      load.use += b->use;
      load.active += b->active;
    }
    at = std::min(has_a ? a->end() : from_a, has_b ? b->end() : from_b);
    load.link = from;
    load.links = at - from;
    sum.push_back(load);
    if (has_a && a->end() == at) ++a;
    if (has_b && b->end() == at) ++b;
  }
  return sum;
}

}  // namespace

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
  LinkLoads means;
  for (const StageLoads& stage : different) {
    const double share = stage.seconds / all;
    LinkLoads shared = *stage.loads;
    for (LinkLoad& load : shared) {
      load.use *= share;
      load.active *= share;
    }
    const bool behind = means.empty() || shared.empty() || means.back().end() <= shared.front().link;
    if (behind)  // as for stages in separate dimensions, whose links follow each other
      means.insert(means.end(), shared.begin(), shared.end());
    else
      means = added(means, shared);
  }
  return means;
}

}  // namespace shardscape::network
