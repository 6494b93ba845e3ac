// Folds messages that fare alike: walks all messages to sort them into classes by the kinds of their links, splits
// kinds by what links carry until nothing changes, and lays out one message per class.
#include "engine/network/collectives/folded_sends.h"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <map>
#include <numeric>
#include <unordered_map>
#include <utility>

#include "engine/base/check.h"
#include "engine/base/hash.h"
#include "engine/base/refinement.h"

namespace shardscape::network {

namespace {

std::uint64_t hash_number(std::uint64_t hash, double number) {
  return hash_word(hash, std::bit_cast<std::uint64_t>(number));
}

/// Calls visit(source, destination, bytes, start) for each message, in no particular order, until it returns false.
template <class Visit>
bool for_each_send(const Pattern& pattern, const Visit& visit) {
  for (const PointToPoint& send : pattern.sends) {
    if (!visit(send.source, send.destination, send.bytes, send.start)) return false;
  }
  for (const std::vector<std::int32_t>& ranks : pattern.groups) {
    const std::size_t n = ranks.size();
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t j = 0; j < n; ++j) {
        const double bytes = i == j ? 0 : pattern.bytes * pattern.skew.part(i, j, n);
        if (bytes > 0 && !visit(ranks[i], ranks[j], bytes, pattern.start)) return false;
      }
    }
  }
  return true;
}

class Folder {
 public:
  Folder(const std::vector<Pattern>& patterns, FaultyFabric& fabric, std::int64_t most_entries,
         std::uint64_t hash_mask)
      : patterns_(patterns),
        fabric_(fabric),
        most_entries_(most_entries),
        hash_mask_(hash_mask),
        kinds_(fabric.fabric().links().size()),
        carried_(fabric.fabric().links().size()) {
    std::vector<Signature> are(carried_.size());
    std::vector<std::int32_t> links(are.size());
    std::iota(links.begin(), links.end(), 0);
    for (std::size_t link = 0; link < are.size(); ++link) {
      are[link].add(fabric.bytes_per_second()[link]);
      are[link].add(fabric.latency_seconds()[link]);
    }
    kinds_.split(std::move(links), are);
  }

  FoldedSends fold() {
    for (int round = 0; round < kMostRounds; ++round) {
      if (!walk()) return std::move(failed_);
      if (!refine()) return result();
    }
    return {};
  }

 private:
  static constexpr std::size_t kNoClass = std::numeric_limits<std::size_t>::max();
  /// Most rounds of refinement. There are two or three where everything is alike, and a few more with sick links. A
  /// chain of messages in which each sets the next apart, from the ends on, would take as many rounds as it is long.
  static constexpr int kMostRounds = 16;

  struct SendClass {
    std::int64_t messages = 0;
    std::int32_t source = 0, destination = 0;  ///< ends of the first message
    double bytes = 0, start = 0;
    std::size_t path_begin = 0, path_end = 0;  ///< path of the first message, in path_links_ and path_kinds_
    Signature weight;
    std::size_t next = kNoClass;  ///< the next class with the same hash
  };
  struct LinkClass {
    std::int32_t first = -1;
    std::int64_t links = 0;
  };
  [[nodiscard]] bool used(std::size_t link) const { return carried_[link] != Signature(); }
  [[nodiscard]] std::int32_t kind(std::int32_t link) const {
    return kinds_.of()[static_cast<std::size_t>(link)];
  }

  /// Finds the classes of messages under the present kinds of links, and what each link carries. False: it can't be
  /// done.
  bool walk() {
    std::ranges::fill(carried_, Signature());
    classes_.clear();
    first_class_.clear();
    recent_.fill(kNoClass);
    path_links_.clear();
    path_kinds_.clear();
    for (std::size_t p = 0; p < patterns_.size(); ++p) {
      failed_.pattern = p;
      const bool walked =
          for_each_send(patterns_[p], [&](std::int32_t source, std::int32_t destination, double bytes,
                                          double start) { return add(source, destination, bytes, start); });
      if (!walked) return false;
    }
    return true;
  }

  bool add(std::int32_t source, std::int32_t destination, double bytes, double start) {
    path_.clear();
    if (!fabric_.append_route(source, destination, path_)) {
      failed_.outcome = FoldedSends::Outcome::unreachable;
      failed_.cut = {source, destination, {}};
      return false;
    }
    std::size_t& recent = recent_[path_.size() % recent_.size()];
    if (recent == kNoClass || !belongs(classes_[recent], bytes, start))
      recent = listed(source, destination, bytes, start);
    SendClass& mine = classes_[recent];
    ++mine.messages;
    for (const std::int32_t link : path_) carried_[static_cast<std::size_t>(link)] += mine.weight;
    return static_cast<std::int64_t>(path_links_.size()) <= most_entries_;
  }

  /// Returns the class of the message whose route is in path_; makes a new one where there is none.
  std::size_t listed(std::int32_t source, std::int32_t destination, double bytes, double start) {
    std::uint64_t hash = hash_number(hash_number(path_.size(), bytes), start);
    for (const std::int32_t link : path_) hash = hash_word(hash, static_cast<std::uint64_t>(kind(link)));
    std::size_t& first = first_class_.try_emplace(hash & hash_mask_, kNoClass).first->second;
    for (std::size_t c = first; c != kNoClass; c = classes_[c].next)
      if (belongs(classes_[c], bytes, start)) return c;
    const std::size_t c = classes_.size(), begin = path_links_.size();
    path_links_.insert(path_links_.end(), path_.begin(), path_.end());
    for (const std::int32_t link : path_) path_kinds_.push_back(kind(link));
    classes_.push_back(
        {0, source, destination, bytes, start, begin, path_links_.size(), Signature::of(c), first});
    return first = c;
  }

  /// Whether a message with the route in path_ belongs to this class.
  [[nodiscard]] bool belongs(const SendClass& c, double bytes, double start) const {
    return c.bytes == bytes && c.start == start &&
           std::equal(path_.begin(), path_.end(),
                      path_kinds_.begin() + static_cast<std::ptrdiff_t>(c.path_begin),
                      path_kinds_.begin() + static_cast<std::ptrdiff_t>(c.path_end),
                      [&](std::int32_t link, std::int32_t its) { return kind(link) == its; });
  }

  /// Gives different kinds to links that carry different messages. Returns false if there were none to split: then the
  /// classes that walk() found are final.
  bool refine() {
    std::vector<std::int32_t> links;
    for (std::size_t link = 0; link < carried_.size(); ++link)
      if (used(link)) links.push_back(static_cast<std::int32_t>(link));
    const std::size_t before = kinds_of(links);
    kinds_.split(links, carried_);
    return kinds_of(links) > before;
  }

  [[nodiscard]] std::size_t kinds_of(const std::vector<std::int32_t>& links) const {
    std::vector<char> met(kinds_.count(), 0);
    for (const std::int32_t link : links) met[static_cast<std::size_t>(kind(link))] = 1;
    return static_cast<std::size_t>(std::ranges::count(met, 1));
  }

  FoldedSends result() {
    FoldedSends folded;
    name_link_classes(folded.stands_for);
    std::map<double, std::vector<std::size_t>> by_start;
    for (std::size_t c = 0; c < classes_.size(); ++c) by_start[classes_[c].start].push_back(c);
    for (const auto& [start, classes] : by_start) {
      Gate gate;
      gate.first_message = static_cast<std::int32_t>(folded.traffic.messages.size());
      gate.messages = static_cast<std::int32_t>(classes.size());
      gate.not_before = start;
      folded.traffic.gates.push_back(gate);
      for (const std::size_t c : classes) {
        if (!lay_out(classes_[c], folded.traffic)) return {};
        folded.messages += classes_[c].messages;
      }
    }
    folded.outcome = FoldedSends::Outcome::folded;
    return folded;
  }

  void name_link_classes(std::vector<std::int32_t>& stands_for) {
    link_classes_.assign(kinds_.count(), {});
    for (std::size_t link = 0; link < carried_.size(); ++link) {
      const auto id = static_cast<std::int32_t>(link);
      if (!used(link)) {
        stands_for.push_back(id);
        continue;
      }
      LinkClass& links = link_classes_[static_cast<std::size_t>(kind(id))];
      if (links.links++ == 0) links.first = id;
      stands_for.push_back(links.first);
    }
    link_of_ = stands_for;
  }

  /// Adds the message of a class. Returns false where paths would name too many links.
  bool lay_out(const SendClass& sends, Traffic& traffic) {
    Connection connection{sends.source, sends.destination,
                          static_cast<std::int32_t>(traffic.path_links.size()), 0, 0};
    std::vector<std::pair<std::int32_t, std::int64_t>>
        links;  // a link for its class, and how many links of the class one message takes
    for (std::size_t i = sends.path_begin; i < sends.path_end; ++i) {
      const auto link = static_cast<std::size_t>(path_links_[i]);
      connection.latency += fabric_.latency_seconds()[link];
      const auto same =
          std::ranges::find(links, link_of_[link], &std::pair<std::int32_t, std::int64_t>::first);
      if (same != links.end()) {
        ++same->second;
      } else {
        links.emplace_back(link_of_[link], 1);
      }
    }
    for (const auto& [link, taken] : links) {
      const std::int64_t of_class = link_classes_[static_cast<std::size_t>(kind(link))].links;
      SHARDSCAPE_CHECK(sends.messages * taken % of_class == 0, sends.messages, taken, of_class);
      const std::int64_t carried = sends.messages * taken / of_class;
      if (static_cast<std::int64_t>(traffic.path_links.size()) + carried > most_entries_) return false;
      traffic.path_links.insert(traffic.path_links.end(), static_cast<std::size_t>(carried), link);
    }
    connection.path_end = static_cast<std::int32_t>(traffic.path_links.size());
    const auto id = static_cast<std::int32_t>(traffic.connections.size());
    traffic.connections.push_back(connection);
    traffic.messages.push_back({id, -1, sends.bytes});
    return true;
  }

  const std::vector<Pattern>& patterns_;
  FaultyFabric& fabric_;
  std::int64_t most_entries_ = 0;
  std::uint64_t hash_mask_ = 0;
  Partition kinds_;                 ///< kinds of links; those of unused links have no meaning
  std::vector<Signature> carried_;  ///< index: link; for a link that carries nothing as at first
  std::vector<SendClass> classes_;
  std::unordered_map<std::uint64_t, std::size_t> first_class_;  ///< key: hash
  std::array<std::size_t, 32> recent_{};                        ///< index: hops; the class met last
  std::vector<std::int32_t> path_links_, path_kinds_;           ///< paths of the first message of each class
  std::vector<std::int32_t> path_;                              ///< path of the message at hand
  std::vector<LinkClass> link_classes_;                         ///< index: kind of link
  std::vector<std::int32_t> link_of_;                           ///< see FoldedSends::stands_for
  FoldedSends failed_;                                          ///< why walk() ended early
};

}  // namespace

bool sends_at_once(const std::vector<Pattern>& patterns) {
  return std::ranges::all_of(patterns, [](const Pattern& pattern) {
    const bool one_pass = pattern.operation == Operation::all_to_all ||
                          pattern.operation == Operation::reduce_scatter ||
                          pattern.operation == Operation::all_gather;
    return pattern.after.empty() && (pattern.operation == Operation::point_to_point ||
                                     (one_pass && pattern.algorithm == Algorithm::direct));
  });
}

FoldedSends fold_sends(const std::vector<Pattern>& patterns, FaultyFabric& fabric, std::int64_t most_entries,
                       std::uint64_t hash_mask) {
  return Folder(patterns, fabric, most_entries, hash_mask).fold();
}

}  // namespace shardscape::network
