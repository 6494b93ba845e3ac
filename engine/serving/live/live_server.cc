// The clock of one server: requests come and are looked at, an admission rule makes up the next iteration, iterations
// in which nothing changes are taken as one run, and what has ended is booked: times, gaps between tokens, use of the
// cache.
#include "engine/serving/live/live_server.h"

#include <algorithm>

#include "engine/base/check.h"

namespace shardscape::serving {

void LiveServer::arrive(const DrawnRequest& request, double now) {
  ++unfinished_;
  const std::int64_t ahead = state_.rules().schedule_ahead;
  arrived_.push_back({request, ended_ + ahead + (works_ ? 1 : 0)});
  if (!works_) {
    wakes_ = std::min(wakes_, now);
  } else if (runs_) {
    const std::int64_t boundary = std::max<std::int64_t>(1, run_.ended_before(now) + 1);
    const std::int64_t first = first_look(boundary), iterations = first + patience();
    arrived_.back().looked_at = polled_ + iterations;
    arrived_.back().earliest = ended_ + boundary + ahead;
    if (patience() == 0)  // they are enough now
      for (Arrived& other : arrived_)
        if (other.looked_at > 0) other.looked_at = std::min(other.looked_at, polled_ + first);
    if (admits_later_) end_run_after(std::min(run_.iterations, std::max(iterations, boundary + ahead)));
  }
}

std::int64_t LiveServer::patience() const {
  const LiveRules& rules = state_.rules();
  const bool enough = static_cast<std::int64_t>(arrived_.size()) + state_.waiting() >= rules.balanced;
  return enough ? 0 : rules.balance_wait;
}

std::int32_t LiveServer::expect(const DrawnRequest& request, double now) {
  settle(now * (1 - kTie));
  const std::int32_t slot = state_.expect(request);
  if (slot < 0) return slot;
  ++unfinished_;
  if (works_ && runs_) end_run_after(state_.iterations_with_room(run_.iterations));
  return slot;
}

/// It joins after the running iteration.
void LiveServer::join_next(std::int32_t slot, double now) {
  landed_.push_back(slot);
  if (works_ && runs_) end_run_after(std::min(run_.iterations, run_.ended_before(now * (1 - kTie)) + 1));
  wake(now);
}

std::int64_t LiveServer::first_look(std::int64_t boundary) const {
  const std::int64_t every = state_.rules().poll_interval;
  return (polled_ + boundary + every - 1) / every * every - polled_;
}

void LiveServer::end_run_after(std::int64_t iterations) {
  run_.iterations = iterations;
  end_ = begin_ + run_.seconds(iterations);
}

/// Requests that the server has looked at by now join the queue.
void LiveServer::look() {
  const std::int64_t every = state_.rules().poll_interval;
  const std::int64_t patient = patience();
  std::size_t seen = 0;
  for (; seen < arrived_.size(); ++seen) {
    Arrived& next = arrived_[seen];
    if (next.looked_at == 0) next.looked_at = (polled_ + every - 1) / every * every + patient;
    if (state_.decoding() > 0 && next.looked_at > polled_) break;
    if (state_.running() > 0 && next.earliest > ended_) break;
    state_.wait(next.request);
  }
  arrived_.erase(arrived_.begin(), arrived_.begin() + static_cast<std::ptrdiff_t>(seen));
}

void LiveServer::start() {
  begin_ = wakes_;
  look();
  state_.begin(begin_);
  for (const std::int32_t slot : landed_) state_.join_moved(slot, state_.moving(slot).first_token);
  landed_.clear();
  batch_.clear(state_.rules().ranks, state_.rules().token_budget);
  const std::int64_t preemptions = state_.preemptions();
  kAdmissionRules[static_cast<std::size_t>(state_.rules().policy)].admit(state_, batch_);
  if (!batch_.decodes && batch_.reading == 0) {
    SHARDSCAPE_CHECK(state_.moving() > 0, "a server stands still", state_.running());
    wakes_ = kNever;
    return;
  }
  works_ = true;
  const std::int64_t sequences = batch_.decodes ? state_.decoding() : 0;
  const double met = sequences > 0 ? state_.tokens_met() : 0;
  runs_ = batch_.reading == 0;
  if (runs_ && !plain_) {
    std::int64_t most = state_.iterations_with_room(state_.until_done());
    // What was preempted may be admitted in the next iteration.
    if (state_.preemptions() > preemptions) most = 1;
    // Nobody that comes can be admitted before a place or a block becomes free: those that wait come first.
    const LiveRules& rules = state_.rules();
    admits_later_ = rules.queue != QueueOrder::fcfs || !state_.has_waiting();
    admits_later_ = admits_later_ && state_.running() < rules.max_batch;
    if (!arrived_.empty() && admits_later_) {
      const Arrived& next = arrived_.front();
      most = std::min(most, std::max(next.looked_at - polled_, next.earliest - ended_));
    }
    run_ = times_.run(begin_, sequences, met, most, own_, state_.pace());
    end_run_after(run_.iterations);
    return;
  }
  Iteration work = batch_.fullest();
  work.decoding = static_cast<double>(sequences);
  work.cached = met;
  time_ = timer_(work);
  // What is brought back from host and disk is, beside what is computed.
  time_[TimeClass::kv_transfer] += std::max(0.0, state_.loading() - total(time_));
  const double tokens = work.prompt_tokens + work.decoding;
  if (batch_.reading > 0 && tokens > static_cast<double>(state_.rules().graph_tokens))
    time_[TimeClass::host] += std::max(0.0, state_.rules().eager_floor - total(time_));
  if (ended_ == 0) time_[TimeClass::host] += state_.rules().first_prompts;
  runs_ = false;
  end_ = begin_ + total(time_);
}

/// The first iteration ends gaps that began at several moments where decoding paused; later ones begin with it.
void LiveServer::book_gaps(const Progression& gaps) {
  std::int64_t others = gaps.weight;
  for (const ServerState::Since& since : state_.since()) {
    if (since.moment == begin_) continue;
    tally_.gap(begin_ - since.moment + gaps.first, since.count);
    others -= since.count;
  }
  if (others == gaps.weight) return tally_.gaps(gaps);
  if (others > 0) tally_.gap(gaps.first, others);
  if (gaps.count > 1) tally_.gaps({gaps.first + gaps.step, gaps.step, gaps.count - 1, gaps.weight});
}

/// Sum over iterations i of (A + b i) (f + s i), where A + b i tokens are held for f + s i seconds.
double LiveServer::held_seconds() const {
  const double held = state_.tokens_held();
  if (!runs_) {
    const bool grows = state_.rules().on_demand && batch_.decodes;
    return (held + (grows ? state_.pace() : 0)) * (end_ - begin_);
  }
  const auto n = static_cast<double>(run_.iterations);
  const double b = state_.rules().on_demand ? run_.growth : 0, a = held + b;
  const double f = run_.first(), s = run_.step();
  return n * (a * f + 0.5 * (n - 1) * (a * s + b * f + b * s * (2 * n - 1) / 3));
}

void LiveServer::settle(double now) {
  const std::int64_t ended = works_ && runs_ ? run_.ended_before(now) : 0;
  if (ended == 0) return;
  DecodeRun rest = run_;
  const double end = end_;
  end_run_after(ended);
  book();
  rest.begin = begin_ = end_;
  rest.cached += static_cast<double>(ended) * rest.growth;
  rest.iterations -= ended;
  run_ = rest;
  end_ = end;
}

void LiveServer::book() {
  Tally::Work work;
  work.decoding = batch_.decodes ? state_.decoding() : 0;
  work.progressing = work.decoding + batch_.reading;
  work.held_seconds = held_seconds();
  if (runs_) {
    work.iterations = run_.iterations;
    run_.add_to(work.time, run_.iterations);
    book_gaps({run_.first(), run_.step(), run_.iterations, work.decoding});
  } else {
    work.time = time_;
    if (work.decoding > 0) book_gaps({end_ - begin_, 0, 1, work.decoding});
  }
  if (work.decoding > 0) state_.decode(work.iterations, end_);
  ended_ += work.iterations;
  polled_ += work.iterations;
  if (batch_.reading > 0) {
    // After such an iteration the server looks at once; prompts that wait for those of other ranks wait on.
    for (Arrived& arrived : arrived_) {
      const bool waits_on = state_.rules().balance_wait > 0 && arrived.looked_at > 0;
      arrived.looked_at = waits_on ? std::max<std::int64_t>(1, arrived.looked_at - polled_) : 0;
    }
    polled_ = 0;
  }
  work.blocks = state_.used_blocks();
  tally_.work(work);
  if (record_ != nullptr) {
    const double blocks = static_cast<double>(work.blocks) / static_cast<double>(state_.rules().kv_blocks);
    record_->push_back({number_, begin_, end_, work.iterations, batch_.reading, work.decoding,
                        unfinished_ - state_.running(), blocks});
  }
  state_.finish_contexts(batch_.ended, end_, [&](double last) { tally_.gap(end_ - last, 1); });
}

}  // namespace shardscape::serving
