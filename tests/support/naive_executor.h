// The plain executor of programs: one global clock, everything looked at again at every instant, all rates
// solved anew. Slow and obvious; the oracle of execution::Executor.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <limits>
#include <map>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "engine/execution/program.h"

namespace shardscape::test {

class NaiveExecutor {
 public:
  NaiveExecutor(const execution::Programs& programs, std::span<const double> capacity)
      : p_(programs), capacity_(capacity) {}

  /// The end of each rank's program; -1 where it has none.
  std::vector<double> run() {
    ranks_.resize(static_cast<std::size_t>(p_.ranks));
    wires_.resize(p_.wires.connections.size());
    for (std::int32_t r = 0; r < p_.ranks; ++r) unfold(r);
    for (;;) {
      while (settle()) {
      }
      solve();
      const double next = next_time();
      if (next == kNever) break;
      travel(next);
    }
    std::vector<double> end;
    for (const Rank& rank : ranks_) end.push_back(rank.next == rank.program.size() ? rank.ended : -1);
    return end;
  }

 private:
  using Instruction = execution::Instruction;
  using Kind = Instruction::Kind;
  static constexpr double kNever = std::numeric_limits<double>::infinity();

  struct Call {
    std::int32_t number = 0;
    std::vector<std::int32_t> waiting;
    std::vector<std::int32_t> receipts, openings;  ///< for gates that open several times
  };
  struct Parcel {
    double left = 0;
    std::int32_t communicator = -1, number = -1, gate = -1;  ///< -1: a message
  };
  struct Lane {
    std::deque<std::pair<std::int32_t, std::int32_t>> waiting;  ///< lanes and calls, of all that take turns
    bool inside = false;
    std::int32_t lane = -1;  ///< lane of the call
    double enters = kNever;
    std::int32_t call = -1;
  };
  struct Rank {
    std::vector<Instruction> program;
    std::size_t next = 0;
    double busy_until = 0, host = 0, ended = 0;
    bool running = false;                          ///< a compute or launch that ends at busy_until
    std::map<std::int32_t, Lane> lanes;            ///< key: the first of the lanes that take turns
    std::map<std::int32_t, std::int32_t> entered;  ///< calls so far, by lane
  };
  struct Wire {
    std::deque<Parcel> queue;
    std::deque<std::pair<double, Parcel>> flying;
    double rate = 0;
    std::int64_t sent = 0, received = 0, taken = 0;
  };
  struct Release {
    double time = 0;
    std::int32_t wire = 0;
    double bytes = 0;
  };

  void unfold(std::int32_t r) {
    const auto sequence = static_cast<std::size_t>(p_.sequence_of[static_cast<std::size_t>(r)]);
    for (const std::int32_t block : p_.sequences[sequence]) {
      const execution::Block& b = p_.blocks[static_cast<std::size_t>(block)];
      ranks_[static_cast<std::size_t>(r)].program.insert(ranks_[static_cast<std::size_t>(r)].program.end(),
                                                         p_.instructions.begin() + b.begin,
                                                         p_.instructions.begin() + b.end);
    }
  }

  Lane& turns(Rank& rank, std::int32_t lane) { return rank.lanes[p_.turns[static_cast<std::size_t>(lane)]]; }

  [[nodiscard]] bool due(double time) const { return time <= now_ * (1 + 1e-12) + 1e-18; }
  Wire& wire(std::int32_t id) { return wires_[static_cast<std::size_t>(id)]; }

  /// Whatever can happen now; true where something did.
  bool settle() {
    bool any = false;
    for (std::size_t i = 0; i < releases_.size();) {
      if (!due(releases_[i].time)) {
        ++i;
        continue;
      }
      put(releases_[i].wire, {releases_[i].bytes, -1, -1, -1});
      releases_.erase(releases_.begin() + static_cast<std::ptrdiff_t>(i));
      any = true;
    }
    for (std::size_t w = 0; w < wires_.size(); ++w) any = land(static_cast<std::int32_t>(w)) || any;
    for (std::int32_t r = 0; r < p_.ranks; ++r) {
      Rank& rank = ranks_[static_cast<std::size_t>(r)];
      for (auto& [number, lane] : rank.lanes) any = work(r, lane) || any;
      any = step(r, rank) || any;
    }
    return any;
  }

  bool land(std::int32_t id) {
    Wire& w = wire(id);
    bool any = false;
    const double latency = p_.wires.connections[static_cast<std::size_t>(id)].latency;
    while (!w.queue.empty() && w.queue.front().left <= 1e-9) {
      w.flying.emplace_back(now_ + latency, w.queue.front());
      w.queue.pop_front();
      any = true;
    }
    while (!w.flying.empty() && due(w.flying.front().first)) {
      const Parcel parcel = w.flying.front().second;
      w.flying.pop_front();
      ++w.received;
      if (parcel.communicator >= 0) receive(parcel.communicator, parcel.number, parcel.gate);
      any = true;
    }
    return any;
  }

  void put(std::int32_t id, const Parcel& parcel) { wire(id).queue.push_back(parcel); }

  bool work(std::int32_t r, Lane& lane) {
    if (!lane.inside && !lane.waiting.empty()) {
      lane.inside = true;
      std::tie(lane.lane, lane.call) = lane.waiting.front();
      lane.waiting.pop_front();
      const std::int32_t group = p_.communicator_of[p_.at(lane.lane, r)];
      const double copies = p_.communicators[static_cast<std::size_t>(group)]
                                .calls[static_cast<std::size_t>(lane.call)]
                                .copy_seconds;
      const double stretch = p_.copy_stretch.empty() ? 1 : p_.copy_stretch[static_cast<std::size_t>(r)];
      lane.enters = now_ + p_.call_seconds + stretch * copies;
      return true;
    }
    if (lane.inside && due(lane.enters)) {
      lane.enters = kNever;
      const std::int32_t communicator = p_.communicator_of[p_.at(lane.lane, r)];
      const auto member = static_cast<std::size_t>(p_.member_of[p_.at(lane.lane, r)]);
      const std::int32_t k = ranks_[static_cast<std::size_t>(r)].entered[lane.lane]++;
      Call& call = calls_[{communicator, k}];
      const execution::CallTraffic& traffic =
          p_.communicators[static_cast<std::size_t>(communicator)].calls[static_cast<std::size_t>(lane.call)];
      if (call.waiting.empty()) {
        call.number = lane.call;
        for (const auto& gate : traffic.gates) call.waiting.push_back(gate.waiting);
        call.receipts.resize(traffic.gates.size());
        call.openings.resize(traffic.gates.size());
      }
      count_down(communicator, k, traffic.entry[member]);
      count_down(communicator, k, traffic.exit[member]);
      return true;
    }
    return false;
  }

  [[nodiscard]] const execution::CallTraffic& traffic_of(std::int32_t communicator, std::int32_t k) {
    return p_.communicators[static_cast<std::size_t>(communicator)]
        .calls[static_cast<std::size_t>(calls_[{communicator, k}].number)];
  }

  void receive(std::int32_t communicator, std::int32_t k, std::int32_t gate) {
    if (gate < 0) return;
    const execution::CallTraffic::Gate& g = traffic_of(communicator, k).gates[static_cast<std::size_t>(gate)];
    if (g.times == 1) return count_down(communicator, k, gate);
    if (++calls_[{communicator, k}].receipts[static_cast<std::size_t>(gate)] == g.times)
      count_down(communicator, k, g.next_gate);
    repeat(communicator, k, gate);
  }

  /// A gate that opens several times does so once for nothing and then once for each receipt but the last.
  void repeat(std::int32_t communicator, std::int32_t k, std::int32_t gate) {
    const auto at = static_cast<std::size_t>(gate);
    const execution::CallTraffic& traffic = traffic_of(communicator, k);
    Call& call = calls_[{communicator, k}];
    if (call.waiting[at] > 0) return;
    for (; call.openings[at] < std::min(call.receipts[at] + 1, traffic.gates[at].times); ++call.openings[at])
      send_messages(communicator, k, traffic, traffic.gates[at]);
  }

  void send_messages(std::int32_t communicator, std::int32_t k, const execution::CallTraffic& traffic,
                     const execution::CallTraffic::Gate& g) {
    for (std::int32_t m = 0; m < g.messages; ++m) {
      const network::Message& message = traffic.messages[static_cast<std::size_t>(g.first_message + m)];
      put(message.connection, {message.bytes, communicator, k, message.gate});
    }
  }

  void count_down(std::int32_t communicator, std::int32_t k, std::int32_t gate) {
    if (gate < 0) return;
    Call& call = calls_[{communicator, k}];
    if (--call.waiting[static_cast<std::size_t>(gate)] != 0) return;
    const execution::Communicator& group = p_.communicators[static_cast<std::size_t>(communicator)];
    const execution::CallTraffic& traffic = group.calls[static_cast<std::size_t>(call.number)];
    const execution::CallTraffic::Gate& g = traffic.gates[static_cast<std::size_t>(gate)];
    if (g.times > 1) return repeat(communicator, k, gate);
    send_messages(communicator, k, traffic, g);
    count_down(communicator, k, g.next_gate);
    if (g.leaves < 0) return;
    const std::int32_t rank = group.ranks[static_cast<std::size_t>(g.leaves)];
    for (auto& [number, lane] : ranks_[static_cast<std::size_t>(rank)].lanes) {
      if (lane.inside && p_.communicator_of[p_.at(lane.lane, rank)] == communicator) lane.inside = false;
    }
  }

  bool step(std::int32_t r, Rank& rank) {
    if (rank.next == rank.program.size()) return false;
    const Instruction& i = rank.program[rank.next];
    const auto done = [&] {
      ++rank.next;
      rank.running = false;
      rank.ended = now_;
      return true;
    };
    switch (i.kind) {
      case Kind::compute:
      case Kind::launch:
        if (!rank.running) {
          rank.running = true;
          rank.busy_until = now_ + i.value;
          if (i.kind == Kind::launch) rank.busy_until = std::max(now_, rank.host += i.value);
          return true;
        }
        return due(rank.busy_until) && done();
      case Kind::sync_host:
        rank.host = now_;
        return done();
      case Kind::start:
        for (std::int32_t n = 0; n < i.repeats; ++n) turns(rank, i.lane).waiting.emplace_back(i.lane, i.what);
        return done();
      case Kind::join: {
        const Lane& lane = turns(rank, i.lane);
        return !lane.inside && lane.waiting.empty() && done();
      }
      case Kind::send: {
        const std::int32_t out = p_.outgoing[p_.at(i.lane, r)];
        ++wire(out).sent;
        releases_.push_back({now_ + p_.call_seconds, out, i.value});
        return done();
      }
      case Kind::sent: {
        const Wire& out = wire(p_.outgoing[p_.at(i.lane, r)]);
        return out.received == out.sent && done();
      }
      case Kind::receive: {
        Wire& in = wire(p_.incoming[p_.at(i.lane, r)]);
        if (in.received == in.taken) return false;
        ++in.taken;
        return done();
      }
    }
    return false;
  }

  /// Progressive filling of all wires that carry something.
  void solve() {
    std::vector<double> left(capacity_.begin(), capacity_.end());
    std::vector<std::size_t> open;
    for (std::size_t w = 0; w < wires_.size(); ++w) {
      wires_[w].rate = 0;
      if (!wires_[w].queue.empty() && wires_[w].queue.front().left > 1e-9) open.push_back(w);
    }
    while (!open.empty()) {
      std::vector<double> flows(left.size(), 0);
      for (const std::size_t w : open) {
        for (const std::int32_t link : path(w)) flows[static_cast<std::size_t>(link)] += 1;
      }
      double level = kNever;
      for (std::size_t l = 0; l < left.size(); ++l) {
        if (flows[l] > 0) level = std::min(level, left[l] / flows[l]);
      }
      std::vector<std::size_t> still;
      const std::vector<double> before = left;
      for (const std::size_t w : open) {
        const bool full = std::ranges::any_of(path(w), [&](std::int32_t link) {
          const auto l = static_cast<std::size_t>(link);
          return before[l] / flows[l] <= level * (1 + 1e-12);
        });
        if (!full) {
          still.push_back(w);
          continue;
        }
        wires_[w].rate = level;
        for (const std::int32_t link : path(w)) left[static_cast<std::size_t>(link)] -= level;
      }
      open.swap(still);
    }
  }

  [[nodiscard]] std::span<const std::int32_t> path(std::size_t w) const {
    const network::Connection& c = p_.wires.connections[w];
    return std::span(p_.wires.path_links)
        .subspan(static_cast<std::size_t>(c.path_begin), static_cast<std::size_t>(c.path_end - c.path_begin));
  }

  [[nodiscard]] double next_time() const {
    double next = kNever;
    const auto take = [&](double time) {
      if (!due(time)) next = std::min(next, time);
    };
    for (const Rank& rank : ranks_) {
      if (rank.running) take(rank.busy_until);
      for (const auto& [number, lane] : rank.lanes) {
        if (lane.inside) take(lane.enters);
      }
    }
    for (const Release& release : releases_) take(release.time);
    for (const Wire& w : wires_) {
      if (!w.flying.empty()) take(w.flying.front().first);
      if (w.rate > 0) next = std::min(next, now_ + w.queue.front().left / w.rate);
    }
    return next;
  }

  void travel(double next) {
    for (Wire& w : wires_) {
      if (w.rate <= 0) continue;
      double& left = w.queue.front().left;
      left = now_ + left / w.rate <= next * (1 + 1e-13) ? 0 : left - w.rate * (next - now_);
    }
    now_ = next;
  }

  const execution::Programs& p_;
  std::span<const double> capacity_;
  double now_ = 0;
  std::vector<Rank> ranks_;
  std::vector<Wire> wires_;
  std::vector<Release> releases_;
  std::map<std::pair<std::int32_t, std::int32_t>, Call> calls_;
};

}  // namespace shardscape::test
