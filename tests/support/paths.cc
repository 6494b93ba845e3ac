#include "tests/support/paths.h"

namespace shardscape::test {

std::string source_dir() { return SHARDSCAPE_SOURCE_DIR; }
std::string reference_dir() { return SHARDSCAPE_REFERENCE_DIR; }
std::string program() { return SHARDSCAPE_PROGRAM; }

}  // namespace shardscape::test
