// Does the reader of studies survive any bytes? Every refusal must be located; every study that is accepted
// must have systems and workloads within the ranges of their numbers.
#include <cstdint>
#include <string>

#include "engine/base/check.h"
#include "sweep/study/load_study.h"

using namespace shardscape;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const yaml::Catalog none;  // no presets: what a study needs stands in it
  const auto study = sweep::parse_study(text, "s.yaml", "/nonexistent", none);
  if (!study) {
    SHARDSCAPE_CHECK(!study.error().empty(), text);
    for (const yaml::Diagnostic& problem : study.error().list())
      SHARDSCAPE_CHECK(problem.where.source && !problem.message.empty(), problem.path);
    return 0;
  }
  SHARDSCAPE_CHECK(!study->systems.empty() && !study->workloads.empty(), text);
  SHARDSCAPE_CHECK(study->model.validate().empty(), text);
  for (const System& system : study->systems) {
    SHARDSCAPE_CHECK(system.device.validate().empty(), text);
    SHARDSCAPE_CHECK(system.fabric.validate().empty(), text);
    SHARDSCAPE_CHECK(system.stack.validate().empty(), text);
  }
  for (const WorkloadSpec& workload : study->workloads) SHARDSCAPE_CHECK(workload.validate().empty(), text);
  return 0;
}
