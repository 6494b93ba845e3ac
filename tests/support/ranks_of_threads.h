// Ranks that are threads of one process: what MPI does between processes, without it.
#pragma once

#include <array>
#include <atomic>
#include <barrier>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "sweep/ranks/ranks.h"

namespace shardscape::test {

/// Calls `part` on so many ranks at once, and waits for all.
inline void on_ranks(int size, const std::function<void(ranks::Ranks&)>& part) {
  struct Common {
    explicit Common(int size) : texts(static_cast<std::size_t>(size)), barrier(size) {}
    std::vector<std::string> texts;
    std::barrier<> barrier;
    std::array<std::atomic<std::uint64_t>, 8> counters{};
    std::atomic<bool> stop{false};
  };
  class Rank final : public ranks::Ranks {
   public:
    Rank(Common& common, int rank) : common_(common), rank_(rank) {}
    [[nodiscard]] int rank() const override { return rank_; }
    [[nodiscard]] int size() const override { return static_cast<int>(common_.texts.size()); }
    [[nodiscard]] int on_this_machine() const override { return size(); }
    [[nodiscard]] std::string name(int rank) const override { return "rank " + std::to_string(rank); }
    std::vector<std::string> gather(const std::string& text) override {
      common_.texts[static_cast<std::size_t>(rank_)] = text;
      common_.barrier.arrive_and_wait();
      std::vector<std::string> all;
      if (rank_ == 0) all = common_.texts;
      common_.barrier.arrive_and_wait();
      return all;
    }
    std::string broadcast(const std::string& text) override {
      if (rank_ == 0) common_.texts[0] = text;
      common_.barrier.arrive_and_wait();
      const std::string heard = common_.texts[0];
      common_.barrier.arrive_and_wait();
      return heard;
    }
    std::uint64_t take(int counter) override {
      return common_.counters.at(static_cast<std::size_t>(counter))++;
    }
    void report(const ranks::Report& /*report*/) override {}
    std::vector<ranks::Report> reports() override { return {}; }
    void ask_to_stop() override { common_.stop = true; }
    [[nodiscard]] bool asked_to_stop() const override { return common_.stop; }
    void close() override {}

   private:
    Common& common_;
    int rank_;
  };
  Common common(size);
  std::vector<std::jthread> threads;
  for (int i = 0; i < size; ++i)
    threads.emplace_back([&common, &part, i] {
      Rank rank(common, i);
      part(rank);
    });
}

}  // namespace shardscape::test
