// Times a trajectory: few iterations of each segment are timed, since times lie on straight pieces, and the measured
// requests, gaps and classes of time are summed up.
#include <algorithm>
#include <span>
#include <utility>

#include "engine/serving/decode_times.h"
#include "engine/serving/server.h"

namespace shardscape::serving {

namespace {

/// Relative rounding error of sums of a few thousand durations: smaller differences count as zero.
constexpr double kRounding = 1e-12;

/// The boundary at which timing has to begin: the earliest that anything measured refers to. Moments in the period
/// before need no timing, since its segments are the same.
std::int32_t first_timed(const Trajectory& course) {
  std::int32_t first = course.from;
  for (const Trajectory::Request& request : course.requests)
    if (request.done > course.from && request.done <= course.to) first = std::min(first, request.sent);
  const auto before = static_cast<std::size_t>(std::max(0, course.from - 1));
  const auto gaps =
      std::span(course.gaps)
          .subspan(course.from > 0 ? static_cast<std::size_t>(course.segments[before].gaps_end) : 0);
  for (const Trajectory::Gap& gap : gaps) first = std::min(first, gap.since);
  return course.periodic && first >= course.from - (course.to - course.from) ? course.from : first;
}

class Clock {
 public:
  Clock(const Trajectory& course, const Timer& timer)
      : timer_(timer), first_(first_timed(course)), period_(course.to - course.from) {
    moments_.reserve(static_cast<std::size_t>(course.to - first_) + 1);
    moments_.push_back(0);
    const auto segments = std::span(course.segments).first(static_cast<std::size_t>(course.to));
    std::size_t gap =
        first_ > 0 ? static_cast<std::size_t>(segments[static_cast<std::size_t>(first_ - 1)].gaps_end) : 0;
    for (auto i = static_cast<std::size_t>(first_); i < segments.size(); ++i) {
      const Trajectory::Segment& segment = segments[i];
      measured_ = static_cast<std::int32_t>(i) >= course.from;
      const auto end = static_cast<std::size_t>(segment.gaps_end);
      moments_.push_back(moments_.back() + run(segment, std::span(course.gaps).subspan(gap, end - gap)));
      gap = end;
    }
    for (const auto& [index, since] : begun_before_) gaps_[index].first -= at(since);
  }

  /// The time of a boundary, once all is timed. Those before `first_` lie in the period before, which took as long.
  [[nodiscard]] double at(std::int32_t boundary) const {
    if (boundary < first_) return at(boundary + period_) - moments_.back();
    return moments_[static_cast<std::size_t>(boundary - first_)];
  }
  [[nodiscard]] double between(std::int32_t a, std::int32_t b) const { return at(b) - at(a); }
  [[nodiscard]] const std::vector<Progression>& gaps() const { return gaps_; }

  /// Sums over the measured segments: seconds by class times the requests that progress, then the total of these.
  IterationTime request_seconds{};
  double progressing_seconds = 0;
  double decode_iterations = 0, decoded_tokens = 0;

 private:
  static Iteration later(Iteration iteration, std::int64_t steps) {
    iteration.cached += iteration.decoding * static_cast<double>(steps);
    return iteration;
  }

  /// Times a segment and records its gaps; returns its seconds.
  double run(const Trajectory::Segment& segment, std::span<const Trajectory::Gap> gaps) {
    const IterationTime first = timer_(segment.first);
    const double first_seconds = total(first);
    if (measured_) {
      for (const Trajectory::Gap& gap : gaps) {
        const bool before = gap.since < first_;
        if (before) begun_before_.emplace_back(gaps_.size(), gap.since);
        gaps_.push_back({moments_.back() - (before ? 0 : at(gap.since)) + first_seconds, 0, 1, gap.count});
      }
      if (segment.first.decoding > 0) {
        decode_iterations += static_cast<double>(segment.iterations);
        decoded_tokens += segment.first.decoding * static_cast<double>(segment.iterations);
      }
    }
    if (segment.iterations == 1) {
      account(segment, first, first, 1);
      return first_seconds;
    }
    account(segment, first, first, 1);
    const IterationTime last = timer_(later(segment.first, segment.iterations - 1));
    const IterationTime second = segment.iterations == 2 ? last : timer_(later(segment.first, 1));
    return first_seconds + stretch(segment, {1, second}, {segment.iterations - 1, last});
  }

  struct Step {
    std::int64_t index;
    IterationTime time;
  };

  /// Seconds of the iterations from a to b. Times are convex in the tokens met: if the middle lies on the line between
  /// the ends, all in between does.
  double stretch(const Trajectory::Segment& segment, const Step& a, const Step& b) {
    const std::int64_t steps = b.index - a.index;
    if (steps <= 1) {
      double seconds = line(segment, a, a);
      if (steps == 1) seconds += line(segment, b, b);
      return seconds;
    }
    const std::int64_t index = a.index + steps / 2;
    const Step middle{index, timer_(later(segment.first, index))};
    const double share = static_cast<double>(index - a.index) / static_cast<double>(steps);
    if (on_line(a.time, b.time, middle.time, share)) return line(segment, a, b);
    const Step next{index + 1, index + 1 == b.index ? b.time : timer_(later(segment.first, index + 1))};
    return stretch(segment, a, middle) + stretch(segment, next, b);
  }

  double line(const Trajectory::Segment& segment, const Step& a, const Step& b) {
    const std::int64_t count = b.index - a.index + 1;
    account(segment, a.time, b.time, count);
    const double first = total(a.time), last = total(b.time);
    if (measured_) {
      const double step = count > 1 ? (last - first) / static_cast<double>(count - 1) : 0;
      gaps_.push_back({first, step, count, static_cast<std::int64_t>(segment.first.decoding)});
    }
    return 0.5 * (first + last) * static_cast<double>(count);
  }

  void account(const Trajectory::Segment& segment, const IterationTime& a, const IterationTime& b,
               std::int64_t count) {
    if (!measured_) return;
    const double weight = 0.5 * static_cast<double>(count) * static_cast<double>(segment.progressing);
    for (const TimeClass c : kServingClasses) request_seconds[c] += weight * (a[c] + b[c]);
    progressing_seconds += weight * (total(a) + total(b));
  }

  const Timer& timer_;
  const std::int32_t first_;   ///< first boundary that is timed; moments_ begins with it
  const std::int32_t period_;  ///< number of segments measured
  std::vector<double> moments_;
  std::vector<Progression> gaps_;
  /// Index in gaps_, and the earlier boundary that the gap began at.
  std::vector<std::pair<std::size_t, std::int32_t>> begun_before_;
  bool measured_ = false;
};

}  // namespace

double requests_measured(const Trajectory& course, const Load& load) {
  if (load.output_tokens == 1) {
    return static_cast<double>(std::ranges::count_if(course.requests, [&](const Trajectory::Request& r) {
      return r.done > course.from && r.done <= course.to;
    }));
  }
  double tokens = 0;
  const auto all = std::span(course.segments).first(static_cast<std::size_t>(course.to));
  for (const Trajectory::Segment& segment : all.subspan(static_cast<std::size_t>(course.from)))
    tokens += segment.first.decoding * static_cast<double>(segment.iterations);
  return tokens / static_cast<double>(load.output_tokens - 1);
}

Measured measure(const Trajectory& course, const Load& load, const Timer& timer) {
  Clock clock(course, timer);
  std::vector<double> ttft, e2e;
  ttft.reserve(course.requests.size());
  e2e.reserve(course.requests.size());
  for (const Trajectory::Request& request : course.requests) {
    if (request.done <= course.from || request.done > course.to) continue;
    ttft.push_back(clock.between(request.sent, request.first_token));
    e2e.push_back(clock.between(request.sent, request.done));
  }
  const double window = clock.between(course.from, course.to);
  const auto clients = static_cast<double>(load.clients);
  const double done = requests_measured(course, load);

  Measured out;
  out.periodic = course.periodic;
  out.ttft = spread_of(ttft);
  out.e2e = spread_of(e2e);
  out.itl = spread_of(clock.gaps());
  out.requests_per_s = done / window;
  out.e2e.mean = clients / out.requests_per_s;
  if (!course.periodic) {
    const auto steps = static_cast<double>(load.output_tokens - 1);
    out.ttft.mean = std::max(0.0, out.e2e.mean - steps * out.itl.mean);
  }
  if (clock.decode_iterations > 0) out.decode_batch = clock.decoded_tokens / clock.decode_iterations;
  for (const TimeClass c : kServingClasses) out.classes[c] = clock.request_seconds[c] / done;
  const double waiting = out.e2e.mean - clock.progressing_seconds / done;
  out.waiting = waiting > kRounding * out.e2e.mean ? waiting : 0;
  return out;
}

}  // namespace shardscape::serving
