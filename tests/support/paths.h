// Where the tests find what they run and read. Functions, so that one file alone hangs on the build's
// folders.
#pragma once

#include <string>

namespace shardscape::test {

/// The folder that holds CMakeLists.txt, models/ and hw_presets/.
std::string source_dir();
/// Measurements to validate against; may be absent (set SHARDSCAPE_REFERENCE_DIR when configuring).
std::string reference_dir();
/// The `shardscape` program of this build.
std::string program();

}  // namespace shardscape::test
