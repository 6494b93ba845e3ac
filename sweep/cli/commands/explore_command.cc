// shardscape explore: a study as a page in which the engine itself answers.
#include <array>
#include <fstream>
#include <iostream>
#include <sstream>

#include "results_schema/disk/output_file.h"
#include "sweep/cli/command.h"
#include "sweep/cli/terminal/format.h"
#include "sweep/explorer/explorer_page.h"
#include "sweep/modules/module.h"
#include "sweep/study/overrides.h"
#include "sweep/yaml/loader.h"

namespace shardscape::cli {

namespace {

namespace fs = std::filesystem;

constexpr const char* kExploreFooter =
    R"(Examples:
  shardscape explore study.yaml -o explore.html
  shardscape explore study.yaml -o explore.html --force              replace an earlier page
  shardscape explore study.yaml --set gpus=128 -o explore.html       begin at other values

The page holds the engine, compiled to WebAssembly, the study and all presets: it opens from disk, without a network,
and can be sent as it is. Its numbers are those of 'shardscape simulate'. The engine for browsers is built apart, by
scripts/explorer, with Debian's emscripten.)";

struct ExploreArguments {
  StudyArguments study;
  fs::path output;
  bool force = false;
};

std::string whole_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  if (!in) throw std::runtime_error(path.string() + ": cannot be read");
  return text.str();
}

explorer::BrowserEngine browser_engine() {
  constexpr std::array kPlaces = {"explorer/shardscape_engine",
                                  "share/shardscape/explorer/shardscape_engine"};
  for (const std::string place : kPlaces) {
    const auto script = modules::find(place + ".js"), wasm = modules::find(place + ".wasm");
    if (script && wasm) return {whole_file(*script), whole_file(*wasm)};
  }
  throw BadInput(
      "explore: the engine for browsers is not built; scripts/explorer builds it (it installs Debian's "
      "emscripten)");
}

/// The study as its user wrote it, with the changes of the command line.
std::string shown_study(const StudyArguments& arguments) {
  const auto text = yaml::read_text(arguments.file);
  if (!text) throw BadInput(arguments.file.string() + ": " + text.error());
  yaml::Diagnostics diagnostics;
  auto root = yaml::parse(*text, arguments.file.string(), diagnostics);
  if (!root) throw BadInput(diagnostics);
  for (const std::string& change : arguments.overrides) sweep::apply_override(*root, change, diagnostics);
  return yaml::emit(*root);
}

int run_explore(const ExploreArguments& arguments, const CommonOptions& common) {
  StudyArguments found = arguments.study;  // its tables lie beside it
  found.file = study_file(found.file);
  const sweep::Study study = load(found, common);
  const explorer::BrowserEngine engine = browser_engine();
  const results::OutputPath output(arguments.output, arguments.force, input_files(study));
  const yaml::Catalog presets = make_catalog(common);
  const results::RunInfo run = run_info(common, 1);
  yaml::Diagnostics diagnostics;
  std::vector<std::string> folders;
  for (const fs::path& folder : common.presets) folders.push_back(folder.string());
  const explorer::ExplorerInput input{
      study,           presets,   shown_study(found), folders, found.file.string(),
      found.overrides, version(), run.git_commit};
  const std::string page = explorer::explorer_page(input, engine, diagnostics);
  if (!diagnostics.empty()) throw BadInput(diagnostics);
  results::write_output(output, page);
  std::cout << "explorer of " << study.title << " in " << arguments.output.string() << " ("
            << format_bytes(static_cast<double>(page.size())) << ")\n";
  return kDone;
}

}  // namespace

void add_explore_command(const Program& program) {
  const auto [command, arguments] =
      program.add("explore", "A study as a page that predicts in the browser", kExploreFooter, run_explore);
  add_study_arguments(*command, arguments->study);
  add_value(*command, "-o,--output", arguments->output, "EXPLORE.html", "The page to write")->required();
  add_force(*command, arguments->force);
}

}  // namespace shardscape::cli
