// Turns a linked trace into gates and messages of one simulation, lets a Dispatcher choose the nodes that devices and
// hosts run, and reads the use of time off the openings of gates.
#include "engine/timeline/replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <queue>
#include <utility>

#include "engine/base/check.h"
#include "engine/timeline/replay_network.h"

namespace shardscape::timeline {

namespace {

constexpr std::int32_t kNone = network::TrafficBuilder::kNone;

using Interval = std::pair<double, double>;

bool talks(const TraceNode& node) {
  return node.kind == NodeKind::send || node.kind == NodeKind::receive || node.kind == NodeKind::collective;
}

/// The gates of a trace: each node has one gate that opens when it may start and one that opens when it ends. For
/// memory nodes, and compute nodes with a fixed order, they are one gate, delayed by the duration. If nodes run in the
/// order of their ids, a Dispatcher counts down the end gate of a compute node when the node begins.
class ReplayTraffic {
 public:
  ReplayTraffic(const LinkedTrace& linked, ReplayNetwork& network, ReplayOrder order)
      : linked_(linked),
        network_(network),
        order_(order),
        builder_(network.routes(), network::TrafficLayout::repeated) {}

  /// Builds the traffic; false where some ranks cannot reach each other.
  bool build() {
    add_gates();
    add_waits();
    add_messages();
    add_collectives();
    if (!builder_.unreachable().empty()) return false;
    std::tie(traffic_, relays_) = builder_.finish();
    for (std::int64_t n = 0; n < linked_.nodes(); ++n) {
      if (dispatched(linked_.node(n))) ++traffic_.gates[end_gate(n)].waiting;
    }
    network_.add_step_latency(traffic_);
    return true;
  }

  /// Whether a Dispatcher decides when the node begins.
  [[nodiscard]] bool dispatched(const TraceNode& node) const {
    return order_ == ReplayOrder::node_id && node.kind == NodeKind::compute;
  }
  [[nodiscard]] const network::Traffic& traffic() const { return traffic_; }
  [[nodiscard]] std::int64_t relays() const { return relays_; }
  [[nodiscard]] const std::vector<network::Unreachable>& unreachable() const {
    return builder_.unreachable();
  }
  [[nodiscard]] std::size_t start_gate(std::int64_t node) const {
    return static_cast<std::size_t>(start_[static_cast<std::size_t>(node)]);
  }
  [[nodiscard]] std::size_t end_gate(std::int64_t node) const {
    return static_cast<std::size_t>(end_[static_cast<std::size_t>(node)]);
  }

 private:
  void add_gates() {
    for (const RankTrace& rank : linked_.trace->ranks) {
      for (const TraceNode& node : rank.nodes) {
        if (talks(node)) {
          start_.push_back(builder_.add_gate(0, network_.call_seconds()));
          end_.push_back(builder_.add_gate());
        } else if (dispatched(node)) {
          start_.push_back(builder_.add_gate());
          end_.push_back(builder_.add_gate(0, node.seconds));
        } else {
          start_.push_back(builder_.add_gate(0, node.seconds));
          end_.push_back(start_.back());
        }
      }
    }
  }

  void add_waits() {
    for (std::size_t n = 0; n < start_.size(); ++n) {
      for (std::int64_t w = linked_.waiters_begin[n]; w < linked_.waiters_begin[n + 1]; ++w) {
        builder_.opens(end_[n],
                       start_[static_cast<std::size_t>(linked_.waiters[static_cast<std::size_t>(w)])]);
      }
    }
    if (order_ == ReplayOrder::node_id) return;
    for (const auto* const streams : {&linked_.device, &linked_.host}) {
      for (const std::vector<std::int64_t>& order : *streams) {
        for (std::size_t i = 1; i < order.size(); ++i) add_stream_wait(order[i - 1], order[i]);
      }
    }
  }

  void add_stream_wait(std::int64_t before, std::int64_t after) {
    const auto b = static_cast<std::size_t>(before);
    const auto begin = linked_.waiters.begin() + linked_.waiters_begin[b];
    const auto end = linked_.waiters.begin() + linked_.waiters_begin[b + 1];
    if (std::find(begin, end, after) != end) return;
    builder_.opens(end_[b], start_[static_cast<std::size_t>(after)]);
  }

  void add_messages() {
    std::map<std::int32_t, std::vector<std::int64_t>> sends;  // send nodes by channel
    for (std::int64_t n = 0; n < linked_.nodes(); ++n) {
      const auto index = static_cast<std::size_t>(n);
      if (linked_.partner[index] < 0) continue;
      const TraceNode& node = linked_.node(n);
      if (node.kind == NodeKind::receive) {
        builder_.opens(start_[index], end_[index]);
      } else {
        sends[node.channel].push_back(n);
      }
    }
    for (const auto& [channel, numbers] : sends) {
      builder_.begin_group();
      for (const std::int64_t n : numbers) add_send(n);
    }
  }

  void add_send(std::int64_t n) {
    const auto index = static_cast<std::size_t>(n);
    const TraceNode& node = linked_.node(n);
    const std::int32_t connection = builder_.connection(linked_.rank_of(n), node.peer);
    builder_.send(start_[index], connection, node.bytes, end_[index]);
    builder_.opens(end_[index], end_[static_cast<std::size_t>(linked_.partner[index])]);
  }

  void add_collectives() {
    std::int32_t group = kNone;
    std::vector<std::int32_t> entry, exit, before;
    for (const CollectiveInstance& collective : linked_.collectives) {
      before.clear();
      if (collective.group != group) {
        builder_.begin_group();
      } else {
        before = exit;
      }
      group = collective.group;
      entry.clear();
      exit.clear();
      for (const std::int64_t member : collective.members) {
        entry.push_back(start_[static_cast<std::size_t>(member)]);
        exit.push_back(end_[static_cast<std::size_t>(member)]);
      }
      network_.add(builder_, collective, linked_.groups[static_cast<std::size_t>(group)], entry, exit,
                   before);
    }
  }

  const LinkedTrace& linked_;
  ReplayNetwork& network_;
  ReplayOrder order_;
  network::TrafficBuilder builder_;
  std::vector<std::int32_t> start_, end_;
  network::Traffic traffic_;
  std::int64_t relays_ = 0;
};

class GateClock : public network::GateObserver {
 public:
  explicit GateClock(std::size_t gates) : opened_(gates, kNever) {}
  void gate_opened(double time, std::int32_t gate) override {
    opened_[static_cast<std::size_t>(gate)] = time;
  }
  [[nodiscard]] double at(std::size_t gate) const {
    SHARDSCAPE_CHECK(opened_[gate] != kNever, gate);
    return opened_[gate];
  }

 private:
  static constexpr double kNever = -1;
  std::vector<double> opened_;
};

/// Gives each free device and host the ready node with the lowest id.
class Dispatcher : public GateClock {
 public:
  Dispatcher(const LinkedTrace& linked, const ReplayTraffic& traffic)
      : GateClock(traffic.traffic().gates.size()), streams_(2 * linked.trace->ranks.size()) {
    roles_.resize(traffic.traffic().gates.size());
    for (std::size_t rank = 0; rank < linked.trace->ranks.size(); ++rank) {
      const std::vector<TraceNode>& nodes = linked.trace->ranks[rank].nodes;
      for (std::size_t i = 0; i < nodes.size(); ++i) {
        if (!traffic.dispatched(nodes[i])) continue;
        const std::int64_t number = linked.first[rank] + static_cast<std::int64_t>(i);
        const auto stream = static_cast<std::int32_t>(2 * rank + (nodes[i].host ? 1 : 0));
        const std::size_t end = traffic.end_gate(number);
        roles_[traffic.start_gate(number)] = {stream, nodes[i].id, static_cast<std::int32_t>(end)};
        roles_[end] = {stream, nodes[i].id, kNone};
      }
    }
  }

  void gate_opened(double time, std::int32_t gate) override {
    GateClock::gate_opened(time, gate);
    const Role& role = roles_[static_cast<std::size_t>(gate)];
    if (role.stream == kNone) return;
    Stream& stream = streams_[static_cast<std::size_t>(role.stream)];
    if (role.end == kNone) {
      stream.busy = false;
    } else {
      stream.ready.emplace(role.id, role.end);
    }
    touched_.push_back(role.stream);
  }

  std::int32_t choose_gate() override {
    for (; !touched_.empty(); touched_.pop_back()) {
      Stream& stream = streams_[static_cast<std::size_t>(touched_.back())];
      if (stream.busy || stream.ready.empty()) continue;
      const std::int32_t gate = stream.ready.top().second;
      stream.ready.pop();
      stream.busy = true;
      return gate;
    }
    return kNone;
  }

 private:
  /// The part of a gate in a compute node: `end` is the node's end gate at its start gate, and kNone at the end gate
  /// itself.
  struct Role {
    std::int32_t stream = kNone;
    std::uint64_t id = 0;
    std::int32_t end = kNone;
  };
  using Entry = std::pair<std::uint64_t, std::int32_t>;  // id, gate that ends the node
  struct Stream {
    bool busy = false;
    std::priority_queue<Entry, std::vector<Entry>, std::greater<>> ready;
  };
  std::vector<Stream> streams_;  ///< for each rank its device, then its host
  std::vector<Role> roles_;      ///< by gate
  std::vector<std::int32_t> touched_;
};

/// Adds the time that the intervals cover together to `use`, and the part of it outside of `busy`, whose intervals are
/// disjoint and in order.
void measure(std::vector<Interval>& intervals, const std::vector<Interval>& busy, RankUse& use) {
  std::ranges::sort(intervals);
  std::size_t b = 0;
  double covered = 0;  // all time up to here has been counted
  const auto count = [&](double begin, double end) {
    use.communication += end - begin;
    double hidden = 0;
    while (b < busy.size() && busy[b].second <= begin) ++b;
    for (std::size_t i = b; i < busy.size() && busy[i].first < end; ++i) {
      hidden += std::min(end, busy[i].second) - std::max(begin, busy[i].first);
    }
    use.exposed += end - begin - hidden;
  };
  for (const auto& [begin, end] : intervals) {
    const double from = std::max(begin, covered);
    if (end <= from) continue;
    count(from, end);
    covered = end;
  }
}

/// Finds when nodes ran from the openings of their gates.
class Timesheet {
 public:
  Timesheet(const LinkedTrace& linked, const ReplayTraffic& traffic, const GateClock& clock, double call)
      : linked_(linked), traffic_(traffic), clock_(clock), call_(call) {
    for (const CollectiveInstance& collective : linked.collectives) {
      double last = 0;
      for (const std::int64_t member : collective.members) last = std::max(last, begin(member));
      entered_.push_back(last);
    }
  }

  [[nodiscard]] RankUse use_of(std::size_t rank, double& step_time) const {
    RankUse use;
    std::vector<Interval> busy, talking;
    for (std::int64_t n = linked_.first[rank]; n < linked_.first[rank + 1]; ++n) {
      const TraceNode& node =
          linked_.trace->ranks[rank].nodes[static_cast<std::size_t>(n - linked_.first[rank])];
      const double end = clock_.at(traffic_.end_gate(n));
      use.end = std::max(use.end, end);
      if (node.kind == NodeKind::compute && !node.host) {
        use.compute += node.seconds;
        busy.emplace_back(end - node.seconds, end);
      } else if (talks(node)) {
        talking.emplace_back(std::min(end, communication_begin(n, node)), end);
      }
    }
    std::ranges::sort(busy);
    measure(talking, busy, use);
    step_time = std::max(step_time, use.end);
    return use;
  }

 private:
  /// The time at which a node that communicates was ready.
  [[nodiscard]] double begin(std::int64_t n) const { return clock_.at(traffic_.start_gate(n)) - call_; }
  [[nodiscard]] double communication_begin(std::int64_t n, const TraceNode& node) const {
    const auto index = static_cast<std::size_t>(n);
    if (node.kind == NodeKind::collective) return entered_[static_cast<std::size_t>(linked_.instance[index])];
    if (node.kind == NodeKind::receive) return std::max(begin(n), begin(linked_.partner[index]));
    return begin(n);
  }

  const LinkedTrace& linked_;
  const ReplayTraffic& traffic_;
  const GateClock& clock_;
  double call_;
  std::vector<double> entered_;  ///< by collective: when its last member was ready
};

TraceProblems size_problems(const LinkedTrace& linked, ReplayNetwork& network) {
  const auto ranks = static_cast<std::int64_t>(linked.trace->ranks.size());
  if (ranks > network.routes().fabric().ranks()) {
    return {{-1, std::nullopt,
             fmt::format("there are traces of {} ranks, the fabric has {} GPUs", ranks,
                         network.routes().fabric().ranks())}};
  }
  double messages = 0, in_memory = 0;
  for (const CollectiveInstance& collective : linked.collectives) {
    const std::vector<std::int32_t>& members = linked.groups[static_cast<std::size_t>(collective.group)];
    messages += network.message_count(collective, members);
    in_memory += network.messages_in_memory(collective, members);
  }
  // Every node has at most two gates, every dependency at most one relay.
  const double nodes = static_cast<double>(linked.waiters.size()) + static_cast<double>(linked.nodes());
  const auto too_many = [](double count, double most, const std::string& why) {
    return TraceProblem{-1, std::nullopt,
                        fmt::format("the traces make about {} messages{}{}", static_cast<std::int64_t>(count),
                                    why, static_cast<std::int64_t>(most))};
  };
  if (messages + nodes > network::kMaxMessages)
    return {too_many(messages + nodes, network::kMaxMessages, "; a simulation takes ")};
  if (in_memory + nodes > network::kMaxMessagesInMemory)
    return {
        too_many(in_memory + nodes, network::kMaxMessagesInMemory, " that stand in memory, which holds ")};
  return {};
}

TraceProblems reach_problems(const ReplayTraffic& traffic, const network::FaultyFabric& routes) {
  constexpr std::size_t kProblemsShown = 5;
  TraceProblems problems;
  for (const network::Unreachable& pair : traffic.unreachable()) {
    if (problems.size() == kProblemsShown) break;
    problems.push_back(
        {pair.source, std::nullopt, routes.describe(routes.explain(pair.source, pair.destination))});
  }
  return problems;
}

}  // namespace

std::int64_t estimate_durations(ExecutionTrace& trace, const DeviceSpec& device) {
  std::int64_t estimated = 0;
  const double peak = device.tensor_peak(Precision::bf16).value();
  for (RankTrace& rank : trace.ranks) {
    for (TraceNode& node : rank.nodes) {
      const bool takes_time = node.kind == NodeKind::compute || node.kind == NodeKind::memory_load ||
                              node.kind == NodeKind::memory_store;
      const bool bare = takes_time && node.seconds == 0;
      if (!bare || (node.operations == 0 && node.tensor_bytes == 0)) continue;
      const double products = peak > 0 ? node.operations / peak : 0;
      node.seconds = std::max(products, node.tensor_bytes / device.hbm_sustained().value());
      ++estimated;
    }
  }
  return estimated;
}

tl::expected<Replay, TraceProblems> replay(const ExecutionTrace& trace, const network::Fabric& fabric,
                                           const ReplayOptions& options) {
  std::vector<std::int64_t> shape;
  for (const DimensionSpec& dimension : fabric.spec().dimensions) shape.push_back(dimension.size());
  const auto linked = link(trace, shape);
  if (!linked) return tl::unexpected(linked.error());
  ReplayNetwork network(fabric, options.stack, options.memory_rate, options.node, options.faults);
  if (TraceProblems problems = size_problems(*linked, network); !problems.empty()) {
    return tl::unexpected(std::move(problems));
  }
  ReplayTraffic traffic(*linked, network, options.order);
  if (!traffic.build()) return tl::unexpected(reach_problems(traffic, network.routes()));

  Dispatcher clock(*linked, traffic);
  const network::FlowResult result =
      options.simulator ? options.simulator(traffic.traffic(), network.bytes_per_second(), &clock)
                        : network::FlowSimulator().run_traffic(traffic.traffic(), network.bytes_per_second(),
                                                               nullptr, &clock);
  Replay out;
  out.nodes = linked->nodes();
  out.messages = result.received - traffic.relays();
  out.events = result.events;
  const Timesheet times(*linked, traffic, clock, network.call_seconds());
  for (std::size_t r = 0; r < trace.ranks.size(); ++r) out.ranks.push_back(times.use_of(r, out.step_time));
  for (RankUse& use : out.ranks) use.idle = std::max(0.0, out.step_time - use.compute - use.exposed);
  return out;
}

}  // namespace shardscape::timeline
