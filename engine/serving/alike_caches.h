// Reduces the flows that carry caches to as few as give the same times.
//
// Links that can never limit anything are left out first: where whatever crosses a link crosses one of some others,
// too, and these have no more capacity than it has, its bound on the sum of rates follows from theirs. The rates of
// max-min fairness are a property of all bounds together (Bertsekas and Gallager 1992, 6.5.2), and do not mind one that
// follows from the rest.
//
// The flows of one request set out together. Those among them that meet alike links, with alike flows on them, run at
// the same rate at all times, so that one can stand for all. What is alike is found by refinement of colours: two
// connections are alike where they belong to one pair of replicas, carry as many bytes, and cross alike links; two
// links are alike where they have the same capacity and are crossed by alike connections. When no round tells more of
// them apart the partition is equitable: every link of a class is crossed by n(C, L) connections of class C, whichever
// it is. As classes of connections start and stop as a whole, progressive filling then treats all of a class alike at
// every level, by induction over its rounds. One connection for each class is left, with the longest latency of them
// since a request waits for the last of its flows, which counts n(C, L) times on the one link that stands for each
// class L; where all counts of a link have a common divisor, its capacity is divided by it instead.
//
// Links that are crossed by the same connections as often as each other are one, too: the narrowest.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/network/collectives/traffic.h"
#include "engine/serving/pooled_course.h"

namespace shardscape::serving {

struct AlikeCaches {
  network::Traffic wires;
  std::vector<double> bytes_per_second;
  /// The flows of each pair of replicas: those of a pair start at begin[pair]. No connection comes twice in a pair.
  std::vector<KvFlow> flows;
  std::vector<std::int32_t> begin;
  std::vector<double> bytes;  ///< bytes of all flows that these stand for, by pair

  [[nodiscard]] std::span<const KvFlow> of(std::size_t pair) const {
    return std::span(flows).subspan(static_cast<std::size_t>(begin[pair]),
                                    static_cast<std::size_t>(begin[pair + 1] - begin[pair]));
  }
};

/// Takes time in proportion to the links of all paths, a few times over.
AlikeCaches alike_caches(const KvFabric& fabric);

}  // namespace shardscape::serving
