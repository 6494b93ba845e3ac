// Which client measured a server of a public table, and what the source's recipes say about the server: rows of one
// source are runs of one benchmark program, which the tables do not describe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/spec/device.h"
#include "engine/spec/plan.h"
#include "engine/spec/stack.h"
#include "engine/spec/workload.h"

namespace shardscape::validate {

/// What a run's recipe or row says about the server; what it leaves out is as the stack has it.
struct ServerRecipe {
  std::optional<ServingPolicy> scheduler;
  std::optional<std::int64_t> token_budget, max_batch, poll_interval, redundant_experts, pool_prompts;
  /// Requests are dealt over attention ranks, and prompts wait for so many iterations until there is one for each.
  std::optional<std::int64_t> balance_wait;
  double client = 0;  ///< seconds of the client before a request reaches the server, which its TTFT has in it
  std::int64_t draft_tokens = 0;  ///< of speculative decoding
  std::optional<ServedDispatch> dispatch;
  bool prompts_summed = false;
  std::optional<double> fp8_blackwell_share, first_prompts, eager_floor;
  void apply(StackProfile::Serving& serving) const;
  friend auto operator<=>(const ServerRecipe&, const ServerRecipe&) = default;
};

/// What a row says about its run; empty: nothing.
struct RunFacts {
  std::string model, software;
  std::string source;  ///< where the row comes from; names of runs begin at "id="
  std::string client;  ///< the program that sent requests, where the table has a column of them
  std::string date;    ///< of the run, YYYY-MM-DD
  Architecture architecture = Architecture::other;
  ParallelPlan plan;
  bool drafts = false;  ///< decodes speculatively
};

/// The client that measured a server; null where it is not known.
const ClientProfile* client_of(const RunFacts& facts);

/// The load that a client puts on a server: lengths of at most so many tokens. Sets the workload's mean lengths, too.
void set_load(const ClientProfile& client, WorkloadSpec& workload);

/// Shares of iterations in which each draft is accepted, of the module that a model drafts with; empty: not known.
std::vector<double> acceptance_of(std::string_view model);

/// What the public recipe of such a run says; `workload` has its load and its concurrency.
ServerRecipe recipe_of(const RunFacts& facts, const WorkloadSpec& workload);

}  // namespace shardscape::validate
