// Symmetric ranks executed once: programs in which one rank stands for all that do the same at the same time.
//
// fold() makes of classes of like ranks, calls, connections and links (symmetry.h) programs of one of each, and proves
// before that they may stand for each other:
//
//   ranks        run one sequence, meet the same classes of calls on each lane and of connections on each channel
//   gates        send messages of the same bytes over the same classes of connections to the same classes of gates,
//                in one order; and whatever class counts them down does so once for each of them
//   connections  have one latency, a path over the same classes of links and the same classes of users, one of each
//   links        have one rate and carry the same number of connections of each class
//
// Then the whole is always in one state for all members of a class: what happens to one happens to all in the same
// instant, and max-min fair rates, which are unique, are the same for flows of a class. So the folded course is that of
// the whole. A connection that shares a link with others of its class has the link in its path as often as there are
// of them, so that the solver divides it by all.
//
// What this leaves open is the order within an instant, and rounding. Executor::run() goes back to the programs
// themselves where that can show: where parcels of different gates get on one connection in the same instant, and
// where rates of different flows are added up on a link in an order that is not theirs.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "engine/execution/program.h"

namespace shardscape::execution {

struct Folding {
  /// Its ranks are the classes; it has no names and other fields for readers only.
  Programs programs;
  std::vector<double> bytes_per_second;    ///< by class of links
  std::vector<std::int32_t> rank_classes;  ///< by rank: the rank in `programs` that stands for it
};

/// Folds the programs; nothing where more than half of the ranks differ, or where the proof fails.
std::optional<Folding> fold(const Programs& programs, std::span<const double> link_bytes_per_second);

}  // namespace shardscape::execution
