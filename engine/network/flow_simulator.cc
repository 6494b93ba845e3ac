#include "engine/network/flow_simulator.h"

#include <algorithm>
#include <utility>

#include "engine/network/event_queue.h"
#include "engine/network/max_min_solver.h"

namespace shardscape::network {

namespace {

/// Events closer than this, relative to the time, happen together.
constexpr double kTie = 1e-12;
constexpr std::int32_t kNoIndex = -1;

}  // namespace

struct FlowSimulator::Impl {
  FlowResult run(const Traffic& traffic, std::span<const double> capacity, RateObserver* observer,
                 GateObserver* gates);

 private:
  using Kind = EventQueue::Kind;

  /// A connection's place in its current message.
  struct Flow {
    double remaining = 0;  ///< bytes at `updated`
    double updated = 0;
    std::int32_t head = kNoIndex, tail = kNoIndex;  ///< ready messages, in ready_
    std::uint32_t stamp = 0;                        ///< of its valid drain event
  };
  /// A message that waits on its connection, or is the one that drains; perhaps several times at once.
  struct Ready {
    std::int32_t message = kNoIndex;
    std::int32_t next = kNoIndex;  ///< behind it on the connection
  };
  /// Of a gate that opens several times.
  struct Turns {
    std::int32_t receipts = 0;
    std::int32_t held = 0;  ///< receipts before the first opening
    bool open = false;      ///< has opened once
  };

  void reset(const Traffic& traffic, std::span<const double> capacity, RateObserver* observer);
  void settle_instant();
  void handle(Kind kind, std::int32_t id, std::uint32_t stamp);
  void drain(std::int32_t flow);
  void receive(std::int32_t message);
  void take_turn(std::int32_t gate);
  void resume_turns(std::int32_t gate);
  void count_down(std::int32_t gate);
  void sort_opened();
  void open_gates();
  bool count_down_chosen();
  void release(std::int32_t message);
  [[nodiscard]] std::int32_t new_ready(std::int32_t message);
  [[nodiscard]] std::int32_t free_ready(std::int32_t ready);
  void begin(std::int32_t flow);
  void schedule_drain(std::int32_t flow);
  void update_rates();

  [[nodiscard]] Flow& flow(std::int32_t id) { return flows_[static_cast<std::size_t>(id)]; }
  [[nodiscard]] const Connection& connection(std::int32_t id) const {
    return traffic_->connections[static_cast<std::size_t>(id)];
  }
  [[nodiscard]] const Message& message(std::int32_t id) const {
    return traffic_->messages[static_cast<std::size_t>(id)];
  }

  const Traffic* traffic_ = nullptr;
  RateObserver* observer_ = nullptr;
  GateObserver* gate_observer_ = nullptr;
  MaxMinSolver solver_;
  EventQueue queue_;
  std::vector<Flow> flows_;
  std::vector<Ready> ready_;
  std::int32_t free_ready_ = kNoIndex;
  std::vector<std::int32_t> waiting_;  ///< per gate
  std::vector<Turns> turns_;           ///< per gate, where one opens several times
  std::vector<std::int32_t> opened_;   ///< gates of this instant
  double now_ = 0;
  bool changed_ = false;  ///< a flow started or ended in this instant
  FlowResult result_;
};

void FlowSimulator::Impl::reset(const Traffic& traffic, std::span<const double> capacity,
                                RateObserver* observer) {
  traffic_ = &traffic;
  observer_ = observer;
  solver_.reset(traffic, capacity);
  queue_.clear();
  flows_.assign(traffic.connections.size(), {});
  ready_.clear();
  free_ready_ = kNoIndex;
  waiting_.resize(traffic.gates.size());
  turns_.clear();
  opened_.clear();
  now_ = 0;
  changed_ = false;
  result_ = {};
  for (std::size_t g = 0; g < traffic.gates.size(); ++g) {
    waiting_[g] = traffic.gates[g].waiting;
    if (traffic.gates[g].times > 1 && turns_.empty()) turns_.resize(traffic.gates.size());
    if (waiting_[g] == 0) {
      queue_.push(Kind::gate, traffic.gates[g].not_before + traffic.gates[g].delay,
                  static_cast<std::int32_t>(g));
    }
  }
}

// One turn of the loop per instant: first everything that happens at that time, then the new rates.
FlowResult FlowSimulator::Impl::run(const Traffic& traffic, std::span<const double> capacity,
                                    RateObserver* observer, GateObserver* gates) {
  reset(traffic, capacity, observer);
  gate_observer_ = gates;
  while (!queue_.empty()) {
    now_ = queue_.next_time();
    settle_instant();
    if (!changed_) continue;
    update_rates();
    ++result_.events;
    changed_ = false;
  }
  return result_;
}

void FlowSimulator::Impl::settle_instant() {
  const double limit = now_ * (1 + kTie);
  for (;;) {
    while (!queue_.empty() && queue_.next_time() <= limit) {
      queue_.pop([this](Kind kind, std::int32_t id, std::uint32_t stamp) { handle(kind, id, stamp); });
    }
    if (!opened_.empty()) {
      open_gates();
    } else if (!count_down_chosen()) {
      return;
    }
  }
}

/// Counts down the gate that the observer chooses; false where it chooses none.
bool FlowSimulator::Impl::count_down_chosen() {
  if (gate_observer_ == nullptr) return false;
  const std::int32_t gate = gate_observer_->choose_gate();
  count_down(gate);
  return gate != kNoIndex;
}

void FlowSimulator::Impl::handle(Kind kind, std::int32_t id, std::uint32_t stamp) {
  switch (kind) {
    case Kind::drain:
      if (flow(id).stamp == stamp) drain(id);
      return;
    case Kind::receipt:
      receive(id);
      return;
    case Kind::gate:
      opened_.push_back(id);
      return;
  }
}

void FlowSimulator::Impl::drain(std::int32_t id) {
  Flow& f = flow(id);
  const std::int32_t sent = ready_[static_cast<std::size_t>(f.head)].message;
  f.head = free_ready(f.head);
  const double latency = connection(id).latency;
  if (latency > 0) {
    queue_.push(Kind::receipt, now_ + latency, sent);
  } else {
    receive(sent);
  }
  if (f.head != kNoIndex) {  // another message follows: the connection keeps its rate
    f.remaining = message(ready_[static_cast<std::size_t>(f.head)].message).bytes;
    f.updated = now_;
    schedule_drain(id);
    return;
  }
  ++f.stamp;
  solver_.stop(id);
  changed_ = true;
  if (observer_ != nullptr) observer_->rate_changed(now_, id, 0);
}

void FlowSimulator::Impl::receive(std::int32_t id) {
  result_.completion_time = now_;
  ++result_.received;
  const std::int32_t gate = message(id).gate;
  if (gate == kNoIndex) return;
  if (traffic_->gates[static_cast<std::size_t>(gate)].times > 1) {
    take_turn(gate);
  } else {
    count_down(gate);
  }
}

void FlowSimulator::Impl::take_turn(std::int32_t gate) {
  const Gate& g = traffic_->gates[static_cast<std::size_t>(gate)];
  Turns& turns = turns_[static_cast<std::size_t>(gate)];
  if (++turns.receipts == g.times) {
    count_down(g.next_gate);
  } else if (turns.open) {
    opened_.push_back(gate);
  } else {
    ++turns.held;
  }
}

/// Receipts that came before the first opening take their turns one after the other.
void FlowSimulator::Impl::resume_turns(std::int32_t gate) {
  Turns& turns = turns_[static_cast<std::size_t>(gate)];
  turns.open = true;
  if (turns.held == 0) return;
  --turns.held;
  opened_.push_back(gate);
}

void FlowSimulator::Impl::count_down(std::int32_t gate) {
  if (gate == kNoIndex || --waiting_[static_cast<std::size_t>(gate)] != 0) return;
  const Gate& g = traffic_->gates[static_cast<std::size_t>(gate)];
  const double opens = std::max(now_, g.not_before) + g.delay;
  if (opens > now_) {
    queue_.push(Kind::gate, opens, gate);
  } else {
    opened_.push_back(gate);
  }
}

/// In the order of their numbers, so that the order of simultaneous events never shows.
void FlowSimulator::Impl::sort_opened() {
  const auto fall = std::ranges::is_sorted_until(opened_);
  if (fall == opened_.end()) return;
  // The steps of a ring open theirs in order but for where the ring closes.
  if (opened_.back() < opened_.front() && std::is_sorted(fall, opened_.end())) {
    std::rotate(opened_.begin(), fall, opened_.end());
  } else {
    std::ranges::sort(opened_);
  }
}

void FlowSimulator::Impl::open_gates() {
  sort_opened();
  const std::size_t count = opened_.size();
  for (std::size_t i = 0; i < count; ++i) {
    const Gate& gate = traffic_->gates[static_cast<std::size_t>(opened_[i])];
    if (gate_observer_ != nullptr) gate_observer_->gate_opened(now_, opened_[i]);
    for (std::int32_t m = gate.first_message; m < gate.first_message + gate.messages; ++m) release(m);
    if (gate.times > 1) {
      resume_turns(opened_[i]);
    } else {
      count_down(gate.next_gate);
    }
  }
  opened_.erase(opened_.begin(), opened_.begin() + static_cast<std::ptrdiff_t>(count));
}

void FlowSimulator::Impl::release(std::int32_t id) {
  const std::int32_t on = message(id).connection;
  if (connection(on).path_begin == connection(on).path_end) {  // to itself
    if (connection(on).latency > 0) {
      queue_.push(Kind::receipt, now_ + connection(on).latency, id);
    } else {
      receive(id);
    }
    return;
  }
  Flow& f = flow(on);
  const std::int32_t ready = new_ready(id);
  if (f.head != kNoIndex) {
    ready_[static_cast<std::size_t>(f.tail)].next = ready;
    f.tail = ready;
    return;
  }
  f.head = f.tail = ready;
  begin(on);
}

std::int32_t FlowSimulator::Impl::new_ready(std::int32_t message) {
  if (free_ready_ == kNoIndex) {
    ready_.push_back({message, kNoIndex});
    return static_cast<std::int32_t>(ready_.size()) - 1;
  }
  const std::int32_t ready = free_ready_;
  free_ready_ = ready_[static_cast<std::size_t>(ready)].next;
  ready_[static_cast<std::size_t>(ready)] = {message, kNoIndex};
  return ready;
}

/// Gives back what was behind it.
std::int32_t FlowSimulator::Impl::free_ready(std::int32_t ready) {
  const std::int32_t behind = std::exchange(ready_[static_cast<std::size_t>(ready)].next, free_ready_);
  free_ready_ = ready;
  return behind;
}

void FlowSimulator::Impl::begin(std::int32_t id) {
  Flow& f = flow(id);
  f.remaining = message(ready_[static_cast<std::size_t>(f.head)].message).bytes;
  f.updated = now_;
  solver_.start(id);
  changed_ = true;
}

void FlowSimulator::Impl::schedule_drain(std::int32_t id) {
  Flow& f = flow(id);
  queue_.push(Kind::drain, now_ + f.remaining / solver_.rate(id), id, ++f.stamp);
}

void FlowSimulator::Impl::update_rates() {
  solver_.solve([this](std::int32_t id, double old) {
    Flow& f = flow(id);
    f.remaining = std::max(0.0, f.remaining - old * (now_ - f.updated));
    f.updated = now_;
    schedule_drain(id);
    if (observer_ != nullptr) observer_->rate_changed(now_, id, solver_.rate(id));
  });
}

FlowSimulator::FlowSimulator() : impl_(std::make_unique<Impl>()) {}
FlowSimulator::~FlowSimulator() = default;
FlowSimulator::FlowSimulator(FlowSimulator&&) noexcept = default;
FlowSimulator& FlowSimulator::operator=(FlowSimulator&&) noexcept = default;

FlowResult FlowSimulator::run(const Traffic& traffic, std::span<const double> link_bytes_per_second,
                              RateObserver* observer, GateObserver* gates) {
  return impl_->run(traffic, link_bytes_per_second, observer, gates);
}

}  // namespace shardscape::network
