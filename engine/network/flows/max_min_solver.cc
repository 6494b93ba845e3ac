// Solves max-min fair rates after flows have started or stopped: collects the flows that lose their certificate, fills
// their rates on the links they use, and recruits further flows until all have certificates.
#include "engine/network/flows/max_min_solver.h"

#include <algorithm>
#include <limits>

namespace shardscape::network {

namespace {
constexpr double kSaturated = 1e-11;  ///< share of the capacity left over, below which a link counts as full
constexpr double kSameLevel = 1e-12;  ///< links whose levels differ by less, relative, fill up together
/// LinkState::level of a link that is no bottleneck of an affected flow.
constexpr double kNotFull = -1;
}  // namespace

void MaxMinSolver::reset(const Traffic& traffic, std::span<const double> capacity) {
  flows_.clear();
  flows_.reserve(traffic.connections.size());
  for (const Connection& c : traffic.connections)
    flows_.push_back({0, -1, c.path_begin, c.path_end, 0, 0, false});
  state_.assign(capacity.size(), {});
  for (std::size_t link = 0; link < capacity.size(); ++link) state_[link].capacity = capacity[link];
  slots_.clear();
  slots_.reserve(traffic.path_links.size());
  for (const std::int32_t id : traffic.path_links) {
    slots_.push_back({id, 0});
    ++link(id).size;
  }
  std::int32_t begin = 0;
  for (LinkState& l : state_) {
    l.begin = begin;
    l.room = l.size;
    begin += l.size;
    l.size = 0;
  }
  entries_.resize(traffic.path_links.size());
  path_room_.clear();
  touched_.clear();
  started_.clear();
  epoch_ = filling_ = 1;
  order_shows_ = false;
}

void MaxMinSolver::reroute(std::int32_t id, std::span<const std::int32_t> path) {
  if (path_room_.empty()) {
    path_room_.reserve(flows_.size());
    for (const FlowState& f : flows_) path_room_.push_back(f.path_end - f.path_begin);
  }
  FlowState& f = flow(id);
  std::int32_t& room = path_room_[static_cast<std::size_t>(id)];
  const auto length = static_cast<std::int32_t>(path.size());
  // Twice as much, because the place of the old path is lost, and paths may grow link by link.
  if (length > room) {
    room = std::max(length, 2 * room);
    f.path_begin = static_cast<std::int32_t>(slots_.size());
    slots_.resize(slots_.size() + static_cast<std::size_t>(room));
  }
  f.path_end = f.path_begin + length;
  for (std::size_t i = 0; i < path.size(); ++i)
    slots_[static_cast<std::size_t>(f.path_begin) + i] = {path[i], 0};
}

/// Moves a link's entries to a place with more room, since rerouted flows come to links that no original path named.
void MaxMinSolver::make_room(LinkState& l) {
  const auto begin = static_cast<std::int32_t>(entries_.size());
  l.room = std::max(4, 2 * l.room);
  entries_.resize(entries_.size() + static_cast<std::size_t>(l.room));
  for (std::int32_t i = 0; i < l.size; ++i) {
    const Entry entry = entries_[static_cast<std::size_t>(l.begin + i)];
    entries_[static_cast<std::size_t>(begin + i)] = entry;
    slots_[static_cast<std::size_t>(entry.slot)].entry = begin + i;
  }
  l.begin = begin;
}

void MaxMinSolver::touch(std::int32_t id) {
  LinkState& l = link(id);
  if (l.touched == epoch_) return;
  l.touched = epoch_;
  touched_.push_back(id);
}

void MaxMinSolver::start(std::int32_t id) {
  FlowState& f = flow(id);
  for (std::int32_t slot = f.path_begin; slot < f.path_end; ++slot) {
    Slot& s = slots_[static_cast<std::size_t>(slot)];
    LinkState& l = link(s.link);
    if (l.size == l.room) make_room(l);
    s.entry = l.begin + l.size++;
    entries_[static_cast<std::size_t>(s.entry)] = {id, slot};
  }
  f.active = true;
  f.rate = 0;
  f.bottleneck = -1;
  started_.push_back(id);
}

void MaxMinSolver::stop(std::int32_t id) {
  FlowState& f = flow(id);
  for (std::int32_t slot = f.path_begin; slot < f.path_end; ++slot) {
    const Slot& s = slots_[static_cast<std::size_t>(slot)];
    LinkState& l = link(s.link);
    const Entry last = entries_[static_cast<std::size_t>(l.begin + --l.size)];
    entries_[static_cast<std::size_t>(s.entry)] = last;
    slots_[static_cast<std::size_t>(last.slot)].entry = s.entry;
    touch(s.link);
  }
  f.active = false;
  f.rate = 0;
}

void MaxMinSolver::affect(std::int32_t id, FlowState& f) {
  if (f.affected == epoch_) return;
  f.affected = epoch_;
  affected_.push_back(id);
  old_rate_.push_back(f.rate);
}

void MaxMinSolver::collect() {
  lone_.clear();
  affected_.clear();
  old_rate_.clear();
  // First: a flow that has all of its links to itself gets what its narrowest link can carry.
  for (const std::int32_t id : started_) {
    FlowState& f = flow(id);
    // Skip flows that have been stopped again, or started twice, since the last solve.
    if (!f.active || f.affected == epoch_) continue;
    double narrowest = std::numeric_limits<double>::infinity();
    std::int32_t bottleneck = -1;
    bool alone = true;
    for (const Slot& s : path(f)) {
      const LinkState& l = link(s.link);
      alone = alone && l.size == 1;
      if (l.capacity < narrowest) {
        narrowest = l.capacity;
        bottleneck = s.link;
      }
    }
    if (alone) {
      f.rate = narrowest;
      f.bottleneck = bottleneck;
      f.affected = epoch_;  // it has its rate, and must not be collected below
      lone_.push_back(id);
    } else {
      affect(id, f);
    }
  }
  for (const std::int32_t touched : touched_) {
    for (const Entry& entry : entries(link(touched))) {
      FlowState& f = flow(entry.flow);
      if (f.bottleneck == touched) affect(entry.flow, f);
    }
  }
}

void MaxMinSolver::finish() {
  touched_.clear();
  started_.clear();
  ++epoch_;
}

void MaxMinSolver::settle() {
  ++filling_;
  links_.clear();
  gathered_ = 0;
  do {
    gather_links();
    fill();
  } while (recruit());
}

/// Adds the links of newly affected flows to the filling.
void MaxMinSolver::gather_links() {
  for (; gathered_ < affected_.size(); ++gathered_) {
    for (const Slot& slot : path(flow(affected_[gathered_]))) {
      LinkState& l = link(slot.link);
      if (l.mark != filling_) {
        l.mark = filling_;
        l.affected = 0;
        links_.push_back(slot.link);
      }
      ++l.affected;
    }
  }
}

/// Subtracts what flows outside of the filling take of a link.
void MaxMinSolver::take_held(LinkState& l) {
  double first = -1;
  for (const Entry& entry : entries(l)) {
    const FlowState& f = flow(entry.flow);
    if (f.affected == epoch_) continue;
    if (first < 0) first = f.rate;
    order_shows_ = order_shows_ || f.rate != first;
    l.left -= f.rate;
  }
  l.left = std::max(l.left, 0.0);
}

/// Fills the rates of the affected flows progressively, within what the held flows leave.
void MaxMinSolver::fill() {
  live_.clear();
  for (const std::int32_t id : links_) {
    LinkState& l = link(id);
    l.left = l.capacity;
    if (l.affected < l.size) take_held(l);
    l.open = l.affected;
    l.top = 0;
    l.level = kNotFull;
    live_.push_back(id);
  }
  for (const std::int32_t id : affected_) flow(id).frozen = 0;

  while (!live_.empty()) {
    double level = std::numeric_limits<double>::infinity();
    std::size_t kept = 0;
    for (const std::int32_t id : live_) {
      const LinkState& l = link(id);
      if (l.open == 0) continue;
      live_[kept++] = id;
      level = std::min(level, l.left / l.open);
    }
    live_.resize(kept);
    for (const std::int32_t id : live_) {
      LinkState& l = link(id);
      if (l.open > 0 && l.left <= level * l.open * (1 + kSameLevel)) freeze(id, l, level);
    }
  }
}

/// Fixes the open flows of a link that is full at this level.
void MaxMinSolver::freeze(std::int32_t id, LinkState& full, double level) {
  full.level = level;
  for (const Entry& entry : entries(full)) {
    FlowState& f = flow(entry.flow);
    if (f.affected != epoch_ || f.frozen == filling_) continue;
    f.frozen = filling_;
    f.rate = level;
    f.bottleneck = id;
    for (const Slot& slot : path(f)) {
      LinkState& l = link(slot.link);
      l.left = std::max(0.0, l.left - level);
      l.top = std::max(l.top, level);
      --l.open;
    }
  }
}

/// Adds the held flows that the filling leaves without a certificate. Returns false if there are none.
bool MaxMinSolver::recruit() {
  const std::size_t before = affected_.size();
  for (const std::int32_t id : links_) {
    const LinkState& l = link(id);
    if (l.affected == l.size) continue;
    const bool full = l.left <= kSaturated * l.capacity;
    for (const Entry& entry : entries(l)) {
      FlowState& f = flow(entry.flow);
      if (f.affected == epoch_) continue;
      // Either it is faster than a flow that is bottlenecked here, or its own bottleneck is here, but this link is not
      // full or has a faster flow.
      const bool unfair = l.level != kNotFull && f.rate > l.level * (1 + kFair);
      const bool released = f.bottleneck == id && (!full || l.top > f.rate * (1 + kFair));
      if (unfair || released) affect(entry.flow, f);
    }
  }
  return affected_.size() > before;
}

}  // namespace shardscape::network
