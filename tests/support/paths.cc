#include "tests/support/paths.h"

/// Read by the leak checker. HDF5 loses the memory of a file that a full disk kept it from closing, and of object
/// headers whose checksum is wrong.
extern "C" const char* __lsan_default_suppressions() { return "leak:libhdf5"; }

namespace shardscape::test {

std::string source_dir() { return SHARDSCAPE_SOURCE_DIR; }
std::string reference_dir() { return SHARDSCAPE_REFERENCE_DIR; }
std::string program() { return SHARDSCAPE_PROGRAM; }

}  // namespace shardscape::test
