// The clock of one server: requests come and are looked at, an admission rule makes up the next iteration, iterations
// in which nothing changes are taken as one run, and what has ended is booked: times, gaps between tokens, use of the
// cache.
#include "engine/serving/live/live_server.h"

#include "engine/network/flows/fluid.h"

namespace shardscape::serving {

void LiveServer::arrive(const DrawnRequest& request, double now) {
  ++unfinished_;
  const std::int64_t ahead = state_.rules().schedule_ahead;
  arrived_.push_back({request, ended_ + ahead + (works_ ? 1 : 0)});
  if (!works_) {
    wakes_ = std::min(wakes_, now);
    return;
  }
  if (waits_ == WaitsFor::nothing && later_from_ == kNever) {
    later_from_ = now;
    later_ = state_.running() >= state_.rules().max_batch ? WaitsFor::place : WaitsFor::look;
  }
  if (runs_) {
    const std::int64_t boundary = std::max<std::int64_t>(1, run_.ended_before(now) + 1);
    arrived_.back().earliest = ended_ + boundary + ahead;
    note_looks(boundary);
    if (looks_later()) end_run_after(std::min(run_.iterations, first_joins_after()));
  }
}

/// Sets when the server looks at requests that have come: at its first look from so many iterations on. Where they wait
/// for others, all go together when the first has waited for its iterations, and at that look once they are enough.
void LiveServer::note_looks(std::int64_t boundary) {
  if (arrived_.empty()) return;
  const LiveRules& rules = state_.rules();
  const std::int64_t patience = waiting() >= rules.balanced ? 0 : rules.balance_wait;
  const std::int64_t every = rules.poll_interval;
  std::int64_t look = (polled_ + boundary + every - 1) / every * every + patience;
  if (const std::int64_t first = arrived_.front().looked_at; rules.balance_wait > 0 && first >= 0)
    look = std::min(look, first);
  for (auto one = arrived_.rbegin(); one != arrived_.rend(); ++one) {
    if (one->looked_at >= 0 && one->looked_at <= look) return;  // and so are all before it
    one->looked_at = look;
  }
}

std::int64_t LiveServer::first_joins_after() const {
  const Arrived& first = arrived_.front();
  return std::max({first.looked_at - polled_, first.earliest - ended_, std::int64_t{1}});
}

std::int32_t LiveServer::expect(const DrawnRequest& request, double now) {
  settle(now * (1 - network::kTie));
  const std::int32_t slot = state_.expect(request);
  if (slot < 0) return slot;
  ++unfinished_;
  if (works_ && runs_) end_run_after(state_.iterations_with_room(run_.iterations));
  return slot;
}

/// The running iteration is the last of its run.
void LiveServer::cut_run(double now) {
  if (works_ && runs_)
    end_run_after(std::min(run_.iterations, run_.ended_before(now * (1 - network::kTie)) + 1));
}

/// It joins after the running iteration.
void LiveServer::join_next(std::int32_t slot, double now) {
  landed_.push_back(slot);
  cut_run(now);
  wake(now);
}

void LiveServer::end_run_after(std::int64_t iterations) {
  run_.iterations = iterations;
  end_ = begin_ + run_.seconds(iterations);
}

/// Whether this iteration was fixed already, so that those that have come since wait for a later one. A server that
/// only reads fixed it as the one before began, if anything was there by then to read and the host was free.
bool LiveServer::is_fixed() const {
  if (!state_.rules().reads_only) return state_.running() > 0;
  return !host_bound_ && !stood_ &&
         (state_.has_waiting() || !state_.reading().empty() ||
          (!arrived_.empty() && arrived_.front().earliest <= ended_));
}

/// Requests that the server has looked at by now join the queue; where they have waited for others, as many as an
/// iteration has room for.
void LiveServer::look() {
  note_looks(0);
  const LiveRules& rules = state_.rules();
  const bool fixed = is_fixed();
  const std::int64_t room = std::max<std::int64_t>(0, rules.token_budget - state_.decoding_tokens());
  std::size_t seen = 0;
  crowded_ = false;
  for (; seen < arrived_.size(); ++seen) {
    const Arrived& next = arrived_[seen];
    if (state_.decoding() > 0 && next.looked_at > polled_) break;
    if (fixed && next.earliest > ended_) break;
    const std::int64_t of_rank = std::max<std::int64_t>(1, room / next.request.prompt);
    crowded_ = rules.balance_wait > 0 && state_.waiting() >= rules.ranks * of_rank;
    if (crowded_) break;
    state_.wait(next.request);
  }
  arrived_.erase(arrived_.begin(), arrived_.begin() + static_cast<std::ptrdiff_t>(seen));
}

WaitsFor LiveServer::waits() {
  const LiveRules& rules = state_.rules();
  if (!state_.has_waiting()) return arrived_.empty() ? WaitsFor::nothing : WaitsFor::look;
  if (state_.running() >= rules.max_batch) return WaitsFor::place;
  const bool whole = row_of(rules.policy).whole && batch_.reading > 0;
  const std::int64_t least = whole ? state_.head_left() : 1;
  const auto queue = state_.next_queue(batch_);
  return !queue || batch_.left(*queue) < least ? WaitsFor::budget : WaitsFor::blocks;
}

void LiveServer::start() {
  begin_ = wakes_;
  look();
  state_.begin(begin_);
  for (const std::int32_t slot : landed_) {
    const Sequence& s = state_.moving(slot);
    if (s.first_token == kNever)
      answers_.push_back({slot, s.request.number, ended_ + state_.rules().answer_after});
    state_.join_moved(slot, s.landed);
  }
  landed_.clear();
  batch_.clear(state_.rules());
  const std::int64_t preemptions = state_.preemptions();
  admission(state_.rules()).admit(state_, batch_);
  stood_ = !batch_.decodes && batch_.reading == 0;
  if (stood_) {
    SHARDSCAPE_CHECK(state_.moving() > 0, "a server stands still", state_.running());
    wakes_ = kNever;
    return;
  }
  works_ = true;
  if (record_ != nullptr) waits_ = waits();
  later_from_ = kNever;
  to_send_ = -1;
  const std::int64_t sequences = batch_.decodes ? state_.decoding() : 0;
  const double met = sequences > 0 ? state_.tokens_met() : 0;
  runs_ = batch_.reading == 0;
  if (runs_ && !plain_ && !met_) {
    std::int64_t most = state_.iterations_with_room(state_.until_done());
    // What was preempted may be admitted in the next iteration.
    if (state_.preemptions() > preemptions) most = 1;
    // Nobody that comes can be admitted before a place or a block becomes free: those that wait come first.
    const LiveRules& rules = state_.rules();
    admits_later_ = rules.queue != QueueOrder::fcfs || !state_.has_waiting();
    admits_later_ = admits_later_ && state_.running() < rules.max_batch;
    if (!arrived_.empty() && looks_later()) most = std::min(most, first_joins_after());
    run_ = times_.run(begin_, sequences, met, most, own_, state_.pace());
    end_run_after(run_.iterations);
    return;
  }
  Iteration work = batch_.work();
  work.decoding = static_cast<double>(sequences);
  work.cached = met;
  time_ = timer_(work);
  // What is brought back from host and disk is, beside what is computed.
  time_[TimeClass::kv_transfer] += std::max(0.0, state_.loading() - total(time_));
  launch_ = least_seconds(state_.rules(), work);
  host_bound_ = launch_ > total(time_);
  time_[TimeClass::host] += std::max(0.0, launch_ - total(time_));
  if (ended_ == 0 && batch_.reading > 0) time_[TimeClass::host] += state_.rules().first_prompts;
  runs_ = false;
  end_ = begin_ + total(time_);
  if (met_) send_from(begin_);
}

void LiveServer::describe(double now, std::int64_t number, StateOfServer& state) const {
  state.counts = {ended_ > 0 ? 1 : 0, polled_ % state_.rules().poll_interval, std::ssize(arrived_)};
  state.moments = {wakes_ == kNever ? 1 : wakes_ - now};
  for (const Arrived& one : arrived_) {
    state.counts.insert(state.counts.end(),
                        {one.earliest - ended_, one.looked_at < 0 ? -1 : one.looked_at - polled_});
    state.moments.push_back(one.request.sent - now);
  }
  state_.describe(now, number, state);
}

double LiveServer::sending() const {
  double seconds = 0;
  for (const TimeClass c : kServingClasses) seconds += (*on_links_)[c] * time_[c];
  return seconds;
}

/// From now on the end of the single iteration is told from what it sends.
void LiveServer::send_from(double now) {
  to_send_ = std::min(sending(), std::max(0.0, end_ - now));
  end_ -= to_send_;
}

void LiveServer::meet_caches(bool there, double now) {
  met_ = there;
  if (!met_ || !works_ || to_send_ >= 0) return;
  settle(now * (1 - network::kTie));
  if (runs_) {
    runs_ = false;
    time_ = {};
    run_.add_to(time_, 1);
    end_ = begin_ + total(time_);
  }
  send_from(now);
}

void LiveServer::end_sending(double now) {
  const double longer = now - begin_ - total(time_), seconds = sending();
  for (const TimeClass c : kServingClasses) time_[c] *= 1 + longer * (*on_links_)[c] / seconds;
  end_ = now;
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

/// First tokens that clients have with one of the next iterations.
void LiveServer::book_answers(std::int64_t iterations) {
  for (; !answers_.empty() && answers_.front().after <= ended_ + iterations; answers_.pop_front()) {
    const Answer& answer = answers_.front();
    const double moment = runs_ ? begin_ + run_.seconds(answer.after - ended_) : end_;
    state_.answer(answer.slot, answer.number, moment);
  }
}

/// Sum over iterations i of (A + b i) (f + s i), where A + b i tokens are held for f + s i seconds; but for what lies
/// before the moment from which on is measured, which only the first iteration may begin before.
double LiveServer::held_seconds() const {
  const double held = state_.tokens_held(), before = std::max(0.0, tally_.begun() - begin_);
  if (!runs_) {
    const bool grows = state_.rules().on_demand && batch_.decodes;
    return (held + (grows ? state_.pace() : 0)) * std::max(0.0, end_ - begin_ - before);
  }
  const auto n = static_cast<double>(run_.iterations);
  const double b = state_.rules().on_demand ? run_.growth : 0, a = held + b;
  const double f = run_.first(), s = run_.step();
  const double all = n * (a * f + 0.5 * (n - 1) * (a * s + b * f + b * s * (2 * n - 1) / 3));
  return all - a * std::min(before, f);
}

void LiveServer::settle(double now) {
  // The last one is left to finish(), which books it with what ends then.
  const std::int64_t ended = works_ && runs_ ? std::min(run_.ended_before(now), run_.iterations - 1) : 0;
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
  book_answers(work.iterations);
  ended_ += work.iterations;
  polled_ += work.iterations;
  if (batch_.reading > 0) {
    // After such an iteration the server looks at once, and begins to wait anew.
    for (Arrived& arrived : arrived_) arrived.looked_at = -1;
    polled_ = 0;
  }
  work.blocks = state_.used_blocks();
  tally_.work(work);
  if (record_ != nullptr) {
    const double blocks = static_cast<double>(work.blocks) / static_cast<double>(state_.rules().kv_blocks);
    double tokens = 0;
    for (const Iteration& rank : batch_.of_ranks) tokens += rank.prompt_tokens;
    record_->push_back({number_, begin_, end_, work.iterations, batch_.reading, work.decoding, waiting(),
                        blocks, tokens, static_cast<std::int64_t>(batch_.ended.size()),
                        batch_.decodes ? 0 : state_.decoding(), waits_, later_from_, later_});
  }
  state_.finish_contexts(batch_.ended, end_, [&](double last) { tally_.gap(end_ - last, 1); });
}

}  // namespace shardscape::serving
