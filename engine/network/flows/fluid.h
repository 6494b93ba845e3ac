// Parcels on their way: connections that carry them one after the other at max-min fair rates, and the course of
// events. The rules are those of traffic.h; what the arrival of a parcel triggers is up to the user. The simulator of
// collectives (flow_simulator.h) and the executor of programs (execution/executor.h) both run on it.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "engine/network/collectives/traffic.h"
#include "engine/network/flows/event_queue.h"
#include "engine/network/flows/max_min_solver.h"

namespace shardscape::network {

/// The functions by which a Fluid informs its user, who may call send() and wake_at() in all of them but
/// rate_changed().
template <class Handler, class Parcel>
concept FluidHandler = requires(Handler handler, std::int32_t id, const Parcel& parcel, double rate) {
  handler.wake(id);             ///< at a time that wake_at() asked for
  handler.deliver(id, parcel);  ///< a parcel was received through connection `id`
  {
    handler.settle()
    /// All events of the instant are done; returns whether the user wants to continue within it.
    } -> std::convertible_to<bool>;
  /// Connection `id` now sends at this rate, in bytes per second; 0: it has nothing left to send.
  handler.rate_changed(id, rate);
};

/// Events closer than this, relative to the time, count as simultaneous.
inline constexpr double kTie = 1e-12;

/// Carries parcels; `Parcel` must have a member `bytes`.
template <class Parcel>
class Fluid {
 public:
  /// Starts at time 0 with nothing on its way. `wires` and `capacity` must outlive the use.
  void reset(const Traffic& wires, std::span<const double> capacity) {
    wires_ = &wires;
    solver_.reset(wires, capacity);
    queue_.clear();
    flows_.assign(wires.connections.size(), {});
    nodes_.clear();
    free_node_ = kNone;
    now_ = 0;
    changed_ = false;
    drained_ = received_ = 0;
  }

  [[nodiscard]] bool idle() const { return queue_.empty(); }
  /// Time of the next event; infinity where there is none.
  [[nodiscard]] double next_time() const {
    return queue_.empty() ? std::numeric_limits<double>::infinity() : queue_.next_time();
  }
  [[nodiscard]] double now() const { return now_; }
  /// See MaxMinSolver::order_shows().
  [[nodiscard]] bool order_shows() const { return solver_.order_shows(); }
  [[nodiscard]] std::int64_t drained() const { return drained_; }
  [[nodiscard]] std::int64_t received() const { return received_; }

  /// Asks for a call of Handler::wake(id) at `time` >= now().
  void wake_at(double time, std::int32_t id) { queue_.push(Kind::gate, time, id); }

  /// Changes the path of a connection that carries nothing. Its latency is the one in `wires` at the time it sends.
  void reroute(std::int32_t connection, std::span<const std::int32_t> path) {
    solver_.reroute(connection, path);
  }

  /// Sends a parcel on a connection, behind those already there. If it arrives at once (an empty path without latency),
  /// the handler gets it within this call.
  template <class Handler>
  void send(std::int32_t connection, const Parcel& parcel, Handler& handler) {
    const Connection& c = wires_->connections[static_cast<std::size_t>(connection)];
    if (c.path_begin == c.path_end && c.latency <= 0) {
      ++received_;
      handler.deliver(connection, parcel);
      return;
    }
    Flow& f = flow(connection);
    const std::int32_t last = new_node(f, parcel);
    if (f.tail == kNone) {
      f.oldest = last;
    } else {
      node(f, f.tail).next = last;
    }
    f.tail = last;
    if (c.path_begin == c.path_end) {
      queue_.push(Kind::receipt, now_ + c.latency, connection);
    } else if (f.head == kNone) {
      f.head = last;
      begin(connection);
    }
  }

  /// Does one instant: everything that happens at this time, then the new rates. Returns whether rates had to be solved
  /// anew.
  template <FluidHandler<Parcel> Handler>
  bool advance(Handler& handler) {
    return advance_at(queue_.next_time(), handler);
  }

  /// As advance(), at a time from now() to next_time() at which the handler has something to do by itself, in settle().
  template <FluidHandler<Parcel> Handler>
  bool advance_at(double time, Handler& handler) {
    now_ = time;
    const double limit = now_ * (1 + kTie);
    do {
      while (!queue_.empty() && queue_.next_time() <= limit) {
        queue_.pop([&](Kind kind, std::int32_t id, std::uint32_t stamp) {
          switch (kind) {
            case Kind::drain:
              if (flow(id).stamp == stamp) drain(id, handler);
              return;
            case Kind::receipt:
              receive(id, handler);
              return;
            case Kind::gate:
              handler.wake(id);
              return;
          }
        });
      }
    } while (handler.settle());
    if (!changed_) return false;
    update_rates(handler);
    changed_ = false;
    return true;
  }

 private:
  using Kind = EventQueue::Kind;
  static constexpr std::int32_t kNone = -1;
  static constexpr std::int32_t kOwn = -2;   ///< number of the flow's own node
  static constexpr std::int32_t kFree = -3;  ///< value of `next` in a flow's own node that holds no parcel

  struct Node {
    Parcel parcel;
    std::int32_t next = kNone;
  };
  /// Fits one cache line, together with the node of the single parcel that most connections carry at a time.
  struct alignas(64) Flow {
    double remaining = 0;  ///< bytes of the head that were left at `updated`
    double updated = 0;
    /// One list, oldest first: parcels that are drained but not received, then the head, which drains, then those that
    /// wait.
    std::int32_t oldest = kNone, head = kNone, tail = kNone;
    std::uint32_t stamp = 0;  ///< stamp of its valid drain event
    Node own = {{}, kFree};
  };

  [[nodiscard]] Flow& flow(std::int32_t id) { return flows_[static_cast<std::size_t>(id)]; }

  [[nodiscard]] Node& node(Flow& f, std::int32_t id) {
    return id == kOwn ? f.own : nodes_[static_cast<std::size_t>(id)];
  }

  std::int32_t new_node(Flow& f, const Parcel& parcel) {
    if (f.own.next == kFree) {
      f.own = {parcel, kNone};
      return kOwn;
    }
    if (free_node_ == kNone) {
      nodes_.push_back({parcel, kNone});
      return static_cast<std::int32_t>(nodes_.size()) - 1;
    }
    const std::int32_t id = free_node_;
    free_node_ = nodes_[static_cast<std::size_t>(id)].next;
    nodes_[static_cast<std::size_t>(id)] = {parcel, kNone};
    return id;
  }

  void free_node(Flow& f, std::int32_t id) {
    if (id == kOwn) {
      f.own.next = kFree;
      return;
    }
    nodes_[static_cast<std::size_t>(id)].next = free_node_;
    free_node_ = id;
  }

  void begin(std::int32_t id) {
    Flow& f = flow(id);
    f.remaining = node(f, f.head).parcel.bytes;
    f.updated = now_;
    solver_.start(id);
    changed_ = true;
  }

  void schedule_drain(std::int32_t id) {
    Flow& f = flow(id);
    queue_.push(Kind::drain, now_ + f.remaining / solver_.rate(id), id, ++f.stamp);
  }

  template <class Handler>
  void drain(std::int32_t id, Handler& handler) {
    ++drained_;
    Flow& f = flow(id);
    f.head = node(f, f.head).next;
    if (f.head != kNone) {  // the connection goes on at the same rate
      f.remaining = node(f, f.head).parcel.bytes;
      f.updated = now_;
      schedule_drain(id);
    } else {
      ++f.stamp;
      solver_.stop(id);
      changed_ = true;
      handler.rate_changed(id, 0.0);
    }
    const double latency = wires_->connections[static_cast<std::size_t>(id)].latency;
    if (latency > 0) {
      queue_.push(Kind::receipt, now_ + latency, id);
    } else {
      receive(id, handler);
    }
  }

  template <class Handler>
  void receive(std::int32_t id, Handler& handler) {
    ++received_;
    Flow& f = flow(id);
    const std::int32_t first = f.oldest;
    const Node& n = node(f, first);
    const Parcel parcel = n.parcel;
    f.oldest = n.next;
    if (f.oldest == kNone) f.tail = kNone;
    free_node(f, first);
    handler.deliver(id, parcel);
  }

  template <class Handler>
  void update_rates(Handler& handler) {
    solver_.solve([&](std::int32_t id, double old) {
      Flow& f = flow(id);
      f.remaining = std::max(0.0, f.remaining - old * (now_ - f.updated));
      f.updated = now_;
      schedule_drain(id);
      handler.rate_changed(id, solver_.rate(id));
    });
  }

  const Traffic* wires_ = nullptr;
  MaxMinSolver solver_;
  EventQueue queue_;
  std::vector<Flow> flows_;
  std::vector<Node> nodes_;
  std::int32_t free_node_ = kNone;
  double now_ = 0;
  bool changed_ = false;  ///< whether a flow started or ended in this instant
  std::int64_t drained_ = 0, received_ = 0;
};

}  // namespace shardscape::network
