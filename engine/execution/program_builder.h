// Builds programs: lanes over the groups of a plan, channels between ranks, calls priced like those of
// network::CollectivePrices (same algorithms, links, fixed costs), and blocks of instructions.
//
// Ranks are those of the plan; `placement` says on which rank of the fabric each of them lies (where it is
// shorter than the fabric, the other ranks take no part). A message pays the latency of its path and, as a
// step of an algorithm, the stack's latency of a rank step; hops between switches that reduce pay their
// link's alone.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "engine/base/quantity.h"
#include "engine/execution/program.h"
#include "engine/network/groups/rank_group.h"
#include "engine/network/prices/collective_prices.h"
#include "engine/network/prices/priced_network.h"
#include "engine/spec/stack.h"

namespace shardscape::execution {

class ProgramBuilder {
 public:
  /// All references must outlive the builder. `collectives` chooses the algorithms; it must be set to the
  /// faults and the placement of `network`.
  ProgramBuilder(network::PricedNetwork& network, const StackProfile::Communication& communication,
                 const network::CollectivePrices& collectives, std::span<const std::int32_t> placement);

  /// Adds a lane for `group` and all its sibling groups; groups of one rank make no calls.
  std::int32_t add_lane(const network::RankGroup& group, std::string_view name = "lane");
  /// From now on calls of `lane` run in one order with the calls of the earlier lane `first` (Programs::turns).
  void take_turns(std::int32_t lane, std::int32_t first);
  /// Adds a channel from each rank to peer(rank); none where that is the rank itself.
  std::int32_t add_channel(const std::function<std::int32_t(std::int32_t)>& peer,
                           std::string_view name = "channel");
  /// Delays the receipt of every message of the channel by `delay`.
  void delay_channel(std::int32_t channel, Seconds delay);

  /// The number of a call, for an instruction `start`; `bytes` as in CollectiveKey. -1 where nothing is to be
  /// done.
  std::int32_t call(std::int32_t lane, network::CollectiveOp op, Bytes bytes);
  /// Time of the call in the hierarchical model.
  [[nodiscard]] Seconds estimate(std::int32_t lane, network::CollectiveOp op, Bytes bytes, double calls = 1,
                                 const network::Slice& slice = {});
  /// of(group, kind) of all calls made so far, by lane and call.
  template <class Of>
  [[nodiscard]] auto of_calls(const Of& of) const {
    std::vector<std::vector<decltype(of(std::declval<network::RankGroup>(), CallKind()))>> all(lanes_.size());
    for (std::size_t lane = 0; lane < lanes_.size(); ++lane)
      for (const CallKind& kind : programs_.call_kinds[lane])
        all[lane].push_back(of(lanes_[lane].group, kind));
    return all;
  }
  /// Notes how long they take at least (Programs::least_times).
  void note_least_times(std::vector<std::vector<network::LeastOfRow>> times) {
    programs_.least_times = std::move(times);
  }
  [[nodiscard]] const network::CollectivePrices& collectives() const { return collectives_; }

  /// Adds an instruction to the block under construction; end_block() ends it and returns its number.
  void add(const Instruction& instruction) { programs_.instructions.push_back(instruction); }
  std::int32_t end_block(std::string_view name = "");
  /// The index of an operator in Programs::names, for Instruction::what.
  std::int32_t name(std::string_view text, const OperatorWork& work = {});
  /// The index of what limits an operator, in Programs::bounds, for Instruction::lane.
  std::uint16_t bound(std::string_view text) {
    return static_cast<std::uint16_t>(index_in(programs_.bounds, text));
  }
  std::int32_t add_sequence(std::vector<std::int32_t> blocks, std::string_view name = "");
  void set_sequence(std::int32_t rank, std::int32_t sequence) {
    programs_.sequence_of[static_cast<std::size_t>(rank)] = sequence;
  }

  /// Sets the share of its healthy rate, > 0, at which the rank's memory runs.
  void set_memory_share(std::int32_t rank, double share) {
    programs_.copy_stretch.resize(static_cast<std::size_t>(programs_.ranks), 1);
    programs_.copy_stretch[static_cast<std::size_t>(rank)] = 1 / share;
  }

  /// Whether dead links cut off ranks that have to talk; the programs are then invalid.
  [[nodiscard]] bool unreachable() const { return unreachable_; }
  [[nodiscard]] std::span<const double> bytes_per_second() const { return network_.bytes_per_second(); }
  /// Hands over the programs; the builder is empty afterwards.
  Programs finish() { return std::move(programs_); }

 private:
  struct Lane {
    network::RankGroup group;
    std::int32_t first_communicator = 0, communicators = 0;
  };
  struct CallKey {
    std::int32_t lane = 0;
    network::CollectiveOp op = network::CollectiveOp::all_reduce;
    double bytes = 0;
    friend bool operator==(const CallKey&, const CallKey&) = default;
  };
  struct KnownCall {
    CallKey key;
    std::int32_t call = 0;
  };

  static std::int32_t index_in(std::vector<std::string>& texts, std::string_view text);
  [[nodiscard]] std::int32_t place(std::int32_t rank) const {
    return placement_.empty() ? rank : placement_[static_cast<std::size_t>(rank)];
  }
  CallTraffic traffic_of(std::int32_t communicator, const network::Pattern& pattern, bool pass, bool turned);
  std::int32_t wire(std::int32_t owner, const network::Traffic& traffic, std::int32_t connection,
                    std::int32_t number = 0);

  network::PricedNetwork& network_;
  const network::CollectivePrices& collectives_;
  std::span<const std::int32_t> placement_;
  Programs programs_;
  std::vector<Lane> lanes_;
  std::vector<KnownCall> calls_;
  std::int32_t block_begin_ = 0;
  bool unreachable_ = false;
  /// A connection of the communicator or channel `owner`; these are looked up by their ends.
  struct KnownWire {
    std::int32_t owner = 0, number = 0, connection = 0;
  };
  std::unordered_map<std::uint64_t, std::vector<KnownWire>> wires_;
};

}  // namespace shardscape::execution
