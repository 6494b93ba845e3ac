// Runs calls of a row one after the other, line by line and message by message.
#include "engine/network/prices/row_of_calls.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace shardscape::network {

namespace {

/// Cycles of calls that are run: first so many that members keep their distance, then a multiple of the few after which
/// what they do comes again: one, two or three for a single ring; where late members hand their delay from axis to axis
/// up to as many as a line of eight has members.
struct Cycles {
  int before = 0, after = 0;
};
Cycles cycles_of(std::span<const RowStage> stages) {
  return stages.size() == 1 ? Cycles{4, 6} : Cycles{8, 24};
}

/// The box of members, and when each is free.
class Row {
 public:
  explicit Row(std::span<const RowStage> stages) : stages_(stages) {
    for (const RowStage& stage : stages) {
      if (stride_of_.contains(stage.axis)) continue;
      stride_of_[stage.axis] = members_;
      members_ *= stage.members;
    }
    free_.assign(members_, 0);
    for (const auto& [axis, stride] : stride_of_) drained_[axis].assign(members_, 0);
  }

  [[nodiscard]] double latest() const { return *std::ranges::max_element(free_); }

  void call(double gap, bool reversed) {
    for (double& free : free_) free += gap;
    for (std::size_t i = 0; i < stages_.size(); ++i) {
      const RowStage& stage = stages_[reversed ? stages_.size() - 1 - i : i];
      const std::size_t stride = stride_of_[stage.axis], block = stride * stage.members;
      std::vector<double>& drained = drained_[stage.axis];
      for (std::size_t first = 0; first < members_; first += block)
        for (std::size_t at = 0; at < stride; ++at) line(stage, first + at, stride, drained);
    }
  }

 private:
  void line(const RowStage& stage, std::size_t first, std::size_t stride, std::vector<double>& drained) {
    const std::size_t n = stage.members;
    const bool slow = first == 0 && !stage.slow.empty();
    received_.resize(n);
    next_.resize(n);
    for (std::size_t i = 0; i < n; ++i) received_[i] = free_[first + i * stride];
    for (std::size_t s = 0; s < stage.steps; ++s) {
      for (std::size_t i = 0; i < n; ++i) {
        const HopTime& hop = slow ? stage.slow[i] : stage.hop;
        double& sent = drained[first + i * stride];
        sent = std::max(received_[i], sent) + hop.send;
        next_[i + 1 == n ? 0 : i + 1] = sent + hop.arrive;
      }
      std::swap(received_, next_);
    }
    for (std::size_t i = 0; i < n; ++i) {
      double& free = free_[first + i * stride];
      free = std::max(free, received_[i]);
    }
  }

  std::span<const RowStage> stages_;
  std::map<std::size_t, std::size_t> stride_of_;        // key: axis
  std::map<std::size_t, std::vector<double>> drained_;  // key: axis; end of each member's last message
  std::size_t members_ = 1;
  std::vector<double> free_, received_, next_;
};

}  // namespace

double mean_of(const Gaps& gaps) {
  return std::accumulate(gaps.begin(), gaps.end(), 0.0) / static_cast<double>(gaps.size());
}

double messages_run(std::span<const RowStage> stages, const Gaps& gaps) {
  double members = 1, steps = 0;
  std::vector<std::size_t> axes;
  for (const RowStage& stage : stages) {
    steps += static_cast<double>(stage.steps);
    if (std::ranges::find(axes, stage.axis) != axes.end()) continue;
    axes.push_back(stage.axis);
    members *= static_cast<double>(stage.members);
  }
  const auto [before, after] = cycles_of(stages);
  return members * steps * static_cast<double>(gaps.size()) * (before + after);
}

double mean_in_row(std::span<const RowStage> stages, const Gaps& gaps) {
  const auto [before, after] = cycles_of(stages);
  Row row(stages);
  double begin = 0;
  for (int cycle = 0; cycle < before + after; ++cycle) {
    if (cycle == before) begin = row.latest();
    for (std::size_t i = 0; i < gaps.size(); ++i) row.call(gaps[i], i % 2 == 1);
  }
  return (row.latest() - begin) / (after * static_cast<double>(gaps.size()));
}

}  // namespace shardscape::network
