// The order lists of dualpipe (pipeline.h), as the code that DeepSeek-AI published with its report has them
// (github.com/deepseek-ai/DualPipe, 2025, dualpipe.py).
//
// With p stages, h = p / 2 of them in each half and d = min(s, p - 1 - s) stages between a stage and its nearer end,
// near microbatches those that came in there, far ones the others, and m / 2 of each:
//
//   1  2 (h - d - 1)    near forward
//   2  d + 1            near forward, far forward
//   3  h - d - 1        far backward that is cut, its weight gradient, far forward
//   4  m/2 - p + d + 1  pair of near forward and far backward, pair of far forward and near backward; in the middle of
//                       the pipeline the very first pair is no pair
//   5  h - d - 1        far backward, pair of far forward and near backward
//   6  d + 1            far backward, near backward, the second half of them all cut
//   7  h - d - 1        weight gradient, near backward that is cut
//   8  d + 1            weight gradient
#include <algorithm>

#include "engine/base/check.h"
#include "engine/schedule/schedule_rules.h"

namespace shardscape::schedule {

namespace {

/// The position of a stage between the two ends of the pipeline.
struct DualPlace {
  std::int32_t half = 1;  ///< stages of each half of the pipeline
  std::int32_t away = 0;  ///< stages between this one and its nearer end
  std::int32_t near = 0;  ///< the chunk whose microbatches come in at the nearer end

  [[nodiscard]] std::int32_t inner() const { return half - away - 1; }
  [[nodiscard]] bool middle() const { return inner() == 0; }
};

DualPlace place_of(const PipelineShape& shape, std::int32_t stage) {
  const std::int32_t mirror = shape.stages - 1 - stage;
  return {shape.stages / 2, std::min(stage, mirror), stage < mirror ? 0 : 1};
}

std::int32_t main_rounds(const PipelineShape& shape, const DualPlace& at) {
  return shape.per_chunk() - shape.stages + at.away + 1;
}

enum class Side : std::uint8_t { near, far };
/// When a backward computes the gradients of weights.
enum class Weights : std::uint8_t { at_once, later };

class DualPipeOrder {
 public:
  DualPipeOrder(const PipelineShape& shape, std::int32_t stage, std::vector<PipelineOperation>& order)
      : at_(place_of(shape, stage)), rounds_(main_rounds(shape, at_)), order_(order) {}

  void list() {
    const std::int32_t inner = at_.inner(), outer = at_.away + 1;
    for (std::int32_t i = 0; i < 2 * inner; ++i) forward(Side::near);
    for (std::int32_t i = 0; i < outer; ++i) {
      forward(Side::near);
      forward(Side::far);
    }
    for (std::int32_t i = 0; i < inner; ++i) {
      backward(Side::far, Weights::later);
      weight();
      forward(Side::far);
    }
    for (std::int32_t i = 0; i < rounds_; ++i) {
      if (i == 0 && at_.middle()) {
        forward(Side::near);
        backward(Side::far, Weights::at_once);
      } else {
        pair(Side::near);
      }
      pair(Side::far);
    }
    for (std::int32_t i = 0; i < inner; ++i) {
      backward(Side::far, Weights::at_once);
      pair(Side::far);
    }
    for (std::int32_t i = 0; i < 2 * outer; ++i)
      backward(i % 2 == 0 ? Side::far : Side::near, i >= outer ? Weights::later : Weights::at_once);
    for (std::int32_t i = 0; i < inner; ++i) {
      weight();
      backward(Side::near, Weights::later);
    }
    for (std::int32_t i = 0; i < outer; ++i) weight();
  }

 private:
  [[nodiscard]] std::int32_t chunk(Side side) const { return side == Side::near ? at_.near : 1 - at_.near; }
  static std::size_t of(std::int32_t chunk) { return static_cast<std::size_t>(chunk); }

  void forward(Side side) {
    const std::int32_t c = chunk(side);
    order_.push_back({.chunk = c, .microbatch = forwards_[of(c)]++});
  }
  void backward(Side side, Weights weights) {
    const std::int32_t c = chunk(side), microbatch = backwards_[of(c)]++;
    const bool cut = weights == Weights::later;
    if (cut) waiting_.push_back({.backward = true, .chunk = c, .microbatch = microbatch, .weight = true});
    order_.push_back({.backward = true, .chunk = c, .microbatch = microbatch, .cut = cut});
  }
  void weight() {
    SHARDSCAPE_CHECK(made_up_ < waiting_.size(), made_up_);
    order_.push_back(waiting_[made_up_++]);
  }
  /// A forward of `ahead` and a backward of the other side, which run together.
  void pair(Side ahead) {
    forward(ahead);
    order_.back().paired = true;
    backward(ahead == Side::near ? Side::far : Side::near, Weights::at_once);
  }

  DualPlace at_;
  std::int32_t rounds_;
  std::vector<PipelineOperation>& order_;
  std::array<std::int32_t, 2> forwards_{}, backwards_{};
  std::vector<PipelineOperation> waiting_;  ///< weight gradients that have been put off so far
  std::size_t made_up_ = 0;
};

void dualpipe_order(const PipelineShape& shape, std::int32_t stage, std::vector<PipelineOperation>& order) {
  const bool runs = shape.stages % 2 == 0 && row_of(shape.kind).divides(shape.stages, shape.microbatches);
  SHARDSCAPE_CHECK(runs && shape.virtual_stages == 2, shape.stages, shape.microbatches, shape.virtual_stages);
  order.clear();
  DualPipeOrder(shape, stage, order).list();
}

// What the three moments hold, with the names of the header. In every pair of step 4, p - d near and d + 1 far
// microbatches are in flight: the first moment. Step 6 begins with h near and d + 1 far ones and runs their backwards
// in turn, far ones first. Before its first cut backward, the (d + 2)-nd, h microbatches are left, the running one
// included; each later backward turns one of them into one that is put off. The second moment is after the first of
// these, where d > 0. The third is before the last backward of step 6, a near one: no far ones are left, and d are put
// off.
std::array<std::array<HeldMicrobatches, 2>, 3> dualpipe_held(const PipelineShape& shape, std::int32_t stage) {
  const DualPlace at = place_of(shape, stage);
  const std::int32_t d = at.away, far_done = (d + 2) / 2, near_done = (d + 1) / 2;
  const auto moment = [&](HeldMicrobatches near, HeldMicrobatches far) {
    return at.near == 0 ? std::array{near, far} : std::array{far, near};
  };
  const auto full = moment({shape.stages - d, 0}, {d + 1, 0});
  if (d == 0) return {full, full, full};
  const bool far_first = (d + 1) % 2 == 0;  // whether the first cut backward is a far one
  const std::int32_t near = at.half - near_done, far = d + 1 - far_done;
  const auto traded = far_first ? moment({near, 0}, {far - 1, 1}) : moment({near - 1, 1}, {far, 0});
  const std::int32_t far_waits = far_first ? (d + 1) / 2 : d / 2;
  return {full, traded, moment({at.half - d, d - far_waits}, {0, far_waits})};
}

std::array<HeldMicrobatches, 3> dualpipe_peaks(const PipelineShape& shape, std::int32_t stage) {
  std::array<HeldMicrobatches, 3> sums;
  const auto held = dualpipe_held(shape, stage);
  for (std::size_t i = 0; i < sums.size(); ++i) {
    sums[i] = {held[i][0].in_flight + held[i][1].in_flight, held[i][0].put_off + held[i][1].put_off};
  }
  return sums;
}

std::array<Partner, 2> dualpipe_partners(const PipelineShape& shape, std::int32_t stage, std::int32_t chunk) {
  const DualPlace at = place_of(shape, stage);
  const std::int32_t rounds = main_rounds(shape, at);
  return {{{1 - chunk, chunk == at.near ? rounds - (at.middle() ? 1 : 0) : rounds + at.inner()}, {}}};
}

}  // namespace

constinit const ScheduleRules kDualpipeRules = {
    .warm_up = [](const PipelineShape& shape,
                  std::int32_t stage) { return shape.stages + (place_of(shape, stage).middle() ? 1 : 0); },
    .order = dualpipe_order,
    .peaks = dualpipe_peaks,
    .partners = dualpipe_partners,
    .peaks_by_chunk = dualpipe_held};

}  // namespace shardscape::schedule
