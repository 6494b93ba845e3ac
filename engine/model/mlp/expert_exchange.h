// The messages of a layer's experts where tokens are sent to the ranks that hold their experts (LayerKey::dispatches).
//
// Dispatch and combine are all-to-alls of the collective library or, where the stack has kernels of its own for them
// (StackProfile::Experts), expert_dispatch and expert_combine (network/prices/expert_traffic.h).
//
//   dispatch       every rank sends the copies of its tokens, one for each chosen expert, to the expert group
//   expert_gather  the ranks that split an expert gather what all of them got (Megatron-Core's token
//                  dispatcher, arXiv:2504.14960, section 3.3)
//   expert_reduce  the same ranks reduce-scatter the sum of their partial outputs
//   combine        the outputs go back
//
// Where loads differ, dispatch and combine send each rank the part that its load asks for
// (network::CollectiveOp::dispatch; kernels send the copies of tokens that have an expert there), and expert tensor
// groups gather what theirs got.
//
// Backward sends the gradients the other way: the same operations the other way round, of the same bytes.
//
// The messages of a server's experts where several of its replicas share them (coupled_replicas): what each method of
// the stack (ServedDispatch) sends. A rank has T tokens and each token top_k experts; the experts are dealt over
// `ranks` ranks and split over `tensor` ranks each. Tokens that a tensor group repeats are sent once.
//
//   all_gather  the tokens of all ranks, dealt and split, to all of them, and a reduce-scatter of the outputs
//   all_to_all  ranks (1 - (1 - 1/ranks)^top_k) copies of each token, one for each rank that its experts lie on if
//               they are chosen independently; the ranks that split an expert gather what each got
//   kernels     as all_to_all, by DeepEP's kernels (network/prices/expert_traffic.h): expert_dispatch and
//               expert_combine in iterations that read prompts, low_latency_dispatch and low_latency_combine in those
//               that only decode. The stack's experts.fp8_dispatch and dispatch_sms apply here, too
//   trtllm      all_to_all over more ranks than top_k, else all_gather, summed where prompts are read; experts in 4
//               bits get them in 4 bits, and never summed
//
// Summed (prompts_summed): in iterations that read prompts all-reduces of the tensors that all_gather has.
#pragma once

#include <span>
#include <vector>

#include "engine/model/operator_builder.h"

namespace shardscape::model {

struct ExpertShare;

/// `beside`: operators that run while the dispatch is under way.
void append_dispatch(std::vector<Operator>& ops, const OperatorBuilder& b, const ExpertShare& share,
                     std::span<const Operator> beside = {});
void append_combine(std::vector<Operator>& ops, const OperatorBuilder& b, const ExpertShare& share);

/// Whether kernels of dispatch bring the tokens of an iteration of this kind, grouped by their experts.
bool sent_by_kernels(const OperatorBuilder& b);

/// Appends nothing where the tensor group holds the experts that its tokens need.
void append_served_dispatch(std::vector<Operator>& ops, const OperatorBuilder& b);
void append_served_combine(std::vector<Operator>& ops, const OperatorBuilder& b);

}  // namespace shardscape::model
