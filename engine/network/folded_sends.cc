#include "engine/network/folded_sends.h"

#include <algorithm>
#include <bit>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "engine/base/hash.h"

namespace shardscape::network {

namespace {

/// hash_word() leaves structure in sums; this does not (the finaliser of SplitMix64, Steele, Lea and Flood 2014).
std::uint64_t scrambled(std::uint64_t word) {
  word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9ULL;
  word = (word ^ (word >> 27)) * 0x94D049BB133111EBULL;
  return word ^ (word >> 31);
}

std::uint64_t hash_number(std::uint64_t hash, double number) {
  return hash_word(hash, std::bit_cast<std::uint64_t>(number));
}

/// Calls visit(source, destination, bytes, start) for each message, in an order of its own; visit returns false to end.
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
  Folder(const std::vector<Pattern>& patterns, FaultyFabric& fabric, std::int64_t most_entries)
      : patterns_(patterns), fabric_(fabric), most_entries_(most_entries) {
    const std::size_t links = fabric.fabric().links().size();
    colour_.resize(links);
    carried_.resize(links);
    for (std::size_t link = 0; link < links; ++link)
      colour_[link] =
          hash_number(hash_number(0, fabric.bytes_per_second()[link]), fabric.latency_seconds()[link]);
  }

  FoldedSends fold() {
    for (;;) {
      if (!walk()) return std::move(failed_);
      const std::size_t before = colours_of_used();
      refine();
      // The colours said all before, so that what walk() found are the classes.
      if (colours_of_used() == before) return result();
    }
  }

 private:
  struct SendClass {
    std::int64_t messages = 0;
    std::int32_t source = 0, destination = 0;  ///< of the first
    double bytes = 0, start = 0;
    std::size_t path_begin = 0, path_end = 0;  ///< of the first, in path_links_
  };
  struct LinkClass {
    std::int32_t first = 0;
    std::int64_t links = 0;
  };

  /// The classes of messages under the present colours of links, and what each link carries.
  bool walk() {
    std::ranges::fill(carried_, 0);
    classes_.clear();
    numbers_.clear();
    path_links_.clear();
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
    std::uint64_t hash = hash_number(hash_number(path_.size(), bytes), start);
    for (const std::int32_t link : path_) hash = hash_word(hash, colour_[static_cast<std::size_t>(link)]);
    hash = scrambled(hash);
    for (const std::int32_t link : path_) carried_[static_cast<std::size_t>(link)] += hash;
    const auto [known, fresh] = numbers_.try_emplace(hash, classes_.size());
    if (fresh) {
      const std::size_t begin = path_links_.size();
      path_links_.insert(path_links_.end(), path_.begin(), path_.end());
      classes_.push_back({0, source, destination, bytes, start, begin, path_links_.size()});
      if (static_cast<std::int64_t>(path_links_.size()) > most_entries_) return false;
    }
    ++classes_[known->second].messages;
    return true;
  }

  [[nodiscard]] std::size_t colours_of_used() const {
    std::unordered_set<std::uint64_t> colours;
    for (std::size_t link = 0; link < colour_.size(); ++link) {
      if (carried_[link] != 0) colours.insert(colour_[link]);
    }
    return colours.size();
  }

  void refine() {
    for (std::size_t link = 0; link < colour_.size(); ++link)
      colour_[link] = scrambled(hash_word(colour_[link], carried_[link]));
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
    for (std::size_t link = 0; link < colour_.size(); ++link) {
      const auto id = static_cast<std::int32_t>(link);
      const bool used = carried_[link] != 0;
      LinkClass& links = link_classes_.try_emplace(used ? colour_[link] : 0, LinkClass{id, 0}).first->second;
      ++links.links;
      stands_for.push_back(used ? links.first : id);
    }
    link_of_ = stands_for;
  }

  /// False where the paths would name too many links.
  bool lay_out(const SendClass& sends, Traffic& traffic) {
    Connection connection{sends.source, sends.destination,
                          static_cast<std::int32_t>(traffic.path_links.size()), 0, 0};
    std::vector<std::pair<std::int32_t, std::int64_t>>
        links;  // of a class, and how many of them one message takes
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
      const std::int64_t of_class = link_classes_.at(colour_[static_cast<std::size_t>(link)]).links;
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
  std::vector<std::uint64_t> colour_;   ///< by link
  std::vector<std::uint64_t> carried_;  ///< by link, the sum of the hashes of its messages; 0: none
  std::vector<SendClass> classes_;
  std::unordered_map<std::uint64_t, std::size_t> numbers_;  ///< of classes, by hash
  std::vector<std::int32_t> path_links_, path_;
  std::unordered_map<std::uint64_t, LinkClass> link_classes_;  ///< by colour
  std::vector<std::int32_t> link_of_;                          ///< FoldedSends::stands_for
  FoldedSends failed_;                                         ///< why walk() ended early
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

FoldedSends fold_sends(const std::vector<Pattern>& patterns, FaultyFabric& fabric,
                       std::int64_t most_entries) {
  return Folder(patterns, fabric, most_entries).fold();
}

}  // namespace shardscape::network
