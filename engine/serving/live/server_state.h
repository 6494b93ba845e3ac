// What a server holds between two iterations: the queue of waiting requests, the sequences whose prompts are being
// read, those that decode, and the blocks of the key-value cache that each has taken.
//
// A sequence of p prompt tokens has p + k - 1 tokens in its cache when its k-th token is given: a token is written when
// it is met. Decoding sequences get a token in each decode iteration, so one counter of these tells how far each is.
// How many of them need a new block in a decode iteration depends on their lengths modulo the block alone, of which a
// histogram is kept.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <queue>
#include <vector>

#include "engine/serving/live/live_rules.h"
#include "engine/serving/live/prefix_cache.h"
#include "engine/serving/load/drawn_requests.h"

namespace shardscape::serving {

struct Sequence {
  enum class Phase : std::uint8_t { waiting, reading, decoding, moving, done };
  DrawnRequest request;
  double admitted = -1;  ///< moment at which its prompt was first read; -1: not yet
  double first_token =
      -1;  ///< moment at which the client has it; -1: not yet; of two pools: infinite until then
  double last_token = -1;      ///< moment of the latest token before its decoding began; -1: none
  std::int32_t given = 0;      ///< tokens given before its decoding began
  std::int32_t taken = 0;      ///< decode iterations of request.steps that gave these
  std::int64_t pace = kWhole;  ///< tokens of a decode iteration, in parts of kWhole
  std::int32_t context =
      0;  ///< tokens to read before it decodes: the prompt, and after preemption what was given
  std::int32_t read = 0;    ///< of these
  std::int64_t joined = 0;  ///< decode iterations of the server when it began to decode
  std::int64_t shared = 0;  ///< of its blocks, the first: those that the prefix cache has
  std::array<std::int64_t, kCacheTiers> hits{};  ///< tokens of the prompt that were found, by tier
  std::int64_t blocks = 0;                       ///< taken when it began to decode
  Phase phase = Phase::waiting;
  // Of two pools: moments at which the prompt was read, and at which its cache began to move and was there.
  double read_at = 0, moved_from = 0, landed = 0;

  /// Where drafts are accepted a request has as many decode iterations as were drawn, and each gives as many tokens.
  static constexpr std::int64_t kWhole = 1 << 12;
  /// Tokens given after so many decode iterations since decoding began.
  [[nodiscard]] std::int64_t tokens_after(std::int64_t iterations) const {
    return iterations * pace / kWhole;
  }
};

/// The place of a request in a queue of this order: the lowest goes first, of equal ones the earliest.
inline std::int64_t queue_rank(QueueOrder order, const DrawnRequest& request) {
  if (order == QueueOrder::fcfs) return 0;
  return order == QueueOrder::shortest ? request.prompt : request.priority;
}

/// The state of a server in numbers, to compare it with another one.
struct StateOfServer {
  std::vector<std::int64_t> counts;
  std::vector<double> moments;
};

class ServerState {
 public:
  explicit ServerState(const LiveRules& rules);

  [[nodiscard]] const LiveRules& rules() const { return rules_; }
  [[nodiscard]] const Sequence& operator[](std::int32_t slot) const { return at(slot); }

  // ---- what admission rules ask and do ----

  [[nodiscard]] bool has_waiting() const { return waiting_ > 0; }
  [[nodiscard]] std::int64_t waiting() const { return waiting_; }
  /// The queue that a request waits in: there is one, or one for each rank where these are drawn.
  [[nodiscard]] std::size_t queue_of(const DrawnRequest& request) const {
    return rules_.drawn_ranks ? static_cast<std::size_t>(rank_of(rules_, request.number)) : 0;
  }
  /// Of the queues that the batch has room for, the one whose head goes first; nothing: none has a head.
  [[nodiscard]] std::optional<std::size_t> next_queue(Batch& batch) const;
  /// Tokens of the context of a queue's head that have to be read: without those that are found in the cache.
  [[nodiscard]] std::int64_t head_left(std::size_t queue = 0) const {
    return head(queue).context - found(head(queue)) * rules_.kv_block;
  }
  /// The request of a queue that is admitted next.
  [[nodiscard]] const Sequence& head(std::size_t queue = 0) const { return at(queues_[queue].top().slot); }
  [[nodiscard]] std::int64_t decoding() const { return decoding_; }
  [[nodiscard]] std::int64_t running() const {
    return decoding_ + static_cast<std::int64_t>(reading_.size()) + moving_;
  }
  /// Tokens of decoding sequences, drafts among them, on the rank with most.
  [[nodiscard]] std::int64_t decoding_tokens() const {
    return (decoding_ + rules_.ranks - 1) / rules_.ranks * (1 + rules_.drafts);
  }
  [[nodiscard]] bool reads() const { return !reading_.empty(); }
  [[nodiscard]] const std::deque<std::int32_t>& reading() const { return reading_; }
  /// Tokens that decoding sequences have still to give.
  [[nodiscard]] std::int64_t tokens_to_give() const { return to_give_ / Sequence::kWhole; }
  [[nodiscard]] std::int64_t blocks_of(std::int64_t tokens) const {
    return (tokens + rules_.kv_block - 1) / rules_.kv_block;
  }
  /// Blocks that nobody has, nor takes in the decode iteration for which room has been made.
  [[nodiscard]] std::int64_t free_blocks() const {
    return rules_.kv_blocks - used_blocks() - (room_made_ ? needed_now() : 0);
  }
  /// Whether there is a place for the head, and blocks for `tokens` of what is left of it, or where blocks are reserved
  /// for all of it.
  [[nodiscard]] bool admits_head(std::int64_t tokens, std::size_t queue = 0) const;
  /// Moves the head to those being read; returns its slot.
  std::int32_t admit(std::size_t queue = 0);
  /// Reads tokens of a sequence's context. Where blocks run out the youngest running sequences are preempted; false
  /// where that was the sequence itself.
  bool read(std::int32_t slot, std::int64_t tokens, Batch& batch);
  /// Sees to it that every decoding sequence can write one more token, by preempting the youngest running sequences;
  /// true where none had to be.
  bool make_room_to_decode();

  // ---- what the server's clock does ----

  /// A request joins the queue.
  void wait(const DrawnRequest& request);
  /// An iteration is planned that begins now.
  void begin(double now) {
    now_ = now;
    room_made_ = false;
    loading_ = 0;
  }
  /// How many of `most` decode iterations have blocks, one at least.
  [[nodiscard]] std::int64_t iterations_with_room(std::int64_t most) const;
  /// Decode iterations until the next sequence is done.
  [[nodiscard]] std::int64_t until_done();
  /// Tokens that all decoding sequences meet in the next decode iteration.
  [[nodiscard]] double tokens_met() const {
    return static_cast<double>(cached_) / Sequence::kWhole + static_cast<double>(decoding_);
  }
  /// Tokens that all decoding sequences get in a decode iteration.
  [[nodiscard]] double pace() const { return static_cast<double>(pace_) / Sequence::kWhole; }
  /// Decoding sequences that got their latest token at the same moment.
  struct Since {
    double moment;
    std::int64_t count;
  };
  [[nodiscard]] const std::vector<Since>& since() const { return since_; }
  /// Decode iterations, the last of which ends now.
  void decode(std::int64_t iterations, double now);
  /// Sequences whose context is read begin to decode, their next token given now: again(moment) for each that was
  /// preempted, with the moment of the token before it.
  template <class Again>
  void finish_contexts(const std::vector<std::int32_t>& ended, double now, const Again& again) {
    for (const std::int32_t slot : ended) {
      Sequence& s = at(slot);
      std::erase(reading_, slot);
      if (s.first_token < 0) {
        s.first_token = now;
      } else {
        again(s.last_token);
      }
      join(slot, now);
    }
  }
  /// Takes out the sequences that are done, oldest request first: done(sequence).
  template <class Done>
  void take_done(const Done& done) {
    while (decoding_ > 0 && until_done() == 0) {
      const std::int32_t slot = ends_.top().slot;
      ends_.pop();
      Sequence& s = at(slot);
      leave_decoding(s);
      s.first_token = std::min(s.first_token, std::max(decoded_at_, s.last_token));
      done(s);
      free_.push_back(slot);
    }
  }
  /// How many sequences take_done() will take after so many decode iterations more (0: none), and once those of `ended`
  /// have begun to decode. Not of servers that only read.
  [[nodiscard]] std::int64_t ending(const std::vector<std::int32_t>& ended, std::int64_t iterations) const;
  /// What comes next, of requests that are alike, depends on this alone. Moments count from `now`, numbers of requests
  /// from `number` on.
  void describe(double now, std::int64_t number, StateOfServer& state) const;

  /// Tokens of the cache that are held, or reserved; those that several sequences share once.
  [[nodiscard]] double tokens_held() const {
    if (!rules_.on_demand) return static_cast<double>(used_blocks() * rules_.kv_block);
    const std::int64_t in_common = (shared_ - cache_.pinned()) * rules_.kv_block;
    return static_cast<double>(cached_) / Sequence::kWhole + static_cast<double>(read_ - in_common);
  }

  // ---- caches that move between pools ----

  /// Takes a place and blocks for a request whose prompt another server has read, if there are any now, and nobody that
  /// was preempted waits for them: its slot, else -1.
  std::int32_t expect(const DrawnRequest& request);
  [[nodiscard]] Sequence& moving(std::int32_t slot) { return at(slot); }
  /// Its cache is there since `moment`: it decodes from now on.
  void join_moved(std::int32_t slot, double moment);
  /// The client has the first token of a request that was in this slot, if that is not done.
  void answer(std::int32_t slot, std::int64_t number, double moment) {
    if (at(slot).request.number == number) at(slot).first_token = std::min(at(slot).first_token, moment);
  }
  /// Its cache is there, and no token is left to give.
  void drop_moved(std::int32_t slot);
  /// The cache of a prompt that is done here keeps its place and its blocks until it has left.
  void hold(const DrawnRequest& request);
  void let_go(const DrawnRequest& request);
  [[nodiscard]] std::int64_t moving() const { return moving_; }
  /// Blocks of running requests.
  [[nodiscard]] std::int64_t used_blocks() const { return used_ + cache_.pinned(); }
  /// Seconds to bring back what requests that were admitted for this iteration found on host and disk.
  [[nodiscard]] double loading() const { return loading_; }
  /// Blocks of a request that are there, on any tier.
  [[nodiscard]] std::int64_t blocks_found(const DrawnRequest& request) const {
    return rules_.keeps_prefixes ? sum_of(cache_.match(request.path, (request.prompt - 1) / rules_.kv_block))
                                 : 0;
  }
  [[nodiscard]] std::int64_t preemptions() const { return preemptions_; }
  [[nodiscard]] bool idle() const { return running() == 0 && waiting_ == 0; }

 private:
  struct Waiting {
    std::int64_t rank, number;  ///< the lowest goes first
    std::int32_t slot;
    friend bool operator>(const Waiting& a, const Waiting& b) {
      return a.rank != b.rank ? a.rank > b.rank : a.number > b.number;
    }
  };
  struct End {
    std::int64_t at;  ///< decode iterations of the server when the sequence is done
    std::int64_t number;
    std::int32_t slot;
    friend bool operator>(const End& a, const End& b) {
      return a.at != b.at ? a.at > b.at : a.number > b.number;
    }
  };
  template <class T>
  using Lowest = std::priority_queue<T, std::vector<T>, std::greater<>>;

  [[nodiscard]] Sequence& at(std::int32_t slot) { return sequences_[static_cast<std::size_t>(slot)]; }
  [[nodiscard]] const Sequence& at(std::int32_t slot) const {
    return sequences_[static_cast<std::size_t>(slot)];
  }
  [[nodiscard]] static std::int64_t end_of(const Sequence& s) { return s.joined + s.request.steps - s.taken; }
  [[nodiscard]] std::int64_t blocks_of_all(const DrawnRequest& request) const {
    return blocks_of(std::int64_t{request.prompt} + (rules_.reads_only ? 1 : request.output));
  }
  [[nodiscard]] std::size_t phase_of(std::int64_t length) const;
  [[nodiscard]] std::int64_t needed_now() const {
    return rules_.drafts > 0 ? blocks_after(1) : growing_[phase_of(decoded_)];
  }
  /// With drafts: blocks that decoding sequences need for so many more iterations.
  [[nodiscard]] std::int64_t blocks_after(std::int64_t iterations) const;
  static std::int64_t sum_of(const TierBlocks& tiers) { return tiers[0] + tiers[1] + tiers[2]; }
  /// Whole blocks of a context that are there, on any tier; its last token is always read.
  [[nodiscard]] std::int64_t found(const Sequence& s) const {
    return rules_.keeps_prefixes ? sum_of(cache_.match(s.request.path, (s.context - 1) / rules_.kv_block))
                                 : 0;
  }
  /// Whole blocks of a prompt that is read, where the prefix cache has them.
  [[nodiscard]] std::int64_t prefix_of(const DrawnRequest& request) const {
    return rules_.keeps_prefixes ? request.prompt / rules_.kv_block : 0;
  }
  /// Blocks that are not in use stay as far as there is room.
  void make_room() {
    if (rules_.keeps_prefixes) cache_.shrink(std::max<std::int64_t>(0, rules_.kv_blocks - used_blocks()));
  }
  /// Blocks up to the `tokens`-th are the prefix cache's from now on.
  void share(Sequence& s, std::int64_t tokens);
  void let_go_of_prefix(Sequence& s, std::int64_t tokens);
  /// Joins its queue.
  void push(const Waiting& waiting);
  /// Takes out the head.
  std::int32_t pop(std::size_t queue);
  void note_admission(std::int32_t slot);
  void join(std::int32_t slot, double now);
  void leave_decoding(Sequence& s);
  void preempt(std::int32_t slot);
  [[nodiscard]] std::int32_t youngest();

  const LiveRules rules_;
  std::vector<Sequence> sequences_;
  std::vector<std::int32_t> free_;  ///< slots
  std::vector<Lowest<Waiting>> queues_;
  std::int64_t waiting_ = 0;          ///< in all of them
  std::deque<std::int32_t> reading_;  ///< in order of admission
  Lowest<End> ends_;                  ///< also of sequences that were preempted
  struct Admitted {
    std::int32_t slot;
    std::int64_t number;
  };
  std::vector<Admitted> order_;      ///< in order of admission; also of sequences that are done
  std::vector<Since> since_;         ///< by moment
  bool room_made_ = false;           ///< in this iteration, to decode
  double now_ = 0, decoded_at_ = 0;  ///< moments: of planning, and of the latest decoded tokens
  /// Decoding sequences by (length - decode iterations) modulo the block.
  std::vector<std::int64_t> growing_;
  std::vector<std::int32_t> drafting_;  ///< with drafts: slots of decoding sequences
  std::int64_t decoding_ = 0, moving_ = 0, read_ = 0;
  std::int64_t cached_ = 0, to_give_ = 0, pace_ = 0;  ///< in parts of Sequence::kWhole
  PrefixCache cache_;
  double loading_ = 0;
  std::int64_t decoded_ = 0;  ///< decode iterations so far
  std::int64_t used_ = 0, preemptions_ = 0;
  std::int64_t shared_ = 0;  ///< blocks of the prefix cache that running sequences use, once for each
};

}  // namespace shardscape::serving
