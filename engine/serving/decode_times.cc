#include "engine/serving/decode_times.h"

#include <algorithm>
#include <cmath>

namespace shardscape::serving {

namespace {

/// A table takes three or more timings. It is made once a batch has been met this often, so that a batch met once costs
/// little, and one met often costs at most twice the table.
constexpr std::int32_t kTimedOneByOne = 3;

DecodePiece piece_between(double begin, double end, const IterationTime& a, const IterationTime& b) {
  DecodePiece piece{begin, end, a, {}, total(a), 0};
  if (end <= begin) return piece;
  for (const TimeClass c : kServingClasses) piece.per_token[c] = (b[c] - a[c]) / (end - begin);
  piece.seconds_per_token = (total(b) - total(a)) / (end - begin);
  return piece;
}

}  // namespace

bool on_line(const IterationTime& a, const IterationTime& b, const IterationTime& middle, double share) {
  const double scale = total(middle);
  for (const TimeClass c : kServingClasses) {
    if (std::abs(a[c] + share * (b[c] - a[c]) - middle[c]) > 1e-12 * scale) return false;
  }
  return true;
}

void DecodeRun::add_to(IterationTime& spent, std::int64_t count) const {
  const auto n = static_cast<double>(count);
  const double tokens = n * ((cached - piece->begin) + 0.5 * growth * (n - 1));
  for (const TimeClass c : kServingClasses) spent[c] += n * piece->at_begin[c] + tokens * piece->per_token[c];
}

/// The first n iterations take n (first - step / 2) + n^2 step / 2 seconds.
std::int64_t DecodeRun::ended_before(double moment) const {
  const double time = moment - begin;
  if (time <= 0) return 0;
  const double linear = first() - 0.5 * step();
  const double root = linear + std::sqrt(std::max(0.0, linear * linear + 2 * step() * time));
  const auto most = static_cast<double>(iterations);
  auto count = static_cast<std::int64_t>(root > 0 ? std::min(2 * time / root, most) : most);
  // The sums themselves settle rounding, and whether a moment exactly at an end counts.
  while (count > 0 && seconds(count) >= time) --count;
  while (count < iterations && seconds(count + 1) < time) ++count;
  return count;
}

DecodeRun DecodeTimes::run(double begin, std::int64_t sequences, double cached, std::int64_t most,
                           DecodePiece& own, double growth) {
  const auto index = static_cast<std::size_t>(sequences);
  if (batches_.size() <= index) batches_.resize(index + 1);
  Batch& batch = batches_[index];
  DecodeRun run{nullptr, begin, cached, static_cast<double>(sequences), most, growth};
  if (batch.pieces.empty()) {
    if (batch.timed < kTimedOneByOne) {
      ++batch.timed;
      const IterationTime time = at(sequences, cached).time;
      own = piece_between(cached, cached, time, time);
      run.piece = &own;
      run.iterations = 1;
      return run;
    }
    make_table(sequences, batch);
  }
  const auto piece =
      std::ranges::find_if(batch.pieces, [&](const DecodePiece& p) { return cached <= p.end; });
  run.piece = piece == batch.pieces.end() ? &batch.pieces.back() : &*piece;
  if (run.piece != &batch.pieces.back()) {
    const double left = std::floor((run.piece->end - cached) / run.growth) + 1;
    run.iterations = std::min(run.iterations, static_cast<std::int64_t>(left));
  }
  return run;
}

DecodeTimes::Point DecodeTimes::at(std::int64_t sequences, double cached) const {
  Iteration iteration;
  iteration.decoding = static_cast<double>(sequences);
  iteration.cached = cached;
  return {cached, timer_(iteration)};
}

/// The table covers the tokens met from all sequences at their first token to all at their last.
void DecodeTimes::make_table(std::int64_t sequences, Batch& batch) const {
  const auto n = static_cast<double>(sequences);
  const Point a = at(sequences, n * static_cast<double>(load_.prompt_tokens + 1));
  const Point b = at(sequences, n * static_cast<double>(load_.prompt_tokens + load_.output_tokens - 1));
  add_pieces(sequences, a, b, batch.pieces);
}

/// Times are convex in the tokens met: if the middle lies on the line between the ends, all in between does.
void DecodeTimes::add_pieces(std::int64_t sequences, const Point& a, const Point& b,
                             std::vector<DecodePiece>& pieces) const {
  const double span = b.cached - a.cached;
  const Point middle = span > 1 ? at(sequences, std::floor(a.cached + 0.5 * span)) : a;
  if (span > 1 && !on_line(a.time, b.time, middle.time, (middle.cached - a.cached) / span)) {
    add_pieces(sequences, a, middle, pieces);
    add_pieces(sequences, middle, b, pieces);
    return;
  }
  pieces.push_back(piece_between(a.cached, b.cached, a.time, b.time));
}

}  // namespace shardscape::serving
