// The operators of a transformer on one rank: what they compute, move, keep for backward and send.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "engine/base/quantity.h"
#include "engine/compute/attention.h"
#include "engine/compute/expert_loads.h"
#include "engine/compute/gemm.h"
#include "engine/network/collective_model.h"
#include "engine/spec/parallel_groups.h"
#include "engine/spec/precision.h"

namespace shardscape::model {

enum class OperatorKind : std::uint8_t { gemm, attention, pointwise, collective };

/// A collective over one of the plan's groups; `repeats` of them, one after the other. repeats = 0: none.
struct CollectiveCall {
  network::CollectiveOp op = network::CollectiveOp::all_reduce;
  ParallelGroup group = ParallelGroup::tensor;
  Bytes bytes;
  double repeats = 0;
};

/// Streaming work of a pointwise operator.
struct Stream {
  Bytes traffic;
  Flops vector_flops;
  double kernels = 0;
};

/// One operator of the forward pass together with what its backward costs.
struct Operator {
  std::string_view name;
  OperatorKind kind = OperatorKind::pointwise;
  compute::GemmShape
      gemm;  ///< forward product [m,k] x [k,n]; backward is dgrad [m,n] x [n,k] and wgrad [k,m] x [m,n]
  Precision operands = Precision::bf16;  ///< of a product
  std::optional<Precision> stored;  ///< its weights, where they are stored narrower than they are multiplied
  double rate_share = 1;            ///< of what its kernel reaches, where such weights are converted first
  Bytes input;                      ///< of a product: what its weight gradient needs of its input
  compute::AttentionShape attention;
  Stream forward, backward;  ///< pointwise
  CollectiveCall forward_comm, backward_comm;
  Bytes saved;            ///< kept from forward to backward where nothing is recomputed
  Bytes saved_selective;  ///< the same under selective recompute of the stack's parts
  bool grouped = false;   ///< a server's batch of products of experts, one kernel (compute/expert_products.h)
  bool routes = false;    ///< a router: the layer has experts
  compute::ExpertLoads loads;  ///< of what experts do, where they differ: gemm has the mean
  Seconds wait;                ///< pointwise: of the device for the host, in forward
  bool plain = false;          ///< its kernels are launched one by one (StackProfile::Experts::plain_launch)
  bool naive_core = false;     ///< attention of a fused stack that runs the naive kernels (fused_sinks_from)
  bool attention_core = false;
  bool cast =
      false;  ///< to the types of the product behind it (before it, in backward), next to which it stands
  bool beside_exchange = false;  ///< runs while the exchange of experts before it, in forward, is under way
  bool again = false;            ///< repeated by selective recompute, with its call
  bool input_again = false;      ///< of a product: what it would keep of its input is made again there
  bool cut = true;               ///< of a product: its weight gradient may run apart from that of its input
  /// Another product's output has the same gradient, one tensor for both.
  bool shares_output_gradient = false;
};

}  // namespace shardscape::model
