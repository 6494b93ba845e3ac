// What a server holds: admits the head of the queue where it has a place and blocks, reads pieces of prompts, makes
// room by preempting the youngest sequences, and keeps count of blocks, tokens and ends as sequences decode.
#include "engine/serving/live/server_state.h"

#include <limits>

#include "engine/base/check.h"

namespace shardscape::serving {

namespace {

/// The rank of what was preempted: before every priority.
constexpr std::int64_t kHeadOfQueue = std::numeric_limits<std::int64_t>::min();

}  // namespace

ServerState::ServerState(const LiveRules& rules)
    : rules_(rules),
      queues_(static_cast<std::size_t>(rules.drawn_ranks ? rules.ranks : 1)),
      growing_(static_cast<std::size_t>(rules.kv_block)),
      cache_(rules.kv_block, rules.lower_blocks) {
  const PrefixPath common{{}, 0, kCommonOwner, rules.cached_prompt};
  cache_.pin(common, 0, rules.cached_prompt / rules.kv_block);
  cache_.unpin(common, rules.cached_prompt / rules.kv_block);
}

/// The class of a sequence of that length now; -decode iterations for those that need a block in the next one.
std::size_t ServerState::phase_of(std::int64_t decoded) const {
  return static_cast<std::size_t>((rules_.kv_block - decoded % rules_.kv_block) % rules_.kv_block);
}

void ServerState::wait(const DrawnRequest& request) {
  std::int32_t slot = 0;
  if (free_.empty()) {
    slot = static_cast<std::int32_t>(sequences_.size());
    sequences_.emplace_back();
  } else {
    slot = free_.back();
    free_.pop_back();
  }
  Sequence& s = at(slot) = Sequence();
  s.request = request;
  s.context = request.prompt;
  push({queue_rank(rules_.queue, request), request.number, slot});
}

void ServerState::push(const Waiting& waiting) {
  queues_[queue_of(at(waiting.slot).request)].push(waiting);
  ++waiting_;
}

std::int32_t ServerState::pop(std::size_t queue) {
  const std::int32_t slot = queues_[queue].top().slot;
  queues_[queue].pop();
  --waiting_;
  return slot;
}

std::optional<std::size_t> ServerState::next_queue(Batch& batch) const {
  std::optional<std::size_t> next;
  for (std::size_t queue = 0; queue < queues_.size(); ++queue) {
    if (queues_[queue].empty() || batch.left(queue) <= 0) continue;
    if (!next || queues_[*next].top() > queues_[queue].top()) next = queue;
  }
  return next;
}

bool ServerState::admits_head(std::int64_t tokens, std::size_t queue) const {
  if (running() >= rules_.max_batch) return false;
  const DrawnRequest& request = head(queue).request;
  const std::int64_t there = found(head(queue));
  std::int64_t needed =
      rules_.on_demand ? blocks_of(there * rules_.kv_block + tokens) : blocks_of_all(request);
  // Blocks that running requests have pinned take no room.
  if (there > 0) needed -= there - cache_.unpinned(request.path, there);
  return free_blocks() >= needed + (running() > 0 ? rules_.watermark : 0);
}

std::int32_t ServerState::admit(std::size_t queue) {
  const std::int32_t slot = pop(queue);
  Sequence& s = at(slot);
  s.phase = Sequence::Phase::reading;
  if (s.admitted < 0) s.admitted = now_;
  s.blocks = rules_.on_demand ? 0 : blocks_of_all(s.request);
  used_ += s.blocks;
  if (rules_.keeps_prefixes) {
    const TierBlocks tiers = cache_.match(s.request.path, (s.context - 1) / rules_.kv_block);
    share(s, sum_of(tiers) * rules_.kv_block);
    s.read = static_cast<std::int32_t>(s.shared * rules_.kv_block);
    read_ += s.read;
    if (s.given == 0)
      for (std::size_t tier = 0; tier < kCacheTiers; ++tier) s.hits[tier] = tiers[tier] * rules_.kv_block;
    make_room();
    for (std::size_t tier = 1; tier < kCacheTiers; ++tier)
      loading_ += static_cast<double>(tiers[tier]) * rules_.seconds_per_block[tier - 1];
  }
  reading_.push_back(slot);
  note_admission(slot);
  return slot;
}

void ServerState::note_admission(std::int32_t slot) {
  // Entries of sequences that are gone are dropped once they are the most.
  if (order_.size() > 64 && static_cast<std::int64_t>(order_.size()) > 4 * running()) {
    std::erase_if(order_, [&](const Admitted& a) {
      const Sequence& other = at(a.slot);
      return other.request.number != a.number || other.phase == Sequence::Phase::waiting ||
             other.phase == Sequence::Phase::done;
    });
  }
  order_.push_back({slot, at(slot).request.number});
}

bool ServerState::read(std::int32_t slot, std::int64_t tokens, Batch& batch) {
  Sequence& s = at(slot);
  if (rules_.on_demand) {
    const std::int64_t needed = blocks_of(s.read + tokens) - s.blocks;
    while (free_blocks() < needed) {
      const std::int32_t victim = youngest();
      preempt(victim);
      if (victim == slot) return false;
    }
    s.blocks += needed;
    used_ += needed;
    make_room();
  }
  const std::size_t queue = queue_of(s.request);
  Iteration& rank = batch.rank_for(queue);
  rank.add_piece(s.read, static_cast<double>(tokens), rules_.window);
  s.read += static_cast<std::int32_t>(tokens);
  read_ += tokens;
  ++batch.reading;
  ++batch.of_queues[queue];
  if (s.read == s.context) {
    batch.ended.push_back(slot);
    rank.first_tokens += 1;
  }
  return true;
}

bool ServerState::make_room_to_decode() {
  bool none = true;
  room_made_ = false;
  while (rules_.on_demand && decoding_ > 0 && free_blocks() < needed_now()) {
    preempt(youngest());
    none = false;
  }
  room_made_ = rules_.on_demand;
  return none;
}

std::int32_t ServerState::youngest() {
  for (; !order_.empty(); order_.pop_back()) {
    const Admitted& last = order_.back();
    const Sequence& s = at(last.slot);
    const bool runs = s.phase == Sequence::Phase::reading || s.phase == Sequence::Phase::decoding;
    if (runs && s.request.number == last.number) return last.slot;
  }
  SHARDSCAPE_CHECK(false, "blocks are taken but nothing runs", used_);
  return 0;
}

/// A preempted sequence reads its prompt and all that it has given again, and goes to the head of the queue.
void ServerState::preempt(std::int32_t slot) {
  Sequence& s = at(slot);
  ++preemptions_;
  order_.pop_back();  // which is the youngest's
  if (s.phase == Sequence::Phase::decoding) {
    const auto steps = static_cast<std::int32_t>(decoded_ - s.joined);
    leave_decoding(s);
    if (steps > 0) s.last_token = decoded_at_;
    s.given += static_cast<std::int32_t>(s.tokens_after(steps));
    s.taken += steps;
    s.context = s.request.prompt + s.given;
  } else {
    std::erase(reading_, slot);
    used_ -= s.blocks - s.shared;
    read_ -= s.read;
    let_go_of_prefix(s, 0);
  }
  s.phase = Sequence::Phase::waiting;
  s.read = 0;
  push({kHeadOfQueue, s.request.number, slot});
}

std::int64_t ServerState::iterations_with_room(std::int64_t most) const {
  const std::int64_t free = rules_.kv_blocks - used_blocks();
  if (rules_.drafts > 0 && rules_.on_demand) {
    // As many as surely have room, halved until they do.
    while (most > 1 && blocks_after(most) > free) most /= 2;
    return most;
  }
  if (!rules_.on_demand || free >= (most / rules_.kv_block + 1) * decoding_) return most;
  // As many iterations as a block has tokens take a block for each sequence.
  const std::int64_t cycles = std::min(most / rules_.kv_block, free / decoding_);
  std::int64_t left = free - cycles * decoding_, iterations = cycles * rules_.kv_block;
  for (; iterations < most; ++iterations) {
    left -= growing_[phase_of(decoded_ + iterations)];
    if (left < 0) break;
  }
  return std::max<std::int64_t>(iterations, 1);
}

std::int64_t ServerState::until_done() {
  for (;; ends_.pop()) {
    const End& next = ends_.top();
    const Sequence& s = at(next.slot);
    if (s.phase == Sequence::Phase::decoding && s.request.number == next.number && end_of(s) == next.at)
      return next.at - decoded_;
  }
}

void ServerState::decode(std::int64_t iterations, double now) {
  if (rules_.on_demand && rules_.drafts > 0) {
    used_ += blocks_after(iterations);
  } else if (rules_.on_demand) {
    used_ += iterations / rules_.kv_block * decoding_;
    for (std::int64_t i = 0; i < iterations % rules_.kv_block; ++i) used_ += growing_[phase_of(decoded_ + i)];
  }
  room_made_ = false;
  cached_ += iterations * pace_;
  to_give_ -= iterations * pace_;
  decoded_ += iterations;
  decoded_at_ = now;
  since_.assign(1, {now, decoding_});
  make_room();
}

std::int64_t ServerState::blocks_after(std::int64_t iterations) const {
  std::int64_t blocks = 0;
  for (const std::int32_t slot : drafting_) {
    const Sequence& s = at(slot);
    const std::int64_t steps = decoded_ - s.joined;
    blocks += blocks_of(s.context + s.tokens_after(steps + iterations)) -
              blocks_of(s.context + s.tokens_after(steps));
  }
  return blocks;
}

void ServerState::share(Sequence& s, std::int64_t tokens) {
  const std::int64_t blocks = tokens / rules_.kv_block;
  if (blocks <= s.shared) return;
  cache_.pin(s.request.path, s.shared, blocks);
  // What others brought there in the meantime counts once.
  const std::int64_t own = rules_.on_demand ? std::min(s.blocks, blocks) - s.shared : blocks - s.shared;
  used_ -= std::max<std::int64_t>(0, own);
  shared_ += blocks - s.shared;
  s.shared = blocks;
  s.blocks = std::max(s.blocks, blocks);
  make_room();
}

/// Its whole blocks, of so many tokens in the cache, stay until room is needed.
void ServerState::let_go_of_prefix(Sequence& s, std::int64_t tokens) {
  if (!rules_.keeps_prefixes) return;
  const std::int64_t blocks = std::max(s.shared, tokens / rules_.kv_block);
  cache_.pin(s.request.path, s.shared, blocks);
  cache_.unpin(s.request.path, blocks);
  shared_ -= s.shared;
  s.shared = 0;
  make_room();
}

std::int32_t ServerState::expect(const DrawnRequest& request) {
  const std::int64_t blocks = rules_.on_demand ? blocks_of(request.prompt) : blocks_of_all(request);
  const std::int64_t taken = used_blocks() + (rules_.on_demand && decoding_ > 0 ? needed_now() : 0);
  const bool room = rules_.kv_blocks - taken >= blocks + (running() > 0 ? rules_.watermark : 0);
  if (has_waiting() || running() >= rules_.max_batch || !room) return -1;
  wait(request);
  const std::int32_t slot = pop(0);
  Sequence& s = at(slot);
  s.phase = Sequence::Phase::moving;
  s.read = s.context;
  s.blocks = blocks;
  read_ += s.read;
  used_ += blocks;
  ++moving_;
  return slot;
}

void ServerState::join_moved(std::int32_t slot, double moment) {
  --moving_;
  note_admission(slot);
  join(slot, moment);
}

void ServerState::drop_moved(std::int32_t slot) {
  Sequence& s = at(slot);
  --moving_;
  read_ -= s.read;
  used_ -= s.blocks;
  s.phase = Sequence::Phase::done;
  free_.push_back(slot);
}

void ServerState::hold(const DrawnRequest& request) {
  ++moving_;
  const std::int64_t prefix = prefix_of(request);
  used_ += blocks_of_all(request) - prefix;
  if (prefix > 0) cache_.pin(request.path, 0, prefix);
  make_room();
}

void ServerState::let_go(const DrawnRequest& request) {
  --moving_;
  const std::int64_t prefix = prefix_of(request);
  used_ -= blocks_of_all(request) - prefix;
  if (prefix > 0) cache_.unpin(request.path, prefix);
  make_room();
}

void ServerState::join(std::int32_t slot, double now) {
  Sequence& s = at(slot);
  // Having been read again gives as many tokens as a decode iteration.
  if (s.given > 0) ++s.taken;
  if (rules_.reads_only) s.taken = s.request.steps;
  ++s.given;
  if (s.request.steps > 0) s.pace = (s.request.output - 1) * Sequence::kWhole / s.request.steps;
  s.phase = Sequence::Phase::decoding;
  s.joined = decoded_;
  s.last_token = now;
  if (since_.empty() || since_.back().moment != now) since_.push_back({now, 0});
  ++since_.back().count;
  read_ -= s.read;
  if (rules_.keeps_prefixes) share(s, s.context);
  cached_ += s.context * Sequence::kWhole;
  to_give_ += (s.request.steps - s.taken) * s.pace;
  pace_ += s.pace;
  if (rules_.drafts > 0) drafting_.push_back(slot);
  ++decoding_;
  ++growing_[phase_of((decoded_ - s.context % rules_.kv_block + rules_.kv_block) % rules_.kv_block)];
  ends_.push({end_of(s), s.request.number, slot});
}

void ServerState::leave_decoding(Sequence& s) {
  const std::int64_t steps = decoded_ - s.joined;
  --decoding_;
  cached_ -= s.context * Sequence::kWhole + steps * s.pace;
  to_give_ -= (end_of(s) - decoded_) * s.pace;
  pace_ -= s.pace;
  if (rules_.drafts > 0) std::erase_if(drafting_, [&](std::int32_t slot) { return &at(slot) == &s; });
  --growing_[phase_of((s.joined - s.context % rules_.kv_block + rules_.kv_block) % rules_.kv_block)];
  const std::int64_t tokens = s.context + s.tokens_after(steps);
  used_ -= (rules_.on_demand ? blocks_of(tokens) : s.blocks) - s.shared;
  let_go_of_prefix(s, tokens);
  s.phase = Sequence::Phase::done;
  const double latest = steps > 0 ? decoded_at_ : s.last_token;
  const auto group = std::ranges::find(since_, latest, &Since::moment);
  if (--group->count == 0) since_.erase(group);
}

std::int64_t ServerState::ending(const std::vector<std::int32_t>& ended, std::int64_t iterations) const {
  std::int64_t all = std::ranges::count_if(sequences_, [&](const Sequence& s) {
    return s.phase == Sequence::Phase::decoding && end_of(s) == decoded_ + iterations;
  });
  for (const std::int32_t slot : ended) {
    const Sequence& s = (*this)[slot];
    all += s.request.steps - s.taken - (s.given > 0 ? 1 : 0) <= 0 ? 1 : 0;
  }
  return all;
}

void ServerState::describe(double now, std::int64_t number, StateOfServer& state) const {
  std::vector<Waiting> waiting;
  for (const Lowest<Waiting>& queue : queues_)
    for (Lowest<Waiting> left = queue; !left.empty(); left.pop()) waiting.push_back(left.top());
  std::vector<const Sequence*> there;
  for (const Waiting& one : waiting) there.push_back(&at(one.slot));
  for (const Admitted& one : order_) {
    const Sequence& s = at(one.slot);
    const bool runs = s.phase == Sequence::Phase::reading || s.phase == Sequence::Phase::decoding;
    if (runs && s.request.number == one.number) there.push_back(&s);
  }
  for (const Sequence* const s : there) {
    state.counts.insert(
        state.counts.end(),
        {static_cast<std::int64_t>(s->phase), s->request.number - number, s->given, s->taken, s->context,
         s->read, s->blocks, s->phase == Sequence::Phase::decoding ? s->joined - decoded_ : 0});
    state.moments.insert(state.moments.end(), {s->request.sent - now, s->admitted < 0 ? 1 : s->admitted - now,
                                               s->first_token < 0 ? 1 : s->first_token - now,
                                               s->last_token < 0 ? 1 : s->last_token - now});
  }
  for (const Since& since : since_) {
    state.counts.push_back(since.count);
    state.moments.push_back(since.moment - now);
  }
}

}  // namespace shardscape::serving
