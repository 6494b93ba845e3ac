// Links a trace in steps (numbers nodes, resolves groups, matches messages and collectives, orders nodes); each step
// reports its problems, and the first that has any ends the work.
#include "engine/timeline/linked_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <queue>
#include <tuple>
#include <unordered_map>
#include <utility>

namespace shardscape::timeline {

namespace {

// Walks a trace as if communication took no time, with nodes in the order in which they become ready; what cannot be
// reached waits in a circle, which is then described.

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

/// Fills `device` and `host` of a trace whose other links are set. Problems: one circle of nodes that wait for each
/// other. O(nodes log nodes).
TraceProblems order_nodes(LinkedTrace& linked) { return Walk(linked).run(); }

/// The most problems of one kind that are listed; the rest are only counted.
constexpr std::size_t kReported = 20;

/// Finds the nodes of one rank by their ids.
class IdTable {
 public:
  explicit IdTable(const RankTrace& rank) : size_(rank.nodes.size()) {
    for (std::size_t i = 0; i < size_ && plain_; ++i) plain_ = rank.nodes[i].id == i;
    for (std::size_t i = 0; i < size_ && !plain_; ++i) {
      if (!table_.emplace(rank.nodes[i].id, i).second) twice_.push_back(rank.nodes[i].id);
    }
  }
  [[nodiscard]] std::optional<std::size_t> find(std::uint64_t id) const {
    if (plain_) return id < size_ ? std::optional(static_cast<std::size_t>(id)) : std::nullopt;
    const auto found = table_.find(id);
    return found != table_.end() ? std::optional(found->second) : std::nullopt;
  }
  [[nodiscard]] const std::vector<std::uint64_t>& twice() const { return twice_; }

 private:
  std::size_t size_;
  bool plain_ = true;  ///< whether the ids are 0, 1, 2, ...
  std::unordered_map<std::uint64_t, std::size_t> table_;
  std::vector<std::uint64_t> twice_;
};

class Linker {
 public:
  Linker(const ExecutionTrace& trace, const std::vector<std::int64_t>& shape) : trace_(trace), shape_(shape) {
    linked_.trace = &trace;
  }

  tl::expected<LinkedTrace, TraceProblems> run() {
    for (const auto step : {&Linker::number_nodes, &Linker::link_dependencies, &Linker::resolve_groups,
                            &Linker::match_messages, &Linker::match_collectives}) {
      (this->*step)();
      if (!problems_.empty()) return tl::unexpected(finished_problems());
    }
    problems_ = order_nodes(linked_);
    if (!problems_.empty()) return tl::unexpected(finished_problems());
    return std::move(linked_);
  }

 private:
  void report(std::int32_t rank, std::optional<std::uint64_t> node, std::string message) {
    if (problems_.size() < kReported) {
      problems_.push_back({rank, node, std::move(message)});
    } else {
      ++unreported_;
    }
  }
  TraceProblems finished_problems() {
    if (unreported_ > 0) {
      problems_.push_back({-1, std::nullopt, fmt::format("and {} more problems of this kind", unreported_)});
    }
    return std::move(problems_);
  }
  [[nodiscard]] std::int32_t ranks() const { return static_cast<std::int32_t>(trace_.ranks.size()); }
  [[nodiscard]] std::string known_ranks() const {
    return ranks() == 1 ? "the only rank is 0" : fmt::format("ranks are 0 .. {}", ranks() - 1);
  }

  void number_nodes() {
    linked_.first.push_back(0);
    for (const RankTrace& rank : trace_.ranks) {
      linked_.first.push_back(linked_.first.back() + static_cast<std::int64_t>(rank.nodes.size()));
    }
    const auto nodes = static_cast<std::size_t>(linked_.nodes());
    linked_.waiting.assign(nodes, 0);
    linked_.partner.assign(nodes, -1);
    linked_.instance.assign(nodes, -1);
  }

  void link_dependencies() {
    std::vector<std::int64_t>& begin = linked_.waiters_begin;
    begin.assign(static_cast<std::size_t>(linked_.nodes()) + 1, 0);
    // The node that must end first, the node that waits for it.
    std::vector<std::pair<std::int64_t, std::int64_t>> edges;
    for (std::int32_t r = 0; r < ranks(); ++r) {
      const RankTrace& rank = trace_.ranks[static_cast<std::size_t>(r)];
      const IdTable ids(rank);
      for (const std::uint64_t id : ids.twice()) report(r, id, "the id is used by more than one node");
      const std::int64_t base = linked_.first[static_cast<std::size_t>(r)];
      for (std::size_t n = 0; n < rank.nodes.size(); ++n) {
        const std::int64_t number = base + static_cast<std::int64_t>(n);
        for (const std::uint64_t id : rank.dependencies_of(rank.nodes[n])) {
          const auto found = ids.find(id);
          if (!found) {
            report(r, rank.nodes[n].id, fmt::format("depends on node {}, which its trace does not have", id));
            continue;
          }
          edges.emplace_back(base + static_cast<std::int64_t>(*found), number);
          ++linked_.waiting[static_cast<std::size_t>(number)];
        }
      }
    }
    for (const auto& [before, after] : edges) ++begin[static_cast<std::size_t>(before) + 1];
    for (std::size_t n = 1; n < begin.size(); ++n) begin[n] += begin[n - 1];
    std::vector<std::int64_t> next = begin;
    linked_.waiters.resize(edges.size());
    for (const auto& [before, after] : edges) {
      linked_.waiters[static_cast<std::size_t>(next[static_cast<std::size_t>(before)]++)] = after;
    }
  }

  // Resolves groups to lists of ranks; a group by dimensions gives one list for each of its siblings.
  void resolve_groups() {
    by_rank_.resize(trace_.groups.size());
    for (std::size_t g = 0; g < trace_.groups.size(); ++g) {
      const ProcessGroup& group = trace_.groups[g];
      by_rank_[g].assign(static_cast<std::size_t>(ranks()), -1);
      if (group.ranks.empty()) {
        spread_over_dimensions(g);
      } else if (check_members(group)) {
        for (const std::int32_t r : group.ranks) {
          by_rank_[g][static_cast<std::size_t>(r)] = static_cast<std::int32_t>(linked_.groups.size());
        }
        linked_.groups.push_back(group.ranks);
      }
    }
  }

  bool check_members(const ProcessGroup& group) {
    std::vector<bool> seen(static_cast<std::size_t>(ranks()), false);
    bool good = true;
    for (const std::int32_t r : group.ranks) {
      if (r < 0 || r >= ranks()) {
        report(-1, std::nullopt,
               fmt::format("process group '{}' names rank {}, which has no trace; {}", group.name, r,
                           known_ranks()));
        good = false;
      } else if (seen[static_cast<std::size_t>(r)]) {
        report(-1, std::nullopt, fmt::format("process group '{}' names rank {} twice", group.name, r));
        good = false;
      } else {
        seen[static_cast<std::size_t>(r)] = true;
      }
    }
    return good;
  }

  void spread_over_dimensions(std::size_t g) {
    const std::vector<bool>& involved = trace_.groups[g].dimensions;
    if (involved.empty() || std::ranges::find(involved, false) == involved.end()) {
      std::vector<std::int32_t> all(static_cast<std::size_t>(ranks()));
      for (std::int32_t r = 0; r < ranks(); ++r) all[static_cast<std::size_t>(r)] = r;
      std::ranges::fill(by_rank_[g], static_cast<std::int32_t>(linked_.groups.size()));
      linked_.groups.push_back(std::move(all));
      return;
    }
    if (involved.size() != shape_.size()) {
      report(-1, std::nullopt,
             fmt::format("involved_dim has {} entries, the fabric has {} dimensions", involved.size(),
                         shape_.size()));
      return;
    }
    std::map<std::int64_t, std::int32_t> lists;  // by the coordinates that the members have in common
    for (std::int32_t r = 0; r < ranks(); ++r) {
      std::int64_t common = 0, stride = 1;
      for (std::size_t d = 0; d < shape_.size(); ++d) {
        if (!involved[d]) common += r / stride % shape_[d] * stride;
        stride *= shape_[d];
      }
      const auto [entry, fresh] = lists.emplace(common, static_cast<std::int32_t>(linked_.groups.size()));
      if (fresh) linked_.groups.emplace_back();
      linked_.groups[static_cast<std::size_t>(entry->second)].push_back(r);
      by_rank_[g][static_cast<std::size_t>(r)] = entry->second;
    }
  }

  template <class Visit>
  void each_node(NodeKind kind, Visit visit) const {
    for (std::int32_t r = 0; r < ranks(); ++r) {
      const RankTrace& rank = trace_.ranks[static_cast<std::size_t>(r)];
      for (std::size_t n = 0; n < rank.nodes.size(); ++n) {
        if (rank.nodes[n].kind != kind) continue;
        visit(r, rank.nodes[n], linked_.first[static_cast<std::size_t>(r)] + static_cast<std::int64_t>(n));
      }
    }
  }

  void match_messages() {
    using Key = std::tuple<std::int32_t, std::int32_t, std::int32_t>;  // source, destination, tag
    std::map<Key, std::vector<std::int64_t>> sends, receives;
    const auto take = [&](NodeKind kind, auto& list, auto key) {
      each_node(kind, [&](std::int32_t r, const TraceNode& node, std::int64_t number) {
        if (node.peer < 0 || node.peer >= ranks()) {
          report(r, node.id,
                 fmt::format("{}{}, which has no trace; {}",
                             kind == NodeKind::send ? "sends to rank " : "receives from rank ", node.peer,
                             known_ranks()));
        } else {
          list[key(r, node)].push_back(number);
        }
      });
    };
    take(NodeKind::send, sends, [](std::int32_t r, const TraceNode& n) { return Key(r, n.peer, n.tag); });
    take(NodeKind::receive, receives,
         [](std::int32_t r, const TraceNode& n) { return Key(n.peer, r, n.tag); });
    const std::vector<std::int64_t> none;
    const auto list_of = [&](const auto& table, const Key& key) -> const std::vector<std::int64_t>& {
      const auto found = table.find(key);
      return found != table.end() ? found->second : none;
    };
    for (const auto& [key, numbers] : sends) pair_up(numbers, list_of(receives, key));
    for (const auto& [key, numbers] : receives) {
      const std::size_t sent = list_of(sends, key).size();
      for (std::size_t k = sent; k < numbers.size(); ++k) {
        const TraceNode& node = linked_.node(numbers[k]);
        report(linked_.rank_of(numbers[k]), node.id,
               fmt::format("receives from rank {} with tag {}, which sends it {} with that tag", node.peer,
                           node.tag, sent == 0 ? "nothing" : fmt::format("only {}", sent)));
      }
    }
  }

  void pair_up(const std::vector<std::int64_t>& sends, const std::vector<std::int64_t>& receives) {
    for (std::size_t k = 0; k < sends.size(); ++k) {
      const TraceNode& send = linked_.node(sends[k]);
      if (k >= receives.size()) {
        report(
            linked_.rank_of(sends[k]), send.id,
            fmt::format("sends to rank {} with tag {}, which has {} for it", send.peer, send.tag,
                        receives.empty() ? "no receive" : fmt::format("only {} receives", receives.size())));
        continue;
      }
      const TraceNode& receive = linked_.node(receives[k]);
      if (send.bytes != receive.bytes) {
        report(linked_.rank_of(receives[k]), receive.id,
               fmt::format("receives {}, node {} of rank {} sends {}", bytes_text(receive.bytes), send.id,
                           linked_.rank_of(sends[k]), bytes_text(send.bytes)));
      }
      linked_.partner[static_cast<std::size_t>(sends[k])] = receives[k];
      linked_.partner[static_cast<std::size_t>(receives[k])] = sends[k];
    }
  }
  static std::string bytes_text(double bytes) {
    return fmt::format("{} bytes", static_cast<std::uint64_t>(bytes));
  }

  void match_collectives() {
    // Numbers of the collective nodes of each rank in each list of ranks.
    std::vector<std::map<std::int32_t, std::vector<std::int64_t>>> calls(linked_.groups.size());
    each_node(NodeKind::collective, [&](std::int32_t r, const TraceNode& node, std::int64_t number) {
      const std::int32_t list = by_rank_[static_cast<std::size_t>(node.group)][static_cast<std::size_t>(r)];
      if (list < 0) {
        report(r, node.id,
               fmt::format("takes part in process group '{}', which rank {} is no member of",
                           trace_.groups[static_cast<std::size_t>(node.group)].name, r));
        return;
      }
      calls[static_cast<std::size_t>(list)][r].push_back(number);
    });
    for (std::size_t g = 0; g < calls.size(); ++g) {
      if (!calls[g].empty()) match_group(static_cast<std::int32_t>(g), calls[g]);
    }
  }

  void match_group(std::int32_t g, std::map<std::int32_t, std::vector<std::int64_t>>& calls) {
    const std::vector<std::int32_t>& members = linked_.groups[static_cast<std::size_t>(g)];
    // The member with the most calls shows which call the others miss.
    std::int32_t most = members.front();
    for (const std::int32_t r : members) {
      if (calls[r].size() > calls[most].size()) most = r;
    }
    bool same = true;
    for (const std::int32_t r : members) {
      if (calls[r].size() == calls[most].size()) continue;
      const TraceNode& missed = linked_.node(calls[most][calls[r].size()]);
      report(most, missed.id,
             fmt::format("{} waits for rank {} for ever: of {} it runs {} collectives, rank {} only {}",
                         name_of(missed.collective), r, name_of_group(missed), calls[most].size(), r,
                         calls[r].size()));
      same = false;
    }
    for (std::size_t k = 0; same && k < calls[most].size(); ++k) add_instance(g, k, calls);
  }
  [[nodiscard]] std::string name_of_group(const TraceNode& node) const {
    const ProcessGroup& group = trace_.groups[static_cast<std::size_t>(node.group)];
    return group.name.empty() ? "the group by its dimensions" : "process group '" + group.name + "'";
  }

  void add_instance(std::int32_t g, std::size_t k, std::map<std::int32_t, std::vector<std::int64_t>>& calls) {
    const std::vector<std::int32_t>& members = linked_.groups[static_cast<std::size_t>(g)];
    const TraceNode& first = linked_.node(calls[members.front()][k]);
    CollectiveInstance instance{first.collective, first.bytes, g, {}};
    for (const std::int32_t r : members) {
      const std::int64_t number = calls[r][k];
      const TraceNode& node = linked_.node(number);
      if (node.collective != first.collective || node.bytes != first.bytes) {
        report(r, node.id,
               fmt::format("{} of {} meets node {} of rank {}, {} of {}, in {}", name_of(node.collective),
                           bytes_text(node.bytes), first.id, members.front(), name_of(first.collective),
                           bytes_text(first.bytes), name_of_group(node)));
      }
      instance.members.push_back(number);
      linked_.instance[static_cast<std::size_t>(number)] =
          static_cast<std::int32_t>(linked_.collectives.size());
    }
    linked_.collectives.push_back(std::move(instance));
  }

  const ExecutionTrace& trace_;
  const std::vector<std::int64_t>& shape_;
  LinkedTrace linked_;
  std::vector<std::vector<std::int32_t>> by_rank_;  ///< [group][rank]: index in linked_.groups, -1: no member
  TraceProblems problems_;
  std::size_t unreported_ = 0;
};

}  // namespace

std::int32_t LinkedTrace::rank_of(std::int64_t number) const {
  return static_cast<std::int32_t>(std::ranges::upper_bound(first, number) - first.begin()) - 1;
}

const TraceNode& LinkedTrace::node(std::int64_t number) const {
  const auto rank = static_cast<std::size_t>(rank_of(number));
  return trace->ranks[rank].nodes[static_cast<std::size_t>(number - first[rank])];
}

tl::expected<LinkedTrace, TraceProblems> link(const ExecutionTrace& trace,
                                              const std::vector<std::int64_t>& shape) {
  return Linker(trace, shape).run();
}

}  // namespace shardscape::timeline
