// Merges the steps of a forward and a backward into one stream: exchanges of experts take turns, and beside each the
// other pass computes, where its operators are cut if need be.
#include "engine/step/layers/paired_passes.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "engine/step/layers/overlap.h"

namespace shardscape::step {

namespace {

constexpr double kAll = std::numeric_limits<double>::infinity();
/// Relative tolerance: sums of parts and of whole steps are rounded differently, and so small a rest is not cut off.
constexpr double kPassRounding = 1e-9;

/// One of the two passes, and how far it has come.
struct PassThread {
  std::span<const PairStep> steps;
  bool backward = false;
  std::int64_t exchanges = std::ranges::count(steps, PairStep::Kind::exchange, &PairStep::kind);
  std::size_t at = 0;
  double done = 0;        ///< seconds of the current step that are done
  std::int64_t gone = 0;  ///< number of exchanges that are done

  [[nodiscard]] bool ended() const { return at == steps.size(); }
  [[nodiscard]] bool next_is(PairStep::Kind kind) const { return !ended() && steps[at].kind == kind; }

  /// Seconds that the pass computes until its next exchange.
  [[nodiscard]] double until_exchange() const {
    double sum = -done;
    for (std::size_t i = at; i < steps.size() && steps[i].kind != PairStep::Kind::exchange; ++i)
      if (steps[i].kind == PairStep::Kind::compute) sum += steps[i].seconds;
    return std::max(0.0, sum);
  }
};

class PairOfPasses {
 public:
  PairOfPasses(std::span<const PairStep> forward, std::span<const PairStep> backward, double overlap)
      : forward_{forward}, backward_{backward, true}, overlap_(overlap) {}

  PairOrder run() {
    while (backward_.gone + forward_.gone < backward_.exchanges + forward_.exchanges) {
      const bool back = backward_is_next(backward_.gone, forward_.gone);
      exchange(back ? backward_ : forward_, back ? forward_ : backward_, in_a_row(back));
    }
    go_on(backward_, kAll);
    go_on(forward_, kAll);
    return std::move(out_);
  }

 private:
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

  /// Adds the next exchange of a pass, and what the other pass computes beside it. `turns`: number of exchanges of this
  /// pass, this one included, before the next one of the other pass.
  void exchange(PassThread& now, PassThread& other, double turns) {
    go_on(now, kAll);
    add_whole(now);
    ++now.gone;
    if (!now.next_is(PairStep::Kind::wait)) return;
    const double part = other.until_exchange() / turns, whole = turns > 1 ? part : kAll;
    const auto [hidden, until] = beside_exchange(now.steps[now.at].seconds, overlap_, part);
    out_.hidden += hidden;
    go_on(other, std::min(until, whole));
    add_whole(now);
    if (until < whole) go_on(other, whole - until);
  }

  /// Adds what a pass does before its next exchange, up to so many seconds of compute.
  void go_on(PassThread& thread, double seconds) {
    while (!thread.ended() && seconds > 0 && !thread.next_is(PairStep::Kind::exchange)) {
      if (thread.next_is(PairStep::Kind::compute)) {
        seconds -= compute(thread, seconds);
      } else {
        add_whole(thread);
      }
    }
  }
  void add_whole(PassThread& thread) { out_.parts.push_back({thread.backward, thread.at++}); }

  /// Adds the rest of an operator, or only its first so many seconds. Returns how many seconds it added.
  double compute(PassThread& thread, double seconds) {
    const double rest = thread.steps[thread.at].seconds - thread.done;
    const bool ends = rest <= (1 + kPassRounding) * seconds;
    const double runs = ends ? rest : seconds;
    if (runs > 0) out_.parts.push_back({thread.backward, thread.at, runs});
    thread.done = ends ? 0 : thread.done + runs;
    if (ends) ++thread.at;
    return runs;
  }

  PassThread forward_, backward_;
  double overlap_;
  PairOrder out_;
};

}  // namespace

void append_pieces(std::span<const std::vector<Seconds>> pieces, Seconds exchanges,
                   std::vector<PairStep>& steps) {
  std::size_t calls = 0;
  for (const std::vector<Seconds>& of_part : pieces) calls += of_part.size() - 1;
  const double each = calls > 0 ? exchanges.value() / static_cast<double>(calls) : 0;
  for (const std::vector<Seconds>& of_part : pieces) {
    for (std::size_t i = 0; i < of_part.size(); ++i) {
      if (i > 0) steps.insert(steps.end(), {{PairStep::Kind::exchange, 0}, {PairStep::Kind::wait, each}});
      steps.push_back({PairStep::Kind::compute, of_part[i].value()});
    }
  }
}

PairOrder pair_up(std::span<const PairStep> forward, std::span<const PairStep> backward, double overlap) {
  return PairOfPasses(forward, backward, overlap).run();
}

}  // namespace shardscape::step
