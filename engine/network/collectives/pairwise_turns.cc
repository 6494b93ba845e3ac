#include "engine/network/collectives/pairwise_turns.h"

#include <algorithm>

#include "engine/base/check.h"
#include "engine/network/fabric/faulty_fabric.h"

namespace shardscape::network {

void PairwiseTurns::reset(const Traffic& traffic) {
  traffic_ = &traffic;
  members_.clear();
  if (!traffic.rounds.empty()) members_.resize(traffic.gates.size());
}

const PairwiseRounds& PairwiseTurns::rounds_of(std::int32_t gate) const {
  return traffic_->rounds[static_cast<std::size_t>(traffic_->gates[static_cast<std::size_t>(gate)].rounds)];
}

std::int32_t PairwiseTurns::begin(std::int32_t gate) {
  Member& m = member(gate);
  ++m.round;
  const auto known = std::ranges::find(m.early, m.round);
  m.delivered = false;
  m.heard = known != m.early.end();
  if (m.heard) m.early.erase(known);
  return m.round;
}

std::size_t PairwiseTurns::partner(std::int32_t gate) const {
  const PairwiseRounds& rounds = rounds_of(gate);
  return rounds.partner(rounds.member(gate), members_[static_cast<std::size_t>(gate)].round);
}

double PairwiseTurns::append_route(std::int32_t gate, std::vector<std::int32_t>& path) const {
  const PairwiseRounds& rounds = rounds_of(gate);
  const std::size_t begin = path.size();
  const bool reached =
      rounds.fabric->append_route(rounds.ranks[rounds.member(gate)], rounds.ranks[partner(gate)], path);
  SHARDSCAPE_CHECK(reached, gate);
  double latency = 0;
  for (std::size_t i = begin; i < path.size(); ++i)
    latency += rounds.fabric->latency_seconds()[static_cast<std::size_t>(path[i])];
  return latency;
}

}  // namespace shardscape::network
