#include "tests/support/plain_live_server.h"

#include <cmath>
#include <utility>

namespace shardscape::serving {

PlainLiveServer::PlainLiveServer(const LiveRules& rules, const Timer& timer, PlainWork& out, bool& measuring,
                                 const SendingShares& on_links)
    : rules_(rules),
      timer_(timer),
      out_(out),
      measuring_(measuring),
      list_(rules.kv_block, rules.lower_blocks),
      on_links_(on_links) {
  const PrefixPath common{{}, 0, kCommonOwner, rules.cached_prompt};
  list_.pin(common, 0, rules.cached_prompt / rules.kv_block);
  list_.unpin(common, rules.cached_prompt / rules.kv_block);
}

void PlainLiveServer::take(const DrawnRequest& request, double now) {
  arrived_.push_back({request, begun_});
  wake_up(now);
}

bool PlainLiveServer::takes_fixed() const {
  const auto early = [&](const Arrived& one) { return one.came + rules_.schedule_ahead <= begun_; };
  return !host_bound && !stood &&
         (!waiting_.empty() || std::ranges::any_of(running_, &LiveItem::reads) ||
          std::ranges::any_of(arrived_, early));
}

/// While anything decodes the server looks every so many decode iterations at what has come, and sees what does not
/// wait for prompts of other ranks. What it has seen waits for what is fixed already.
void PlainLiveServer::look() {
  const auto all = static_cast<std::int64_t>(arrived_.size() + waiting_.size());
  const std::int64_t patience = all >= rules_.balanced ? 0 : rules_.balance_wait;
  const std::int64_t due = since_look_ + patience;
  if (since_look_ % rules_.poll_interval == 0)
    for (Arrived& one : arrived_) one.due = one.due < 0 ? due : std::min(one.due, due);
  // The first one that waits takes all others with it.
  if (rules_.balance_wait > 0 && !arrived_.empty() && arrived_.front().due >= 0)
    for (Arrived& one : arrived_) one.due = arrived_.front().due;
  // A server that only reads has fixed this iteration as the last one began, if that had anything to fix.
  const bool fixed = rules_.reads_only ? takes_fixed() : places_taken() > 0;
  const std::int64_t decoded = (decoding() + rules_.ranks - 1) / rules_.ranks * (1 + rules_.drafts);
  while (!arrived_.empty()) {
    const Arrived& one = arrived_.front();
    if (decoding() > 0 && (one.due < 0 || one.due > since_look_)) return;
    if (fixed && one.came + rules_.schedule_ahead > begun_) return;
    // No more than one iteration reads, or one prompt for each rank: the others wait anew.
    const std::int64_t of_rank =
        std::max<std::int64_t>(1, (rules_.token_budget - decoded) / one.request.prompt);
    if (rules_.balance_wait > 0 && std::ssize(waiting_) >= rules_.ranks * of_rank) return;
    waiting_.emplace_back();
    waiting_.back().request = one.request;
    waiting_.back().start_over();
    arrived_.pop_front();
  }
}

void PlainLiveServer::start() {
  begin_ = wake;
  wake = kNever;
  look();
  for (LiveItem& item : ready_) item.admission = ++admissions_, item.answer_in = rules_.answer_after;
  running_.splice(running_.end(), ready_);
  grows_ = false;
  loading_ = 0;
  ranks_.assign(static_cast<std::size_t>(rules_.ranks), {});
  plan();
  Iteration work = *std::ranges::max_element(ranks_, {}, &Iteration::prompt_tokens);
  double read = 0;
  for (const Iteration& rank : ranks_) read += rank.prompt_tokens;
  work.spare = work.prompt_tokens - read / static_cast<double>(rules_.ranks);
  std::int64_t reading = 0;
  for (const LiveItem& item : running_) {
    reading += item.in_batch ? 1 : 0;
    if (!decodes_ || !item.decodes()) continue;
    work.decoding += 1;
    work.cached += item.held(0) + 1;
  }
  progressing_ = static_cast<double>(reading) + work.decoding;
  stood = progressing_ == 0;
  if (stood) return;  // all wait for blocks
  ++begun_;
  const IterationTime time = timer_(work);
  double seconds = std::max(total(time), loading_);
  const double of_rank = std::ceil(work.decoding / static_cast<double>(rules_.ranks));
  const double tokens = work.prompt_tokens + of_rank * static_cast<double>(1 + rules_.drafts);
  if (reading > 0) {
    launch = tokens > static_cast<double>(rules_.graph_tokens) ? rules_.eager_floor : 0;
    host_bound = launch > seconds;
    seconds = std::max(seconds, launch);
  }
  if (begun_ == 1 && reading > 0) seconds += rules_.first_prompts;
  // Whoever waits is looked at right after prompts are read, and begins to wait anew.
  if (reading > 0)
    for (Arrived& one : arrived_) one.due = -1;
  since_look_ = reading > 0 ? 0 : since_look_ + 1;
  works_ = true;
  to_send = 0;
  for (const TimeClass c : kServingClasses) to_send += on_links_[c] * time[c];
  end = begin_ + seconds - to_send;
  if (measuring_)
    for (const Iteration& rank : ranks_) out_.tokens_read += rank.prompt_tokens;
  peak_ = taken(decodes_);
  held_ = tokens_held();
}

std::vector<PlainLiveRequest> PlainLiveServer::finish() {
  if (measuring_) {
    out_.kv_peak = std::max(out_.kv_peak, static_cast<double>(peak_) / static_cast<double>(rules_.kv_blocks));
    out_.kv_mean += held_ * (end - std::max(begin_, out_.begin));
    out_.progress_seconds += progressing_ * (end - begin_);
  }
  const auto give = [&](LiveItem& item) {
    if (measuring_ && !item.tokens.empty()) out_.gaps.push_back(end - item.tokens.back());
    item.tokens.push_back(end);
  };
  for (LiveItem& item : running_)
    if (decodes_ && item.decodes()) give(item);
  for (LiveItems* list : {&running_, &waiting_})
    for (LiveItem& item : *list)
      if (item.answer_in > 0) item.answered = end, --item.answer_in;
  tidy();
  for (LiveItem& item : running_) {
    item.in_batch = false;
    if (!item.joins) continue;
    give(item);
    item.joins = false;
    share(item, item.context());
  }
  LiveItems leaving;
  for (auto it = running_.begin(); it != running_.end();) {
    const auto next = std::next(it);
    const bool ends = it->given() == (rules_.reads_only ? 1 : it->request.steps + 1);
    if (ends) leaving.splice(leaving.end(), running_, it);
    it = next;
  }
  leaving.sort([](const LiveItem& a, const LiveItem& b) { return a.request.number < b.request.number; });
  std::vector<PlainLiveRequest> done;
  for (LiveItem& item : leaving) {
    leave(item, item.cached());
    done.push_back(item);
  }
  wake = unfinished() > 0 ? end : kNever;
  end = kNever;
  works_ = false;
  return done;
}

// ---- blocks ----

TierBlocks PlainLiveServer::match(const LiveItem& item) const {
  if (!rules_.keeps_prefixes) return {};
  return list_.match(item.request.path, (item.context() - 1) / rules_.kv_block);
}

std::int64_t PlainLiveServer::match_all(const LiveItem& item) const {
  const TierBlocks tiers = match(item);
  return tiers[0] + tiers[1] + tiers[2];
}

std::int64_t PlainLiveServer::found(const DrawnRequest& request) const {
  LiveItem item;
  item.request = request;
  item.start_over();
  return match_all(item);
}

std::int64_t PlainLiveServer::own(const LiveItem& item, std::int64_t tokens) const {
  return (rules_.on_demand ? std::max(item.shared, blocks(tokens)) : reserved(item)) - item.shared;
}

std::int64_t PlainLiveServer::taken(bool grown) const {
  std::int64_t sum = list_.count(true, 0);
  for (const LiveItems* list : {&moving_, &ready_, &held_items_})
    for (const LiveItem& item : *list) sum += own(item, item.request.prompt);
  for (const LiveItem& item : running_)
    sum += own(item, item.cached_in(item.since() + (grown && item.decodes() ? 1 : 0)));
  return sum;
}

double PlainLiveServer::tokens_held() const {
  if (!rules_.on_demand) return static_cast<double>(taken(false) * rules_.kv_block);
  double sum = static_cast<double>(list_.count(true, 0) * rules_.kv_block);
  for (const LiveItems* list : {&moving_, &ready_})
    for (const LiveItem& item : *list) sum += item.request.prompt;
  for (const LiveItem& item : running_)
    sum += item.held(decodes_ && item.decodes() ? 1 : 0) - static_cast<double>(item.shared * rules_.kv_block);
  return sum;
}

/// Whole blocks of so many tokens are in the list from now on.
void PlainLiveServer::share(LiveItem& item, std::int64_t tokens) {
  const std::int64_t whole = tokens / rules_.kv_block;
  if (!rules_.keeps_prefixes || whole <= item.shared) return;
  list_.pin(item.request.path, item.shared, whole);
  item.shared = whole;
  tidy();
}

/// It needs its blocks no more; whole ones of so many tokens stay until room is needed.
void PlainLiveServer::leave(LiveItem& item, std::int64_t tokens) {
  if (!rules_.keeps_prefixes) return;
  const std::int64_t whole = std::max(item.shared, tokens / rules_.kv_block);
  list_.pin(item.request.path, item.shared, whole);
  list_.unpin(item.request.path, whole);
  item.shared = 0;
  tidy();
}

void PlainLiveServer::tidy() {
  if (rules_.keeps_prefixes) list_.shrink(std::max<std::int64_t>(0, rules_.kv_blocks - taken(false)));
}

void PlainLiveServer::evict_youngest() {
  const auto victim = std::ranges::max_element(running_, {}, &LiveItem::admission);
  const std::int64_t kept = victim->decodes() ? victim->cached() : 0;
  victim->start_over();
  victim->returned = true;
  if (measuring_) ++out_.preemptions;
  waiting_.splice(waiting_.end(), running_, victim);
  leave(*victim, kept);
}

// ---- the rules ----

PlainLiveServer::LiveItems::iterator PlainLiveServer::next_waiting() {
  const auto before = [&](const LiveItem& a, const LiveItem& b) {
    if (rules_.drawn_ranks && (left(a) > 0) != (left(b) > 0)) return left(a) > 0;
    if (a.returned != b.returned) return a.returned;
    if (!a.returned && rules_.queue == QueueOrder::shortest && a.request.prompt != b.request.prompt)
      return a.request.prompt < b.request.prompt;
    if (!a.returned && rules_.queue == QueueOrder::priority && a.request.priority != b.request.priority)
      return a.request.priority < b.request.priority;
    return a.request.number < b.request.number;
  };
  return std::ranges::min_element(waiting_, before);
}

bool PlainLiveServer::room_to_decode() {
  bool none = true;
  grows_ = true;
  for (;;) {
    if (!rules_.on_demand || free_blocks() >= 0) return none;
    evict_youngest();
    none = false;
  }
}

bool PlainLiveServer::admits(const LiveItem& item, std::int64_t tokens) const {
  if (places_taken() >= rules_.max_batch) return false;
  const std::int64_t there = match_all(item);
  std::int64_t needed = rules_.on_demand ? blocks(there * rules_.kv_block + tokens) : reserved(item);
  needed -= there - list_.unpinned(item.request.path, there);
  return free_blocks() - needed >= (places_taken() == 0 ? 0 : rules_.watermark);
}

void PlainLiveServer::admit(LiveItems::iterator item) {
  item->returned = false;
  item->admission = ++admissions_;
  if (item->admitted < 0) item->admitted = begin_;
  running_.splice(running_.end(), waiting_, item);
  const TierBlocks tiers = match(*item);
  for (std::size_t tier = 0; tier < kCacheTiers; ++tier) {
    if (item->tokens.empty()) item->hits[tier] = tiers[tier] * rules_.kv_block;
    if (tier > 0) loading_ += static_cast<double>(tiers[tier]) * rules_.seconds_per_block[tier - 1];
  }
  item->read = match_all(*item) * rules_.kv_block;
  share(*item, item->read);
}

void PlainLiveServer::read(LiveItem& item, std::int64_t tokens) {
  Iteration& rank = rank_for(item);
  rank.add_piece(static_cast<double>(item.read), static_cast<double>(tokens), rules_.window);
  item.read += tokens;
  item.in_batch = true;
  item.joins = !item.reads();
  if (item.joins) rank.first_tokens += 1;
  tidy();
}

void PlainLiveServer::continue_reading(bool& kept) {
  std::vector<std::int64_t> order;
  for (const LiveItem& item : running_)
    if (item.reads()) order.push_back(item.admission);
  std::ranges::sort(order);
  for (const std::int64_t admission : order) {
    const auto find = [&] { return std::ranges::find(running_, admission, &LiveItem::admission); };
    if (find() == running_.end() || left(*find()) <= 0) continue;
    const std::int64_t tokens = std::min(left(*find()), find()->context() - find()->read);
    while (rules_.on_demand && find() != running_.end() &&
           free_blocks() < blocks(find()->read + tokens) - blocks(find()->read)) {
      evict_youngest();
      kept = false;
    }
    if (find() != running_.end()) read(*find(), tokens);
  }
}

bool PlainLiveServer::keeps_promise(std::int64_t context) const {
  if (!rules_.on_demand || places_taken() == 0) return true;
  std::int64_t to_give = 0;
  for (const LiveItem& item : running_) to_give += item.decodes() ? item.left() * item.pace() : 0;
  const double left = static_cast<double>(rules_.kv_blocks * rules_.kv_block - context) - tokens_held();
  return left >= 0.098 * static_cast<double>(to_give / LiveItem::kWhole);
}

void PlainLiveServer::read_waiting(bool kept) {
  const bool beside = reads_beside(rules_.policy);
  const bool whole =
      rules_.policy == ServingPolicy::trtllm || rules_.policy == ServingPolicy::prefill_priority;
  while (!waiting_.empty() && (kept || !beside)) {
    const auto head = next_waiting();
    const std::int64_t context = head->context() - match_all(*head) * rules_.kv_block;
    const std::int64_t room = left(*head);
    if (rules_.policy != ServingPolicy::trtllm && room <= 0) return;
    if (full(*head)) return;
    if (whole && context > room && rank_for(*head).prompt_tokens > 0) return;
    const std::int64_t tokens = whole ? context : std::min(room, context);
    if (!beside && !keeps_promise(context)) return;
    if (!admits(*head, beside ? tokens : context)) return;
    admit(head);
    read(*head, tokens);
  }
}

void PlainLiveServer::plan() {
  const bool beside = reads_beside(rules_.policy);
  bool kept = true;
  decodes_ = false;
  if (beside) kept = room_to_decode();
  budget_ = rules_.token_budget;
  if (beside) budget_ -= (decoding() + rules_.ranks - 1) / rules_.ranks * (1 + rules_.drafts);
  if (rules_.policy != ServingPolicy::trtllm) continue_reading(kept);
  read_waiting(kept);
  const bool reading = std::ranges::any_of(running_, &LiveItem::in_batch);
  if (!beside && !reading) room_to_decode();
  decodes_ = beside || !reading;
}

// ---- caches that move between pools ----

bool PlainLiveServer::expect(const DrawnRequest& request) {
  LiveItem item;
  item.request = request;
  item.start_over();
  item.read = item.context();
  const std::int64_t all = places_taken();
  if (!waiting_.empty() || all >= rules_.max_batch) return false;
  if (rules_.kv_blocks - taken(true) < own(item, item.read) + (all > 0 ? rules_.watermark : 0)) return false;
  moving_.push_back(item);
  return true;
}

std::optional<PlainLiveRequest> PlainLiveServer::land(const PlainLiveRequest& request, double now) {
  const auto item =
      std::ranges::find(moving_, request.request.number, [](const LiveItem& i) { return i.request.number; });
  item->tokens.push_back(now);
  item->admitted = request.admitted;
  item->hits = request.hits;
  std::optional<PlainLiveRequest> done;
  if (request.request.steps == 0) {
    done = *item;
    moving_.erase(item);
  } else {
    ready_.splice(ready_.end(), moving_, item);
  }
  wake_up(now);
  return done;
}

void PlainLiveServer::hold(const DrawnRequest& request) {
  held_items_.emplace_back();
  held_items_.back().request = request;
  share(held_items_.back(), request.prompt);
}

void PlainLiveServer::let_go(const DrawnRequest& request, double now) {
  const auto item =
      std::ranges::find(held_items_, request.number, [](const LiveItem& i) { return i.request.number; });
  LiveItem held = *item;
  held_items_.erase(item);
  leave(held, 0);
  wake_up(now);
}

}  // namespace shardscape::serving
