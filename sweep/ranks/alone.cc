#include <atomic>

#include "sweep/ranks/ranks.h"

namespace shardscape::ranks {

namespace {

class Alone final : public Ranks {
 public:
  [[nodiscard]] int rank() const override { return 0; }
  [[nodiscard]] int size() const override { return 1; }
  [[nodiscard]] int on_this_machine() const override { return 1; }
  [[nodiscard]] std::string name(int /*rank*/) const override { return "rank 0 of 1"; }
  std::vector<std::string> gather(const std::string& text) override { return {text}; }
  std::string broadcast(const std::string& text) override { return text; }
  std::uint64_t take(int /*counter*/) override { return taken_++; }
  void report(const Report& report) override { report_ = report; }
  std::vector<Report> reports() override { return {report_}; }
  void ask_to_stop() override { stop_ = true; }
  [[nodiscard]] bool asked_to_stop() const override { return stop_; }
  void close() override {}

 private:
  std::atomic<std::uint64_t> taken_{0};
  Report report_;
  std::atomic<bool> stop_{false};
};

}  // namespace

std::unique_ptr<Ranks> alone() { return std::make_unique<Alone>(); }

}  // namespace shardscape::ranks
