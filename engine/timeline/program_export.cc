// Walks a rank's program and writes trace nodes with their dependencies; adjacent operators become one node, and the
// sizes of received messages are read from the sender's program.
#include "engine/timeline/program_export.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "engine/timeline/block_names.h"
#include "engine/timeline/collective_kind.h"

namespace shardscape::timeline {

namespace {

using execution::Instruction;
using execution::Programs;
using network::CollectiveOp;
using Ids = std::vector<std::uint64_t>;

bool is_pass(CollectiveOp op) { return network::operation_of(op) == network::Operation::point_to_point; }

/// The messages that a rank sends through a channel, in order.
class SendReader {
 public:
  SendReader(const Programs& programs, std::int32_t rank, std::int32_t channel)
      : programs_(programs), sequence_(programs.sequence(rank)), channel_(channel) {}

  /// Bytes of the next message; 0 where there are no more.
  double next() {
    for (;;) {
      while (at_ == end_) {
        if (position_ == sequence_.size()) return 0;
        const execution::Block& block = programs_.blocks[static_cast<std::size_t>(sequence_[position_++])];
        at_ = block.begin;
        end_ = block.end;
      }
      const Instruction& instruction = programs_.instructions[static_cast<std::size_t>(at_++)];
      if (instruction.kind == Instruction::Kind::send && instruction.lane == channel_)
        return instruction.value;
    }
  }

 private:
  const Programs& programs_;
  const std::vector<std::int32_t>& sequence_;
  std::int32_t channel_;
  std::size_t position_ = 0;
  std::int32_t at_ = 0, end_ = 0;
};

/// Builds one rank's nodes in program order.
class InstructionTracer {
 public:
  InstructionTracer(const Programs& programs, double before, std::int32_t rank)
      : programs_(programs),
        rank_(rank),
        lanes_(static_cast<std::size_t>(programs.lanes)),
        sent_(static_cast<std::size_t>(programs.channels)) {
    for (std::int32_t channel = 0; channel < programs.channels; ++channel) {
      const std::int32_t in = programs.incoming[programs.at(channel, rank)];
      coming_.emplace_back(programs, in == Programs::kNone ? rank : wire(in).source, channel);
    }
    if (before <= 0) return;
    device_ = host_ = {add(host_node("host once per step", before), {})};
  }

  RankTrace build() {
    BlockNames names(programs_);
    for (const std::int32_t number : programs_.sequence(rank_)) {
      prefix_ = names.next(number);
      const execution::Block& block = programs_.blocks[static_cast<std::size_t>(number)];
      for (std::int32_t i = block.begin; i < block.end; ++i) {
        run(programs_.instructions[static_cast<std::size_t>(i)]);
      }
      flush();
    }
    return std::move(trace_);
  }

 private:
  /// The calls of this rank on a lane, or on the lanes that take turns with it.
  struct Lane {
    Ids last;                      ///< nodes that end the latest call
    std::uint64_t started_at = 0;  ///< value of `moves_` when it was started
  };

  void run(const Instruction& instruction) {
    using Kind = Instruction::Kind;
    switch (instruction.kind) {
      case Kind::compute:
        return hold(instruction);
      case Kind::sync_host:
        flush();
        host_ = device_;
        return;
      case Kind::launch:
        return launch(instruction.value);
      case Kind::start:
        return start(instruction);
      case Kind::join:
        return join(turns_of(instruction.lane));
      case Kind::send:
        return send(instruction);
      case Kind::sent:
        flush();
        return wait_for(sent_[instruction.lane]);
      case Kind::receive:
        return receive(instruction);
    }
  }

  Lane& turns_of(std::size_t lane) { return lanes_[static_cast<std::size_t>(programs_.turns[lane])]; }

  static TraceNode host_node(std::string name, double seconds) {
    TraceNode node = compute_node(std::move(name), seconds);
    node.host = true;
    return node;
  }
  static TraceNode message(NodeKind kind, std::string name, std::int32_t peer, std::int32_t channel,
                           double bytes) {
    TraceNode node = message_node(kind, std::move(name), peer, channel, bytes);
    node.channel = channel;
    return node;
  }
  std::uint64_t add(TraceNode node, const Ids& on) { return trace_.add(std::move(node), on); }
  [[nodiscard]] std::string named(const std::string& text) const {
    return prefix_.empty() ? text : prefix_ + " " + text;
  }

  // Sets the nodes that the device's next work depends on.
  void follow(Ids ids) {
    device_ = std::move(ids);
    ++moves_;
  }
  void wait_for(const Ids& ids) {
    bool more = false;
    for (const std::uint64_t id : ids) {
      if (std::ranges::find(device_, id) != device_.end()) continue;
      device_.push_back(id);
      more = true;
    }
    if (more) ++moves_;
  }

  // Operators are held back and joined into one node until something comes between them.
  void hold(const Instruction& instruction) {
    if (instruction.value <= 0) return;
    const std::string& name = programs_.names[static_cast<std::size_t>(instruction.what)];
    if (held_ == 0) first_ = name;
    last_ = name;
    held_ += instruction.value;
    work_ += programs_.works[static_cast<std::size_t>(instruction.what)].in(instruction.value);
  }
  void flush() {
    if (held_ <= 0) return;
    const std::string name = named(first_ == last_ ? first_ : first_ + " .. " + last_);
    follow({add(compute_node(name, held_, work_), device_)});
    held_ = 0;
    work_ = {};
  }

  void launch(double seconds) {
    if (seconds <= 0) return;
    flush();
    host_ = {add(host_node(named("launches"), seconds), host_)};
    wait_for(host_);
  }

  void start(const Instruction& instruction) {
    const std::size_t at = programs_.at(instruction.lane, rank_);
    const std::int32_t communicator = programs_.communicator_of[at];
    if (communicator == Programs::kNone) return;
    flush();
    Lane& lane = turns_of(instruction.lane);
    for (std::int32_t i = 0; i < instruction.repeats; ++i) {
      Ids on = lane.last;
      // The first call of an instruction waits for the device, and each later call for the one before.
      if (i == 0) {
        on.insert(on.end(), device_.begin(), device_.end());
        std::ranges::sort(on);
        on.erase(std::unique(on.begin(), on.end()), on.end());
      }
      lane.last = call(instruction, communicator, on);
    }
    lane.started_at = moves_;
  }

  /// Adds the nodes of a call; returns those that end it.
  Ids call(const Instruction& instruction, std::int32_t communicator, const Ids& on) {
    const auto lane = static_cast<std::size_t>(instruction.lane);
    const execution::CallKind& kind = programs_.call_kinds[lane][static_cast<std::size_t>(instruction.what)];
    const std::vector<std::int32_t>& ranks =
        programs_.communicators[static_cast<std::size_t>(communicator)].ranks;
    const std::string name = named(programs_.lane_names[lane]);
    if (is_pass(kind.op)) {
      const auto n = ranks.size();
      const auto i = static_cast<std::size_t>(programs_.member_of[programs_.at(instruction.lane, rank_)]);
      const std::int32_t channel = programs_.channels + instruction.lane;
      add(message(NodeKind::send, name, ranks[(i + 1) % n], channel, kind.bytes), on);
      return {add(message(NodeKind::receive, name, ranks[(i + n - 1) % n], channel, kind.bytes), on)};
    }
    if (!kind.parts.shares.empty()) return exchange(instruction, kind, ranks, on);
    TraceNode node;
    node.name = name;
    node.kind = NodeKind::collective;
    node.collective = kind_of(kind.op);
    node.group = communicator;
    const bool shares = kind.op == CollectiveOp::all_gather;
    node.bytes = shares ? kind.bytes / static_cast<double>(ranks.size()) : kind.bytes;
    return {add(std::move(node), on)};
  }

  /// Adds an exchange with unequal parts as messages, since Chakra's collectives have equal parts. Receipts end the
  /// call.
  Ids exchange(const Instruction& instruction, const execution::CallKind& kind,
               const std::vector<std::int32_t>& ranks, const Ids& on) {
    const std::string name = named(programs_.lane_names[instruction.lane]);
    const auto n = ranks.size();
    const auto i = static_cast<std::size_t>(programs_.member_of[programs_.at(instruction.lane, rank_)]);
    const std::int32_t channel = programs_.channels + instruction.lane;
    Ids ends;
    for (std::size_t offset = 1; offset < n; ++offset) {
      const std::size_t to = (i + offset) % n, from = (i + n - offset) % n;
      const double out = kind.wire * kind.parts.part(i, to, n), in = kind.wire * kind.parts.part(from, i, n);
      if (out > 0) add(message(NodeKind::send, name, ranks[to], channel, out), on);
      if (in > 0) ends.push_back(add(message(NodeKind::receive, name, ranks[from], channel, in), on));
    }
    return ends.empty() ? on : ends;
  }

  void join(const Lane& lane) {
    flush();
    if (lane.last.empty()) return;
    // Where the device has done nothing since the call started, waiting for the call covers all that came before.
    if (lane.started_at == moves_) return follow(lane.last);
    wait_for(lane.last);
  }

  [[nodiscard]] const network::Connection& wire(std::int32_t connection) const {
    return programs_.wires.connections[static_cast<std::size_t>(connection)];
  }
  void send(const Instruction& instruction) {
    flush();
    const std::int32_t to = wire(programs_.outgoing[programs_.at(instruction.lane, rank_)]).destination;
    const std::string name = named("send " + programs_.channel_names[instruction.lane]);
    // Messages sent earlier on the connection arrive earlier, so that waiting for this one is enough.
    sent_[instruction.lane] = {
        add(message(NodeKind::send, name, to, instruction.lane, instruction.value), device_)};
  }
  void receive(const Instruction& instruction) {
    flush();
    const std::int32_t from = wire(programs_.incoming[programs_.at(instruction.lane, rank_)]).source;
    const std::string name = named("receive " + programs_.channel_names[instruction.lane]);
    const double bytes = coming_[instruction.lane].next();
    wait_for({add(message(NodeKind::receive, name, from, instruction.lane, bytes), {})});
  }

  const Programs& programs_;
  std::int32_t rank_;
  RankTrace trace_;
  std::string prefix_;
  Ids device_, host_;        ///< the nodes that the next work on device or host depends on
  std::uint64_t moves_ = 0;  ///< counts changes of device_
  std::vector<Lane> lanes_;
  std::vector<Ids> sent_;           ///< by channel: the node of the latest send
  std::vector<SendReader> coming_;  ///< by channel: sizes of the messages to come
  std::string first_, last_;
  double held_ = 0;
  Work work_;
};

}  // namespace

ProgramExport::ProgramExport(const Programs& programs, double before) : programs_(programs), before_(before) {
  std::vector<std::int32_t> lane_of(programs.communicators.size(), 0);
  for (std::int32_t lane = 0; lane < programs.lanes; ++lane) {
    for (std::int32_t rank = 0; rank < programs.ranks; ++rank) {
      const std::int32_t communicator = programs.communicator_of[programs.at(lane, rank)];
      if (communicator != Programs::kNone) lane_of[static_cast<std::size_t>(communicator)] = lane;
    }
  }
  std::vector<std::int32_t> count(static_cast<std::size_t>(programs.lanes), 0);
  for (std::size_t c = 0; c < programs.communicators.size(); ++c) {
    const auto lane = static_cast<std::size_t>(lane_of[c]);
    groups_.push_back({fmt::format("{} {}", programs.lane_names[lane], count[lane]++),
                       programs.communicators[c].ranks,
                       {}});
  }
}

RankTrace ProgramExport::rank(std::int32_t rank) const {
  return InstructionTracer(programs_, before_, rank).build();
}

ExecutionTrace ProgramExport::all() const {
  ExecutionTrace trace{{}, groups_};
  for (std::int32_t r = 0; r < ranks(); ++r) trace.ranks.push_back(rank(r));
  return trace;
}

}  // namespace shardscape::timeline
