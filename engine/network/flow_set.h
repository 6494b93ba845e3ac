// Flows that may be on the network at the same time: their routes, and what they leave of each other.
//
// Under max-min fairness a flow is never slower than the fair share of its most loaded link, whatever the
// other flows do and whenever they start: with n(l) flows that ever use link l and its bandwidth b(l),
//
//     1 / rate  <=  shared  =  max over links l of the path of  n(l) / b(l)
//     1 / rate  >=  alone   =  max over links l of the path of  1 / b(l)
//
// The first holds because the flow's bottleneck link is saturated, and no flow there is faster than it.
//
// A flow is rigid when one of its links has n(l)/b(l) = shared for it and no flow on that link has a slower
// share: while all flows of that link are active, they all run at exactly 1/shared. Where flows send unequal bytes
// (weights), those of that link must not have less to send than it.
#pragma once

#include <bit>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "engine/network/priced_network.h"

namespace shardscape::network {

/// Equal up to rounding.
inline bool same_number(double a, double b) {
  const double difference = a > b ? a - b : b - a;
  return difference <= 1e-12 * (a > b ? a : b);
}

struct RoutedFlow {
  double latency = 0;  ///< seconds, the sum over the path
  double alone = 0;    ///< seconds per byte without the others
  double shared = 0;   ///< seconds per byte with all of them; >= alone
  double weight = 1;   ///< bytes that it sends, in some unit
};

/// The link that has most to carry for its bandwidth.
struct BusiestLink {
  double seconds_per_unit = 0;  ///< of the weights of its flows
  double least_latency = 0;     ///< of its flows; of the largest such where several links are as busy
};

/// Links that have been used, as bits from the first to the last of them.
class LinkSet {
 public:
  void insert(std::int32_t link) {
    cover(word(link), word(link) + 1);
    words_[word(link) - first_] |= bit(link);
  }
  [[nodiscard]] bool contains(std::int32_t link) const { return (at(word(link)) & bit(link)) != 0; }
  /// `other` belongs to the same fabric.
  void insert_all(const LinkSet& other) {
    if (other.words_.empty()) return;
    cover(other.first_, other.end());
    for (std::size_t i = other.first_; i < other.end(); ++i) words_[i - first_] |= other.at(i);
  }
  [[nodiscard]] bool contains_all(const LinkSet& other) const {
    for (std::size_t i = other.first_; i < other.end(); ++i) {
      if ((other.at(i) & ~at(i)) != 0) return false;
    }
    return true;
  }
  [[nodiscard]] bool intersects(const LinkSet& other) const {
    for (std::size_t i = other.first_; i < other.end(); ++i) {
      if ((at(i) & other.at(i)) != 0) return true;
    }
    return false;
  }
  [[nodiscard]] bool empty() const { return words_.empty(); }
  /// Calls visit(link) for each, ascending.
  template <class Visit>
  void for_each(const Visit& visit) const {
    for (std::size_t i = first_; i < end(); ++i) {
      for (std::uint64_t rest = at(i); rest != 0; rest &= rest - 1)
        visit(static_cast<std::int32_t>(64 * i + static_cast<std::size_t>(std::countr_zero(rest))));
    }
  }

 private:
  static std::size_t word(std::int32_t link) { return static_cast<std::size_t>(link) / 64; }
  static std::uint64_t bit(std::int32_t link) {
    return std::uint64_t{1} << (static_cast<unsigned>(link) % 64);
  }
  [[nodiscard]] std::size_t end() const { return first_ + words_.size(); }
  [[nodiscard]] std::uint64_t at(std::size_t i) const {
    return i >= first_ && i < end() ? words_[i - first_] : 0;
  }
  /// Makes room for these words.
  void cover(std::size_t begin, std::size_t end_of_range) {
    if (words_.empty()) first_ = begin;
    if (begin < first_) {
      words_.insert(words_.begin(), first_ - begin, 0);
      first_ = begin;
    }
    if (end_of_range > end()) words_.resize(end_of_range - first_, 0);
  }

  std::size_t first_ = 0;  ///< number of the first word
  std::vector<std::uint64_t> words_;
};

/// The scratch is by link and kept between uses: reset() costs what the flows did, not the fabric.
class FlowSet {
 public:
  /// `network` outlives this object; its faults may change between resets.
  explicit FlowSet(PricedNetwork& network);

  void reset();
  /// False where dead links leave no way; the set is worthless then.
  bool add(std::int32_t source, std::int32_t destination, double weight = 1);
  /// Call once after the last add().
  void settle();

  [[nodiscard]] std::size_t size() const { return flows_.size(); }
  [[nodiscard]] const RoutedFlow& flow(std::size_t i) const { return flows_[i]; }
  [[nodiscard]] std::span<const std::int32_t> path(std::size_t i) const {
    return std::span(links_).subspan(begin_[i], begin_[i + 1] - begin_[i]);
  }
  /// All flows have the latency, the share and the weight of the first.
  [[nodiscard]] bool uniform() const { return uniform_; }
  /// No flow shares the link that limits it.
  [[nodiscard]] bool uncontended() const { return uncontended_; }
  /// Largest shared.
  [[nodiscard]] double slowest() const { return slowest_; }
  [[nodiscard]] bool rigid(std::size_t i) const;
  /// Not where they are uniform. O(links of all paths).
  [[nodiscard]] BusiestLink busiest() const;
  void collect_links(LinkSet& set) const;

 private:
  PricedNetwork& network_;
  std::vector<RoutedFlow> flows_;
  std::vector<std::size_t> begin_;
  std::vector<std::int32_t> links_;
  std::vector<double> load_;   ///< flows on each link
  std::vector<double> share_;  ///< seconds per byte of each link with all of them; 0: not known yet
  /// Of the flows on each link, where they are not uniform.
  struct OnLink {
    double slowest = 0;  ///< largest `shared`
    double weight = 0;   ///< of all
    double least_weight = 0, least_latency = 0;
  };
  std::vector<OnLink> on_link_;
  bool uniform_ = true, uncontended_ = true;
  double slowest_ = 0;
};

}  // namespace shardscape::network
