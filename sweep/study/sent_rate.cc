#include "sweep/study/sent_rate.h"

#include "engine/serving/load/drawn_requests.h"

namespace shardscape::sweep {

std::optional<double> sent_rate(const LoadSpec& load) {
  const bool drawn =
      load.open() && !load.trace && !load.sessions && load.arrivals != ArrivalProcess::constant;
  return drawn ? std::optional(serving::drawn_rate(load)) : std::nullopt;
}

}  // namespace shardscape::sweep
