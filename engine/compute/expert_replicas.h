// Copies of popular experts, so that no rank has much more to do than another: EPLB (DeepSeek 2025,
// github.com/deepseek-ai/EPLB), its rule for all ranks at once ("global load balancing"; DeepSeek's servers decode so).
//
//   which      one slot for each expert; each further one goes to the expert whose copies have most to do, its load
//              over their number, the first of equals (replicate_experts). No other choice of as many copies leaves
//              the heaviest slot lighter: with a lighter bound some expert would need a copy more than it has.
//   where      slots are dealt to ranks, equally many to each: the heaviest first, each to the rank that has least so
//              far and a slot free, the first of equals (balanced_packing)
//
// A token goes to one of its expert's copies, each as likely as any other.
//
// Left out: the rule by nodes, which keeps the copies of a group of experts inside one node; the age of the loads by
// which copies are chosen (a server renews them every few minutes; here they are those of the workload).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace shardscape::compute {

/// Number of copies of each expert, at least 1; they add up to experts + redundant >= experts. O(redundant * experts).
std::vector<std::int64_t> replicated(std::span<const double> popularity, std::int64_t redundant);

/// Popularities of the slots of each rank; `ranks` divides experts + redundant. O(slots * ranks).
std::vector<std::vector<double>> dealt_slots(std::span<const double> popularity, std::int64_t redundant,
                                             std::int64_t ranks);

/// Share of all load that falls to the busiest rank.
double busiest_share(const std::vector<std::vector<double>>& slots);
/// Index of the busiest rank; the first of equals.
std::size_t busiest_of(const std::vector<std::vector<double>>& slots);

}  // namespace shardscape::compute
