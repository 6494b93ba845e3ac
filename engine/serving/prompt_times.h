// Times of iterations that read prompts; iterations with the same prompts are timed once.
#pragma once

#include <array>
#include <unordered_map>

#include "engine/base/hash.h"
#include "engine/serving/server.h"

namespace shardscape::serving {

class PromptTimes {
 public:
  explicit PromptTimes(const Timer& timer) : timer_(timer) {}
  const IterationTime& operator()(const Iteration& i) {
    const auto [entry, fresh] =
        times_.try_emplace({i.prompt_tokens, i.prompt_pairs, i.masked_pairs, i.window_pairs, i.first_tokens});
    if (fresh) entry->second = timer_(i);
    return entry->second;
  }

 private:
  using Key = std::array<double, 5>;
  struct Hash {
    std::size_t operator()(const Key& key) const { return hash_words(key); }
  };
  const Timer& timer_;
  std::unordered_map<Key, IterationTime, Hash> times_;
};

}  // namespace shardscape::serving
