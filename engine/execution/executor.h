// Executes programs: devices, hosts and messages in one course of events.
//
// Compute on a device meets nobody, so a rank runs ahead through its program on its own clock until it needs something
// from others; messages share links max-min fairly as in network/flows/flow_simulator.h. Rings whose connections share
// no link with other traffic are computed in closed form (lone_rings.h). The order of simultaneous events is that of
// their causes, so the result is a pure function of the programs.
//
// Left out: reductions take no time; a call is done on a rank when it has received what it is owed, whether
// or not its own last message has arrived.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/execution/program.h"

namespace shardscape::execution {

/// Seconds by account of time.
using Ledger = EnumArray<Account, double>;

struct ExecutionResult {
  std::vector<double> end;          ///< end of each rank's program, seconds
  std::vector<Ledger> accounts;     ///< ledger of each rank; its accounts add up to the rank's end
  std::int64_t operators = 0;       ///< number of compute instructions executed
  std::int64_t messages = 0;        ///< number of messages received
  std::int64_t events = 0;          ///< operators, calls entered, messages drained, messages received
  std::int32_t executed_ranks = 0;  ///< number of ranks that were executed and stand for all, see folding.h
  bool gave_up = false;             ///< too many events, or the watch gave up: no other field is valid
  /// Ranks that can never go on, and why: "rank 3 waits for a message from rank 1 that is never sent (...)".
  /// Empty where all programs ended.
  std::vector<std::string> deadlock;
};

/// An interval in which a rank's device was busy or waited, in seconds.
struct Activity {
  std::int32_t rank = 0;
  const Instruction* instruction = nullptr;
  Account account = Account::compute;  ///< account that the time was booked on
  std::size_t position = 0;            ///< place of the block in the rank's sequence
  double start = 0, end = 0;
};
/// One call of one rank, from its beginning to its end on its lane, in seconds.
struct CallSpan {
  std::int32_t rank = 0, lane = 0, call = 0;
  double start = 0, end = 0;
};
/// A message through a channel, from its issue by the sender to its receipt, in seconds.
struct MessageSpan {
  std::int32_t connection = 0, sender = 0, receiver = 0;
  double bytes = 0, issued = 0, received = 0;
};

/// Receives what is executed. Each track (device, host, lane or channel of a rank) comes in order of time; intervals of
/// no length are left out.
class ExecutionObserver {
 public:
  virtual ~ExecutionObserver() = default;
  virtual void executed(const Activity& activity) = 0;
  virtual void launched(std::int32_t /*rank*/, double /*start*/, double /*end*/) {}
  virtual void called(const CallSpan& /*call*/) {}
  virtual void received(const MessageSpan& /*message*/) {}
};

/// Whether symmetric ranks are executed once. Results do not depend on it, except for rounding in every_message.
enum class Fold : std::uint8_t {
  every_message,  ///< never; lone rings are not computed at once either (lone_rings.h): the reference
  never,
  when_it_pays,  ///< where the search for symmetry costs little compared with the execution
  always,
};

/// Called with a time in seconds before which not all programs end, and which never falls; returns false to give up.
using ExecutionWatch = std::function<bool(double at_least)>;

/// Reusable: keeps its memory between runs, so that events allocate nothing in steady state. Use one object per thread.
class Executor {
 public:
  Executor();
  ~Executor();
  Executor(Executor&&) noexcept;
  Executor& operator=(Executor&&) noexcept;

  /// Executions with more than `events` events are given up from now on, most of them before they begin.
  void give_up_after(std::int64_t events);
  /// Asks `watch` from now on, before each execution and every few thousand of its events; empty: asks nobody.
  void watch(ExecutionWatch watch);
  [[nodiscard]] bool is_watched() const;

  /// Executes programs. `link_bytes_per_second`: by link id of programs.path_links, > 0. With an observer every rank is
  /// executed.
  const ExecutionResult& run(const Programs& programs, std::span<const double> link_bytes_per_second,
                             ExecutionObserver* observer = nullptr, Fold fold = Fold::when_it_pays);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace shardscape::execution
