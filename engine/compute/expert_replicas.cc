#include "engine/compute/expert_replicas.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "engine/base/check.h"

namespace shardscape::compute {

namespace {

double sum_of(const std::vector<double>& slots) { return std::accumulate(slots.begin(), slots.end(), 0.0); }

}  // namespace

std::vector<std::int64_t> replicated(std::span<const double> popularity, std::int64_t redundant) {
  SHARDSCAPE_CHECK(!popularity.empty() && redundant >= 0, popularity.size(), redundant);
  std::vector<std::int64_t> copies(popularity.size(), 1);
  for (std::int64_t i = 0; i < redundant; ++i) {
    std::size_t heaviest = 0;
    for (std::size_t expert = 1; expert < copies.size(); ++expert) {
      const double load = popularity[expert] / static_cast<double>(copies[expert]);
      if (load > popularity[heaviest] / static_cast<double>(copies[heaviest])) heaviest = expert;
    }
    ++copies[heaviest];
  }
  return copies;
}

std::vector<std::vector<double>> dealt_slots(std::span<const double> popularity, std::int64_t redundant,
                                             std::int64_t ranks) {
  const std::vector<std::int64_t> copies = replicated(popularity, redundant);
  std::vector<double> slots;
  for (std::size_t expert = 0; expert < copies.size(); ++expert)
    slots.insert(slots.end(), static_cast<std::size_t>(copies[expert]),
                 popularity[expert] / static_cast<double>(copies[expert]));
  const auto count = static_cast<std::size_t>(ranks);
  SHARDSCAPE_CHECK(ranks >= 1 && slots.size() % count == 0, slots.size(), ranks);
  std::ranges::sort(slots, std::greater<>());
  const std::size_t each = slots.size() / count;
  std::vector<std::vector<double>> dealt(count);
  std::vector<double> loads(count, 0);
  for (const double slot : slots) {
    std::size_t least = count;
    for (std::size_t rank = 0; rank < count; ++rank) {
      if (dealt[rank].size() == each) continue;
      if (least == count || loads[rank] < loads[least]) least = rank;
    }
    dealt[least].push_back(slot);
    loads[least] += slot;
  }
  return dealt;
}

std::size_t busiest_of(const std::vector<std::vector<double>>& slots) {
  const auto less = [](const std::vector<double>& a, const std::vector<double>& b) {
    return sum_of(a) < sum_of(b);
  };
  return static_cast<std::size_t>(std::max_element(slots.begin(), slots.end(), less) - slots.begin());
}

double busiest_share(const std::vector<std::vector<double>>& slots) {
  double all = 0;
  for (const std::vector<double>& rank : slots) all += sum_of(rank);
  return all > 0 ? sum_of(slots[busiest_of(slots)]) / all : 1 / static_cast<double>(slots.size());
}

}  // namespace shardscape::compute
