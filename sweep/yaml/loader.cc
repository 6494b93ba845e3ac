#include "sweep/yaml/loader.h"

#include <cerrno>
#include <fstream>
#include <sstream>
#include <system_error>

#include "sweep/yaml/huggingface.h"
#include "sweep/yaml/specs.h"

namespace shardscape::yaml {

namespace fs = std::filesystem;

namespace {

/// A Hugging Face config is called config.json everywhere: its folder names the model.
std::string huggingface_name(const fs::path& file) {
  const fs::path absolute = fs::absolute(file);
  return file.stem() == "config" ? absolute.parent_path().filename().string() : file.stem().string();
}

Node reference_to(std::string_view name) {
  Node node = Node::scalar(std::string(name));
  node.where.source = std::make_shared<const std::string>();
  return node;
}

}  // namespace

tl::expected<std::string, std::string> read_text(const fs::path& file) {
  std::error_code error;
  if (fs::is_directory(file, error)) return tl::unexpected(std::string("cannot read: is a directory"));
  errno = 0;
  std::ifstream stream(file, std::ios::binary);
  std::ostringstream text;
  if (stream.peek() != std::ifstream::traits_type::eof()) text << stream.rdbuf();
  if (stream.is_open() && !stream.bad() && !text.fail()) return text.str();
  const std::string reason = errno != 0 ? std::generic_category().message(errno) : "input error";
  return tl::unexpected("cannot read: " + reason);
}

std::optional<fs::path> Loader::find(PresetKind kind, const Node& reference, const std::string& path,
                                     const fs::path& folder) {
  tl::expected<fs::path, std::string> file = catalog_.find(kind, reference.text, folder);
  if (file) return *file;
  diagnostics_.add(reference.where, path, file.error());
  return std::nullopt;
}

std::optional<std::string> Loader::text_of(PresetKind kind, const fs::path& file, const Node& reference,
                                           const std::string& path) {
  tl::expected<std::string, std::string> text = read_text(file);
  if (!text) {
    diagnostics_.add(reference.where, path, file.string() + ": " + text.error());
    return std::nullopt;
  }
  files_.push_back({std::string(preset_folder(kind)) + '/' + file.filename().string(), *text});
  return std::move(*text);
}

std::optional<Loader::Target> Loader::follow(PresetKind kind, const Node& reference, const std::string& path,
                                             const fs::path& folder) {
  if (reference.is_map()) return Target{reference, path, folder};
  if (!reference.is_scalar()) {
    diagnostics_.add(reference.where, path,
                     "must be the name or the path of a " + std::string(to_string(kind)) +
                         ", or one written in full, not " + std::string(kind_name(reference)));
    return std::nullopt;
  }
  const std::optional<fs::path> file = find(kind, reference, path, folder);
  if (!file) return std::nullopt;
  const std::optional<std::string> text = text_of(kind, *file, reference, path);
  if (!text) return std::nullopt;
  std::optional<Node> node = parse(*text, file->string(), diagnostics_);
  if (!node) return std::nullopt;
  return Target{std::move(*node), "", file->parent_path()};
}

std::optional<ModelSpec> Loader::model(const Node& reference, const std::string& path,
                                       const fs::path& folder) {
  if (reference.is_scalar() && reference.text.ends_with(".json")) {
    const std::optional<fs::path> file = find(PresetKind::model, reference, path, folder);
    if (!file) return std::nullopt;
    const std::optional<std::string> text = text_of(PresetKind::model, *file, reference, path);
    if (!text) return std::nullopt;
    return read_huggingface(*text, huggingface_name(*file), file->string(), diagnostics_);
  }
  const std::optional<Target> target = follow(PresetKind::model, reference, path, folder);
  if (!target) return std::nullopt;
  return read_model(target->node, target->prefix, diagnostics_);
}

std::optional<DeviceSpec> Loader::device(const Node& reference, const std::string& path,
                                         const fs::path& folder) {
  const std::optional<Target> target = follow(PresetKind::device, reference, path, folder);
  if (!target) return std::nullopt;
  return read_device(target->node, target->prefix, diagnostics_);
}

std::optional<StackProfile> Loader::stack(const Node& reference, const std::string& path,
                                          const fs::path& folder) {
  const std::optional<Target> target = follow(PresetKind::stack, reference, path, folder);
  if (!target) return std::nullopt;
  return read_stack(target->node, target->prefix, diagnostics_);
}

std::optional<Cluster> Loader::cluster(const Node& reference, const std::string& path,
                                       const fs::path& folder) {
  const std::optional<Target> target = follow(PresetKind::cluster, reference, path, folder);
  if (!target) return std::nullopt;
  const Node* device_reference = nullptr;
  std::optional<FabricTemplate> fabric =
      read_fabric(target->node, target->prefix, diagnostics_, &device_reference);
  if (device_reference == nullptr) return std::nullopt;
  const std::string device_path = target->prefix.empty() ? "device" : target->prefix + ".device";
  std::optional<DeviceSpec> gpu = device(*device_reference, device_path, target->folder);
  if (!fabric || !gpu) return std::nullopt;
  return Cluster{fabric->fabric.name, std::move(*gpu), std::move(*fabric)};
}

namespace {

template <class Spec, class Load>
tl::expected<Spec, Diagnostics> load(const Catalog& catalog, std::string_view name, Load&& load_with) {
  Diagnostics diagnostics;
  Loader loader(catalog, diagnostics);
  std::optional<Spec> spec = load_with(loader, reference_to(name));
  diagnostics.sort();
  if (!diagnostics.empty() || !spec) return tl::unexpected(std::move(diagnostics));
  return std::move(*spec);
}

}  // namespace

tl::expected<ModelSpec, Diagnostics> load_model(const Catalog& catalog, std::string_view name,
                                                const fs::path& relative_to) {
  return load<ModelSpec>(catalog, name, [&](Loader& loader, const Node& reference) {
    return loader.model(reference, "", relative_to);
  });
}

tl::expected<DeviceSpec, Diagnostics> load_device(const Catalog& catalog, std::string_view name,
                                                  const fs::path& relative_to) {
  return load<DeviceSpec>(catalog, name, [&](Loader& loader, const Node& reference) {
    return loader.device(reference, "", relative_to);
  });
}

tl::expected<Cluster, Diagnostics> load_cluster(const Catalog& catalog, std::string_view name,
                                                const fs::path& relative_to) {
  return load<Cluster>(catalog, name, [&](Loader& loader, const Node& reference) {
    return loader.cluster(reference, "", relative_to);
  });
}

tl::expected<StackProfile, Diagnostics> load_stack(const Catalog& catalog, std::string_view name,
                                                   const fs::path& relative_to) {
  return load<StackProfile>(catalog, name, [&](Loader& loader, const Node& reference) {
    return loader.stack(reference, "", relative_to);
  });
}

std::string to_yaml(const ModelSpec& model) { return emit(write(model)); }
std::string to_yaml(const DeviceSpec& device) { return emit(write(device)); }
std::string to_yaml(const StackProfile& stack) { return emit(write(stack)); }

std::string to_yaml(const Cluster& cluster) {
  Node node = write(cluster.fabric.fabric);
  node.set("device", write(cluster.device));
  return emit(node);
}

}  // namespace shardscape::yaml
