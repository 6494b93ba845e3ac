#include "engine/spec/token_copies.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <utility>

namespace shardscape {

double places_met(double n, double k) { return n * (1 - std::pow(1 - 1 / n, k)); }

std::vector<double> chances_met(std::span<const double> shares, double k) {
  std::vector<double> chances;
  for (const double share : shares) chances.push_back(1 - std::pow(1 - share, k));
  return chances;
}

double domains_met(double domains, double k, std::int64_t groups, std::int64_t chosen) {
  const auto all = static_cast<double>(groups), taken = static_cast<double>(chosen);
  if (groups <= 1 || domains <= 1) return places_met(domains, k);
  if (domains > all) {
    // There are more domains than groups: each domain has a part of one group.
    const double parts = domains / all;
    return domains * (taken / all) * (1 - std::pow(1 - 1 / (taken * parts), k));
  }
  const auto held = static_cast<std::int64_t>(std::lround(all / domains));
  // The number of ways to choose `many` of n things.
  const auto choose = [](std::int64_t n, std::int64_t many) {
    double ways = 1;
    for (std::int64_t i = 0; i < many; ++i) ways *= static_cast<double>(n - i) / static_cast<double>(i + 1);
    return ways;
  };
  double missed = 0;  // chance that a domain is missed, by how many chosen groups lie in it (hypergeometric)
  for (std::int64_t here = 0; here <= std::min(held, chosen); ++here) {
    if (chosen - here > groups - held) continue;
    const double chance = choose(held, here) * choose(groups - held, chosen - here) / choose(groups, chosen);
    missed += chance * std::pow(1 - static_cast<double>(here) / taken, k);
  }
  return domains * (1 - missed);
}

std::vector<double> copies_by_member(const TokenTargets& to) {
  // Sum of the shares, and number of members, by domain.
  std::map<std::int64_t, std::pair<double, double>> of_domain;
  for (std::size_t i = 0; i < to.shares.size(); ++i) {
    auto& [share, members] = of_domain[to.domain_of.empty() ? 0 : to.domain_of[i]];
    share += to.shares[i];
    members += 1;
  }
  if (of_domain.size() <= 1) return chances_met(to.shares, to.top_k);
  const auto several = static_cast<double>(of_domain.size());
  const double scale =
      domains_met(several, to.top_k, to.groups, to.top_groups) / places_met(several, to.top_k);
  std::vector<double> copies;
  for (const std::int64_t domain : to.domain_of) {
    const auto& [share, members] = of_domain.at(domain);
    copies.push_back(scale * chances_met({&share, 1}, to.top_k).front() / members);
  }
  return copies;
}

double copies_sent(const TokenTargets& to) {
  if (!to.shares.empty()) {
    const std::vector<double> copies = copies_by_member(to);
    return std::accumulate(copies.begin(), copies.end(), 0.0);
  }
  return to.domains > 1 ? domains_met(to.domains, to.top_k, to.groups, to.top_groups)
                        : places_met(to.members, to.top_k);
}

}  // namespace shardscape
