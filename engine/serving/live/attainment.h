// How many requests of a simulated load keep what was promised.
//
// Goodput as DistServe has it (Zhong et al. 2024, OSDI, section 2): a request counts where its own latencies are within
// the bounds, all of them at once; attainment is the share of such requests among those that count.
//
//   ttft   from sending the request to its first token
//   tpot   (done - first token) / (output - 1), which is also the mean of the gaps between its tokens; a request of one
//          token has none and keeps any bound
//   e2e    from sending it to its last token
#pragma once

#include "engine/serving/live/load_record.h"

namespace shardscape::serving {

bool keeps(const RequestRecord& record, const LatencyBounds& bounds);

}  // namespace shardscape::serving
