#include "engine/network/max_min_solver.h"

#include <algorithm>
#include <limits>

namespace shardscape::network {

namespace {
constexpr double kSaturated = 1e-11;  ///< capacity left over, relative, below which a link counts as full
constexpr double kSameLevel = 1e-12;  ///< shares this close, relative, fill up together
constexpr double kNotFull = -1;       ///< LinkState::level of a link that bottlenecks no affected flow
}  // namespace

void MaxMinSolver::reset(const Traffic& traffic, std::span<const double> capacity) {
  traffic_ = &traffic;
  capacity_ = capacity;
  const std::size_t flows = traffic.connections.size(), links = capacity.size();
  rate_.assign(flows, 0);
  active_.assign(flows, 0);
  bottleneck_.assign(flows, -1);
  affected_mark_.assign(flows, 0);
  frozen_mark_.assign(flows, 0);
  link_begin_.assign(links + 1, 0);
  link_size_.assign(links, 0);
  state_.assign(links, {});
  for (const std::int32_t link : traffic.path_links) ++link_begin_[static_cast<std::size_t>(link) + 1];
  for (std::size_t link = 0; link < links; ++link) link_begin_[link + 1] += link_begin_[link];
  entry_flow_.resize(traffic.path_links.size());
  entry_slot_.resize(traffic.path_links.size());
  position_.resize(traffic.path_links.size());
  touched_.clear();
  started_.clear();
  epoch_ = filling_ = 1;
  order_shows_ = false;
}

void MaxMinSolver::touch(std::size_t link) {
  if (state_[link].touched == epoch_) return;
  state_[link].touched = epoch_;
  touched_.push_back(static_cast<std::int32_t>(link));
}

void MaxMinSolver::start(std::int32_t flow) {
  const Connection& c = traffic_->connections[static_cast<std::size_t>(flow)];
  for (std::int32_t slot = c.path_begin; slot < c.path_end; ++slot) {
    const auto link = static_cast<std::size_t>(traffic_->path_links[static_cast<std::size_t>(slot)]);
    const std::int32_t at = link_begin_[link] + link_size_[link]++;
    entry_flow_[static_cast<std::size_t>(at)] = flow;
    entry_slot_[static_cast<std::size_t>(at)] = slot;
    position_[static_cast<std::size_t>(slot)] = at;
  }
  active_[static_cast<std::size_t>(flow)] = 1;
  rate_[static_cast<std::size_t>(flow)] = 0;
  bottleneck_[static_cast<std::size_t>(flow)] = -1;
  started_.push_back(flow);
}

void MaxMinSolver::stop(std::int32_t flow) {
  const Connection& c = traffic_->connections[static_cast<std::size_t>(flow)];
  for (std::int32_t slot = c.path_begin; slot < c.path_end; ++slot) {
    const auto link = static_cast<std::size_t>(traffic_->path_links[static_cast<std::size_t>(slot)]);
    const auto hole = static_cast<std::size_t>(position_[static_cast<std::size_t>(slot)]);
    const auto last = static_cast<std::size_t>(link_begin_[link] + --link_size_[link]);
    entry_flow_[hole] = entry_flow_[last];
    entry_slot_[hole] = entry_slot_[last];
    position_[static_cast<std::size_t>(entry_slot_[hole])] = static_cast<std::int32_t>(hole);
    touch(link);
  }
  active_[static_cast<std::size_t>(flow)] = 0;
  rate_[static_cast<std::size_t>(flow)] = 0;
}

void MaxMinSolver::affect(std::int32_t flow) {
  const auto f = static_cast<std::size_t>(flow);
  if (affected_mark_[f] == epoch_) return;
  affected_mark_[f] = epoch_;
  affected_.push_back(flow);
  old_rate_.push_back(rate_[f]);
}

void MaxMinSolver::collect() {
  lone_.clear();
  affected_.clear();
  old_rate_.clear();
  // A flow that has all its links to itself takes what its narrowest link gives.
  for (const std::int32_t flow : started_) {
    // Since the last solve the flow was stopped again, or started twice.
    if (active_[static_cast<std::size_t>(flow)] == 0 ||
        affected_mark_[static_cast<std::size_t>(flow)] == epoch_)
      continue;
    const Connection& c = traffic_->connections[static_cast<std::size_t>(flow)];
    double narrowest = std::numeric_limits<double>::infinity();
    std::int32_t bottleneck = -1;
    bool alone = true;
    for (std::int32_t slot = c.path_begin; slot < c.path_end; ++slot) {
      const std::int32_t link = traffic_->path_links[static_cast<std::size_t>(slot)];
      alone = alone && link_size_[static_cast<std::size_t>(link)] == 1;
      if (capacity_[static_cast<std::size_t>(link)] < narrowest) {
        narrowest = capacity_[static_cast<std::size_t>(link)];
        bottleneck = link;
      }
    }
    if (alone) {
      rate_[static_cast<std::size_t>(flow)] = narrowest;
      bottleneck_[static_cast<std::size_t>(flow)] = bottleneck;
      affected_mark_[static_cast<std::size_t>(flow)] = epoch_;  // has its rate; not to be collected below
      lone_.push_back(flow);
    } else {
      affect(flow);
    }
  }
  for (const std::int32_t link : touched_) {
    const auto l = static_cast<std::size_t>(link);
    for (std::int32_t i = link_begin_[l]; i < link_begin_[l] + link_size_[l]; ++i) {
      const std::int32_t flow = entry_flow_[static_cast<std::size_t>(i)];
      if (bottleneck_[static_cast<std::size_t>(flow)] == link) affect(flow);
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

/// Brings the links of newly affected flows into the filling.
void MaxMinSolver::gather_links() {
  for (; gathered_ < affected_.size(); ++gathered_) {
    const Connection& c = traffic_->connections[static_cast<std::size_t>(affected_[gathered_])];
    for (std::int32_t slot = c.path_begin; slot < c.path_end; ++slot) {
      const std::int32_t link = traffic_->path_links[static_cast<std::size_t>(slot)];
      LinkState& s = state_[static_cast<std::size_t>(link)];
      if (s.mark != filling_) {
        s.mark = filling_;
        s.affected = 0;
        links_.push_back(link);
      }
      ++s.affected;
    }
  }
}

/// What the held flows leave of a link.
void MaxMinSolver::take_held(std::size_t link) {
  LinkState& s = state_[link];
  double first = -1;
  for (std::int32_t i = link_begin_[link]; i < link_begin_[link] + link_size_[link]; ++i) {
    const auto flow = static_cast<std::size_t>(entry_flow_[static_cast<std::size_t>(i)]);
    if (affected_mark_[flow] == epoch_) continue;
    if (first < 0) first = rate_[flow];
    order_shows_ = order_shows_ || rate_[flow] != first;
    s.left -= rate_[flow];
  }
  s.left = std::max(s.left, 0.0);
}

/// Progressive filling of the affected flows in what the held ones leave.
void MaxMinSolver::fill() {
  live_.clear();
  for (const std::int32_t link : links_) {
    const auto l = static_cast<std::size_t>(link);
    LinkState& s = state_[l];
    s.left = capacity_[l];
    if (s.affected < link_size_[l]) take_held(l);
    s.open = s.affected;
    s.top = 0;
    s.level = kNotFull;
    live_.push_back(link);
  }
  for (const std::int32_t flow : affected_) frozen_mark_[static_cast<std::size_t>(flow)] = 0;

  while (!live_.empty()) {
    double level = std::numeric_limits<double>::infinity();
    std::size_t kept = 0;
    for (const std::int32_t link : live_) {
      const LinkState& s = state_[static_cast<std::size_t>(link)];
      if (s.open == 0) continue;
      live_[kept++] = link;
      level = std::min(level, s.left / s.open);
    }
    live_.resize(kept);
    for (const std::int32_t link : live_) {
      const LinkState& s = state_[static_cast<std::size_t>(link)];
      if (s.open > 0 && s.left <= level * s.open * (1 + kSameLevel))
        freeze(static_cast<std::size_t>(link), level);
    }
  }
}

/// The link is full at this level: its open flows stay at it.
void MaxMinSolver::freeze(std::size_t link, double level) {
  state_[link].level = level;
  for (std::int32_t i = link_begin_[link]; i < link_begin_[link] + link_size_[link]; ++i) {
    const auto flow = static_cast<std::size_t>(entry_flow_[static_cast<std::size_t>(i)]);
    if (affected_mark_[flow] != epoch_ || frozen_mark_[flow] == filling_) continue;
    frozen_mark_[flow] = filling_;
    rate_[flow] = level;
    bottleneck_[flow] = static_cast<std::int32_t>(link);
    const Connection& c = traffic_->connections[flow];
    for (std::int32_t slot = c.path_begin; slot < c.path_end; ++slot) {
      LinkState& s = state_[static_cast<std::size_t>(traffic_->path_links[static_cast<std::size_t>(slot)])];
      s.left = std::max(0.0, s.left - level);
      s.top = std::max(s.top, level);
      --s.open;
    }
  }
}

/// Adds the held flows that the filling leaves without a certificate; false where there are none.
bool MaxMinSolver::recruit() {
  const std::size_t before = affected_.size();
  for (const std::int32_t link : links_) {
    const auto l = static_cast<std::size_t>(link);
    const LinkState& s = state_[l];
    if (s.affected == link_size_[l]) continue;
    const bool full = s.left <= kSaturated * capacity_[l];
    for (std::int32_t i = link_begin_[l]; i < link_begin_[l] + link_size_[l]; ++i) {
      const std::int32_t flow = entry_flow_[static_cast<std::size_t>(i)];
      const auto f = static_cast<std::size_t>(flow);
      if (affected_mark_[f] == epoch_) continue;
      // Faster than a flow that is bottlenecked here, or bottlenecked here itself on a link that is not full
      // or has a faster flow.
      const bool unfair = s.level != kNotFull && rate_[f] > s.level * (1 + kFair);
      const bool released = bottleneck_[f] == link && (!full || s.top > rate_[f] * (1 + kFair));
      if (unfair || released) affect(flow);
    }
  }
  return affected_.size() > before;
}

double MaxMinSolver::violation() const {
  double worst = 0;
  std::vector<double> used(capacity_.size(), 0), fastest(capacity_.size(), 0);
  for (std::size_t l = 0; l < capacity_.size(); ++l) {
    for (std::int32_t i = link_begin_[l]; i < link_begin_[l] + link_size_[l]; ++i) {
      const auto flow = static_cast<std::size_t>(entry_flow_[static_cast<std::size_t>(i)]);
      used[l] += rate_[flow];
      fastest[l] = std::max(fastest[l], rate_[flow]);
    }
    worst = std::max(worst, used[l] / capacity_[l] - 1);
  }
  for (std::size_t f = 0; f < rate_.size(); ++f) {
    if (active_[f] == 0) continue;
    double best = std::numeric_limits<double>::infinity();
    const Connection& c = traffic_->connections[f];
    for (std::int32_t slot = c.path_begin; slot < c.path_end; ++slot) {
      const auto l = static_cast<std::size_t>(traffic_->path_links[static_cast<std::size_t>(slot)]);
      best = std::min(best, std::max(1 - used[l] / capacity_[l], 1 - rate_[f] / fastest[l]));
    }
    worst = std::max(worst, best);
  }
  return worst;
}

}  // namespace shardscape::network
