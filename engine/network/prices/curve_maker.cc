// Makes cost curves: breaks an algorithm into rounds, rings or stages, uses formulas where the flows of these are
// uniform, aligned or rigid, and leaves the rest as contended parts with bounds.
#include "engine/network/prices/curve_maker.h"

#include <algorithm>
#include <set>

#include "engine/base/check.h"
#include "engine/network/collectives/traffic_builder.h"
#include "engine/network/groups/channel_rings.h"

namespace shardscape::network {

namespace {

/// The most messages of an exchange that is split into components: some 0.2 s.
constexpr double kMostSplitMessages = 1 << 18;

constexpr std::ptrdiff_t kLinesLookedAt = 16;

/// One of the first steps of halving-doubling: the partner is i xor distance, and the share is halved each time.
struct ShareExchange {
  std::size_t distance = 1;
  double share = 0.5;
};

std::vector<ShareExchange> exchanges(Operation operation, std::size_t n) {
  std::vector<ShareExchange> halving, all;
  double share = 0.5;
  for (std::size_t distance = 1; distance < n; distance *= 2, share /= 2)
    halving.push_back({distance, share});
  if (operation != Operation::all_gather) all = halving;
  if (operation != Operation::reduce_scatter) all.insert(all.end(), halving.rbegin(), halving.rend());
  return all;
}

/// Appends the lines of a box along one level, each in the order of its coordinates.
void append_lines(const GroupBox& box, std::size_t level, std::vector<std::int32_t>& ranks) {
  const auto offset = [](const GroupBox::Level& l, std::int32_t position) {
    return (position - l.positions.front()) * l.stride;
  };
  std::vector<std::int32_t> starts = {box.origin};
  for (std::size_t l = 0; l < box.levels.size(); ++l) {
    if (l == level) continue;
    const std::size_t inner = starts.size();
    for (std::size_t p = 1; p < box.levels[l].positions.size(); ++p) {
      for (std::size_t s = 0; s < inner; ++s)
        starts.push_back(starts[s] + offset(box.levels[l], box.levels[l].positions[p]));
    }
  }
  for (const std::int32_t start : starts) {
    for (const std::int32_t position : box.levels[level].positions)
      ranks.push_back(start + offset(box.levels[level], position));
  }
}

/// A level of boxes that is gone through once or, where scattering turns into gathering, twice.
struct Turn {
  std::size_t level = 0;
  int passes = 1;
  friend bool operator==(const Turn&, const Turn&) = default;
};

}  // namespace

CurveMaker::CurveMaker(PricedNetwork& network)
    : network_(network),
      flows_(network),
      user_(network.fabric().links().size(), -1),
      label_(network.fabric().links().size(), -1) {}

CurveParts CurveMaker::unreachable() {
  CurveParts curve;
  curve.cut_off = true;
  return curve;
}

/// Adds a stage with the flows in flows_, if loads are asked for.
void CurveMaker::add_stage(double seconds) {
  if (loads_ != nullptr) loads_->push_back({seconds, std::make_shared<const LinkLoads>(flows_.loads())});
}

void CurveMaker::add_stage(const RingParts& rings) {
  if (loads_ != nullptr) loads_->push_back({rings.steps * rings.exact.share * rings.slowest, rings.loads});
}

CostCurve CurveMaker::make(const Pattern& pattern, const SiblingGroups& groups) {
  return CostCurve(parts(pattern, groups));
}

LinkSet CurveMaker::links(const Pattern& pattern, const SiblingGroups& groups) {
  collects_ = true;
  const bool shortcut = shortcuts_ && !network_.routes().cut();
  const bool exchanged = pattern.operation == Operation::all_to_all && pattern.algorithm == Algorithm::direct;
  if (exchanged && shortcut) return exchange_links(groups, pattern.skew);
  links_only_ = shortcut && loads_ == nullptr;
  LinkSet links = parts(pattern, groups).links;
  links_only_ = false;
  return links;
}

/// The links of a direct all-to-all, and their loads if they are asked for, without its flows.
LinkSet CurveMaker::exchange_links(const SiblingGroups& groups, const Skew& skew) {
  flows_.count_exchange(groups, skew);
  LinkSet links;
  flows_.collect_links(links);
  if (flows_.slowest() > 0) add_stage(flows_.slowest());
  return links;
}

LinkSet CurveMaker::links(std::span<const PointToPoint> sends) {
  flows_.reset();
  LinkSet links;
  for (const PointToPoint& send : sends) {
    if (!flows_.add(send.source, send.destination)) return {};
  }
  flows_.collect_links(links);
  return links;
}

LinkLoads CurveMaker::loads(const Pattern& pattern, const SiblingGroups& groups) {
  std::vector<StageLoads> stages;
  loads_ = &stages;
  const LinkSet all = links(pattern, groups);
  loads_ = nullptr;
  if (!stages.empty()) return mean_loads(stages);
  // If no round or ring gives loads, all links count as busy.
  LinkLoads loads;
  all.for_each([&](std::int32_t link) { loads.push_back({link, 1, 1}); });
  return loads;
}

LinkLoads CurveMaker::loads(std::span<const PointToPoint> sends) {
  (void)links(sends);
  if (flows_.size() == 0) return {};
  flows_.settle();
  return flows_.loads();
}

CurveParts CurveMaker::parts(const Pattern& pattern, const SiblingGroups& groups) {
  if (pattern.operation == Operation::broadcast) return general(pattern, groups);
  if (pattern.algorithm == Algorithm::ring) return ring(pattern, groups);
  if (pattern.algorithm == Algorithm::dimension_wise) return dimension_wise(pattern, groups);
  if (pattern.operation == Operation::all_to_all && pattern.algorithm == Algorithm::direct)
    return exchange(pattern, groups);
  const std::vector<Round> all = rounds_of(pattern, groups.size);
  return all.empty() ? general(pattern, groups) : rounds(pattern, groups, all);
}

/// The rounds of an algorithm; empty for one that does not consist of rounds. The bidirectional ring over a pair of
/// ranks does not, since its two directions share their connections.
std::vector<CurveMaker::Round> CurveMaker::rounds_of(const Pattern& pattern, std::size_t n) {
  const double share = 1 / static_cast<double>(n);
  const double passes = passes_of(pattern.operation);
  std::vector<Round> all;
  const auto add_shift = [&](Round& round, std::size_t offset) {
    for (std::size_t i = 0; i < n; ++i) round.flows.emplace_back(i, (i + offset) % n);
  };
  if (pattern.algorithm == Algorithm::direct) {
    all.push_back({{}, share, passes});
    for (std::size_t offset = 1; offset < n; ++offset) add_shift(all.back(), offset);
  } else if (pattern.algorithm == Algorithm::bidirectional_ring && n > 2) {
    all.push_back({{}, share / 2, passes * static_cast<double>(n - 1)});
    add_shift(all.back(), 1);
    add_shift(all.back(), n - 1);
  } else if (pattern.algorithm == Algorithm::halving_doubling) {
    for (const ShareExchange& exchange : exchanges(pattern.operation, n)) {
      all.push_back({{}, exchange.share, 1});
      for (std::size_t i = 0; i < n; ++i) all.back().flows.emplace_back(i, i ^ exchange.distance);
    }
  } else if (pattern.algorithm == Algorithm::pairwise && pattern.partners == PairwisePartners::shift) {
    for (std::size_t offset = 1; offset < n; ++offset) {
      all.push_back({{}, share, 1});
      add_shift(all.back(), offset);
    }
  }
  return all;
}

CurveParts CurveMaker::ring(const Pattern& pattern, const SiblingGroups& groups) {
  const std::size_t n = groups.size;
  const bool several = pattern.ring_order == RingOrder::channels;
  flows_.take_rank_steps(several);
  RingParts parts = rings(several ? over_channels(groups, network_.fabric(), pattern.channels) : groups,
                          passes_of(pattern.operation) * static_cast<int>(n - 1),
                          1 / static_cast<double>(n) / pattern.channels);
  flows_.take_rank_steps(false);
  if (!parts.reachable) return unreachable();
  add_stage(parts);
  CurveParts curve;
  curve.links = std::move(parts.links);
  curve.stages.push_back(std::move(parts.exact));
  curve.contended = std::move(parts.contended);
  for (CurveParts::Contended& part : curve.contended) {
    part.pattern.operation = pattern.operation;
    part.pattern.channels = pattern.channels;
    part.pattern.rank_steps = several;
  }
  return curve;
}

CostCurve CurveMaker::one_round(std::span<const PointToPoint> sends, double copies) {
  flows_.reset();
  for (const PointToPoint& send : sends) {
    if (!flows_.add(send.source, send.destination)) return CostCurve(unreachable());
  }
  flows_.settle();
  CurveParts curve = round_of_flows(LowerBounds::rigid_flows, copies);
  for (CurveParts::Contended& part : curve.contended) {
    part.pattern.operation = Operation::point_to_point;
    part.pattern.sends.assign(sends.begin(), sends.end());
  }
  return CostCurve(std::move(curve));
}

/// Turns the settled flows of flows_, all at once, into a stage if formulas give their time. Otherwise into a contended
/// part without a pattern, with these bounds.
CurveParts CurveMaker::round_of_flows(LowerBounds bounds, double copies) {
  const bool by_links = bounds == LowerBounds::links_and_flows;
  CurveParts curve;
  if (collects_) flows_.collect_links(curve.links);
  add_stage(flows_.slowest());
  const auto line = [&](std::size_t f) {
    return AffineCost{flows_.flow(f).latency, flows_.flow(f).weight * flows_.flow(f).shared};
  };
  std::vector<AffineCost> upper, lower;
  const std::size_t count = flows_.uniform() ? 1 : flows_.size();
  for (std::size_t f = 0; f < count; ++f) {
    // Few lines differ, so comparing with the latest ones finds nearly all duplicates.
    const auto latest = upper.end() - std::min<std::ptrdiff_t>(kLinesLookedAt, std::ssize(upper));
    if (std::find(latest, upper.end(), line(f)) == upper.end()) upper.push_back(line(f));
  }
  upper = upper_envelope(std::move(upper));
  std::vector<char> sure(upper.size(), 0);
  for (std::size_t f = 0; f < count; ++f) {
    const auto known = std::ranges::find(upper, line(f));
    if (known != upper.end() && sure[static_cast<std::size_t>(known - upper.begin())] == 0 && flows_.rigid(f))
      sure[static_cast<std::size_t>(known - upper.begin())] = 1;
  }
  if (std::ranges::find(sure, 0) == sure.end()) {
    curve.stages.push_back({1, std::move(upper), {}, 0});
    return curve;
  }
  for (std::size_t f = 0; f < count; ++f) {
    const RoutedFlow& flow = flows_.flow(f);
    if (flows_.rigid(f)) lower.push_back(line(f));
    if (by_links) lower.push_back({flow.latency, flow.weight * flow.alone});
  }
  if (by_links) {
    const BusiestLink busiest = flows_.busiest();
    lower.push_back({busiest.least_latency, busiest.seconds_per_unit});
  }
  CurveParts::Contended part;
  part.messages = copies * static_cast<double>(flows_.size());
  part.upper.push_back({1, std::move(upper), {}, 0});
  part.lower.push_back({1, upper_envelope(std::move(lower)), {}, 0});
  curve.contended.push_back(std::move(part));
  return curve;
}

/// The curve of a direct all-to-all: every pair of a group at once.
CurveParts CurveMaker::exchange(const Pattern& pattern, const SiblingGroups& groups) {
  const std::size_t n = groups.size;
  flows_.reset();
  for (std::size_t g = 0; g < groups.count(); ++g) {
    const std::span<const std::int32_t> group = groups.group(g);
    for (std::size_t from = 0; from < n; ++from) {
      for (std::size_t to = 0; to < n; ++to) {
        const double part = from == to ? 0 : pattern.skew.part(from, to, n);
        if (part > 0 && !flows_.add(group[from], group[to], part)) return unreachable();
      }
    }
  }
  if (flows_.size() == 0) return {};
  flows_.settle();
  if (loads_ != nullptr) {
    add_stage(flows_.slowest());
    return {};
  }
  CurveParts curve = round_of_flows(LowerBounds::links_and_flows, groups.copies);
  if (!curve.contended.empty()) split_exchange(pattern, groups, curve);
  return curve;
}

/// Splits a contended exchange into components of groups that share links, each with the bounds of the whole. One that
/// is too large stays whole, and its upper bound stands for it.
void CurveMaker::split_exchange(const Pattern& pattern, const SiblingGroups& groups, CurveParts& curve) {
  CurveParts::Contended whole = std::move(curve.contended.front());
  curve.contended.clear();
  if (whole.messages > kMostSplitMessages) {
    curve.contended.push_back(std::move(whole));
    return;
  }
  for (CurveParts::Contended& part : general(pattern, groups).contended) {
    part.upper = whole.upper;
    part.lower = whole.lower;
    part.one_round = true;
    curve.contended.push_back(std::move(part));
  }
}

CurveParts CurveMaker::rounds(const Pattern& pattern, const SiblingGroups& groups,
                              const std::vector<Round>& all) {
  CurveParts curve;
  CurveParts::Stage stage;
  stage.lines.emplace_back();
  bool uniform = true;
  for (const Round& round : all) {
    flows_.reset();
    for (std::size_t g = 0; g < groups.count(); ++g) {
      const std::span<const std::int32_t> group = groups.group(g);
      for (const auto& [from, to] : round.flows) {
        if (!flows_.add(group[from], group[to])) return unreachable();
      }
    }
    flows_.settle();
    if (collects_) flows_.collect_links(curve.links);
    add_stage(round.times * round.share * flows_.slowest());
    uniform = uniform && flows_.uniform();
    if (!uniform && loads_ == nullptr) break;
    stage.lines.front().latency += round.times * flows_.flow(0).latency;
    stage.lines.front().seconds_per_byte += round.times * round.share * flows_.flow(0).shared;
  }
  if (!uniform) return general(pattern, groups);
  curve.stages.push_back(std::move(stage));
  return curve;
}

/// The lines of all groups along one level of their boxes. Where the groups stand for others, fewer lines than the
/// groups have need to be looked at, and they stand for all lines along that level.
CurveMaker::Rings CurveMaker::lines(std::span<const GroupBox> boxes, std::size_t level,
                                    const SiblingGroups& groups) const {
  const GroupBox::Level& along = boxes.front().levels[level];
  const std::int32_t step = along.positions[1] - along.positions[0];
  const bool even = std::ranges::adjacent_find(along.positions, [&](std::int32_t a, std::int32_t b) {
                      return b - a != step;
                    }) == along.positions.end();
  // Not on a fat tree, where each line has an order of its own (leaf_order()).
  if (groups.tile_of && even && under_leaf(network_.fabric(), along.dimension) == 0) {
    RankGroup line;
    line.push(static_cast<std::int32_t>(along.positions.size()), step * along.stride);
    SiblingGroups tile = first_tile(line, network_.fabric(), *groups.tile_of);
    if (tile.tile_of) return tile;
  }
  Rings result;
  result.size = along.positions.size();
  GroupBox box;
  const BoxesAlike alike(network_.fabric(), groups.group(0), boxes.front());
  for (std::size_t g = 0; g < groups.count(); ++g) {
    if (g < boxes.size()) {
      append_lines(boxes[g], level, result.ranks);
      continue;
    }
    (void)alike.split(groups.group(g), box);
    append_lines(box, level, result.ranks);
  }
  return result;
}

CurveParts CurveMaker::dimension_wise(const Pattern& pattern, const SiblingGroups& groups) {
  std::vector<GroupBox> boxes(groups.shapes());
  bool equal = true;
  for (std::size_t g = 0; g < boxes.size(); ++g) {
    const bool is_box = split_into_box(network_.fabric(), groups.group(g), boxes[g]);
    SHARDSCAPE_CHECK(is_box, g);
    equal = equal && boxes[g].levels.size() == boxes[0].levels.size();
    for (std::size_t l = 0; equal && l < boxes[0].levels.size(); ++l)
      equal = boxes[g].levels[l].positions.size() == boxes[0].levels[l].positions.size();
  }
  if (!equal) return general(pattern, groups);

  // Scattering goes through the levels inwards, gathering outwards; at the turn, the two passes of a level form one
  // ring.
  const std::size_t levels = boxes[0].levels.size();
  std::vector<Turn> turns;
  const bool scatters = pattern.operation != Operation::all_gather;
  const bool gathers = pattern.operation != Operation::reduce_scatter;
  for (std::size_t l = 0; scatters && l + 1 < levels; ++l) turns.push_back({l, 1});
  turns.push_back({levels - 1, scatters && gathers ? 2 : 1});
  for (std::size_t l = levels - 1; gathers && l-- > 0;) turns.push_back({l, 1});

  CurveParts curve;
  std::vector<RingParts> stages;
  bool exact = true, together = true;
  double messages = 0;
  for (const Turn& turn : turns) {
    double share = 1;
    for (std::size_t l = 0; l <= turn.level; ++l)
      share /= static_cast<double>(boxes[0].levels[l].positions.size());
    const auto before = std::ranges::find(turns, turn);
    const auto same = static_cast<std::size_t>(before - turns.begin());
    if (same < stages.size()) {  // gathering repeats a ring of scattering
      stages.push_back(RingParts(stages[same]));
    } else {
      const Rings along = lines(boxes, turn.level, groups);
      stages.push_back(rings(along, turn.passes * static_cast<int>(along.size - 1), share));
      if (!stages.back().reachable) return unreachable();
      curve.links.insert_all(stages.back().links);
    }
    const RingParts& parts = stages.back();
    add_stage(parts);
    exact = exact && parts.contended.empty() && (together || (parts.uniform && parts.uncontended));
    together = together && parts.uniform;
    messages += static_cast<double>(groups.size) * parts.steps;
  }
  if (links_only_) return curve;
  // Detours may lead several stages over the same links.
  const bool cut = network_.routes().cut();
  if (!exact || (cut && !together)) {
    if (cut) return general(pattern, groups);
    CurveParts::Contended part;
    part.pattern = pattern;
    part.messages = messages;
    part.lower.emplace_back();
    for (std::size_t k = 0; k < stages.size(); ++k) {
      part.lower.front().lines.push_back(stages_from_below(stages, k));
      part.upper.push_back(stages[k].upper);
      part.in_turn.push_back(alone(stages[k], k == 0));
    }
    part.split = [pattern, groups](PricedNetwork& network) {
      std::vector<Pattern> classes;
      for (CurveParts::Contended& c : CurveMaker(network).general(pattern, groups).contended)
        classes.push_back(std::move(c.pattern));
      return classes;
    };
    curve.contended.push_back(std::move(part));
    return curve;
  }
  for (RingParts& parts : stages) curve.stages.push_back(std::move(parts.exact));
  return curve;
}

/// The least time of a dimension-wise stage: of the first, whose members begin together, or once round a later one.
CurveParts::Stage CurveMaker::alone(const RingParts& stage, bool first) {
  CurveParts::Stage least = stage.exact;
  if (!first) {
    least.rings.clear();
    least.lines = {{stage.steps * stage.least_latency, stage.steps * stage.fastest}};
    return least;
  }
  for (const CurveParts::Contended& part : stage.contended) {
    const CurveParts::Stage& lower = part.lower.front();
    least.lines.insert(least.lines.end(), lower.lines.begin(), lower.lines.end());
    least.rings.insert(least.rings.end(), lower.rings.begin(), lower.rings.end());
  }
  return least;
}

/// The lower bound that cost_curve.h gives for dimension-wise stages, with k = `busiest`.
AffineCost CurveMaker::stages_from_below(std::span<const RingParts> stages, std::size_t busiest) {
  AffineCost sum;
  for (std::size_t j = 0; j < stages.size(); ++j) {
    const RingParts& stage = stages[j];
    sum.latency += (j > busiest ? stage.steps : 1) * stage.least_latency;
    sum.seconds_per_byte += stage.upper.share * stage.steps * (j == busiest ? stage.slowest : stage.fastest);
  }
  return sum;
}

void CurveMaker::forget(std::span<const std::int32_t> links) {
  for (const std::int32_t link : links) user_[static_cast<std::size_t>(link)] = -1;
}

/// Adds everything that a simulation of the traffic depends on to the signature, with links numbered in the order in
/// which they are met: components with the same signature take the same time.
void CurveMaker::sign(const Traffic& traffic, std::int32_t& links, Signature& signature) {
  const auto pair = [](std::int32_t a, std::int32_t b) {
    return (static_cast<std::uint64_t>(static_cast<std::uint32_t>(a)) << 32) | static_cast<std::uint32_t>(b);
  };
  for (const Connection& connection : traffic.connections) {
    signature.add(connection.latency);
    signature.add(pair(connection.path_begin, connection.path_end));
  }
  for (const std::int32_t link : traffic.path_links) {
    std::int32_t& name = user_[static_cast<std::size_t>(link)];
    if (name < 0) {
      name = links++;
      signature.add(network_.bytes_per_second()[static_cast<std::size_t>(link)]);
    }
    signature.add(static_cast<std::uint64_t>(name));
  }
  for (const Message& message : traffic.messages) {
    signature.add(pair(message.connection, message.gate));
    signature.add(message.bytes);
  }
  for (const Gate& gate : traffic.gates) {
    signature.add(pair(gate.waiting, gate.messages));
    signature.add(pair(gate.times, 0));
    signature.add(pair(gate.first_message, gate.next_gate));
  }
}

CurveParts CurveMaker::general(const Pattern& pattern, const SiblingGroups& groups) {
  CurveParts curve;
  Pattern single = pattern;
  single.bytes = 1;
  single.chunks = 1;
  std::vector<Traffic> traffic;
  UnionFind joined(groups.count());
  for (std::size_t g = 0; g < groups.count() && !curve.cut_off; ++g) {
    single.groups = groups.nested(std::span(&g, 1));
    curve.cut_off = !network_.has_switches_for(single);
    if (curve.cut_off) break;
    auto built = build_traffic({single}, network_.routes());
    curve.cut_off = !built;
    if (!built) break;
    traffic.push_back(std::move(built->traffic));
    for (const std::int32_t link : traffic.back().path_links) {
      std::int32_t& user = user_[static_cast<std::size_t>(link)];
      if (user < 0) user = static_cast<std::int32_t>(g);
      joined.join(static_cast<std::size_t>(user), g);
      if (collects_) curve.links.insert(link);
    }
  }
  for (const Traffic& t : traffic) forget(t.path_links);
  if (curve.cut_off) return unreachable();
  std::set<Signature> seen;
  for (const std::vector<std::size_t>& component : joined.sets()) {
    Signature signature;
    CurveParts::Contended part;
    std::int32_t links = 0;
    for (const std::size_t g : component) {
      sign(traffic[g], links, signature);
      part.messages += static_cast<double>(traffic[g].sent());
    }
    for (const std::size_t g : component) forget(traffic[g].path_links);
    if (!seen.insert(signature).second) continue;
    part.pattern = pattern;
    part.pattern.groups = groups.nested(component);
    curve.contended.push_back(std::move(part));
  }
  return curve;
}

}  // namespace shardscape::network
