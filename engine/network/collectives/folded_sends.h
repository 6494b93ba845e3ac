// Messages that are all on their way at once, with those that fare alike folded into one.
//
// Messages and links are sorted into classes such that (1) the messages of a class have the same bytes, the same
// start, the same latency and links of the same classes in the same order, and (2) the links of a class have the
// same bandwidth and carry the same number of messages of each class: an equitable partition of the bipartite graph
// of messages and links, found as the coarsest one by colour refinement (Weisfeiler and Leman 1968; for linear
// programs Grohe, Kersting, Mladenov and Selman, "Dimension Reduction via Colour Refinement", ESA 2014). Progressive
// filling then gives all messages of a class the same max-min fair rate at every moment: the links of a class fill up
// together, as long as classes are on their way or drained as a whole, which they are since rates, bytes and start
// agree. So one message of each class, over one link of each class and counted as often as that link carries
// messages of the class, has the times of all of them.
//
// No symmetry of the fabric has to be known for this, and sick links only split classes. The cost: a few walks over the
// routes of all messages, and memory for links and classes. Messages are compared with the first one of their class.
// What links carry is compared by sums: each class of messages has a random number of 128 bits, and a link has the sum
// of those of its messages. Lists of the messages of each class would be as long as classes times links; the sums of a
// million links are equal only where such lists are, but for one case in 10^17.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/network/collectives/patterns.h"
#include "engine/network/collectives/traffic.h"
#include "engine/network/fabric/faulty_fabric.h"

namespace shardscape::network {

/// Whether all messages leave at times that are known beforehand, none after another: all-to-alls and one-pass
/// collectives by `direct`, and sends.
bool sends_at_once(const std::vector<Pattern>& patterns);

struct FoldedSends {
  enum class Outcome : std::uint8_t {
    folded,
    too_many_classes,  ///< too few messages are alike
    unreachable,       ///< dead links leave some message without a route
  };
  Outcome outcome = Outcome::too_many_classes;  ///< the members below are empty unless it is `folded`
  std::size_t pattern = 0;                      ///< if unreachable: the pattern of that message
  Unreachable cut;                              ///< if unreachable: the ends of that message
  /// A connection and a message for each class, in the order of their first messages; the path names the lowest link
  /// of each class of links as often as it carries messages of the class.
  Traffic traffic;
  /// Index: link; the link that stands for it in `traffic`.
  std::vector<std::int32_t> stands_for;
  std::int64_t messages = 0;  ///< number of messages that the classes stand for
};

/// `patterns` must pass check_patterns() and sends_at_once(). O(messages x hops) for each refinement, of which there
/// are two or three where all is alike, and never many. `most_entries` bounds the links that the paths name in all.
/// `hash_mask`: the bits of hashes that count; which they are changes the time alone.
FoldedSends fold_sends(const std::vector<Pattern>& patterns, FaultyFabric& fabric,
                       std::int64_t most_entries = std::int64_t{1} << 24,
                       std::uint64_t hash_mask = ~std::uint64_t{0});

}  // namespace shardscape::network
