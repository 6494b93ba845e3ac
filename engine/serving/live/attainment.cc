#include "engine/serving/live/attainment.h"

namespace shardscape::serving {

bool keeps(const RequestRecord& record, const LatencyBounds& bounds) {
  const DrawnRequest& request = record.request;
  const double decoding = record.done - record.first_token;
  return record.first_token - request.sent <= bounds.ttft && record.done - request.sent <= bounds.e2e &&
         (request.output == 1 || decoding / (request.output - 1) <= bounds.tpot);
}

}  // namespace shardscape::serving
