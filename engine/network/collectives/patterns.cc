// Counts the messages and gates that patterns keep in memory, and checks patterns against the fabric: Checker goes
// through them one by one, first its fields, then its groups, and adds up the messages.
#include "engine/network/collectives/patterns.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>

#include "engine/network/collectives/algorithm_rules.h"
#include "engine/network/groups/channel_rings.h"
#include "engine/network/groups/ring_order.h"
#include "engine/spec/ranges.h"

namespace shardscape::network {

namespace {

std::string at(const std::string& place, std::size_t index) { return fmt::format("{}[{}]", place, index); }

/// Number of messages of dimension_wise on a box.
double messages_by_dimension(const Pattern& pattern, const GroupBox& box) {
  double steps = 0;
  for (const GroupBox::Level& level : box.levels) steps += static_cast<double>(level.positions.size()) - 1;
  return passes_of(pattern.operation) * box.size() * steps;
}

class Checker {
 public:
  Checker(const std::vector<Pattern>& patterns, const FaultyFabric& fabric)
      : patterns_(patterns), fabric_(fabric), seen_(static_cast<std::size_t>(fabric.fabric().ranks()), 0) {}

  Problems check() {
    for (std::size_t p = 0; p < patterns_.size(); ++p) check_pattern(p);
    return std::move(problems_);
  }

 private:
  void require(bool ok, const std::string& place, const std::string& message) {
    problems_.require(ok, place, message);
  }

  void check_pattern(std::size_t p) {
    const Pattern& pattern = patterns_[p];
    const std::string place = at("patterns", p);
    require_range(problems_, pattern.start, place + ".start", ranges::kTime);
    for (std::size_t i = 0; i < pattern.after.size(); ++i) check_after(p, i, at(place + ".after", i));
    if (pattern.operation == Operation::point_to_point) {
      for (std::size_t i = 0; i < pattern.sends.size(); ++i) {
        check_send(pattern.sends[i], at(place + ".sends", i));
      }
      count(place, static_cast<double>(pattern.sends.size()));
      return;
    }
    require_range(problems_, pattern.bytes, place + ".bytes", ranges::kMessage);
    if (pattern.operation == Operation::pipeline) {
      check_pipeline(pattern, place);
    } else {
      require(
          supports(pattern.operation, pattern.algorithm), place + ".algorithm",
          fmt::format("{} is no algorithm for {}", name_of(pattern.algorithm), name_of(pattern.operation)));
    }
    require(pattern.chunks >= 1, place + ".chunks", "must be at least 1");
    check_groups(pattern, place);
  }

  void check_after(std::size_t p, std::size_t i, const std::string& place) {
    const std::vector<std::int32_t>& after = patterns_[p].after;
    const std::int32_t earlier = after[i];
    require(earlier >= 0 && static_cast<std::size_t>(earlier) < p, place,
            fmt::format("is {}; pattern {} can only come after {}", earlier, p,
                        p == 0 ? "none, it is the first" : fmt::format("patterns 0 .. {}", p - 1)));
    for (std::size_t j = 0; j < i; ++j) {
      require(after[j] != earlier, place, fmt::format("names pattern {} again", earlier));
    }
  }

  bool in_range(std::int32_t rank, const std::string& place) {
    const std::int32_t ranks = fabric_.fabric().ranks();
    const bool ok = rank >= 0 && rank < ranks;
    require(ok, place, fmt::format("rank {} is out of range; the fabric has ranks 0 .. {}", rank, ranks - 1));
    return ok;
  }

  void check_send(const PointToPoint& send, const std::string& place) {
    in_range(send.source, place + "[0]");
    in_range(send.destination, place + "[1]");
    require(send.source != send.destination, place + "[1]", "is the sender itself");
    require_range(problems_, send.bytes, place + "[2]", ranges::kMessage);
    require_range(problems_, send.start, place + "[3]", ranges::kTime);
  }

  void check_pipeline(const Pattern& pattern, const std::string& place) {
    require(pattern.microbatches >= 1, place + ".microbatches", "must be at least 1");
    require_range(problems_, pattern.interval, place + ".interval", ranges::kTime);
    require_range(problems_, pattern.compute, place + ".compute", ranges::kTime);
  }

  void check_groups(const Pattern& pattern, const std::string& place) {
    double messages = 0;
    for (std::size_t g = 0; g < pattern.groups.size(); ++g) {
      const std::vector<std::int32_t>& group = pattern.groups[g];
      const std::string here = at(place + ".groups", g);
      require(!group.empty(), here, "has no ranks");
      const bool sound =
          pattern.operation == Operation::pipeline ? check_chain(group, here) : check_members(group, here);
      const bool by_dimension = rules_of(pattern.algorithm).need == GroupNeed::box;
      const auto size = static_cast<std::int64_t>(group.size());
      if (!by_dimension) messages += message_count(pattern, size);
      if (sound && group.size() > 1) check_algorithm(pattern, group, here);
    }
    count(place, messages);
  }

  bool check_chain(const std::vector<std::int32_t>& chain, const std::string& place) {
    bool sound = true;
    for (std::size_t i = 0; i < chain.size(); ++i) {
      sound &= in_range(chain[i], at(place, i));
      const bool again = i > 0 && chain[i] == chain[i - 1];
      require(!again, at(place, i), fmt::format("rank {} follows itself", chain[i]));
      sound &= !again;
    }
    return sound;
  }

  bool check_members(const std::vector<std::int32_t>& group, const std::string& place) {
    bool sound = true;
    for (std::size_t i = 0; i < group.size(); ++i) {
      if (!in_range(group[i], at(place, i))) {
        sound = false;
        continue;
      }
      char& seen = seen_[static_cast<std::size_t>(group[i])];
      require(seen == 0, at(place, i), fmt::format("rank {} is in the group already", group[i]));
      sound &= seen == 0;
      seen = 1;
    }
    for (const std::int32_t rank : group) {
      if (rank >= 0 && rank < fabric_.fabric().ranks()) seen_[static_cast<std::size_t>(rank)] = 0;
    }
    return sound;
  }

  void check_algorithm(const Pattern& pattern, const std::vector<std::int32_t>& group,
                       const std::string& place) {
    const AlgorithmRules& rules = rules_of(pattern.algorithm);
    const std::string name(name_of(pattern.algorithm));
    const bool power_of_two = std::has_single_bit(group.size());
    const std::string size = fmt::format("the group has {}", group.size());
    if (rules.need == GroupNeed::power_of_two && pattern.operation != Operation::all_to_all) {
      require(power_of_two, place, name + " needs a power of two of ranks; " + size);
    }
    if (pattern.algorithm == Algorithm::pairwise && pattern.partners == PairwisePartners::exclusive_or) {
      require(power_of_two, place, "xor partners need a power of two of ranks; " + size);
    }
    if (rules.rings == 1 && pattern.ring_order == RingOrder::channels) {
      const std::int32_t most = most_channels(fabric_.fabric(), group);
      require(pattern.channels >= 1 && pattern.channels <= most, place,
              fmt::format(
                  "rings over {} channels need as many members in each of several domains; the group has {}",
                  pattern.channels, most));
    }
    if (rules.need == GroupNeed::box) {
      GroupBox box;
      require(split_into_box(fabric_.fabric(), group, box), place,
              name +
                  " needs a group that is a box of coordinates (every combination of one "
                  "set per axis of the fabric)");
      count(place, messages_by_dimension(pattern, box));
    }
    if (rules.need == GroupNeed::switches) {
      SwitchTree tree;
      require(find_switch_tree(fabric_, group, tree), place,
              name +
                  " needs a group within one switch or fat_tree dimension that has "
                  "in_network_reduction, with live links to each rank");
    }
  }

  void count(const std::string& place, double messages) {
    const bool fitted = messages_ <= kMaxMessages;
    messages_ += messages;
    require(!fitted || messages_ <= kMaxMessages, place,
            fmt::format("brings the messages to more than {:.0f}, the most that one simulation takes",
                        kMaxMessages));
  }

  const std::vector<Pattern>& patterns_;
  const FaultyFabric& fabric_;
  std::vector<char> seen_;  ///< scratch memory; index: rank
  double messages_ = 0;
  Problems problems_;
};

}  // namespace

double rings_of(const Pattern& pattern) {
  if (pattern.operation == Operation::broadcast) return 0;
  const std::int32_t rings = rules_of(pattern.algorithm).rings;
  return rings == 1 && pattern.ring_order == RingOrder::channels ? pattern.channels : rings;
}

namespace {

double messages_in_memory(const Pattern& pattern, std::span<const std::int32_t> group, TrafficLayout layout,
                          const Fabric& fabric) {
  const auto group_size = static_cast<std::int64_t>(group.size());
  if (group_size < 2) return 0;
  const auto n = static_cast<double>(group_size);
  const bool collective = pattern.operation != Operation::pipeline;
  const bool turns = collective && layout != TrafficLayout::in_full;
  if (turns && rings_of(pattern) > 0) return rings_of(pattern) * n;
  if (turns && rules_of(pattern.algorithm).need == GroupNeed::box) {
    // Each line of a level makes a ring per pass, with one repeated message and one gate for each rank.
    GroupBox box;
    const double levels =
        split_into_box(fabric, group, box) ? static_cast<double>(box.levels.size()) : std::ceil(std::log2(n));
    return 4 * n * levels;
  }
  if (!collective || pattern.algorithm != Algorithm::pairwise) return message_count(pattern, group_size);
  // A receipt of pairwise opens three gates, two of them through relays.
  return layout == TrafficLayout::compact ? n : 4 * message_count(pattern, group_size);
}

}  // namespace

double messages_in_memory(const Pattern& pattern, TrafficLayout layout, const Fabric& fabric) {
  auto messages = static_cast<double>(pattern.sends.size());
  for (const std::vector<std::int32_t>& group : pattern.groups)
    messages += messages_in_memory(pattern, group, layout, fabric);
  return messages;
}

Problems check_patterns(const std::vector<Pattern>& patterns, const FaultyFabric& fabric) {
  return Checker(patterns, fabric).check();
}

}  // namespace shardscape::network
