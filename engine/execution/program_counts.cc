#include "engine/execution/program_counts.h"

#include <map>
#include <utility>
#include <vector>

namespace shardscape::execution {

namespace {

/// The counts of a rank that runs a sequence.
struct SequenceCounts {
  std::int64_t operators = 0;
  std::map<std::int32_t, std::int64_t> sends;                           ///< number of sends by channel
  std::map<std::pair<std::int32_t, std::int32_t>, std::int64_t> calls;  ///< number of calls by lane and call
};

SequenceCounts count(const Programs& programs, const std::vector<std::int32_t>& sequence) {
  std::vector<std::int64_t> times(programs.blocks.size(), 0);
  for (const std::int32_t block : sequence) ++times[static_cast<std::size_t>(block)];
  SequenceCounts counts;
  for (std::size_t b = 0; b < times.size(); ++b) {
    if (times[b] == 0) continue;
    for (std::int32_t i = programs.blocks[b].begin; i < programs.blocks[b].end; ++i) {
      const Instruction& instruction = programs.instructions[static_cast<std::size_t>(i)];
      if (instruction.kind == Instruction::Kind::compute) counts.operators += times[b];
      if (instruction.kind == Instruction::Kind::send) counts.sends[instruction.lane] += times[b];
      if (instruction.kind == Instruction::Kind::start && instruction.repeats > 0)
        counts.calls[{instruction.lane, instruction.what}] += times[b] * instruction.repeats;
    }
  }
  return counts;
}

/// Numbers of all messages of one call, and of those that go over links.
std::pair<std::int64_t, std::int64_t> messages_of(const Programs& programs, const CallTraffic& call) {
  std::int64_t all = 0, drained = 0;
  for (const CallTraffic::Gate& gate : call.gates) {
    all += std::int64_t{gate.messages} * gate.times;
    for (std::int32_t m = gate.first_message; m < gate.first_message + gate.messages; ++m) {
      const network::Connection& wire =
          programs.wires
              .connections[static_cast<std::size_t>(call.messages[static_cast<std::size_t>(m)].connection)];
      if (wire.path_begin != wire.path_end) drained += gate.times;
    }
  }
  return {all, drained};
}

}  // namespace

ProgramCounts count(const Programs& programs) {
  std::vector<SequenceCounts> sequences;
  for (const std::vector<std::int32_t>& sequence : programs.sequences)
    sequences.push_back(count(programs, sequence));
  ProgramCounts counts;
  for (std::int32_t rank = 0; rank < programs.ranks; ++rank) {
    const SequenceCounts& mine =
        sequences[static_cast<std::size_t>(programs.sequence_of[static_cast<std::size_t>(rank)])];
    counts.operators += mine.operators;
    for (const auto& [channel, times] : mine.sends) {
      const network::Connection& wire =
          programs.wires.connections[static_cast<std::size_t>(programs.outgoing[programs.at(channel, rank)])];
      counts.messages += times;
      if (wire.path_begin != wire.path_end) counts.drained += times;
    }
    for (const auto& [call, times] : mine.calls) {
      const std::size_t at = programs.at(call.first, rank);
      if (programs.communicator_of[at] == kNone) continue;
      counts.entries += times;
      // Count a call's messages once, as all members make the same calls.
      if (programs.member_of[at] != 0) continue;
      const Communicator& group =
          programs.communicators[static_cast<std::size_t>(programs.communicator_of[at])];
      const auto [all, drained] = messages_of(programs, group.calls[static_cast<std::size_t>(call.second)]);
      counts.messages += times * all;
      counts.drained += times * drained;
    }
  }
  return counts;
}

std::int64_t size_of(const Programs& programs) {
  std::size_t size = static_cast<std::size_t>(programs.ranks) *
                         static_cast<std::size_t>(1 + programs.lanes + 2 * programs.channels) +
                     programs.wires.connections.size() + programs.wires.path_links.size();
  for (const Communicator& group : programs.communicators) {
    for (const CallTraffic& call : group.calls) size += call.gates.size() + call.messages.size();
  }
  return static_cast<std::int64_t>(size);
}

}  // namespace shardscape::execution
