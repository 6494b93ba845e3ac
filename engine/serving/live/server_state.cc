#include "engine/serving/live/server_state.h"

#include <algorithm>

#include "engine/base/check.h"

namespace shardscape::serving {

ServerState::ServerState(const LiveRules& rules)
    : rules_(rules), growing_(static_cast<std::size_t>(rules.kv_block)) {}

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
  const std::int64_t rank = rules_.queue == QueueOrder::fcfs       ? 0
                            : rules_.queue == QueueOrder::shortest ? request.prompt
                                                                   : request.priority;
  queue_.push({rank, request.number, slot});
}

bool ServerState::admits_head(std::int64_t tokens) const {
  if (running() >= rules_.max_batch) return false;
  const DrawnRequest& request = head().request;
  const std::int64_t needed =
      rules_.on_demand ? blocks_of(tokens) : blocks_of(std::int64_t{request.prompt} + request.output);
  return free_blocks() >= needed + (running() > 0 ? rules_.watermark : 0);
}

std::int32_t ServerState::admit() {
  const std::int32_t slot = queue_.top().slot;
  queue_.pop();
  Sequence& s = at(slot);
  s.phase = Sequence::Phase::reading;
  s.read = known(s);
  read_ += s.read;
  if (s.admitted < 0) s.admitted = now_;
  s.blocks = rules_.on_demand ? 0 : blocks_of(std::int64_t{s.request.prompt} + s.request.output);
  used_ += s.blocks;
  reading_.push_back(slot);
  // Entries of sequences that are gone are dropped once they are the most.
  if (order_.size() > 64 && static_cast<std::int64_t>(order_.size()) > 4 * running()) {
    std::erase_if(order_, [&](const Admitted& a) {
      const Sequence& other = at(a.slot);
      return other.request.number != a.number || other.phase == Sequence::Phase::waiting ||
             other.phase == Sequence::Phase::done;
    });
  }
  order_.push_back({slot, s.request.number});
  return slot;
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
  }
  batch.work.add_piece(s.read, static_cast<double>(tokens), rules_.window);
  s.read += static_cast<std::int32_t>(tokens);
  read_ += tokens;
  ++batch.reading;
  if (s.read == s.context) batch.ended.push_back(slot);
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
    s.given += steps;
    s.context = s.request.prompt + s.given;
  } else {
    std::erase(reading_, slot);
    used_ -= s.blocks;
    read_ -= s.read;
  }
  s.phase = Sequence::Phase::waiting;
  s.read = 0;
  queue_.push({-1, s.request.number, slot});
}

std::int64_t ServerState::iterations_with_room(std::int64_t most) const {
  const std::int64_t free = rules_.kv_blocks - used_;
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
  if (rules_.on_demand) {
    used_ += iterations / rules_.kv_block * decoding_;
    for (std::int64_t i = 0; i < iterations % rules_.kv_block; ++i) used_ += growing_[phase_of(decoded_ + i)];
  }
  room_made_ = false;
  cached_ += iterations * decoding_;
  to_give_ -= iterations * decoding_;
  decoded_ += iterations;
  decoded_at_ = now;
  since_.assign(1, {now, decoding_});
}

void ServerState::join(std::int32_t slot, double now) {
  Sequence& s = at(slot);
  ++s.given;
  s.phase = Sequence::Phase::decoding;
  s.joined = decoded_;
  s.last_token = now;
  if (since_.empty() || since_.back().moment != now) since_.push_back({now, 0});
  ++since_.back().count;
  read_ -= s.read;
  cached_ += s.context;
  to_give_ += s.request.output - s.given;
  ++decoding_;
  ++growing_[phase_of((decoded_ - s.context % rules_.kv_block + rules_.kv_block) % rules_.kv_block)];
  ends_.push({end_of(s), s.request.number, slot});
}

void ServerState::leave_decoding(Sequence& s) {
  const std::int64_t steps = decoded_ - s.joined;
  --decoding_;
  cached_ -= s.context + steps;
  to_give_ -= end_of(s) - decoded_;
  --growing_[phase_of((s.joined - s.context % rules_.kv_block + rules_.kv_block) % rules_.kv_block)];
  used_ -= rules_.on_demand ? blocks_of(s.context + steps) : s.blocks;
  s.phase = Sequence::Phase::done;
  const double latest = steps > 0 ? decoded_at_ : s.last_token;
  const auto group = std::ranges::find(since_, latest, &Since::moment);
  if (--group->count == 0) since_.erase(group);
}

}  // namespace shardscape::serving
