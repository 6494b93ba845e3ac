// Runs programs event by event: each rank ahead to its next wait, messages as flows in Fluid, calls by their gates.
// Folded programs are tried first, where that pays; rings that share no link are computed in closed form
// (lone_rings.h).
#include "engine/execution/executor.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "engine/execution/calls.h"
#include "engine/execution/deadlock.h"
#include "engine/execution/folding.h"
#include "engine/execution/lone_rings.h"
#include "engine/execution/program_counts.h"
#include "engine/execution/symmetry.h"
#include "engine/execution/work_left.h"
#include "engine/network/flows/fluid.h"

namespace shardscape::execution {

namespace {

/// An event in the future: a delayed message of a channel is sent, or a member enters or leaves a call.
struct Timer {
  std::int32_t connection = kNone;  ///< the message's connection; kNone: no message
  std::int32_t rank = 0, lane = 0;  ///< the member that enters or leaves
  std::int32_t leaves = kNone;      ///< the instance that the member leaves; kNone: it enters
  double bytes = 0, issued = 0;     ///< size of the message, and when it was issued
  std::int32_t next = kNone;
};

struct Parcel {
  double bytes = 0;
  double issued = 0;           ///< seconds: time at which the sender issued it
  std::int32_t instance = -1;  ///< the call that it belongs to; -1: a message through a channel
  std::int32_t gate = -1;      ///< the gate of the call that its receipt counts down
};

}  // namespace

struct Executor::Impl {
  const ExecutionResult& run(const Programs& programs, std::span<const double> capacity,
                             ExecutionObserver* observer, bool lone_rings);
  /// Executes the folded programs and fills in the result of the whole. False where the order of simultaneous events
  /// could change the result, or where not all programs end.
  bool run_folded(const Programs& programs, const Folding& folding);
  [[nodiscard]] const ExecutionResult& result() const { return result_; }
  void give_up_after(std::int64_t events) { most_events_ = events; }
  void watch(ExecutionWatch watch) { watch_ = std::move(watch); }
  [[nodiscard]] bool is_watched() const { return static_cast<bool>(watch_); }
  /// Asks the watch before anything is executed; false where it gives the execution up.
  bool begin() {
    least_end_ = 0;
    result_.gave_up = watch_ && !watch_(0);
    return !result_.gave_up;
  }

  // Called by Fluid.
  void wake(std::int32_t timer);
  void deliver(std::int32_t connection, const Parcel& parcel);
  static bool settle() { return false; }
  static void rate_changed(std::int32_t /*connection*/, double /*rate*/) {}

 private:
  void reset(const Programs& programs, std::span<const double> capacity);
  [[nodiscard]] bool all_done() const;
  bool too_long(const Programs& programs);
  bool too_long();
  void hear(double end);
  [[nodiscard]] std::int64_t events_so_far() const {
    return result_.operators + entries_ + fluid_.drained() + fluid_.received();
  }
  void send(std::int32_t connection, const Parcel& parcel);
  void run_ahead(std::int32_t rank);
  bool step(std::int32_t rank, RankState& state, const Instruction& instruction);
  void resume(std::int32_t rank);
  void pass(std::int32_t rank, RankState& state, double until, Account account);
  void start(std::int32_t rank, const Instruction& instruction, double time);
  bool join(std::int32_t rank, RankState& state, const Instruction& instruction);
  bool take_message(std::int32_t rank, RankState& state, const Instruction& instruction);
  void begin_call(std::int32_t rank, LaneState& lane, double time);
  void enter_call(std::int32_t rank, std::int32_t lane);
  void enter_ring(std::int32_t instance, std::int32_t communicator, std::size_t member, std::int32_t lane);
  void leave_call(std::int32_t rank, std::int32_t lane);
  void count_down(std::int32_t instance, std::int32_t gate);
  void receive(std::int32_t instance, std::int32_t gate);
  void open_gates();
  void add_timer(double time, const Timer& timer);

  [[nodiscard]] RankState& state_of(std::int32_t rank) { return ranks_[static_cast<std::size_t>(rank)]; }
  [[nodiscard]] LaneState& lane_of(std::int32_t lane, std::int32_t rank) {
    return lanes_[programs_->at(lane, rank)];
  }
  /// State of the lane whose order the calls of this lane follow (Programs::turns).
  [[nodiscard]] LaneState& turns_of(std::int32_t lane, std::int32_t rank) {
    return lane_of(programs_->turns[static_cast<std::size_t>(lane)], rank);
  }
  [[nodiscard]] ChannelState& channel_of(std::int32_t connection) {
    return channels_[static_cast<std::size_t>(connection)];
  }

  const Programs* programs_ = nullptr;
  ExecutionObserver* observer_ = nullptr;
  network::Fluid<Parcel> fluid_;
  CallBoard calls_;
  LoneRings rings_;
  std::vector<RankState> ranks_;
  std::vector<LaneState> lanes_;        ///< [lane * ranks + rank]
  std::vector<ChannelState> channels_;  ///< by connection
  std::vector<Timer> timers_;
  std::int32_t free_timer_ = kNone;
  struct Opened {
    std::int32_t instance, gate;
  };
  std::vector<Opened> opened_;
  bool opening_ = false;
  std::int64_t entries_ = 0;
  /// In a folded execution, by connection: the parcel sent last, from which order_shows_ is found.
  struct LastParcel {
    double time = -1;
    std::int64_t opening = -1;
    bool alike = true;  ///< whether all parcels of that instant are alike
    Parcel parcel;
  };
  std::vector<LastParcel> last_parcels_;  ///< empty where the execution is not folded
  std::int64_t openings_ = 0;             ///< number of gates opened so far
  std::int64_t most_events_ = std::numeric_limits<std::int64_t>::max();
  bool order_shows_ = false;  ///< unlike parcels were sent in an order that unfolded programs might not have
  // To ask the watch costs some nanoseconds per rank, an event some tens: so the watch is asked every few thousand
  // events.
  static constexpr std::int64_t kAskEvery = 4096, kAskEveryOfRank = 4;
  ExecutionWatch watch_;
  std::int64_t ask_after_ = 0;
  double least_end_ = 0;
  // A folded execution in which only the rounding of sums is open ends within that of the whole, if nothing takes turns
  // otherwise because of it. Under a watch it goes on as a scout, for a small part of what the whole costs: where the
  // watch gives it up, less a thousandth, nothing else is executed.
  static constexpr double kOfScout = 1 - 1e-3;
  bool scouts_ = false;
  WorkLeft work_left_;  ///< used only with a watch
  ExecutionResult result_;
};

void Executor::Impl::reset(const Programs& programs, std::span<const double> capacity) {
  programs_ = &programs;
  fluid_.reset(programs.wires, capacity);
  calls_.reset(programs);
  rings_.reset(programs, capacity);
  const auto ranks = static_cast<std::size_t>(programs.ranks);
  ranks_.assign(ranks, {});
  lanes_.resize(ranks * static_cast<std::size_t>(programs.lanes));
  for (LaneState& lane : lanes_) lane.reset();
  channels_.resize(programs.wires.connections.size());
  for (ChannelState& channel : channels_) channel.reset();
  for (std::int32_t channel = 0; channel < programs.channels; ++channel) {
    for (std::int32_t rank = 0; rank < programs.ranks; ++rank) {
      const std::int32_t in = programs.incoming[programs.at(channel, rank)];
      const std::int32_t out = programs.outgoing[programs.at(channel, rank)];
      if (in != kNone) channel_of(in).receiver = rank;
      if (out != kNone) channel_of(out).sender = rank;
    }
  }
  timers_.clear();
  free_timer_ = kNone;
  opened_.clear();
  opening_ = false;
  entries_ = 0;
  last_parcels_.clear();
  openings_ = 0;
  order_shows_ = false;
  ask_after_ = 0;
  scouts_ = false;
  if (watch_) work_left_.reset(programs);
  result_.operators = 0;
  result_.gave_up = false;
  result_.accounts.assign(ranks, {});
  result_.deadlock.clear();
}

const ExecutionResult& Executor::Impl::run(const Programs& programs, std::span<const double> capacity,
                                           ExecutionObserver* observer, bool lone_rings) {
  observer_ = observer;
  reset(programs, capacity);
  if (!lone_rings) rings_.reset();
  if (too_long(programs)) return result_;
  for (std::int32_t rank = 0; rank < programs.ranks; ++rank) run_ahead(rank);
  while (!fluid_.idle()) {
    if (too_long()) return result_;
    fluid_.advance(*this);
  }
  result_.end.resize(ranks_.size());
  for (std::size_t r = 0; r < ranks_.size(); ++r) result_.end[r] = ranks_[r].clock;
  result_.messages = fluid_.received() + rings_.messages();
  result_.events = result_.operators + entries_ + fluid_.drained() + rings_.messages() + result_.messages;
  result_.executed_ranks = programs.ranks;
  if (!all_done()) result_.deadlock = explain_deadlock(programs, {ranks_, lanes_, channels_}, calls_);
  return result_;
}

/// Gives up programs with too many events, before they begin. Most events may belong to lone rings, which are computed
/// at once, so that only programs with many times the limit are refused here.
bool Executor::Impl::too_long(const Programs& programs) {
  constexpr std::int64_t kMostOfRings = 16;
  result_.gave_up = most_events_ < std::numeric_limits<std::int64_t>::max() &&
                    count(programs).events() / kMostOfRings > most_events_;
  return result_.gave_up;
}

/// Gives up where too many events have been executed, or where the watch says so.
bool Executor::Impl::too_long() {
  const std::int64_t events = events_so_far();
  result_.gave_up = events > most_events_;
  if (!watch_ || events < ask_after_ || result_.gave_up) return result_.gave_up;
  ask_after_ = events + std::max(kAskEvery, kAskEveryOfRank * std::int64_t{programs_->ranks});
  hear(work_left_.least_end(ranks_));
  return result_.gave_up;
}

/// Tells the watch when the execution ends at the earliest. It may start again after folding, but its bound never
/// falls.
void Executor::Impl::hear(double end) {
  least_end_ = std::max(least_end_, (scouts_ ? kOfScout : 1) * end);
  result_.gave_up = !watch_(least_end_);
}

bool Executor::Impl::all_done() const {
  return std::ranges::all_of(ranks_, [](const RankState& s) { return s.done; });
}

bool Executor::Impl::run_folded(const Programs& programs, const Folding& folding) {
  observer_ = nullptr;
  reset(folding.programs, folding.bytes_per_second);
  last_parcels_.assign(folding.programs.wires.connections.size(), {});
  if (too_long(folding.programs)) return true;
  for (std::int32_t rank = 0; rank < folding.programs.ranks; ++rank) run_ahead(rank);
  while (!fluid_.idle() && !order_shows_) {
    scouts_ = fluid_.order_shows();
    if (scouts_ && !watch_) return false;
    if (too_long()) return true;
    fluid_.advance(*this);
  }
  if (scouts_ && !order_shows_ && all_done()) {
    hear(std::ranges::max(ranks_, {}, &RankState::clock).clock);
    if (result_.gave_up) return true;
  }
  if (order_shows_ || fluid_.order_shows() || !all_done()) return false;
  const std::vector<Ledger> accounts = result_.accounts;
  result_.end.resize(folding.rank_classes.size());
  result_.accounts.resize(folding.rank_classes.size());
  for (std::size_t r = 0; r < folding.rank_classes.size(); ++r) {
    const auto one = static_cast<std::size_t>(folding.rank_classes[r]);
    result_.end[r] = ranks_[one].clock;
    result_.accounts[r] = accounts[one];
  }
  const ProgramCounts counts = count(programs);
  result_.operators = counts.operators;
  result_.messages = counts.messages;
  result_.events = counts.events();
  result_.executed_ranks = folding.programs.ranks;
  return true;
}

/// Sends a parcel. Parcels that enter one connection in the same instant leave in the order in which they were sent;
/// the order is safe among parcels of one gate or of a channel. Notes where unlike parcels of different gates meet.
void Executor::Impl::send(std::int32_t connection, const Parcel& parcel) {
  if (!last_parcels_.empty()) {
    LastParcel& last = last_parcels_[static_cast<std::size_t>(connection)];
    const bool first = last.time != fluid_.now();
    const bool like = last.parcel.bytes == parcel.bytes && last.parcel.instance == parcel.instance &&
                      last.parcel.gate == parcel.gate;
    const bool alike = first || (last.alike && like);
    if (!first && !alike && parcel.instance != kNone && last.opening != openings_ &&
        !is_instant(programs_->wires.connections[static_cast<std::size_t>(connection)]))
      order_shows_ = true;
    last = {fluid_.now(), openings_, alike, parcel};
  }
  fluid_.send(connection, parcel, *this);
}

/// Runs a rank from where it stands until it has to wait for an event that has not happened yet.
void Executor::Impl::run_ahead(std::int32_t rank) {
  RankState& state = state_of(rank);
  const std::vector<std::int32_t>& sequence = programs_->sequence(rank);
  for (;;) {
    while (state.next == state.block_end) {
      if (state.position == sequence.size()) {
        state.done = true;
        return;
      }
      const Block& block = programs_->blocks[static_cast<std::size_t>(sequence[state.position++])];
      state.next = block.begin;
      state.block_end = block.end;
    }
    if (!step(rank, state, programs_->instructions[static_cast<std::size_t>(state.next)])) {
      state.blocked = true;
      return;
    }
    ++state.next;
  }
}

/// Executes an instruction; false where it has to wait.
bool Executor::Impl::step(std::int32_t rank, RankState& state, const Instruction& instruction) {
  using Kind = Instruction::Kind;
  switch (instruction.kind) {
    case Kind::compute:
      ++result_.operators;
      pass(rank, state, state.clock + instruction.value, instruction.account);
      return true;
    case Kind::sync_host:
      state.host = state.clock;
      return true;
    case Kind::launch:
      if (observer_ != nullptr && instruction.value > 0) {
        observer_->launched(rank, state.host, state.host + instruction.value);
      }
      state.host += instruction.value;
      pass(rank, state, state.host, Account::host);
      return true;
    case Kind::start:
      start(rank, instruction, state.clock);
      return true;
    case Kind::join:
      return join(rank, state, instruction);
    case Kind::send: {
      const std::int32_t out = programs_->outgoing[programs_->at(instruction.lane, rank)];
      ++channel_of(out).sent;
      add_timer(state.clock + programs_->call_seconds,
                {out, rank, 0, kNone, instruction.value, state.clock, kNone});
      return true;
    }
    case Kind::sent: {
      const ChannelState& out = channel_of(programs_->outgoing[programs_->at(instruction.lane, rank)]);
      if (out.received < out.sent) return false;
      pass(rank, state, out.last_receipt, Account::pipeline_comm);
      return true;
    }
    case Kind::receive:
      return take_message(rank, state, instruction);
  }
  return true;
}

/// Moves the rank's clock on to `until`, if that is later, and books the time on an account.
void Executor::Impl::pass(std::int32_t rank, RankState& state, double until, Account account) {
  if (!(until > state.clock)) return;
  result_.accounts[static_cast<std::size_t>(rank)][account] += until - state.clock;
  if (observer_ != nullptr) {
    observer_->executed({rank, &programs_->instructions[static_cast<std::size_t>(state.next)], account,
                         state.position - 1, state.clock, until});
  }
  state.clock = until;
}

bool Executor::Impl::join(std::int32_t rank, RankState& state, const Instruction& instruction) {
  const LaneState& lane = turns_of(instruction.lane, rank);
  if (lane.busy) return false;
  pass(rank, state, lane.free_since, instruction.account);
  return true;
}

bool Executor::Impl::take_message(std::int32_t rank, RankState& state, const Instruction& instruction) {
  ChannelState& in = channel_of(programs_->incoming[programs_->at(instruction.lane, rank)]);
  if (in.arrivals.empty()) return false;
  const Arrival arrival = in.arrivals.pop();
  pass(rank, state, std::min(arrival.issued, arrival.received), Account::bubble);
  pass(rank, state, arrival.received, Account::pipeline_comm);
  return true;
}

void Executor::Impl::resume(std::int32_t rank) {
  RankState& state = state_of(rank);
  if (!state.blocked) return;
  state.blocked = false;
  run_ahead(rank);
}

// ---- lanes and calls ----

void Executor::Impl::start(std::int32_t rank, const Instruction& instruction, double time) {
  LaneState& lane = turns_of(instruction.lane, rank);
  if (instruction.repeats <= 0 || programs_->communicator_of[programs_->at(instruction.lane, rank)] == kNone)
    return;
  lane.pending.push({time, instruction.lane, instruction.what, instruction.repeats});
  if (!lane.busy) begin_call(rank, lane, time);
}

/// Begins the next pending call of a lane, at the earliest when it was started.
void Executor::Impl::begin_call(std::int32_t rank, LaneState& lane, double time) {
  const std::int32_t lane_number = lane.pending.front().lane;
  lane.busy = true;
  lane.lane = lane_number;
  lane.call = lane.pending.front().call;
  const double from = std::max(time, lane.pending.front().time);
  lane.begun = from;
  if (--lane.pending.front().repeats == 0) lane.pending.pop();
  const std::int32_t communicator = programs_->communicator_of[programs_->at(lane_number, rank)];
  const CallTraffic& call = programs_->communicators[static_cast<std::size_t>(communicator)]
                                .calls[static_cast<std::size_t>(lane.call)];
  const std::vector<double>& stretch = programs_->copy_stretch;
  const double copies = call.copy_seconds * (stretch.empty() ? 1 : stretch[static_cast<std::size_t>(rank)]);
  // `node_seconds` were measured on top of healthy copies; slower copies use up this time first.
  const double own = std::max(copies, call.copy_seconds + call.node_seconds);
  add_timer(from + programs_->call_seconds + own, {kNone, rank, lane_number, kNone, 0, 0, kNone});
}

void Executor::Impl::enter_call(std::int32_t rank, std::int32_t lane_number) {
  ++entries_;
  const std::size_t at = programs_->at(lane_number, rank);
  const std::int32_t instance = calls_.enter(programs_->communicator_of[at], turns_of(lane_number, rank).call,
                                             lane_number, rank, lane_of(lane_number, rank).entered++);
  if (instance == kNone) return;  // the call does not match that of the other members; reported at the end
  const auto member = static_cast<std::size_t>(programs_->member_of[at]);
  const std::int32_t communicator = programs_->communicator_of[at];
  if (rings_.hold(communicator)) return enter_ring(instance, communicator, member, lane_number);
  count_down(instance, calls_.traffic(instance).entry[member]);
  count_down(instance, calls_.traffic(instance).exit[member]);
  open_gates();
}

/// Enters a lone ring; once the last member has entered, the times at which all leave are known.
void Executor::Impl::enter_ring(std::int32_t instance, std::int32_t communicator, std::size_t member,
                                std::int32_t lane_number) {
  if (!rings_.enter(communicator, calls_.call(instance), member, fluid_.now())) return;
  const std::span<const double> leaves = rings_.leaves();
  for (std::size_t m = 0; m < leaves.size(); ++m) {
    const std::int32_t rank = calls_.rank(instance, static_cast<std::int32_t>(m));
    add_timer(leaves[m], {kNone, rank, lane_number, instance, 0, 0, kNone});
  }
  calls_.settle_messages(instance);
}

void Executor::Impl::leave_call(std::int32_t rank, std::int32_t lane_number) {
  LaneState& lane = turns_of(lane_number, rank);
  if (observer_ != nullptr) {
    observer_->called({rank, lane_number, lane.call, lane.begun, fluid_.now()});
  }
  lane.busy = false;
  lane.free_since = fluid_.now();
  if (!lane.pending.empty()) begin_call(rank, lane, fluid_.now());
  if (!lane.busy) resume(rank);
}

void Executor::Impl::count_down(std::int32_t instance, std::int32_t gate) {
  if (gate != kNone && calls_.count_down(instance, gate)) opened_.push_back({instance, gate});
}

void Executor::Impl::receive(std::int32_t instance, std::int32_t gate) {
  if (gate == kNone) return;
  const CallTraffic::Gate& g = calls_.traffic(instance).gates[static_cast<std::size_t>(gate)];
  if (g.times == 1) return count_down(instance, gate);
  switch (calls_.take_turn(instance, gate)) {
    case CallBoard::Turn::opens:
      return opened_.push_back({instance, gate});
    case CallBoard::Turn::last:
      return count_down(instance, g.next_gate);
    case CallBoard::Turn::held:
      return;
  }
}

/// Opens the gates that have been counted down to zero, and those that open as a consequence.
void Executor::Impl::open_gates() {
  if (opening_) return;
  opening_ = true;
  for (std::size_t i = 0; i < opened_.size(); ++i) {
    const Opened now = opened_[i];
    const CallTraffic& call = calls_.traffic(now.instance);
    const CallTraffic::Gate& gate = call.gates[static_cast<std::size_t>(now.gate)];
    ++openings_;
    for (std::int32_t m = gate.first_message; m < gate.first_message + gate.messages; ++m) {
      const network::Message& message = call.messages[static_cast<std::size_t>(m)];
      send(message.connection, {message.bytes, fluid_.now(), now.instance, message.gate});
    }
    if (gate.times > 1) {
      if (calls_.resume_turns(now.instance, now.gate)) opened_.push_back(now);
      continue;
    }
    count_down(now.instance, gate.next_gate);
    if (gate.leaves != kNone) {
      const std::int32_t rank = calls_.rank(now.instance, gate.leaves);
      const std::int32_t lane = calls_.lane(now.instance);
      calls_.settle(now.instance);
      leave_call(rank, lane);
    }
  }
  opened_.clear();
  opening_ = false;
}

// ---- events ----

void Executor::Impl::add_timer(double time, const Timer& timer) {
  std::int32_t id = free_timer_;
  if (id == kNone) {
    id = static_cast<std::int32_t>(timers_.size());
    timers_.push_back(timer);
  } else {
    free_timer_ = timers_[static_cast<std::size_t>(id)].next;
    timers_[static_cast<std::size_t>(id)] = timer;
  }
  fluid_.wake_at(time, id);
}

void Executor::Impl::wake(std::int32_t id) {
  const Timer timer = timers_[static_cast<std::size_t>(id)];
  timers_[static_cast<std::size_t>(id)].next = free_timer_;
  free_timer_ = id;
  if (timer.connection != kNone) return send(timer.connection, {timer.bytes, timer.issued, kNone, kNone});
  if (timer.leaves == kNone) return enter_call(timer.rank, timer.lane);
  calls_.settle(timer.leaves);
  leave_call(timer.rank, timer.lane);
}

void Executor::Impl::deliver(std::int32_t connection, const Parcel& parcel) {
  if (parcel.instance != kNone) {
    receive(parcel.instance, parcel.gate);
    calls_.settle(parcel.instance);
    open_gates();
    return;
  }
  ChannelState& channel = channel_of(connection);
  if (observer_ != nullptr) {
    observer_->received(
        {connection, channel.sender, channel.receiver, parcel.bytes, parcel.issued, fluid_.now()});
  }
  ++channel.received;
  channel.last_receipt = fluid_.now();
  channel.arrivals.push({parcel.issued, fluid_.now()});
  resume(channel.receiver);
  if (channel.received == channel.sent) resume(channel.sender);
}

Executor::Executor() : impl_(std::make_unique<Impl>()) {}
Executor::~Executor() = default;
Executor::Executor(Executor&&) noexcept = default;
Executor& Executor::operator=(Executor&&) noexcept = default;

void Executor::give_up_after(std::int64_t events) { impl_->give_up_after(events); }
void Executor::watch(ExecutionWatch watch) { impl_->watch(std::move(watch)); }
bool Executor::is_watched() const { return impl_->is_watched(); }

const ExecutionResult& Executor::run(const Programs& programs, std::span<const double> link_bytes_per_second,
                                     ExecutionObserver* observer, Fold fold_ranks) {
  // Folding reads the programs some tens of times, at a few nanoseconds per number; an event takes some tens of
  // nanoseconds. Folding pays where there are this many events per number.
  constexpr std::int64_t kEventsPerNumber = 16;
  if (!impl_->begin()) return impl_->result();
  const bool folds =
      observer == nullptr && fold_ranks > Fold::never &&
      (fold_ranks == Fold::always || count(programs).events() > kEventsPerNumber * size_of(programs));
  if (folds) {
    const std::optional<Folding> folding = fold(programs, link_bytes_per_second);
    if (folding.has_value() && impl_->run_folded(programs, *folding)) return impl_->result();
  }
  return impl_->run(programs, link_bytes_per_second, observer, fold_ranks != Fold::every_message);
}

}  // namespace shardscape::execution
