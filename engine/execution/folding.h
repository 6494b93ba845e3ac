// Executes symmetric ranks once: makes programs in which one rank stands for all that do the same at the same time.
//
// From classes of like ranks, calls, connections and links (symmetry.h), fold() makes programs with one object of each
// class. So all objects that count down one gate, and all that use one connection, must be of different classes: the
// folded programs have only one object of each.
//
// The whole is then always in one state for all members of a class: what happens to one happens to all in the same
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
  /// The folded programs, with one rank for each class, and without names and other fields that only readers use.
  Programs programs;
  std::vector<double> bytes_per_second;    ///< rate of each class of links
  std::vector<std::int32_t> rank_classes;  ///< by rank: the rank in `programs` that stands for it
};

/// Folds the programs; nothing where more than half of the ranks differ, or where a class counts twice.
std::optional<Folding> fold(const Programs& programs, std::span<const double> link_bytes_per_second);

}  // namespace shardscape::execution
