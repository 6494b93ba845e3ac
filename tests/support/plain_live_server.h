// One server of a simulated load by brute force: every iteration one after the other, every token's moment kept, blocks
// counted anew from all lengths and from a list of those that are shared.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <list>
#include <optional>
#include <vector>

#include "engine/serving/live/live_rules.h"
#include "engine/serving/load/drawn_requests.h"
#include "tests/support/block_list.h"

namespace shardscape::serving {

struct PlainLiveRequest {
  DrawnRequest request;
  double admitted = -1;
  std::vector<double> tokens;  ///< moments
  double answered = -1;        ///< moment at which the client has the first; -1: as it is there
  [[nodiscard]] double first() const { return answered < 0 ? tokens.front() : answered; }
  TierBlocks hits{};  ///< tokens of the prompt that were found
};

/// What servers have done since the warm-up.
struct PlainWork {
  std::vector<double> gaps;  ///< between tokens
  double begin = 0;          ///< the moment at which the warm-up ended
  double kv_mean = 0, kv_peak = 0;
  double progress_seconds = 0;  ///< seconds of iterations times the requests that they serve
  std::int64_t preemptions = 0;
  double tokens_read = 0;  ///< of prompts, and of what is read again
};

struct LiveItem : PlainLiveRequest {
  std::int64_t read = 0;
  std::int64_t admission = 0;
  std::int64_t shared = 0;  ///< blocks that it has from the list
  bool returned = false;    ///< preempted, and not yet admitted again
  bool in_batch = false;    ///< some of its context is read in the running iteration
  bool joins = false;       ///< and ends there
  std::int64_t answer_in =
      0;  ///< iterations until the client has the first token of what another server read

  [[nodiscard]] std::int64_t context() const { return context_; }
  [[nodiscard]] bool reads() const { return read < context_; }
  [[nodiscard]] std::int64_t given() const { return static_cast<std::int64_t>(tokens.size()); }
  [[nodiscard]] bool decodes() const { return !reads() && !joins; }
  /// Decode iterations since its context was read, of which each gives as many tokens.
  [[nodiscard]] std::int64_t since() const { return decodes() ? given() - given_before_ - 1 : 0; }
  [[nodiscard]] std::int64_t pace() const {
    return request.steps > 0 ? (request.output - 1) * kWhole / request.steps : kWhole;
  }
  /// Tokens in its cache: all of its context that was read, and those given since.
  [[nodiscard]] std::int64_t cached() const { return cached_in(since()); }
  [[nodiscard]] std::int64_t cached_in(std::int64_t iterations) const {
    return read + iterations * pace() / kWhole;
  }
  /// The same with parts of tokens, after so many further iterations.
  [[nodiscard]] double held(std::int64_t iterations) const {
    return static_cast<double>(read * kWhole + (since() + iterations) * pace()) / static_cast<double>(kWhole);
  }
  [[nodiscard]] std::int64_t left() const { return request.steps + 1 - given(); }
  void start_over() {
    if (given() > given_before_) tokens_ += 1 + since() * pace() / kWhole;
    read = 0;
    given_before_ = given();
    context_ = request.prompt + tokens_;
  }

  static constexpr std::int64_t kWhole = 1 << 12;

 private:
  std::int64_t context_ = 0, given_before_ = 0, tokens_ = 0;
};

class PlainLiveServer {
 public:
  static constexpr double kNever = std::numeric_limits<double>::infinity();

  /// `on_links`: every iteration ends with what it sends on links of caches.
  PlainLiveServer(const LiveRules& rules, const Timer& timer, PlainWork& out, bool& measuring,
                  const SendingShares& on_links = {});
  PlainLiveServer(const PlainLiveServer&) = delete;
  PlainLiveServer& operator=(const PlainLiveServer&) = delete;

  double end = kNever, wake = kNever;
  double launch = 0;        ///< seconds in which the host launches the latest iteration that reads
  bool host_bound = false;  ///< and these are all it takes
  bool stood = false;       ///< at the latest start all waited for blocks
  double to_send = 0;       ///< seconds that the running iteration sends from `end` on, were it alone

  /// A request comes.
  void take(const DrawnRequest& request, double now);
  [[nodiscard]] bool works() const { return works_; }
  [[nodiscard]] std::int64_t unfinished() const {
    return static_cast<std::int64_t>(arrived_.size() + waiting_.size() + running_.size() + ready_.size());
  }
  /// Blocks of a prompt that are there.
  [[nodiscard]] std::int64_t found(const DrawnRequest& request) const;
  /// Begins the next iteration.
  void start();
  /// Ends it; returns those done, by number.
  std::vector<PlainLiveRequest> finish();

  // ---- caches that move between pools ----

  /// Whether there is a place and room now for a request that was read elsewhere.
  bool expect(const DrawnRequest& request);
  /// Its cache is there; returns it if its first token is its last.
  std::optional<PlainLiveRequest> land(const PlainLiveRequest& request, double now);
  void hold(const DrawnRequest& request);
  void let_go(const DrawnRequest& request, double now);

 private:
  using LiveItems = std::list<LiveItem>;
  struct Arrived {
    DrawnRequest request;
    std::int64_t came = 0;  ///< iterations that had begun
    std::int64_t due = -1;  ///< decode iterations since the last prompt when it is looked at; -1: not known
  };

  /// Whether anything was there to read when the last iteration began.
  [[nodiscard]] bool takes_fixed() const;
  void look();
  void wake_up(double now) {
    if (!works() && unfinished() > 0) wake = std::min(wake, now);
  }
  /// Blocks of a sequence alone, with so many tokens in the cache.
  [[nodiscard]] std::int64_t own(const LiveItem& item, std::int64_t tokens) const;
  /// Blocks that are taken; `grown`: with those of a decode iteration of all sequences that decode.
  [[nodiscard]] std::int64_t taken(bool grown) const;
  [[nodiscard]] double tokens_held() const;
  [[nodiscard]] std::int64_t places_taken() const {
    return static_cast<std::int64_t>(running_.size() + moving_.size() + ready_.size() + held_items_.size());
  }
  [[nodiscard]] std::int64_t blocks(std::int64_t tokens) const {
    return (tokens + rules_.kv_block - 1) / rules_.kv_block;
  }
  [[nodiscard]] std::int64_t reserved(const LiveItem& item) const {
    return blocks(std::int64_t{item.request.prompt} + (rules_.reads_only ? 1 : item.request.output));
  }
  [[nodiscard]] std::int64_t free_blocks() const { return rules_.kv_blocks - taken(grows_); }
  [[nodiscard]] std::int64_t decoding() const { return std::ranges::count_if(running_, &LiveItem::decodes); }
  /// Whole blocks of its context that are there, but for that of its last token; by tier, and all.
  [[nodiscard]] TierBlocks match(const LiveItem& item) const;
  [[nodiscard]] std::int64_t match_all(const LiveItem& item) const;
  void share(LiveItem& item, std::int64_t tokens);
  void leave(LiveItem& item, std::int64_t tokens);
  void tidy();

  /// The first of the waiting requests, of those whose rank may read more where requests have a rank of their own.
  LiveItems::iterator next_waiting();
  void evict_youngest();
  bool room_to_decode();
  [[nodiscard]] bool admits(const LiveItem& item, std::int64_t tokens) const;
  void admit(LiveItems::iterator item);
  void read(LiveItem& item, std::int64_t tokens);
  [[nodiscard]] Iteration& rank_for(const LiveItem& item) {
    if (!rules_.drawn_ranks) return *std::ranges::min_element(ranks_, {}, &Iteration::prompt_tokens);
    return ranks_[static_cast<std::size_t>(rank_of(rules_, item.request.number))];
  }
  [[nodiscard]] bool full(const LiveItem& item) const {
    if (!rules_.reads_only || rules_.pool_prompts == 0) return false;
    const auto rank = [&](const LiveItem& i) { return rank_of(rules_, i.request.number); };
    const auto beside = [&](const LiveItem& i) {
      return i.in_batch && (!rules_.drawn_ranks || rank(i) == rank(item));
    };
    const std::int64_t ranks = rules_.drawn_ranks ? 1 : rules_.ranks;
    return std::ranges::count_if(running_, beside) >= rules_.pool_prompts * ranks;
  }
  [[nodiscard]] std::int64_t left(const LiveItem& item) {
    return full(item) ? 0 : budget_ - static_cast<std::int64_t>(rank_for(item).prompt_tokens);
  }
  void continue_reading(bool& kept);
  void read_waiting(bool kept);
  [[nodiscard]] bool keeps_promise(std::int64_t context) const;
  void plan();

  const LiveRules& rules_;
  const Timer& timer_;
  PlainWork& out_;
  bool& measuring_;
  std::list<Arrived> arrived_;
  LiveItems waiting_, running_;
  LiveItems moving_, ready_, held_items_;
  BlockList list_;
  std::vector<Iteration> ranks_;  ///< what each reads
  std::int64_t budget_ = 0;       ///< tokens that each may read
  bool decodes_ = false, grows_ = false;
  std::int64_t since_look_ = 0, admissions_ = 0, begun_ = 0, peak_ = 0;
  const SendingShares on_links_;
  bool works_ = false;
  double begin_ = 0, progressing_ = 0, held_ = 0, loading_ = 0;
};

}  // namespace shardscape::serving
