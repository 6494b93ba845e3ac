#include "engine/execution/deadlock.h"

#include <fmt/format.h>

namespace shardscape::execution {

namespace {

constexpr std::size_t kListed = 8;  ///< most ranks named in one line

class Explainer {
 public:
  Explainer(const Programs& programs, const StandStill& state, const CallBoard& calls)
      : programs_(programs), state_(state), calls_(calls) {}

  std::vector<std::string> lines() {
    for (const CallBoard::Mismatch& m : calls_.mismatches()) add_mismatch(m);
    for (std::int32_t rank = 0; rank < programs_.ranks; ++rank) {
      if (!state_.ranks[static_cast<std::size_t>(rank)].done) add_rank(rank);
    }
    return roots_.empty() ? others_ : roots_;
  }

 private:
  [[nodiscard]] static std::string name(std::int32_t rank) { return fmt::format("rank {}", rank); }
  [[nodiscard]] const std::string& call_name(std::int32_t lane, std::int32_t call) const {
    return programs_.call_names[static_cast<std::size_t>(lane)][static_cast<std::size_t>(call)];
  }
  [[nodiscard]] std::string node(std::int32_t rank) const {
    const RankState& s = state_.ranks[static_cast<std::size_t>(rank)];
    return fmt::format("at instruction {} in block {} of its program", s.next, s.position);
  }
  [[nodiscard]] bool done(std::int32_t rank) const {
    return state_.ranks[static_cast<std::size_t>(rank)].done;
  }

  void add_mismatch(const CallBoard::Mismatch& m) {
    roots_.push_back(fmt::format("{} makes {} as call {} of its group, where others make {}", name(m.rank),
                                 call_name(m.lane, m.call), m.number, call_name(m.lane, m.expected)));
  }

  void add_rank(std::int32_t rank) {
    const RankState& s = state_.ranks[static_cast<std::size_t>(rank)];
    const Instruction& instruction = programs_.instructions[static_cast<std::size_t>(s.next)];
    switch (instruction.kind) {
      case Instruction::Kind::receive:
        return add_receive(rank, instruction.lane);
      case Instruction::Kind::sent:
        others_.push_back(name(rank) + " waits until what it sent has arrived, " + node(rank));
        return;
      case Instruction::Kind::join:
        return add_join(rank, instruction.lane);
      default:
        return;
    }
  }

  void add_receive(std::int32_t rank, std::int32_t channel) {
    const std::int32_t connection = programs_.incoming[programs_.at(channel, rank)];
    const ChannelState& in = state_.channels[static_cast<std::size_t>(connection)];
    const bool never = in.sender < 0 || done(in.sender);
    const std::string from = in.sender < 0 ? "a rank that has no such channel" : name(in.sender);
    (never ? roots_ : others_)
        .push_back(fmt::format("{} waits for message {} from {}{}{}", name(rank), in.received, from,
                               never ? ", which is never sent, " : ", ", node(rank)));
  }

  void add_join(std::int32_t rank, std::int32_t joined) {
    const LaneState& turns =
        state_.lanes[programs_.at(programs_.turns[static_cast<std::size_t>(joined)], rank)];
    const std::int32_t lane = turns.lane;  // the lane among those that take turns whose call is under way
    const std::size_t at = programs_.at(lane, rank);
    const LaneState& mine = state_.lanes[at];
    const Communicator& group =
        programs_.communicators[static_cast<std::size_t>(programs_.communicator_of[at])];
    std::string missing;
    std::size_t listed = 0;
    bool never = false;
    for (const std::int32_t other : group.ranks) {
      if (state_.lanes[programs_.at(lane, other)].entered >= mine.entered) continue;
      never = never || done(other);
      if (listed++ < kListed) missing += fmt::format("{}{}", missing.empty() ? "" : ", ", other);
    }
    if (listed > kListed) missing += fmt::format(" and {} more", listed - kListed);
    const std::string what = fmt::format("{} waits in call {} of its group ({}), {}", name(rank),
                                         mine.entered - 1, call_name(lane, turns.call), node(rank));
    (never ? roots_ : others_).push_back(missing.empty() ? what : what + ": missing are ranks " + missing);
  }

  const Programs& programs_;
  const StandStill& state_;
  const CallBoard& calls_;
  std::vector<std::string> roots_, others_;
};

}  // namespace

std::vector<std::string> explain_deadlock(const Programs& programs, const StandStill& state,
                                          const CallBoard& calls) {
  return Explainer(programs, state, calls).lines();
}

}  // namespace shardscape::execution
