// Walks a trace as if communication took no time, with nodes in the order in which they become ready; what cannot be
// reached waits in a circle, which is then described.
#include "engine/timeline/trace_order.h"

#include <fmt/format.h>

#include <algorithm>
#include <queue>
#include <utility>

namespace shardscape::timeline {

namespace {

/// Runs the trace with free communication, in the order in which nodes become ready.
class Walk {
 public:
  explicit Walk(LinkedTrace& linked) : linked_(linked), waiting_(linked.waiting) {
    const auto nodes = static_cast<std::size_t>(linked.nodes());
    ready_.assign(nodes, 0);
    done_.assign(nodes, false);
    arrived_.assign(linked.collectives.size(), 0);
    arrived_at_.assign(linked.collectives.size(), 0);
    linked_.device.assign(linked.trace->ranks.size(), {});
    linked_.host.assign(linked.trace->ranks.size(), {});
    device_free_.assign(linked.trace->ranks.size(), 0);
    host_free_.assign(linked.trace->ranks.size(), 0);
    for (std::size_t n = 0; n < nodes; ++n) {
      const auto number = static_cast<std::int64_t>(n);
      if (linked.partner[n] >= 0 && linked.node(number).kind == NodeKind::receive) ++waiting_[n];
      if (waiting_[n] == 0) queue_.emplace(0.0, number);
    }
  }

  TraceProblems run() {
    std::int64_t left = linked_.nodes();
    while (!queue_.empty()) {
      const std::int64_t number = queue_.top().second;
      queue_.pop();
      left -= visit(number);
    }
    return left == 0 ? TraceProblems{} : circle();
  }

 private:
  /// Runs a node; returns how many nodes end by it: 0 where a collective still waits for members.
  std::int64_t visit(std::int64_t number) {
    const auto n = static_cast<std::size_t>(number);
    const TraceNode& node = linked_.node(number);
    switch (node.kind) {
      case NodeKind::compute: {
        const auto rank = static_cast<std::size_t>(linked_.rank_of(number));
        double& free = (node.host ? host_free_ : device_free_)[rank];
        (node.host ? linked_.host : linked_.device)[rank].push_back(number);
        free = std::max(free, ready_[n]) + node.seconds;
        finish(number, free);
        return 1;
      }
      case NodeKind::collective: {
        const auto i = static_cast<std::size_t>(linked_.instance[n]);
        const std::vector<std::int64_t>& members = linked_.collectives[i].members;
        arrived_at_[i] = std::max(arrived_at_[i], ready_[n]);
        if (++arrived_[i] < members.size()) return 0;
        for (const std::int64_t member : members) finish(member, arrived_at_[i]);
        return static_cast<std::int64_t>(members.size());
      }
      case NodeKind::send:
        finish(number, ready_[n]);
        count_down(linked_.partner[n], ready_[n]);
        return 1;
      case NodeKind::memory_load:
      case NodeKind::memory_store:
        finish(number, ready_[n] + node.seconds);
        return 1;
      case NodeKind::receive:
      case NodeKind::metadata:
        break;
    }
    finish(number, ready_[n]);
    return 1;
  }

  void finish(std::int64_t number, double time) {
    const auto n = static_cast<std::size_t>(number);
    done_[n] = true;
    for (std::int64_t w = linked_.waiters_begin[n]; w < linked_.waiters_begin[n + 1]; ++w) {
      count_down(linked_.waiters[static_cast<std::size_t>(w)], time);
    }
  }

  void count_down(std::int64_t number, double time) {
    const auto n = static_cast<std::size_t>(number);
    ready_[n] = std::max(ready_[n], time);
    if (--waiting_[n] == 0) queue_.emplace(ready_[n], number);
  }

  /// For each node one unfinished node of its own rank that it waits for; -1 where there is none.
  [[nodiscard]] std::vector<std::int64_t> unmet() const {
    std::vector<std::int64_t> result(done_.size(), -1);
    for (std::size_t n = 0; n < done_.size(); ++n) {
      if (done_[n]) continue;
      for (std::int64_t w = linked_.waiters_begin[n]; w < linked_.waiters_begin[n + 1]; ++w) {
        result[static_cast<std::size_t>(linked_.waiters[static_cast<std::size_t>(w)])] =
            static_cast<std::int64_t>(n);
      }
    }
    return result;
  }

  /// One unfinished node that the node waits for.
  [[nodiscard]] std::int64_t blocker(std::int64_t number, const std::vector<std::int64_t>& unmet) const {
    const auto n = static_cast<std::size_t>(number);
    const std::int32_t i = linked_.instance[n];
    if (i >= 0 && waiting_[n] == 0) {  // this member has arrived, but another has not
      for (const std::int64_t member : linked_.collectives[static_cast<std::size_t>(i)].members) {
        if (waiting_[static_cast<std::size_t>(member)] > 0) return member;
      }
    }
    // Otherwise the node is a receive whose send has not ended.
    return unmet[n] >= 0 ? unmet[n] : linked_.partner[n];
  }

  [[nodiscard]] std::string name(std::int64_t number) const {
    const TraceNode& node = linked_.node(number);
    return fmt::format("node {} ({}{}) of rank {}", node.id, name_of(node.kind),
                       node.name.empty() ? "" : " '" + node.name + "'", linked_.rank_of(number));
  }

  [[nodiscard]] TraceProblems circle() const {
    std::int64_t at = 0;
    while (done_[static_cast<std::size_t>(at)]) ++at;
    std::vector<std::int64_t> path;
    std::vector<bool> seen(done_.size(), false);
    const std::vector<std::int64_t> missing = unmet();
    for (; !seen[static_cast<std::size_t>(at)]; at = blocker(at, missing)) {
      seen[static_cast<std::size_t>(at)] = true;
      path.push_back(at);
    }
    path.erase(path.begin(), std::ranges::find(path, at));
    constexpr std::size_t kShown = 12;
    bool one_rank = true;
    std::string text;
    for (std::size_t i = 0; i < path.size(); ++i) {
      one_rank = one_rank && linked_.rank_of(path[i]) == linked_.rank_of(at);
      if (i > 0 && i < kShown) text += ", that for " + name(path[i]);
    }
    if (path.size() > kShown) text += fmt::format(", ... ({} nodes in all)", path.size());
    text = path.size() == 1 ? "waits for itself" : "waits" + text.substr(6) + ", and that for this one again";
    const std::string what = one_rank ? "the dependencies go round in a circle: " : "deadlock: ";
    return {{linked_.rank_of(at), linked_.node(at).id, what + text}};
  }

  LinkedTrace& linked_;
  std::vector<std::int32_t> waiting_;
  std::vector<double> ready_;
  std::vector<bool> done_;
  std::vector<std::size_t> arrived_;
  std::vector<double> arrived_at_;
  std::vector<double> device_free_, host_free_;
  using Entry = std::pair<double, std::int64_t>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue_;
};

}  // namespace

TraceProblems order_nodes(LinkedTrace& linked) { return Walk(linked).run(); }

}  // namespace shardscape::timeline
