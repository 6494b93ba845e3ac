// The page of `shardscape explore`: a study, the presets and the engine for browsers in one HTML document.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sweep/study/study.h"
#include "sweep/yaml/catalog.h"
#include "sweep/yaml/diagnostics.h"

namespace shardscape::explorer {

/// The engine for browsers, as emscripten makes it.
struct BrowserEngine {
  std::string script;  ///< shardscape_engine.js
  std::string wasm;    ///< shardscape_engine.wasm
};

struct ExplorerInput {
  const sweep::Study& study;
  const yaml::Catalog& presets;
  std::string shown;                 ///< the study as its user wrote it, with the changes of the command line
  std::vector<std::string> folders;  ///< of presets, that the command line named
  std::string path;                  ///< of the study, for commands
  std::vector<std::string> set;      ///< the changes of the command line, for commands
  std::string_view version, commit;
};

/// The document. Problems are those of presets that can't be read, and of the study's tables.
std::string explorer_page(const ExplorerInput& input, const BrowserEngine& engine,
                          yaml::Diagnostics& diagnostics);

}  // namespace shardscape::explorer
