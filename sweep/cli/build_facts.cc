#include "sweep/cli/build_facts.h"

#include "git_commit.h"

namespace shardscape::cli::build_facts {

std::string_view version() { return SHARDSCAPE_VERSION; }
std::string_view git_commit() { return SHARDSCAPE_GIT_COMMIT; }
std::string_view compiler() { return SHARDSCAPE_COMPILER; }
std::string_view source_tree() { return SHARDSCAPE_SOURCE_TREE; }
std::string_view shared_folder() { return SHARDSCAPE_SHARE_DIR; }

}  // namespace shardscape::cli::build_facts
