// Do execution traces survive any bytes? The input is the trace of the only rank; what is accepted is linked.
#include <cstdint>
#include <filesystem>
#include <string>

#include "engine/base/check.h"
#include "engine/timeline/linked_trace.h"
#include "sweep/chakra/trace_folder.h"
#include "tests/fuzz/scratch_file.h"

using namespace shardscape;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const fuzz::ScratchFolder kFolder;
  static const std::string kGroups = R"({"data": [0]})";
  kFolder.write("fuzz.0.et", data, size);
  if (!std::filesystem::exists(kFolder.path() / chakra::kGroupsFile)) {
    kFolder.write(chakra::kGroupsFile, reinterpret_cast<const std::uint8_t*>(kGroups.data()), kGroups.size());
  }
  const auto loaded = chakra::load(kFolder.path());
  if (!loaded) {
    SHARDSCAPE_CHECK(loaded.error().ends_with("\n"), loaded.error());
    return 0;
  }
  const auto linked = timeline::link(loaded->trace, {1});
  if (!linked) SHARDSCAPE_CHECK(!chakra::located(linked.error(), *loaded).empty(), size);
  return 0;
}
