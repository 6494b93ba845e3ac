// Follows a server through segments of iterations without times, until its state comes back or enough requests have
// been served.
#include <algorithm>
#include <deque>
#include <utility>
#include <vector>

#include "engine/base/check.h"
#include "engine/serving/server.h"

namespace shardscape::serving {

namespace {

/// A request whose prompt waits or is being read; `sent` is a boundary.
struct Waiting {
  std::int32_t sent = 0;
  std::int64_t unread = 0;
};

/// A sequence that decodes: done when the server's count of decode iterations reaches `done_at`.
struct Decoding {
  std::int32_t sent = 0, first_token = 0;
  std::int64_t done_at = 0;
};

class Course {
 public:
  Course(const Load& load, const Rules& rules) : load_(load), rules_(rules), next_reference_(load.clients) {
    SHARDSCAPE_CHECK(load.clients >= 1 && load.prompt_tokens >= 1 && load.output_tokens >= 1, load.clients,
                     load.prompt_tokens, load.output_tokens);
    SHARDSCAPE_CHECK(rules.slots >= 1 && rules.token_budget >= 1, rules.slots, rules.token_budget);
    SHARDSCAPE_CHECK(rules.policy != ServingPolicy::chunked || rules.token_budget >= rules.slots,
                     rules.token_budget, rules.slots);
    const auto clients = static_cast<std::size_t>(load.clients);
    waiting_.assign(clients, {0, load.prompt_tokens});
    course_.requests.reserve(clients * 4);
    course_.segments.reserve(clients * 4);
    course_.gaps.reserve(clients * 4);
    const std::int64_t all = generations(load, rules);
    begin_measuring_ = (all - measured_generations(all)) * load.clients;
    end_measuring_ = all * load.clients;
  }

  Trajectory run() {
    while (course_.to == 0) advance();
    forget_the_beginning();
    return std::move(course_);
  }

 private:
  [[nodiscard]] std::int32_t now() const { return static_cast<std::int32_t>(course_.segments.size()); }
  [[nodiscard]] std::int64_t decoding_count() const { return static_cast<std::int64_t>(decoding_.size()); }

  void advance() {
    const bool chunked = rules_.policy == ServingPolicy::chunked;
    Trajectory::Segment segment;
    const std::size_t read = read_prompts(chunked, segment);
    const bool decodes = !decoding_.empty() && (chunked || segment.progressing == 0);
    if (segment.progressing == 0) segment.iterations = decoding_.front().done_at - decoded_;
    if (decodes) decode(segment);
    segment.first.first_tokens = static_cast<double>(read);
    segment.gaps_end = static_cast<std::int32_t>(course_.gaps.size());
    course_.segments.push_back(segment);
    if (decodes) since_.assign(1, {now(), decoding_count()});
    finish_prompts(read);
    finish_sequences();
    const std::int64_t done = static_cast<std::int64_t>(course_.requests.size());
    if (done > done_) after_completions(std::exchange(done_, done));
  }

  /// Takes prompts in order of arrival into a segment; returns how many of them end in it.
  std::size_t read_prompts(bool chunked, Trajectory::Segment& segment) {
    std::int64_t left = rules_.token_budget - (chunked ? decoding_count() : 0);
    const auto places = static_cast<std::size_t>(rules_.slots - decoding_count());
    std::size_t read = 0;
    for (std::size_t i = 0; i < std::min(places, waiting_.size()) && left > 0; ++i) {
      Waiting& request = waiting_[i];
      const bool whole = request.unread <= left;
      if (!whole && !chunked && i > 0) break;
      const std::int64_t tokens = chunked ? std::min(left, request.unread) : request.unread;
      const std::int64_t before = load_.prompt_tokens - request.unread;
      segment.first.add_piece(static_cast<double>(before), static_cast<double>(tokens), load_.window);
      request.unread -= tokens;
      left -= tokens;
      ++segment.progressing;
      if (request.unread == 0) ++read;
    }
    return read;
  }

  void decode(Trajectory::Segment& segment) {
    const std::int64_t count = decoding_count();
    cached_ += count;  // each sequence meets the token that its latest step gave
    segment.first.decoding = static_cast<double>(count);
    segment.first.cached = static_cast<double>(cached_);
    segment.progressing += count;
    cached_ += (segment.iterations - 1) * count;
    decoded_ += segment.iterations;
    course_.gaps.insert(course_.gaps.end(), since_.begin(), since_.end());
  }

  void finish_prompts(std::size_t read) {
    if (read == 0) return;
    for (std::size_t i = 0; i < read; ++i) {
      const Waiting request = waiting_.front();
      waiting_.pop_front();
      decoding_.push_back({request.sent, now(), decoded_ + load_.output_tokens - 1});
      cached_ += load_.prompt_tokens;
    }
    const auto count = static_cast<std::int64_t>(read);
    if (!since_.empty() && since_.back().since == now()) {
      since_.back().count += count;
    } else {
      since_.push_back({now(), count});
    }
  }

  /// Requests are alike, so the sequences that have decoded longest finish first.
  void finish_sequences() {
    std::int64_t finished = 0;
    while (!decoding_.empty() && decoding_.front().done_at == decoded_) {
      const Decoding& sequence = decoding_.front();
      course_.requests.push_back({sequence.sent, sequence.first_token, now()});
      decoding_.pop_front();
      waiting_.push_back({now(), load_.prompt_tokens});
      ++finished;
    }
    cached_ -= finished * (load_.prompt_tokens + load_.output_tokens - 1);
    // A sequence that finishes got its last token at this moment, as all that decode did: it was counted in the newest
    // group and leaves it.
    if (finished > 0) since_.back().count -= finished;
    if (!since_.empty() && since_.back().count == 0) since_.pop_back();
  }

  /// Looks for a period after requests have been done; `before` requests were done until now.
  void after_completions(std::int64_t before) {
    if (last_period_end_ > 0) {
      if (now() == last_period_end_) course_.to = now();
      return;
    }
    if (done_ - reference_.done >= load_.clients && comes_back()) {
      // The next period is measured: requests that end in this one may have been sent before it began, but those that
      // end in the next were not, since each client has had one done by now.
      course_.from = now();
      last_period_end_ = now() + (now() - reference_.boundary);
      course_.periodic = true;
      return;
    }
    if (done_ >= next_reference_) {
      reference_ = {state(), done_, now()};
      next_reference_ += std::min(next_reference_, kMostPeriod * load_.clients);
    }
    if (before < begin_measuring_ && done_ >= begin_measuring_) course_.from = now();
    if (done_ >= end_measuring_) course_.to = now();
  }

  /// The state: number of waiting prompts, cached tokens, tokens unread of each prompt, iterations left of each
  /// sequence.
  [[nodiscard]] std::vector<std::int64_t> state() const {
    std::vector<std::int64_t> state = {static_cast<std::int64_t>(waiting_.size()), cached_};
    for (const Waiting& request : waiting_) state.push_back(request.unread);
    for (const Decoding& sequence : decoding_) state.push_back(sequence.done_at - decoded_);
    return state;
  }

  /// Whether the state equals the reference. Nearly all states differ already in the two numbers looked at first.
  [[nodiscard]] bool comes_back() const {
    const std::vector<std::int64_t>& then = reference_.state;
    if (then.empty() || then[0] != static_cast<std::int64_t>(waiting_.size()) || then[1] != cached_)
      return false;
    return then == state();
  }

  /// Drops the segments before the first one that matters to what is measured.
  void forget_the_beginning() {
    std::erase_if(course_.requests, [&](const Trajectory::Request& r) {
      return r.done <= course_.from || r.done > course_.to;
    });
    std::int32_t first = course_.from;
    for (const Trajectory::Request& request : course_.requests) first = std::min(first, request.sent);
    if (first == 0) return;
    const std::int32_t gone = course_.segments[static_cast<std::size_t>(first) - 1].gaps_end;
    course_.segments.erase(course_.segments.begin(), course_.segments.begin() + first);
    course_.gaps.erase(course_.gaps.begin(), course_.gaps.begin() + gone);
    for (Trajectory::Segment& segment : course_.segments) segment.gaps_end -= gone;
    for (Trajectory::Gap& gap : course_.gaps) gap.since -= first;
    for (Trajectory::Request& request : course_.requests)
      request.sent -= first, request.first_token -= first, request.done -= first;
    course_.from -= first;
    course_.to -= first;
  }

  /// An earlier state of the server, to compare with.
  struct Reference {
    std::vector<std::int64_t> state;
    std::int64_t done = 0;
    std::int32_t boundary = 0;
  };

  const Load load_;
  const Rules rules_;
  Trajectory course_;
  std::deque<Waiting> waiting_;
  std::deque<Decoding> decoding_;
  /// The decoding sequences, grouped by the boundary of their latest token.
  std::vector<Trajectory::Gap> since_;
  std::int64_t cached_ = 0;   ///< tokens in the caches of the decoding sequences
  std::int64_t decoded_ = 0;  ///< decode iterations so far
  std::int64_t done_ = 0;
  /// Numbers of requests done, where no state comes back.
  std::int64_t begin_measuring_ = 0, end_measuring_ = 0;
  Reference reference_;
  std::int64_t next_reference_;       ///< number of requests done at which the reference is replaced
  std::int32_t last_period_end_ = 0;  ///< boundary; set once a state has come back
};

}  // namespace

std::int64_t generations(const Load& load, const Rules& rules) {
  constexpr std::int64_t kFew = 8, kMany = 64, kMostPieces = 1 << 17;
  const std::int64_t pieces = 1 + (load.prompt_tokens - 1) / rules.token_budget;
  return std::clamp(kMostPieces / load.clients / pieces, kFew, kMany);
}

Trajectory trajectory(const Load& load, const Rules& rules) { return Course(load, rules).run(); }

}  // namespace shardscape::serving
