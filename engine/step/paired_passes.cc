#include "engine/step/paired_passes.h"

#include <algorithm>
#include <array>
#include <utility>

namespace shardscape::step {

namespace {

using execution::Instruction;
using Item = LayerEmitter::Item;

/// One of the two passes.
struct PassThread {
  std::span<const Item> items;
  std::size_t at = 0;
  double done = 0;       ///< of the item at hand, seconds
  bool waiting = false;  ///< its exchange is under way; the item at hand waits for it
  double left = 0;       ///< expected seconds of the exchange to hide

  [[nodiscard]] bool ended() const { return at == items.size(); }
  [[nodiscard]] const Item& item() const { return items[at]; }
};

class PairOfPasses {
 public:
  PairOfPasses(std::span<const Item> forward, std::span<const Item> backward, std::int32_t lane,
               double overlap)
      : threads_{PassThread{backward}, PassThread{forward}}, lane_(lane), overlap_(overlap) {}

  std::vector<Item> run() {
    std::size_t turn = 0;
    while (!threads_[0].ended() || !threads_[1].ended()) {
      PassThread &now = threads_[turn], &other = threads_[1 - turn];
      if (now.ended() || advance(now, other)) turn = 1 - turn;
    }
    return std::move(out_);
  }
  [[nodiscard]] double hidden() const { return hidden_; }

 private:
  [[nodiscard]] bool on_lane(const Item& item, Instruction::Kind kind) const {
    return item.instruction.kind == kind && item.instruction.lane == lane_;
  }

  /// Emits what stands next in a pass; true where the other one goes on.
  bool advance(PassThread& now, PassThread& other) {
    const Item& item = now.item();
    if (on_lane(item, Instruction::Kind::start)) {
      if (other.waiting) join(other);
      out_.push_back(item);
      ++now.at;
      const bool joins = !now.ended() && on_lane(now.item(), Instruction::Kind::join);
      now.waiting = joins && !other.ended();
      now.left = now.waiting ? overlap_ * now.item().expected : 0;
      return now.waiting && now.left > 0;
    }
    if (now.waiting) {
      join(now);
      return false;
    }
    if (item.instruction.kind == Instruction::Kind::compute) return compute(now, other);
    out_.push_back(item);
    ++now.at;
    return false;
  }

  /// What is left of an operator, or a part of it where the other pass wants to go on within it.
  bool compute(PassThread& now, PassThread& other) {
    Item part = now.item();
    const double rest = part.expected - now.done;
    const double runs = other.waiting ? std::min(rest, other.left) : rest;
    const bool ends = runs >= rest;
    if (now.done > 0 || !ends) {
      part.instruction.value = part.expected = runs;
      part.layer_end = part.layer_end && ends;
    }
    if (runs > 0) out_.push_back(part);
    now.done = ends ? 0 : now.done + runs;
    if (ends) ++now.at;
    if (!other.waiting) return false;
    hidden_ += runs;
    other.left -= runs;
    return other.left <= 0;
  }

  void join(PassThread& thread) {
    out_.push_back(thread.item());
    ++thread.at;
    thread.waiting = false;
  }

  std::array<PassThread, 2> threads_;
  std::int32_t lane_;
  double overlap_;
  double hidden_ = 0;
  std::vector<Item> out_;
};

}  // namespace

void append_pieces(const LayerCost& layer, const Segments& segments, Seconds exchanges,
                   std::vector<Item>& items) {
  std::size_t calls = 0;
  for (const Segment& segment : segments) calls += layer[segment.part].between.size() - 1;
  const double each = calls > 0 ? exchanges.value() / static_cast<double>(calls) : 0;
  for (const Segment& segment : segments) {
    const std::vector<Seconds>& between = layer[segment.part].between;
    for (std::size_t i = 0; i < between.size(); ++i) {
      if (i > 0) {
        items.push_back({{Instruction::Kind::start, execution::Account::compute, 0, 0, 1, 0}, 0, false, 1});
        items.push_back({join_lane(0, execution::Account::expert_comm), each, false, 1});
      }
      const double seconds = between[i].value();
      items.push_back({step::compute(seconds, execution::Account::compute, 0), seconds, false, 1});
    }
  }
}

std::vector<Item> pair_up(std::span<const Item> forward, std::span<const Item> backward, std::int32_t lane,
                          double overlap, double& hidden) {
  PairOfPasses pair(forward, backward, lane, overlap);
  std::vector<Item> items = pair.run();
  hidden = pair.hidden();
  return items;
}

}  // namespace shardscape::step
