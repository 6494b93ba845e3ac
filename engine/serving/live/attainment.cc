#include "engine/serving/live/attainment.h"

#include <algorithm>

namespace shardscape::serving {

bool keeps(const RequestRecord& record, const LatencyBounds& bounds) {
  const DrawnRequest& request = record.request;
  const double decoding = record.done - record.first_token;
  return record.first_token - request.sent <= bounds.ttft && record.done - request.sent <= bounds.e2e &&
         (request.output == 1 || decoding / (request.output - 1) <= bounds.tpot);
}

double attainment(std::span<const RequestRecord> records, const LatencyBounds& bounds) {
  if (records.empty()) return 1;
  const auto kept =
      std::ranges::count_if(records, [&](const RequestRecord& record) { return keeps(record, bounds); });
  return static_cast<double>(kept) / static_cast<double>(records.size());
}

}  // namespace shardscape::serving
