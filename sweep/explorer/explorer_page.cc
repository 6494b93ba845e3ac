// Puts the page together. The browser has no files: presets and tables go into it under names that say nothing of this
// machine, the study with everything written out, and the engine compressed.
#include "sweep/explorer/explorer_page.h"

#include <libdeflate.h>
#include <openssl/evp.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include "engine/base/safe_text.h"
#include "results_schema/report/page.h"
#include "sweep/explorer/explorer_parts.h"
#include "sweep/explorer/node_json.h"
#include "sweep/input/input_file.h"
#include "sweep/yaml/loader.h"

namespace shardscape::explorer {

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr const char* kStudy = "/study/study.yaml";
constexpr const char* kShown = "/study/shown.yaml";

std::string base64_of_gzip(std::string_view bytes) {
  constexpr int kBest = 12;
  const std::unique_ptr<libdeflate_compressor, decltype(&libdeflate_free_compressor)> compressor(
      libdeflate_alloc_compressor(kBest), &libdeflate_free_compressor);
  if (!compressor) throw std::bad_alloc();
  std::vector<unsigned char> packed(libdeflate_gzip_compress_bound(compressor.get(), bytes.size()));
  const std::size_t size =
      libdeflate_gzip_compress(compressor.get(), bytes.data(), bytes.size(), packed.data(), packed.size());
  std::string text(4 * ((size + 2) / 3) + 1, '\0');
  const int length =
      EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()), packed.data(), static_cast<int>(size));
  text.resize(static_cast<std::size_t>(length));
  return text;
}

/// Adds the YAML files of a folder of presets, as JSON, under "/presets/"; those of earlier folders stay.
void add_presets(const fs::path& folder, Json& files, yaml::Diagnostics& diagnostics) {
  std::error_code error;
  std::vector<fs::path> found;
  for (const char* const part : {"models", "hw_presets"})
    for (fs::recursive_directory_iterator at(folder / part, error), end; !error && at != end;
         at.increment(error))
      if (at->path().extension() == ".yaml" && at->is_regular_file(error)) found.push_back(at->path());
  std::ranges::sort(found);
  for (const fs::path& file : found) {
    const std::string name = "/presets/" + file.lexically_relative(folder).generic_string();
    if (files.contains(name)) continue;
    const auto text = yaml::read_text(file);
    if (!text) diagnostics.append(yaml::refused_file(file, text.error()).value());
    const auto tree = text ? yaml::parse(*text, file.string(), diagnostics) : std::nullopt;
    if (tree) files[name] = json_text(to_json(*tree));
  }
}

/// Takes the tables that a study's tree names into the page, and names them as they are called there.
void take_tables(yaml::Node& node, const fs::path& folder, std::span<const fs::path> tables, Json& files) {
  bool taken = false;
  for (yaml::Node& item : node.items) take_tables(item, folder, tables, files);
  for (yaml::Entry& entry : node.entries) {
    take_tables(entry.value, folder, tables, files);
    const bool names_one =
        entry.key == "trace" || entry.key == "file" || entry.key == "acceptance" || entry.key == "table";
    if (!names_one || !entry.value.is_scalar()) continue;
    const auto is_it = [&](const fs::path& table) {
      return fs::absolute(folder / entry.value.text).lexically_normal() ==
             fs::absolute(table).lexically_normal();
    };
    const auto table = std::ranges::find_if(tables, is_it);
    if (table == tables.end()) continue;
    const auto text = input::read_file(*table, input::kMostTableBytes, "a table");
    if (!text) throw std::runtime_error(table->string() + ": " + text.error());
    entry.value.text = "table" + std::to_string(table - tables.begin()) + ".csv";
    files["/study/" + entry.value.text] = *text;
    taken = true;
  }
  if (taken) node.erase("sha256");  // the page holds the very file
}

}  // namespace

std::string explorer_page(const ExplorerInput& input, const BrowserEngine& engine,
                          yaml::Diagnostics& diagnostics) {
  Json files = Json::object();
  auto resolved = yaml::parse(input.study.resolved_yaml, "study", diagnostics);
  const auto shown = yaml::parse(input.shown, input.path, diagnostics);
  if (!resolved || !shown) return {};
  take_tables(*resolved, fs::path(input.path).parent_path(), input.study.tables, files);
  files[kStudy] = json_text(to_json(*resolved));
  files[kShown] = json_text(to_json(*shown));
  for (const fs::path& folder : input.presets.directories()) add_presets(folder, files, diagnostics);
  const Json data = {
      {"engine", {{"script", engine.script}, {"wasm", base64_of_gzip(engine.wasm)}}},
      {"load", {{"ask", "load"}, {"files", std::move(files)}, {"study", kStudy}, {"shown", kShown}}},
      {"study_path", input.path},
      {"presets", input.folders},
      {"set", input.set},
      {"program", {{"version", input.version}, {"commit", input.commit}}}};
  return report::framed_page({input.study.title + ": explorer", explorer_body(), explorer_script(),
                              json_text(data), explorer_style()});
}

}  // namespace shardscape::explorer
