// How many copies of a token go to the ranks of its experts: the one statement that prices, programs of ranks, reported
// bytes, placement and servers read.
//
// A rank has T tokens of h values each, and the k = top_k experts of a token lie on the n members of a group. In the
// mean of the members, a rank sends the share (n - 1) / n of
//
//     T h copies (bytes of a value)
//
// bytes, as each member keeps what is its own. `copies` depends on who carries the tokens:
//
//   the library, low-latency kernels   k: one for each expert
//   other kernels, servers' all-to-all one for each rank with one of its experts: the sum over the members of
//                                      1 - (1 - s)^k, where s is a member's share of all choices; n (1 - (1 - 1/n)^k)
//                                      of equal ones. Where a group spans several NVLink domains, kernels send one for
//                                      each of those (the last hop stays inside), in equal parts to their members
//
// Choices count as independent of each other but for routers that choose groups of experts first (domains_met()). Calls
// of kernels state the bytes of a copy for each expert; HealthyCosts::wire_bytes() makes copies / k of them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace shardscape {

/// The mean number of n equal places that k independent choices meet.
double places_met(double n, double k);
/// The chance of each place to be met by k independent choices, of which it gets the given share.
std::vector<double> chances_met(std::span<const double> shares, double k);
/// places_met() of equal domains when the experts lie in `groups` groups and those of a token in `chosen` of them. A
/// domain has several whole groups or a group spans several domains; groups are drawn without repetition, experts in
/// them independently.
double domains_met(double domains, double k, std::int64_t groups, std::int64_t chosen);

/// The members of a group that hold the experts of a rank's tokens, and how choices spread over them.
struct TokenTargets {
  double top_k = 1;
  /// Groups of experts, and the number of groups that a token's experts lie in.
  std::int64_t groups = 1, top_groups = 1;
  double members = 1;                            ///< ranks of the group
  double domains = 1;                            ///< NVLink domains that the members lie in
  std::span<const double> shares = {};           ///< each member's share of the choices; empty: all equal
  std::span<const std::int64_t> domain_of = {};  ///< domain of each member, parallel to `shares`
};

/// Mean number of copies of a token that go to each member, where `shares` are given. If routers choose groups first,
/// the copies are scaled as they would be for domains of equal shares.
std::vector<double> copies_by_member(const TokenTargets& to);
/// Copies of a token, one for each rank or domain that it meets, its own included.
double copies_sent(const TokenTargets& to);

}  // namespace shardscape
