// A request at a server that is simulated by brute force: what of it is read and given.
#pragma once

#include <cstdint>
#include <list>

#include "tests/support/plain_live_server.h"

namespace shardscape::serving {

struct LiveItem : PlainLiveRequest {
  std::int64_t read = 0, piece = 0;
  std::int64_t admission = 0;
  bool returned = false;  ///< preempted, and not yet admitted again
  bool joins = false;

  [[nodiscard]] std::int64_t context() const { return context_; }
  [[nodiscard]] bool reads() const { return read < context_; }
  [[nodiscard]] std::int64_t given() const { return static_cast<std::int64_t>(tokens.size()); }
  /// Decode iterations since its context was read, of which each gives as many tokens.
  [[nodiscard]] std::int64_t since() const { return reads() ? 0 : given() - given_before_ - 1; }
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

using LiveItems = std::list<LiveItem>;

}  // namespace shardscape::serving
