#include "engine/step/layers/call_prices.h"

namespace shardscape::step {

Seconds CallPrices::cost_of_siblings(const network::CollectiveKey& asked) const {
  if (plan.pipeline == 1) return Seconds(0);
  const Seconds each =
      collectives.time_without_faults({asked.op, (1 / asked.calls) * asked.bytes, asked.group});
  network::CollectiveKey within = asked;
  within.slice = stage_slice(0, network::PlanLayout(plan), plan);
  return asked.calls * each - collectives.time_within_slice(within);
}

}  // namespace shardscape::step
