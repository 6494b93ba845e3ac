// The operations of a group of ranks that the engine knows by name.
#pragma once

#include <cstddef>
#include <cstdint>

namespace shardscape::network {

/// ring_pass: every member sends to its successor, once, the last to the first. chain_pass: neighbours of an
/// open chain send to each other, both ways at once (pipeline stages). message: the first of two members sends to the
/// second. expert_dispatch, expert_combine: as
/// all_to_all or, with loads, as dispatch and combine, of copies of tokens. dispatch, combine: all-to-all in the parts
/// that CollectiveSetup::expert_shares makes, to the members of a group and from them. last_combine: of a combine,
/// what the busiest members send; without loads, one member. low_latency_dispatch, low_latency_combine:
/// expert_dispatch and expert_combine by kernels that send a copy of a token for each of its experts.
enum class CollectiveOp : std::uint8_t {
  all_reduce,
  reduce_scatter,
  all_gather,
  all_to_all,
  broadcast,
  ring_pass,
  chain_pass,
  message,
  expert_dispatch,
  expert_combine,
  dispatch,
  combine,
  last_combine,
  low_latency_dispatch,
  low_latency_combine
};
constexpr std::size_t kCollectiveOps = 15;
/// Whether kernels of low latency carry out the operation.
constexpr bool is_low_latency(CollectiveOp op) {
  return op == CollectiveOp::low_latency_dispatch || op == CollectiveOp::low_latency_combine;
}
constexpr bool is_exchange(CollectiveOp op) {
  return op == CollectiveOp::expert_dispatch || op == CollectiveOp::expert_combine || is_low_latency(op);
}
/// Whether members send or receive unequal parts.
constexpr bool is_skewed(CollectiveOp op) {
  return op == CollectiveOp::dispatch || op == CollectiveOp::combine || op == CollectiveOp::last_combine;
}

/// The tokens that expert_dispatch and expert_combine move: what they depend on of the model and the stack.
struct TokenExchange {
  double hidden = 0;  ///< number of values of a token
  double top_k = 1;
  double experts = 1;                       ///< experts on all ranks together
  std::int64_t groups = 1, top_groups = 1;  ///< groups of experts, and how many of them a token goes to
  double sms = 20;                          ///< number of SMs that the kernels run on
  double dispatch_value = 2;                ///< bytes of a value on its way out; on its way back it has 2
  /// Calls take as long as DeepEP's kernels; false: as long as their links alone.
  bool closed_form = true;
};

}  // namespace shardscape::network
