// The operators of a transformer on one rank: what they compute, move, keep for backward and send.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "engine/base/quantity.h"
#include "engine/compute/attention.h"
#include "engine/compute/expert_loads.h"
#include "engine/compute/gemm.h"
#include "engine/network/collectives/collective_op.h"
#include "engine/spec/parallel_groups.h"
#include "engine/spec/precision.h"
#include "engine/spec/scenario.h"

namespace shardscape::model {

enum class OperatorKind : std::uint8_t { gemm, attention, pointwise, collective };

/// `repeats` calls of a collective over one of the plan's groups, one after the other. repeats = 0: none.
struct CollectiveCall {
  network::CollectiveOp op = network::CollectiveOp::all_reduce;
  ParallelGroup group = ParallelGroup::tensor;
  Bytes bytes;
  double repeats = 0;
};

/// Memory traffic and vector work of a pointwise operator.
struct Stream {
  Bytes traffic;
  Flops vector_flops;
  double kernels = 0;
};

/// The costs of one operator on one device, without its communication.
struct OperatorTimes {
  compute::OperatorCost forward, backward;
  Seconds weight = Seconds(0);  ///< the part of `backward` that computes gradients of weights
  Work weight_work = {};        ///< work of `weight`
};

/// One operator of the forward pass together with what its backward costs.
struct Operator {
  std::string_view name;
  OperatorKind kind = OperatorKind::pointwise;
  /// Forward product [m,k] x [k,n]; backward is dgrad [m,n] x [n,k] and wgrad [k,m] x [m,n].
  compute::GemmShape gemm;
  Precision operands = Precision::bf16;  ///< format that a product multiplies
  /// Format of a product's weights where it is narrower than the one multiplied.
  std::optional<Precision> stored;
  double rate_share = 1;  ///< share of the usual rate of such products that its kernel reaches
  Bytes input;            ///< bytes of a product's input that its weight gradient needs
  compute::AttentionShape attention;
  /// Prices a kernel that only blocks of one kind have; nothing where it is like that of others of its OperatorKind.
  std::optional<OperatorTimes> (*own_price)(const Operator& op, const Setting& setting) = nullptr;
  /// Of a pointwise operator; of attention in a ring, the merge of what its steps leave.
  Stream forward, backward;
  CollectiveCall forward_comm, backward_comm;
  Bytes saved;            ///< kept from forward to backward where nothing is recomputed
  Bytes working;          ///< lives beside what is kept while it runs, of attention over context ranks alone
  Bytes saved_selective;  ///< bytes kept under selective recompute of the stack's parts
  bool grouped = false;   ///< a server's products of experts, run as one kernel (compute/expert_products.h)
  bool routes = false;    ///< the operator is a router, so that the layer has experts
  compute::ExpertLoads loads;  ///< loads of the experts where they differ; gemm then has the mean
  Seconds wait;                ///< pointwise: time the device waits for the host, in forward
  bool plain = false;          ///< its kernels are launched one by one (StackProfile::Experts::plain_launch)
  bool naive_core = false;     ///< attention of a fused stack that runs the naive kernels (fused_sinks_from)
  bool attention_core = false;
  bool cast = false;             ///< a cast to the types of the product behind it (in backward, before it)
  bool beside_exchange = false;  ///< in forward it runs while the exchange of experts before it is under way
  bool shared_expert = false;    ///< a part of shared experts
  bool again = false;            ///< selective recompute repeats it, with its collective call
  /// For a product: selective recompute makes its input again, so the input is not kept.
  bool input_again = false;
  bool cut = true;  ///< the weight gradient of a product may run apart from its input gradient
  /// Another product's output has the same gradient, and one tensor serves both.
  bool shares_output_gradient = false;
};

}  // namespace shardscape::model
