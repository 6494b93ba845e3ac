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

}  // namespace shardscape::model
