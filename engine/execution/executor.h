// Executes programs: devices, hosts and messages in one course of events.
//
// Compute on a device meets nobody, so a rank runs ahead through its program on its own clock until it needs
// something from others; messages share links max-min fairly as in network/flow_simulator.h. Those of rings
// that meet nobody are worked out together (lone_rings.h). The order of simultaneous events is that of their
// causes, so the result is a pure function of the programs.
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

/// Seconds by account.
using Ledger = EnumArray<Account, double>;

struct ExecutionResult {
  std::vector<double> end;          ///< of each rank's program, seconds
  std::vector<Ledger> accounts;     ///< of each rank; they add up to its end
  std::int64_t operators = 0;       ///< compute instructions executed
  std::int64_t messages = 0;        ///< received
  std::int64_t events = 0;          ///< operators, calls entered, messages drained, messages received
  std::int32_t executed_ranks = 0;  ///< ranks that were executed for all of them, see folding.h
  bool gave_up = false;             ///< too many events, or the watch said so: nothing else says anything
  /// Ranks that can never go on, and why: "rank 3 waits for a message from rank 1 that is never sent (...)".
  /// Empty where all programs ended.
  std::vector<std::string> deadlock;
};

/// What a rank's device did. Seconds.
struct Activity {
  std::int32_t rank = 0;
  const Instruction* instruction = nullptr;
  Account account = Account::compute;  ///< that the time was booked on
  std::size_t position = 0;            ///< of the block in the rank's sequence
  double start = 0, end = 0;
};
/// One call of one rank, from its begin on its lane to its end there.
struct CallSpan {
  std::int32_t rank = 0, lane = 0, call = 0;
  double start = 0, end = 0;
};
/// A message through a channel, from the sender's wish to its receipt.
struct MessageSpan {
  std::int32_t connection = 0, sender = 0, receiver = 0;
  double bytes = 0, issued = 0, received = 0;
};

/// Hears what is executed, each track (device, host, lane, channel of a rank) in order of time; what takes no
/// time is left out.
class ExecutionObserver {
 public:
  virtual ~ExecutionObserver() = default;
  virtual void executed(const Activity& activity) = 0;
  virtual void launched(std::int32_t /*rank*/, double /*start*/, double /*end*/) {}
  virtual void called(const CallSpan& /*call*/) {}
  virtual void received(const MessageSpan& /*message*/) {}
};

/// Whether symmetric ranks are executed once. It changes no result, but for what rounding does to every_message.
enum class Fold : std::uint8_t {
  every_message,  ///< never, and no times are worked out together, either (lone_rings.h): the reference
  never,
  when_it_pays,  ///< where the search for symmetry takes a small part of what the execution would
  always,
};

/// Asked with a time, in seconds, before which the programs do not all end; it never falls. False: they are given up.
using ExecutionWatch = std::function<bool(double at_least)>;

/// Reusable: scratch memory is kept between runs, and there is no allocation per event in steady state. One
/// object per thread.
class Executor {
 public:
  Executor();
  ~Executor();
  Executor(Executor&&) noexcept;
  Executor& operator=(Executor&&) noexcept;

  /// From now on executions that take more events than that are given up, most of them before they begin.
  void give_up_after(std::int64_t events);
  /// From now on asked before an execution begins and every some thousand of its events; empty: nobody is.
  void watch(ExecutionWatch watch);

  /// `link_bytes_per_second`: by link id of programs.path_links, > 0. With an observer every rank is executed.
  const ExecutionResult& run(const Programs& programs, std::span<const double> link_bytes_per_second,
                             ExecutionObserver* observer = nullptr, Fold fold = Fold::when_it_pays);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace shardscape::execution
