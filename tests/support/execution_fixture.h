// Programs for tests of the executor, on a fabric of one dimension.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "engine/execution/executor.h"
#include "engine/execution/program_builder.h"
#include "tests/support/engine_fixture.h"
#include "tests/support/fabrics.h"

namespace shardscape::test {

/// A machine, its network and a builder on top. All ranks run the same program unless given their own.
class ExecutionBench {
 public:
  using Instruction = execution::Instruction;
  using Kind = Instruction::Kind;
  using Account = execution::Account;

  ExecutionBench(FabricSpec spec, StackProfile::Communication communication)
      : communication_(std::move(communication)),
        fabric_(spec),
        network_(fabric_, communication_),
        collectives_({fabric_, communication_, BytesPerSecond(2e9)}),
        builder_(network_, communication_, collectives_, {}) {}

  execution::ProgramBuilder& builder() { return builder_; }
  [[nodiscard]] std::span<const double> capacity() const { return network_.bytes_per_second(); }

  void compute(double seconds, Account account = Account::compute) {
    builder_.add({Kind::compute, account, 0, builder_.name("work"), 1, seconds});
  }
  void launch(double seconds) { builder_.add({Kind::launch, Account::host, 0, 0, 1, seconds}); }
  void sync_host() { builder_.add({Kind::sync_host, Account::host, 0, 0, 1, 0}); }
  void start(std::int32_t lane, std::int32_t call, std::int32_t repeats = 1) {
    builder_.add({Kind::start, Account::compute, static_cast<std::uint16_t>(lane), call, repeats, 0});
  }
  void join(std::int32_t lane, Account account = Account::tensor_comm) {
    builder_.add({Kind::join, account, static_cast<std::uint16_t>(lane), 0, 1, 0});
  }
  void send(std::int32_t channel, double bytes) {
    builder_.add({Kind::send, Account::pipeline_comm, static_cast<std::uint16_t>(channel), 0, 1, bytes});
  }
  void sent(std::int32_t channel) {
    builder_.add({Kind::sent, Account::pipeline_comm, static_cast<std::uint16_t>(channel), 0, 1, 0});
  }
  void receive(std::int32_t channel) {
    builder_.add({Kind::receive, Account::pipeline_comm, static_cast<std::uint16_t>(channel), 0, 1, 0});
  }
  /// Makes what was added since the last call the program of these ranks.
  void end_program(const std::vector<std::int32_t>& ranks, int times = 1) {
    const std::int32_t block = builder_.end_block();
    const std::int32_t sequence =
        builder_.add_sequence(std::vector<std::int32_t>(static_cast<std::size_t>(times), block));
    for (const std::int32_t rank : ranks) builder_.set_sequence(rank, sequence);
  }
  const execution::ExecutionResult& run() {
    programs_ = builder_.finish();
    return executor_.run(programs_, network_.bytes_per_second());
  }
  [[nodiscard]] const execution::Programs& programs() const { return programs_; }

 private:
  StackProfile::Communication communication_;
  network::Fabric fabric_;
  network::PricedNetwork network_;
  network::CollectivePrices collectives_;
  execution::ProgramBuilder builder_;
  execution::Programs programs_;
  execution::Executor executor_;
};

/// 1 GB/s, no latency but a microsecond per link.
inline FabricSpec ring_of(std::int64_t ranks) {
  return {"ring", {dimension("ring", DimensionKind::ring, {ranks}, 1e9, 1e-6)}};
}

inline network::RankGroup group_of(std::int32_t extent, std::int32_t stride) {
  network::RankGroup group;
  group.push(extent, stride);
  return group;
}

}  // namespace shardscape::test
