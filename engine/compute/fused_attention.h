// Fused attention by name: the kernels that stacks of 2023 and later call on Ampere, Hopper and Blackwell.
//
// prompts  A block is 128 queries of a head (64 where there are no more; 256 on Blackwell above 128), one CTA
//          each, which walks the keys that its rows see, whole blocks on the causal diagonal. Per score its
//          exponential and its products overlap in part:
//
//            block = start + rows x keys x SMs x ((1 / exponentials)^q + (4 d / products)^q)^(1/q)
//            time  = kernel latency + max(longest, sum / SMs + longest / 2 x min(1, blocks / SMs))
//
//          or the stream of Q, K, V and O, if that takes longer. Half of the longest block is what stands out
//          at the end of many.
// backward FLOPs / (share x peak), the share by kernel: as flash_backward (attention.h); never quicker than forward.
// decode   One CTA per sequence, KV head and part of the keys, which its group of query heads shares. On Hopper
//          tiles of 256 keys (four warps of 64) are dealt to up to eight CTAs for every SM, the waves that
//          TensorRT-LLM's XQA kernels aim at; else they are whole or cut so that the SMs are busy once or twice,
//          whichever is fastest:
//
//            CTA  = start + (d + heads x d) terms + steps of 64 keys x (bytes / port + heads x d term)
//            time = start of the call + ((rounds x CTA + merge where cut)^n + (HBM bytes / rate)^n)^(1/n)
//
//          Groups of more than 32 heads, and single heads but on Blackwell, have another kernel: a CTA per
//          query head, whose bytes cross L2 once per head; on Hopper its keys are cut, too, for the two CTAs that an SM
//          holds.
//
// On Ampere two CTAs of the other kernel share an SM. There, a kernel that is launched over and over alone, as
// benchmarks do, still finds part of a cache that it reads once in L2, 0.73 of L2's capacity: 50 to 200 MB are read as
// if they were 24 to 31 MB less. The kernel of groups instead takes up to 49 us longer over its first bytes, the more
// the fuller L2 becomes (1 - exp(-bytes / 0.69 L2)); why is not known. In a step neither happens, as other kernels run
// in between.
//
// Constants are by architecture and relative to the parts of the device. Those of prompts and decode were fitted
// to 1,500 attention kernels that TensorRT-LLM's benchmark timed on A100, H100, H200, B200 and GB200
// (AIConfigurator's tables, NVIDIA 2025), one set for all devices of an architecture; a third of the shapes was
// held out: prompts over 0.1 ms are off by 3 to 6 % in the mean of a device (GB200 11 %), decode over 20 us by 5
// to 9 % (on Hopper 8.7 % of all, 9.3 % with each third left out in turn; decode on A100 was fitted to all its shapes:
// 10 % with each third of the heads left out). A device may differ from its architecture by a factor
// (`attention.prompt_rate`, `attention.decode_rate`). Backward shares: H100 0.45 from 110 steps of NVIDIA's recipes, 8B
// to 405B; B200 0.34; with ALiBi from MosaicML's tables of MPT steps (LLM Foundry).
#pragma once

#include <cstdint>

#include "engine/compute/attention.h"
#include "engine/spec/stack.h"

namespace shardscape::compute {

/// What runs before a kernel: the other kernels of a step, or the same kernel, launched over and over alone.
enum class LaunchedBy : std::uint8_t { step, itself };

/// Forward, backward and decode (one token per sequence, shape.queries = 1) by the named kernel, which must be fused. A
/// device of no known architecture has the rates of FlashAttention-2 (attention.h).
OperatorCost fused_forward(const AttentionShape& shape, AttentionKernel kernel, Precision precision,
                           const DeviceSpec& device);
OperatorCost fused_backward(const AttentionShape& shape, AttentionKernel kernel, Precision precision,
                            const DeviceSpec& device);
OperatorCost fused_decode(const AttentionShape& shape, AttentionKernel kernel, Precision kv_precision,
                          const DeviceSpec& device, LaunchedBy launches = LaunchedBy::step);

/// Time that the call of a lone kernel takes beyond the kernel: others add biases, rotate, and write the cache.
Seconds prompt_preparation(const AttentionShape& shape, Precision precision, const DeviceSpec& device);

}  // namespace shardscape::compute
