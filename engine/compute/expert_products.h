// The products of experts: many small products in one kernel, each of as many rows as its expert got tokens.
//
//   time = kernel latency + (compute^4 + HBM^4 + power^4)^(1/4)
//
//   compute  the least over tiles of rounds x (steps x step + store + start of a tile). Every expert fills tiles
//            of its own, so that a few tokens take a whole tile; a round is a tile for each SM. A step is 128
//            bytes deep and takes its math (at `share` of the peak), its operands through the SM's port
//            (products.port) or the latency that pipelining leaves, whichever is longest
//   HBM      weights of the experts that got any token, inputs and outputs once
//   power    as for single products (gemm.h)
//
// Around the two products (up with the gate, down) tokens are copied into the order of experts and summed back,
// and the router and the kernels that count and sort take a time of their own.
//
// Fitted to 1,120 kernels of TensorRT-LLM in bf16 on A100, H100 and H200 (AIConfigurator's tables, NVIDIA 2025),
// with the loads of experts drawn as its benchmark draws them; of groups of shape and parallel degrees held out
// of the fit those over 50 us are off by 6 % in the median on A100, 8 % on H100 and 10 % on H200. Mean loads in
// place of drawn ones would put the rows of power laws off by 67 %. Some 6 % of the rows on Hopper, whole groups,
// take 2 to 5 times as long for no reason that their columns give: medians count. Blackwell has Hopper's constants, for
// want of rows, but for the start of a tile, 0.3 us: chosen on ITL of DeepSeek-R1 and gpt-oss served in 4 bits on B200
// and GB200 (AIConfigurator's silicon samples), which Hopper's 1.7 us would make 20 % longer. Products in fp8 and fp4
// use the constants of bf16, with half and a quarter of its bytes and math. Weights that are stored narrower than they
// are multiplied (`stored`) take the bytes of the one type and the math of the other, at `share` of the rate, as they
// are converted first. Scales count as bytes: of fp8 in blocks 4 bytes for each 128 values of an input and each 128 x
// 128 of a weight (DeepSeek-V3, arXiv:2412.19437, section 3.3), of nvfp4 one byte for each 16 values. Left out: the
// additions in fp32 that block scales ask of Hopper's vector units, and the conversion of inputs.
#pragma once

#include <optional>

#include "engine/compute/expert_loads.h"
#include "engine/compute/pointwise.h"

namespace shardscape::compute {

struct GroupedOptions {
  bool blocks = false;  ///< scales of fp8 are per block rather than per tensor
  bool burst = false;   ///< as in GemmRequest::burst
  std::optional<Precision> stored =
      {};  ///< type of the weights where they are read narrower than they are multiplied
  /// Rate of the matrix units where such weights are converted first, relative to others: 0 < share <= 1.
  double share = 1;
};

/// C_e[tokens, n] = A_e[tokens, k] B_e[k, n] for each expert e of a rank, n and k >= 1. The device must support
/// `precision`. Runs in microseconds, linear in the number of runs.
OperatorCost grouped_product(const ExpertLoads& loads, double n, double k, Precision precision,
                             const DeviceSpec& device, const GroupedOptions& options = {});

/// Copies tokens of `hidden` two-byte values into the order of experts, and sums them back with weights.
OperatorCost expert_permutation(const ExpertLoads& loads, double hidden, const DeviceSpec& device);

/// A layer of experts as far as one rank has it.
struct ExpertLayer {
  double hidden = 0;
  double inner = 0;     ///< width of an expert on this rank, its own divided by the tensor degree of experts
  bool gated = true;    ///< two projections up rather than one
  double tokens = 0;    ///< tokens whose choices the rank examines
  double experts = 0;   ///< experts of all ranks together
  bool blocks = false;  ///< see GroupedOptions
};

/// Router, permutation and both products in one call, launched over and over for a short time: what tables of kernels
/// measure.
OperatorCost experts_alone(const ExpertLoads& loads, const ExpertLayer& layer, Precision precision,
                           const DeviceSpec& device);

/// Mean of experts_alone() over loads drawn from a router's power law (power_law_tokens), for the busiest of `ranks`
/// ranks; the draws are the same on every call. Without an exponent: balanced loads.
OperatorCost routed_experts_alone(const Routing& routing, std::optional<double> exponent, std::int64_t ranks,
                                  const ExpertLayer& layer, Precision precision, const DeviceSpec& device);

}  // namespace shardscape::compute
