// Two pipelines at once: the one whose messages take their time, and the one whose messages take none.
#pragma once

namespace shardscape::schedule {

/// Seconds of the pipeline as it is, and of the one whose messages take no time.
struct TwoTimes {
  // A vector type that g++ and clang have on every processor.
  using Lanes = double __attribute__((vector_size(16)));
  Lanes lanes{};

  TwoTimes() = default;
  explicit TwoTimes(Lanes both) : lanes(both) {}
  TwoTimes(double real, double free) : lanes{real, free} {}
  [[nodiscard]] double real() const { return lanes[0]; }
  [[nodiscard]] double free() const { return lanes[1]; }
  friend TwoTimes operator+(TwoTimes a, TwoTimes b) { return TwoTimes(a.lanes + b.lanes); }
  friend TwoTimes operator-(TwoTimes a, TwoTimes b) { return TwoTimes(a.lanes - b.lanes); }
  friend TwoTimes operator*(double n, TwoTimes a) { return TwoTimes(n * a.lanes); }
  TwoTimes& operator+=(TwoTimes o) { return *this = *this + o; }
  friend TwoTimes later(TwoTimes a, TwoTimes b) { return TwoTimes(a.lanes < b.lanes ? b.lanes : a.lanes); }
  friend TwoTimes earlier(TwoTimes a, TwoTimes b) { return TwoTimes(b.lanes < a.lanes ? b.lanes : a.lanes); }
};

}  // namespace shardscape::schedule
