// Do constraints survive any bytes? What is accepted is evaluated on a few plans; it gives the same answer
// twice, and its text parses again.
#include <cstdint>
#include <string>

#include "engine/base/check.h"
#include "sweep/space/constraint.h"

using namespace shardscape;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto constraint = sweep::Constraint::parse(text);
  if (!constraint) {
    SHARDSCAPE_CHECK(constraint.error().offset <= size && !constraint.error().message.empty(), text);
    return 0;
  }
  const auto again = sweep::Constraint::parse(constraint->text());
  SHARDSCAPE_CHECK(again, text);
  WorkloadSpec workload;
  workload.sequence_length = 4096;
  workload.global_batch = 64;
  for (const std::int32_t degree : {1, 2, 8}) {
    ParallelPlan plan;
    plan.tensor = degree;
    plan.data = 2 * degree;
    plan.microbatch = degree;
    SHARDSCAPE_CHECK(constraint->holds(plan, workload) == again->holds(plan, workload), text);
  }
  return 0;
}
