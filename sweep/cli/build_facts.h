// What the build wrote into the program about itself. One small file knows it, so that no other one is compiled anew
// for a new commit or another folder.
#pragma once

#include <string_view>

namespace shardscape::cli::build_facts {

std::string_view version();        ///< as "0.1.0"
std::string_view git_commit();     ///< of the source tree, in full; "unknown" without git
std::string_view compiler();       ///< name and version
std::string_view source_tree();    ///< where it was built from
std::string_view shared_folder();  ///< of an installation, from the folder it stands in: "share/shardscape"

}  // namespace shardscape::cli::build_facts
