// Runs calls of a row one after the other, line by line and message by message, until what they do comes again.
#include "engine/network/prices/row_of_calls.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

namespace shardscape::network {

namespace {

/// The most cycles of calls that are run, and after how many what they do is looked for again: after one, two or three
/// for a single ring; where late members hand their delay from axis to axis after up to as many as a line has members,
/// of which those of nodes have eight.
constexpr std::size_t kMostCycles = 32, kMostPeriod = 8;
/// Members keep their distance when it moves by less than this share of a cycle.
constexpr double kSame = 1e-9;

/// Seconds of the messages of a line, by hop.
struct Line {
  std::vector<double> send, arrive;
};

/// The box of members: when each is free, and of each axis when its last message has left, line by line. Seconds before
/// the last member was free at the end of the last cycle, so that a state that comes again has the same numbers.
class Row {
 public:
  explicit Row(std::span<const RowStage> stages) : stages_(stages) {
    std::map<std::size_t, std::size_t> strides;
    for (const RowStage& stage : stages) {
      if (strides.emplace(stage.axis, members_).second) members_ *= stage.members;
      strides_.push_back(strides[stage.axis]);
      lines_.push_back({std::vector<double>(stage.members, stage.hop.send),
                        std::vector<double>(stage.members, stage.hop.arrive)});
      Line& slow = slow_.emplace_back();
      for (const HopTime& hop : stage.slow) {
        slow.send.push_back(hop.send);
        slow.arrive.push_back(hop.arrive);
      }
    }
    state_.assign((1 + strides.size()) * members_, 0);
    for (const RowStage& stage : stages)
      sent_.push_back(
          (1 + static_cast<std::size_t>(std::distance(strides.begin(), strides.find(stage.axis)))) *
          members_);
  }

  [[nodiscard]] const std::vector<double>& state() const { return state_; }

  /// Runs a cycle. Returns how much later the last member is free.
  double cycle(const Gaps& gaps) {
    for (const Gap& gap : gaps) call(gap);
    const double latest = std::ranges::max(std::span(state_).first(members_));
    for (double& time : state_) time -= latest;
    return latest;
  }

 private:
  void call(const Gap& gap) {
    const std::span<double> free = std::span(state_).first(members_);
    if (gap.together) std::ranges::fill(free, std::ranges::max(free));
    for (double& time : free) time += gap.seconds;
    for (std::size_t k = 0; k < stages_.size(); ++k) {
      const std::size_t s = gap.backwards ? stages_.size() - 1 - k : k;
      const std::size_t stride = strides_[s], block = stride * stages_[s].members;
      std::size_t sent = sent_[s];
      for (std::size_t first = 0; first < members_; first += block) {
        for (std::size_t i = 0; i < stride; ++i, sent += stages_[s].members)
          run(s, first + i, &state_[sent], first + i == 0 && !stages_[s].slow.empty() ? slow_[s] : lines_[s]);
      }
    }
  }

  /// Runs a stage on a line whose first member has this number.
  void run(std::size_t s, std::size_t first, double* sent, const Line& line) {
    const std::size_t n = stages_[s].members, stride = strides_[s];
    received_.resize(n);
    for (std::size_t i = 0; i < n; ++i) received_[i] = state_[first + i * stride];
    for (std::size_t step = 0; step < stages_[s].steps; ++step) {
      for (std::size_t i = 0; i < n; ++i) sent[i] = std::max(received_[i], sent[i]) + line.send[i];
      for (std::size_t i = 0; i + 1 < n; ++i) received_[i + 1] = sent[i] + line.arrive[i];
      received_[0] = sent[n - 1] + line.arrive[n - 1];
    }
    for (std::size_t i = 0; i < n; ++i) {
      double& free = state_[first + i * stride];
      free = std::max(free, received_[i]);
    }
  }

  std::span<const RowStage> stages_;
  std::vector<std::size_t> strides_,
      sent_;                        // by stage: of its axis, and where its last messages stand in state_
  std::vector<Line> lines_, slow_;  // by stage
  std::size_t members_ = 1;
  std::vector<double> state_, received_;
};

}  // namespace

double mean_of(const Gaps& gaps) {
  double sum = 0;
  for (const Gap& gap : gaps) sum += gap.seconds;
  return sum / static_cast<double>(gaps.size());
}

double share_apart(const Gaps& gaps) {
  return static_cast<double>(std::ranges::count(gaps, false, &Gap::together)) /
         static_cast<double>(gaps.size());
}

double messages_in_cycle(std::span<const RowStage> stages, const Gaps& gaps) {
  double members = 1, steps = 0;
  for (std::size_t i = 0; i < stages.size(); ++i) {
    steps += static_cast<double>(stages[i].steps);
    const auto earlier = stages.first(i);
    if (std::ranges::find(earlier, stages[i].axis, &RowStage::axis) == earlier.end())
      members *= static_cast<double>(stages[i].members);
  }
  return members * steps * static_cast<double>(gaps.size());
}

double mean_in_row(std::span<const RowStage> stages, const Gaps& gaps) {
  Row row(stages);
  std::vector<double> took;                 // by cycle
  std::vector<std::vector<double>> states;  // before each cycle
  const auto calls = static_cast<double>(gaps.size());
  const auto mean_of_last = [&](std::size_t cycles) {
    return std::accumulate(took.end() - static_cast<std::ptrdiff_t>(cycles), took.end(), 0.0) /
           (static_cast<double>(cycles) * calls);
  };
  for (std::size_t cycle = 0; cycle < kMostCycles; ++cycle) {
    states.push_back(row.state());
    took.push_back(row.cycle(gaps));
    const auto same = [&](double a, double b) { return std::abs(a - b) <= kSame * took.back(); };
    for (std::size_t period = 1; period <= std::min(kMostPeriod, states.size()); ++period)
      if (std::ranges::equal(row.state(), states[states.size() - period], same)) return mean_of_last(period);
  }
  return mean_of_last(kMostCycles - kMostPeriod);
}

}  // namespace shardscape::network
