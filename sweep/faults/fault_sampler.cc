#include "sweep/faults/fault_sampler.h"

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

#include "engine/base/check.h"
#include "engine/base/counter_rng.h"

namespace shardscape::sweep {

void apply_fault(const FaultPlace& place, const DrawnFault& fault, Seconds added_latency, FaultSet& set) {
  const FaultRow& row = row_of(fault.kind);
  if (row.of_link != nullptr) {
    for (const std::int32_t link : place.links) {
      set.links.push_back(row.of_link(fault.derate, added_latency));
      set.links.back().link = link;
    }
  }
  if (row.of_device != nullptr) {
    set.devices.push_back(row.of_device(fault.derate));
    set.devices.back().rank = place.device;
  }
}

FaultSampler::FaultSampler(const FaultStudy& study, const network::Fabric& fabric)
    : study_(study), derate_(study.derate), samples_(static_cast<std::uint64_t>(study.samples)) {
  double total = 0, sum = 0;
  for (const WeightedKind& weighted : study.kinds) total += weighted.weight;
  for (const WeightedKind& weighted : study.kinds) {
    sum += weighted.weight;
    kinds_.push_back({weighted.kind, sum / total, fault_places(weighted.kind, study, fabric)});
    SHARDSCAPE_CHECK(kinds_.back().places.size() >= static_cast<std::size_t>(study.simultaneous),
                     name_of(weighted.kind), kinds_.back().places.size());
  }
  kinds_.back().up_to = std::numeric_limits<double>::infinity();
  if (study.exhaustive()) samples_ = kinds_.front().places.size();
}

const FaultSampler::Kind& FaultSampler::kind_at(double uniform) const {
  return *std::ranges::find_if(kinds_, [&](const Kind& kind) { return uniform < kind.up_to; });
}

FaultDraw FaultSampler::draw(std::uint64_t sample) const {
  SHARDSCAPE_CHECK(!study_.exhaustive() || sample < samples_, sample, samples_);
  CounterRng rng(study_.seed, sample);
  FaultDraw draw;
  draw.sample = sample;
  std::set<std::pair<bool, std::int32_t>> taken;  // links and devices that already have a fault
  for (std::int64_t i = 0; i < study_.simultaneous; ++i) {
    const Kind& kind = kinds_.size() > 1 ? kind_at(rng.uniform()) : kinds_.front();
    const FaultPlace* place = nullptr;
    if (study_.exhaustive()) {
      place = &kind.places[sample];
    } else {
      do {
        place = &kind.places[rng.below(kind.places.size())];
      } while (!taken.emplace(place->link >= 0, std::max(place->link, place->device)).second);
    }
    DrawnFault fault{kind.kind, place->link, place->device, 0};
    if (row_of(kind.kind).derates) fault.derate = derate_.at(rng.uniform());
    apply_fault(*place, fault, study_.added_latency, draw.set);
    draw.faults.push_back(fault);
  }
  return draw;
}

}  // namespace shardscape::sweep
