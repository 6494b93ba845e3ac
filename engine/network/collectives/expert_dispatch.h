// Sending tokens to their experts and bringing the results back: the kernels of DeepEP (DeepSeek 2025), which
// serving and training of mixtures of experts use in place of an all-to-all of the library.
//
// T tokens a rank, each of h values for top_k of E experts on n ranks in N nodes; a value takes 1 + 4/128 bytes
// on the way out (fp8 with a scale for each 128) and 2 on the way back.
//
//   low latency  A message for each token and expert, M = T top_k bytes:
//                  start + E expert + sqrt(N-1) node
//                  + max(M/N / bandwidth + M (N-1)/N / node_bandwidth,  dispatch: T top_k / E h 1.03 / queue)
//                The queue of one expert at one source is drained by one group of warps.
//   normal       A copy for each rank that has an expert of the token, C = T (local_copies + n (1 - (1 - 1/n)^k)),
//                Mn = C bytes, on S SMs, and one for each other node, Mr = T (N-1) (1 - (1 - 1/N)^k) bytes:
//                  start + sqrt(N-1) node + (SMs^4 + link^4 + network^4)^(1/4)   combine: + row / row_bandwidth
//                  SMs = (C copy + Mn / sm_bandwidth) / S, twice that between nodes, where half of them forward
//                  link = Mn / bandwidth,  network = Mr / node_bandwidth (1 + N (N-2) / 30)
//                The last factor is what many nodes cost, fitted. Choices count as independent of each other.
//
// Fitted to 1,158 rows of SGLang's benchmark on H100, H200, B200, B300, GB200 and GB300, 1 to 8 nodes
// (AIConfigurator's tables, NVIDIA 2025; of normal kernels transmission and notification together). That values
// go out in one byte and come back in two is not said there; one bandwidth serves both ways only so. Of shapes
// held out of the fit the median error is 2 to 7 % (low latency) and 4 to 9 % (normal). Between nodes there are
// rows of Hopper alone, on InfiniBand NDR. Left out: contention with other groups, and experts' loads: choices
// are spread evenly. A call whose ranks get unequal shares takes what one does in which every rank has as many copies
// as the busiest of it (expert_traffic.h).
#pragma once

#include <cstdint>
#include <optional>

#include "engine/base/enum_names.h"
#include "engine/base/quantity.h"
#include "engine/spec/node_collectives.h"
#include "engine/spec/token_copies.h"

namespace shardscape {
enum class DispatchKernels : std::uint8_t { low_latency, normal };
}  // namespace shardscape

namespace shardscape::network {

enum class DispatchWay : std::uint8_t { dispatch, combine };

/// One call; every rank has equally many tokens.
struct ExpertExchange {
  double tokens = 0;  ///< tokens of one rank
  double hidden = 0;  ///< number of values of a token
  double top_k = 0;
  double experts = 0;  ///< experts on all ranks together
  double ranks = 8;    ///< ranks of the group, on all nodes together
  double nodes = 1;    ///< nodes, or NVLink domains, of the group
  double sms = 20;     ///< number of SMs that normal kernels run on
  /// Nodes that a token goes to, on average; 0: as independent choices among `nodes` give.
  double nodes_met = 0;
  double value_bytes = 0;  ///< bytes of a value on its way; 0: dispatch_bytes()
};

/// Bytes of one value on its way, as in the benchmark.
double dispatch_bytes(DispatchWay way);

/// Time of one call that runs alone. Empty for devices without constants and, between nodes, where the constants of the
/// network are missing. O(1), pure.
std::optional<Seconds> expert_exchange_time(const ExpertDispatch& device, DispatchKernels kernels,
                                            DispatchWay way, const ExpertExchange& call);

}  // namespace shardscape::network
