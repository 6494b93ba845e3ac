#include "engine/execution/calls.h"

#include "engine/base/check.h"

namespace shardscape::execution {

namespace {
constexpr std::int32_t kEnded = -2;
}  // namespace

void CallBoard::reset(const Programs& programs) {
  programs_ = &programs;
  free_.clear();
  for (std::size_t i = instances_.size(); i-- > 0;) free_.push_back(static_cast<std::int32_t>(i));
  windows_.resize(programs.communicators.size());
  for (Window& window : windows_) {
    window.first = 0;
    window.instances.clear();
  }
  mismatches_.clear();
}

std::int32_t CallBoard::enter(std::int32_t communicator, std::int32_t call, std::int32_t lane,
                              std::int32_t rank, std::int32_t number) {
  Window& window = windows_[static_cast<std::size_t>(communicator)];
  SHARDSCAPE_CHECK(number >= window.first, number, window.first);  // no member enters a call that has ended
  const auto at = static_cast<std::size_t>(number - window.first);
  while (window.instances.size() <= at) window.instances.push(kNone);
  std::int32_t& id = window.instances[at];
  if (id == kNone) {
    if (free_.empty()) {
      free_.push_back(static_cast<std::int32_t>(instances_.size()));
      instances_.emplace_back();
    }
    id = free_.back();
    free_.pop_back();
    Instance& instance = instances_[static_cast<std::size_t>(id)];
    const Communicator& group = programs_->communicators[static_cast<std::size_t>(communicator)];
    const CallTraffic& traffic = group.calls[static_cast<std::size_t>(call)];
    instance.traffic = &traffic;
    instance.communicator = communicator;
    instance.call = call;
    instance.lane = lane;
    instance.number = number;
    instance.pending = static_cast<std::int64_t>(group.ranks.size());
    instance.waiting.resize(traffic.gates.size());
    instance.turns.clear();
    for (std::size_t g = 0; g < traffic.gates.size(); ++g) {
      const CallTraffic::Gate& gate = traffic.gates[g];
      instance.waiting[g] = gate.waiting;
      instance.pending += std::int64_t{gate.messages} * gate.times;
      if (gate.times > 1 && instance.turns.empty()) instance.turns.resize(traffic.gates.size());
    }
  }
  const std::int32_t begun = instances_[static_cast<std::size_t>(id)].call;
  if (begun != call) {
    mismatches_.push_back({communicator, lane, rank, call, begun, number});
    return kNone;
  }
  return id;
}

void CallBoard::end(std::int32_t id) {
  const Instance& instance = instances_[static_cast<std::size_t>(id)];
  Window& window = windows_[static_cast<std::size_t>(instance.communicator)];
  window.instances[static_cast<std::size_t>(instance.number - window.first)] = kEnded;
  free_.push_back(id);
  while (!window.instances.empty() && window.instances.front() == kEnded) {
    window.instances.pop();
    ++window.first;
  }
}

}  // namespace shardscape::execution
