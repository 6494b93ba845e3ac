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

#include <vector>

#include "engine/model/operator_builder.h"

namespace shardscape::model {

/// Whether kernels of dispatch bring the tokens of an iteration of this kind, grouped by their experts.
bool sent_by_kernels(const OperatorBuilder& b);

/// Appends nothing where the tensor group holds the experts that its tokens need.
void append_served_dispatch(std::vector<Operator>& ops, const OperatorBuilder& b);
void append_served_combine(std::vector<Operator>& ops, const OperatorBuilder& b);

}  // namespace shardscape::model
