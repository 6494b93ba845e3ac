// Looks presets up by file name in the preset directories; models also by the names of their `also` lists, and with a
// changed number of layers.
#include "sweep/yaml/catalog.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>
#include <map>
#include <system_error>

#include "engine/base/suggest.h"
#include "engine/base/words.h"
#include "sweep/yaml/closest_names.h"

namespace shardscape::yaml {

namespace fs = std::filesystem;

namespace {

/// Whether the path can be opened as a file; pipes and devices count, and whoever reads them reports what is wrong.
bool is_file(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored) && !fs::is_directory(path, ignored);
}

/// Whether a name has the form ORGANISATION/MODEL that hubs of models use.
bool is_hub_name(std::string_view name) {
  const std::size_t slash = name.find('/');
  return slash != std::string_view::npos && slash > 0 && slash + 1 < name.size() &&
         name.find('/', slash + 1) == std::string_view::npos && name.front() != '.' && name.front() != '~' &&
         !name.ends_with(".yaml") && !name.ends_with(".yml") && !name.ends_with(".json");
}

/// The config.json in a folder; empty where it has none.
fs::path config_in(const fs::path& folder) {
  return is_file(folder / "config.json") ? folder / "config.json" : fs::path();
}

/// The path without its parts `.`, of which a chain of files would have many.
fs::path without_dots(const fs::path& path) {
  fs::path plain;
  for (const fs::path& part : path)
    if (part != ".") plain /= part;
  return plain;
}

tl::expected<fs::path, std::string> find_path(std::string_view name, const fs::path& relative_to) {
  const fs::path path = without_dots(name), beside = without_dots(relative_to / name);
  if (!path.is_absolute() && !relative_to.empty() && is_file(beside)) return beside;
  if (is_file(path)) return path;
  std::string message = fmt::format("no such file: {}", name);
  if (!path.is_absolute() && !relative_to.empty()) {
    message += " (looked in " + relative_to.string() + " and in the working directory)";
  }
  return tl::unexpected(message);
}

bool same_letters(std::string_view a, std::string_view b) { return lower_case(a) == lower_case(b); }

/// Whether the text could contain the name as a scalar, so that it is worth parsing, which takes most of the time of a
/// look-up. YAML writes a scalar as it is unless it is escaped, runs over lines (impossible without blanks), or has
/// doubled quotes.
bool may_name(std::string_view text, std::string_view name) {
  if (text.find('\\') != std::string_view::npos || name.find_first_of(" \t\n'") != std::string_view::npos)
    return true;
  return lower_case(text).find(lower_case(name)) != std::string::npos;
}

/// Whether the `also` list of a model file has the name. False for a file that is not YAML; whoever loads it reports
/// that.
bool also_has(const fs::path& file, std::string_view name) {
  std::ifstream in(file, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  if (!may_name(text, name)) return false;
  Diagnostics ignored;
  const std::optional<Node> node = parse(text, file.string(), ignored);
  return node && also_entry(*node, name) != nullptr;
}

/// The parts NAME and N of a name NAME-lN.
struct CutName {
  std::string_view name;
  std::int64_t layers = 0;
};
std::optional<CutName> cut_name(std::string_view name) {
  const std::size_t dash = name.rfind("-l");
  if (dash == std::string_view::npos || dash == 0 || dash + 2 == name.size()) return std::nullopt;
  const auto layers = to_number<std::int64_t>(name.substr(dash + 2));
  return layers >= 1 ? std::optional(CutName{name.substr(0, dash), *layers}) : std::nullopt;
}

}  // namespace

std::string_view preset_folder(PresetKind kind) {
  constexpr std::array<std::string_view, 8> kFolders = {"models",
                                                        "hw_presets/devices",
                                                        "hw_presets/clusters",
                                                        "hw_presets/stacks",
                                                        "hw_presets/technology/logic",
                                                        "hw_presets/technology/memory",
                                                        "hw_presets/technology/network",
                                                        "hw_presets/technology/floorplans"};
  return kFolders[static_cast<std::size_t>(kind)];
}

bool is_path(std::string_view name) {
  return name.find('/') != std::string_view::npos || name.ends_with(".yaml") || name.ends_with(".yml") ||
         name.ends_with(".json");
}

/// Advice for a message: what to pass as a model instead of a folder, or of a name that a hub knows.
std::string Catalog::model_advice(std::string_view name, const fs::path& relative_to) const {
  for (const fs::path& folder : {relative_to / name, fs::path(name)}) {
    if (const fs::path config = config_in(folder); !config.empty())
      return "; that is a folder: its Hugging Face config is " + config.string();
  }
  if (!is_hub_name(name)) return "";
  const std::string model(name.substr(name.find('/') + 1));
  std::string advice = fmt::format(
      "; names of a hub are not fetched: download the config.json of {} and pass its path, such as "
      "{}/config.json",
      name, model);
  std::vector<std::string> names;
  for (const Entry& entry : list(PresetKind::model)) names.push_back(entry.name);
  if (const auto near = nearest_name(model, names))
    advice += ", or take " + *near + ", which comes with the program";
  return advice;
}

std::vector<Catalog::Entry> Catalog::list(PresetKind kind) const {
  std::map<std::string, fs::path> found;
  for (const fs::path& directory : directories_) {
    std::error_code ignored;
    for (const fs::directory_entry& file : fs::directory_iterator(directory / preset_folder(kind), ignored)) {
      if (file.path().extension() != ".yaml" || !is_file(file.path())) continue;
      found.emplace(file.path().stem().string(), file.path());
    }
  }
  std::vector<Entry> entries;
  for (const auto& [name, file] : found) entries.push_back({name, file});
  return entries;
}

fs::path Catalog::preset(PresetKind kind, std::string_view name) const {
  const fs::path file = fmt::format("{}.yaml", name);
  for (const fs::path& directory : directories_) {
    fs::path candidate = directory / preset_folder(kind) / file;
    if (!name.empty() && is_file(candidate)) return candidate;
  }
  return {};
}

std::string_view also_name(const Node& item) {
  const Node* const name = item.is_map() ? item.find("name") : &item;
  return name != nullptr ? std::string_view(name->text) : std::string_view();
}

const Node* also_entry(const Node& model, std::string_view name) {
  const Node* const also = model.is_map() ? model.find("also") : nullptr;
  if (also == nullptr || name.empty()) return nullptr;  // an item without a name is nobody's
  const auto is_it = [&](const Node& item) { return same_letters(also_name(item), name); };
  if (!also->is_list()) return is_it(*also) ? also : nullptr;
  const auto found = std::ranges::find_if(also->items, is_it);
  return found == also->items.end() ? nullptr : &*found;
}

/// The preset whose `also` list has this name; empty where there is none.
fs::path Catalog::also_named(std::string_view name) const {
  for (const Entry& entry : list(PresetKind::model))
    if (also_has(entry.file, name)) return entry.file;
  return {};
}

tl::expected<Catalog::Model, std::string> Catalog::find_model(std::string_view name,
                                                              const fs::path& relative_to) const {
  tl::expected<fs::path, std::string> file = find(PresetKind::model, name, relative_to);
  if (file) return Model{*std::move(file), std::nullopt};
  if (fs::path other = also_named(name); !other.empty())
    return Model{std::move(other), std::nullopt, std::string(name)};
  const std::optional<CutName> cut = cut_name(name);
  if (!cut) return tl::unexpected(std::move(file.error()));
  if (tl::expected<Model, std::string> whole = find_model(cut->name, relative_to); whole && !whole->layers)
    return Model{std::move(whole->file), cut->layers, std::move(whole->also)};
  return tl::unexpected(std::move(file.error()));
}

tl::expected<fs::path, std::string> Catalog::find(PresetKind kind, std::string_view name,
                                                  const fs::path& relative_to) const {
  if (is_path(name)) {
    tl::expected<fs::path, std::string> found = find_path(name, relative_to);
    if (!found && kind == PresetKind::model) found.error() += model_advice(name, relative_to);
    return found;
  }
  if (fs::path file = preset(kind, name); !file.empty()) return file;
  std::vector<std::string> names;
  for (const Entry& entry : list(kind)) names.push_back(entry.name);
  std::string message = fmt::format("unknown {} \"{}\"", name_of(kind), name);
  const std::vector<std::string> near = nearest_names(name, names, 3);
  if (!near.empty()) message += "; did you mean " + join(near) + '?';
  if (near.empty())
    message += names.empty() ? "; the preset directories have none" : "; available: " + join(names);
  return tl::unexpected(message);
}

}  // namespace shardscape::yaml
