// Merges the items of a forward and a backward into one stream: exchanges of experts take turns, and beside each the
// other pass computes, where its operators are cut if need be.
#include "engine/step/layers/paired_passes.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "engine/step/layers/overlap.h"

namespace shardscape::step {

namespace {

using execution::Instruction;
using Item = LayerEmitter::Item;

constexpr double kAll = std::numeric_limits<double>::infinity();
/// Relative tolerance: sums of parts and of whole items are rounded differently, and so small a rest is not cut off.
constexpr double kRounding = 1e-9;

/// One of the two passes, and how far it has come.
struct PassThread {
  std::span<const Item> items;
  std::int64_t exchanges = 0;
  std::size_t at = 0;
  double done = 0;        ///< seconds of the current item that are done
  std::int64_t gone = 0;  ///< number of exchanges that are done

  [[nodiscard]] bool ended() const { return at == items.size(); }
  [[nodiscard]] const Item& item() const { return items[at]; }
};

class PairOfPasses {
 public:
  PairOfPasses(std::span<const Item> forward, std::span<const Item> backward, std::int32_t lane,
               double overlap)
      : forward_{forward}, backward_{backward}, lane_(lane), overlap_(overlap) {
    for (PassThread* thread : {&forward_, &backward_})
      for (const Item& item : thread->items)
        if (on_lane(item, Instruction::Kind::start)) ++thread->exchanges;
  }

  std::vector<Item> run() {
    while (backward_.gone + forward_.gone < backward_.exchanges + forward_.exchanges) {
      const bool back = backward_is_next(backward_.gone, forward_.gone);
      exchange(back ? backward_ : forward_, back ? forward_ : backward_, in_a_row(back));
    }
    go_on(backward_, kAll);
    go_on(forward_, kAll);
    return std::move(out_);
  }
  [[nodiscard]] double hidden() const { return hidden_; }

 private:
  [[nodiscard]] bool on_lane(const Item& item, Instruction::Kind kind) const {
    return item.instruction.kind == kind && item.instruction.lane == lane_;
  }

  /// Whether the backward's exchange is next after so many of each pass, if both are spread evenly.
  [[nodiscard]] bool backward_is_next(std::int64_t back, std::int64_t ahead) const {
    if (back == backward_.exchanges || ahead == forward_.exchanges) return ahead == forward_.exchanges;
    return back * forward_.exchanges <= ahead * backward_.exchanges;
  }
  /// How many exchanges of one pass, the backward or the forward, follow each other from here on.
  [[nodiscard]] double in_a_row(bool of_backward) const {
    std::int64_t back = backward_.gone, ahead = forward_.gone, count = 0;
    for (; back + ahead < backward_.exchanges + forward_.exchanges; ++count) {
      if (backward_is_next(back, ahead) != of_backward) break;
      ++(of_backward ? back : ahead);
    }
    return static_cast<double>(count);
  }

  /// Seconds that a pass computes until its next exchange.
  [[nodiscard]] double until_exchange(const PassThread& thread) const {
    double sum = -thread.done;
    for (std::size_t i = thread.at; i < thread.items.size(); ++i) {
      const Item& item = thread.items[i];
      if (on_lane(item, Instruction::Kind::start)) break;
      if (item.instruction.kind == Instruction::Kind::compute) sum += item.expected;
    }
    return std::max(0.0, sum);
  }

  /// Adds the next exchange of a pass, and what the other pass computes beside it. `turns`: number of exchanges of this
  /// pass, this one included, before the next one of the other pass.
  void exchange(PassThread& now, PassThread& other, double turns) {
    go_on(now, kAll);
    out_.push_back(now.item());
    ++now.at;
    ++now.gone;
    if (now.ended() || !on_lane(now.item(), Instruction::Kind::join)) return;
    const double part = until_exchange(other) / turns, whole = turns > 1 ? part : kAll;
    const auto [hidden, until] = beside_exchange(now.item().expected, overlap_, part);
    hidden_ += hidden;
    go_on(other, std::min(until, whole));
    out_.push_back(now.item());
    ++now.at;
    if (until < whole) go_on(other, whole - until);
  }

  /// Adds what a pass does before its next exchange, up to so many seconds of compute.
  void go_on(PassThread& thread, double seconds) {
    while (!thread.ended() && seconds > 0 && !on_lane(thread.item(), Instruction::Kind::start)) {
      const bool computes = thread.item().instruction.kind == Instruction::Kind::compute;
      seconds -= computes ? compute(thread, seconds) : emit(thread);
    }
  }
  double emit(PassThread& thread) {
    out_.push_back(thread.item());
    ++thread.at;
    return 0;
  }

  /// Adds the rest of an operator, or only its first so many seconds. Returns how many seconds it added.
  double compute(PassThread& thread, double seconds) {
    Item part = thread.item();
    const double rest = part.expected - thread.done;
    const bool ends = rest <= (1 + kRounding) * seconds;
    const double runs = ends ? rest : seconds;
    if (thread.done > 0 || !ends) {
      part.instruction.value = part.expected = runs;
      part.layer_end = part.layer_end && ends;
    }
    if (runs > 0) out_.push_back(part);
    thread.done = ends ? 0 : thread.done + runs;
    if (ends) ++thread.at;
    return runs;
  }

  PassThread forward_, backward_;
  std::int32_t lane_;
  double overlap_;
  double hidden_ = 0;
  std::vector<Item> out_;
};

}  // namespace

void append_pieces(std::span<const std::vector<Seconds>> pieces, Seconds exchanges,
                   std::vector<Item>& items) {
  std::size_t calls = 0;
  for (const std::vector<Seconds>& of_part : pieces) calls += of_part.size() - 1;
  const double each = calls > 0 ? exchanges.value() / static_cast<double>(calls) : 0;
  for (const std::vector<Seconds>& of_part : pieces) {
    for (std::size_t i = 0; i < of_part.size(); ++i) {
      if (i > 0) {
        items.push_back({{Instruction::Kind::start, execution::Account::compute, 0, 0, 1, 0}});
        items.push_back({join_lane(0, execution::Account::expert_comm), each});
      }
      const double seconds = of_part[i].value();
      items.push_back({step::compute(seconds, execution::Account::compute, 0), seconds});
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
