// Builds the operators of a layer's dispatch and combine: whose tokens go where (library or kernels), how many copies
// of how many bytes, and around them the gathers of ranks that split an expert. Training and servers differ in what a
// leg carries, and share how it is made.
#include "engine/model/mlp/expert_exchange.h"

#include "engine/model/mlp/moe.h"
#include "engine/spec/token_copies.h"

namespace shardscape::model {

namespace {

using network::CollectiveOp;

/// Bytes per value that an exchange sends in forward and in backward.
struct ValueBytes {
  double forward, backward;
};
Operator exchange(const OperatorBuilder& b, std::string_view name, ParallelGroup group, CollectiveOp forward,
                  CollectiveOp backward, double copies, ValueBytes value) {
  const ExpertSplit split = b.key().experts();
  const std::int32_t ranks = group == ParallelGroup::expert ? split.ranks : split.tensor;
  const double values = copies * b.hidden(), repeats = ranks > 1 ? 1 : 0;
  Operator op;
  op.name = name;
  op.kind = OperatorKind::collective;
  op.forward_comm = {forward, group, Bytes(value.forward * values), repeats};
  op.backward_comm = {backward, group, Bytes(value.backward * values), repeats};
  return op;
}

Operator over_expert_tensor(const OperatorBuilder& b, std::string_view name, CollectiveOp forward,
                            CollectiveOp backward, double rows) {
  const double wire = bytes_per_element(b.policy().wire);
  return exchange(b, name, ParallelGroup::expert_tensor, forward, backward, rows, {wire, wire});
}

/// The exchange of a layer over the expert group: dispatch if `out`, else combine. Each is the other's backward, and
/// both are alike where all loads are equal. Where kernels send in fp8, only the forward dispatch does.
Operator over_experts(const OperatorBuilder& b, std::string_view name, bool out, const ExpertShare& share) {
  const double copies = share.mean / b.key().experts().tensor, wire = bytes_per_element(b.policy().wire);
  const StackProfile::Experts& stack = b.stack().experts;
  const auto over = [&](CollectiveOp forward, CollectiveOp backward, double value) {
    return exchange(b, name, ParallelGroup::expert, forward, backward, copies, {value, wire});
  };
  if (stack.dispatch == ExpertDispatcher::library) {
    if (!loads_differ(b.model(), b.workload()))
      return over(CollectiveOp::all_to_all, CollectiveOp::all_to_all, wire);
    return out ? over(CollectiveOp::dispatch, CollectiveOp::combine, wire)
               : over(CollectiveOp::combine, CollectiveOp::dispatch, wire);
  }
  const double sent = dispatched_value_bytes(b.policy(), stack);
  if (out) return over(CollectiveOp::expert_dispatch, CollectiveOp::expert_combine, sent);
  const CollectiveOp back = sent == wire ? CollectiveOp::expert_dispatch : CollectiveOp::expert_combine;
  return over(CollectiveOp::expert_combine, back, wire);
}

/// A call over `tokens` tokens with `value_bytes` bytes per value; nothing is called where the group has one rank.
Operator served_call(const OperatorBuilder& b, std::string_view name, ParallelGroup group, CollectiveOp op,
                     double tokens, double value_bytes) {
  const ExpertSplit split = b.key().experts();
  const std::int32_t ranks = group == ParallelGroup::expert ? split.ranks : split.tensor;
  Operator call;
  call.name = name;
  call.kind = OperatorKind::collective;
  call.forward_comm = {op, group, Bytes(value_bytes * tokens * b.hidden()), ranks > 1 ? 1.0 : 0.0};
  return call;
}

double wire_bytes(const OperatorBuilder& b) { return bytes_per_element(b.policy().wire); }

/// Tokens that each rank sends to experts: those of its tensor group, split over the ranks that share them.
double sent_tokens(const OperatorBuilder& b) { return b.tokens() / b.key().tensor; }

/// Copies of a token, one for each rank that holds one of its experts. Tokens of servers are assumed to spread evenly
/// (compute/expert_replicas.h).
double ranks_met(const OperatorBuilder& b) {
  return copies_sent({.top_k = static_cast<double>(b.model().moe->top_k),
                      .members = static_cast<double>(b.key().experts().ranks)});
}

/// Whether the experts multiply in 4 bits.
bool multiplies_4_bits(const OperatorBuilder& b) { return b.policy().expert_products == Precision::fp4; }

enum class Way : std::uint8_t { gathered, summed, sent, by_kernels };

/// What the stack's choice comes to with these experts in iterations of this kind.
Way way_of(const OperatorBuilder& b) {
  const StackProfile::Serving& stack = b.stack().serving;
  const bool prompts = b.mode() != Mode::decode;
  if (stack.dispatch == ServedDispatch::trtllm) {
    if (b.key().experts().ranks > b.model().moe->top_k) return Way::sent;
    return prompts && !multiplies_4_bits(b) ? Way::summed : Way::gathered;
  }
  if (prompts && stack.prompts_summed) return Way::summed;
  if (stack.dispatch == ServedDispatch::all_gather) return Way::gathered;
  return stack.dispatch == ServedDispatch::all_to_all ? Way::sent : Way::by_kernels;
}

/// Bytes of a value on its way to experts. Before it sends, TensorRT-LLM quantises to 4 bits, with a scale of 8 for
/// each 16 values (NVFP4).
double sent_value_bytes(const OperatorBuilder& b) {
  const bool narrow = b.stack().serving.dispatch == ServedDispatch::trtllm && multiplies_4_bits(b);
  return narrow ? operand_bytes(Precision::fp4) : wire_bytes(b);
}

/// Whether every rank gets the tokens of all.
bool reaches_all(const OperatorBuilder& b) { return way_of(b) == Way::gathered || way_of(b) == Way::summed; }

/// Tokens of a call over the ranks that experts are dealt to (`dealt`), and of one over those that split each expert
/// (`split`).
struct ServedTokens {
  double dealt, split;
};
ServedTokens served_tokens(const OperatorBuilder& b) {
  const double copies = reaches_all(b) ? b.key().experts().ranks : ranks_met(b);
  return {sent_tokens(b) * copies, sent_tokens(b) * copies * b.key().experts().tensor};
}

/// Copies that dispatch kernels are told to send: one for each expert of a token.
double chosen_copies(const OperatorBuilder& b) {
  return sent_tokens(b) * static_cast<double>(b.model().moe->top_k);
}

/// One way of an exchange: what it is called, what it sends, and with which calls.
struct Leg {
  std::string_view name;
  double value_bytes, kernel_bytes;  ///< of a value; by kernels of dispatch
  CollectiveOp gathered, low_latency, normal;
};

Operator exchange(const OperatorBuilder& b, const Leg& leg) {
  constexpr auto kGroup = ParallelGroup::expert;
  const double dealt = served_tokens(b).dealt;
  switch (way_of(b)) {
    case Way::gathered:
      return served_call(b, leg.name, kGroup, leg.gathered, dealt, leg.value_bytes);
    case Way::summed:
      return served_call(b, leg.name, kGroup, CollectiveOp::all_reduce, dealt, wire_bytes(b));
    case Way::sent:
      return served_call(b, leg.name, kGroup, CollectiveOp::all_to_all, dealt, leg.value_bytes);
    case Way::by_kernels:
      break;
  }
  const CollectiveOp op = b.mode() == Mode::decode ? leg.low_latency : leg.normal;
  return served_call(b, leg.name, kGroup, op, chosen_copies(b), leg.kernel_bytes);
}

/// The call that sends tokens to their experts.
Operator sent_out(const OperatorBuilder& b) {
  return exchange(
      b, {"dispatch", sent_value_bytes(b), dispatched_value_bytes(b.policy(), b.stack().experts),
          CollectiveOp::all_gather, CollectiveOp::low_latency_dispatch, CollectiveOp::expert_dispatch});
}

/// The call that brings their results back.
Operator sent_back(const OperatorBuilder& b) {
  return exchange(b, {"combine", wire_bytes(b), wire_bytes(b), CollectiveOp::reduce_scatter,
                      CollectiveOp::low_latency_combine, CollectiveOp::expert_combine});
}

}  // namespace

void append_dispatch(std::vector<Operator>& ops, const OperatorBuilder& b, const ExpertShare& share,
                     std::span<const Operator> beside) {
  if (!b.key().dispatches) return;
  ops.push_back(over_experts(b, "dispatch", true, share));
  ops.insert(ops.end(), beside.begin(), beside.end());
  ops.push_back(over_expert_tensor(b, "expert_gather", CollectiveOp::all_gather, CollectiveOp::reduce_scatter,
                                   share.rows));
}

void append_combine(std::vector<Operator>& ops, const OperatorBuilder& b, const ExpertShare& share) {
  if (!b.key().dispatches) return;
  ops.push_back(over_expert_tensor(b, "expert_reduce", CollectiveOp::reduce_scatter, CollectiveOp::all_gather,
                                   share.rows));
  ops.push_back(over_experts(b, "combine", false, share));
}

bool sent_by_kernels(const OperatorBuilder& b) { return b.key().dispatches && way_of(b) == Way::by_kernels; }

void append_served_dispatch(std::vector<Operator>& ops, const OperatorBuilder& b) {
  if (!b.key().dispatches) return;
  ops.push_back(sent_out(b));
  ops.push_back(served_call(b, "expert_gather", ParallelGroup::expert_tensor, CollectiveOp::all_gather,
                            served_tokens(b).split, sent_value_bytes(b)));
}

void append_served_combine(std::vector<Operator>& ops, const OperatorBuilder& b) {
  if (!b.key().dispatches) return;
  ops.push_back(served_call(b, "expert_reduce", ParallelGroup::expert_tensor, CollectiveOp::reduce_scatter,
                            served_tokens(b).split, wire_bytes(b)));
  ops.push_back(sent_back(b));
}

}  // namespace shardscape::model
