#include <algorithm>

#include "engine/schedule/schedule_rules.h"

namespace shardscape::schedule {

constinit const ScheduleRules kInterleavedRules = {
    .warm_up =
        [](const PipelineShape& shape, std::int32_t stage) {
          if (shape.microbatches == shape.stages) return shape.forwards();
          return std::min(shape.forwards(),
                          2 * (shape.stages - stage - 1) + (shape.virtual_stages - 1) * shape.stages + 1);
        },
    .waves = true};

}  // namespace shardscape::schedule
