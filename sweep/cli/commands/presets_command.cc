// shardscape presets: lists the models, devices, clusters, stacks and technologies there are, and shows single ones.
#include <fmt/format.h>

#include <array>
#include <filesystem>
#include <iostream>
#include <optional>

#include "engine/base/suggest.h"
#include "sweep/cli/command.h"
#include "sweep/cli/terminal/format.h"
#include "sweep/cli/terminal/text_table.h"
#include "sweep/yaml/huggingface.h"
#include "sweep/yaml/load.h"
#include "sweep/yaml/loader.h"
#include "sweep/yaml/node.h"
#include "sweep/yaml/specs.h"

namespace shardscape::cli {

namespace {

using yaml::Catalog;
using yaml::PresetKind;

constexpr const char* kPresetsFooter =
    R"(Examples:
  shardscape presets
  shardscape presets a100-sxm-80gb
  shardscape presets my-gpu.yaml
  shardscape presets Llama-3.1-8B/config.json
  shardscape presets --presets my-presets)";

constexpr std::array<std::pair<PresetKind, const char*>, 8> kKinds = {
    {{PresetKind::model, "models"},
     {PresetKind::device, "devices"},
     {PresetKind::cluster, "clusters"},
     {PresetKind::stack, "stacks"},
     {PresetKind::logic, "logic nodes"},
     {PresetKind::memory, "memory technologies"},
     {PresetKind::network, "network technologies"},
     {PresetKind::floorplan, "floor plans"}}};

std::string facts(const ModelSpec& model) {
  std::string text =
      fmt::format("{}, {} layers, hidden {}, {} heads", format_parameters(model.parameters()),
                  format_count(model.layers), format_count(model.hidden), format_count(model.heads));
  if (model.kv_heads != model.heads) text += " (" + format_count(model.kv_heads) + " KV)";
  if (model.latent) text += ", latent attention";
  if (const auto& moe = model.moe) {
    text += fmt::format(", {} of {} experts", format_count(moe->top_k), format_count(moe->experts));
    if (moe->shared_experts > 0) text += fmt::format(" + {}", format_count(moe->shared_experts));
    text += fmt::format(", each {} {}, {} active", format_count(moe->expert_ffn_hidden), name_of(model.mlp),
                        format_parameters(model.active_parameters()));
  } else {
    text += fmt::format(", MLP {} {}", format_count(model.ffn_hidden), name_of(model.mlp));
  }
  return model.parallel_residual ? text + ", parallel residual" : text;
}

std::string facts(const DeviceSpec& device) {
  const Precision precision = device.supports(Precision::bf16) ? Precision::bf16 : Precision::fp16;
  return fmt::format("{} {}, {} SMs, {} at {}", format_si(device.tensor_peak(precision).value(), "FLOP/s"),
                     name_of(precision), format_count(device.sm.count),
                     format_bytes(device.memory_capacity().value()),
                     format_si(device.hbm_peak().value(), "B/s"));
}

std::string facts(const yaml::Cluster& cluster) {
  std::string text = cluster.device.name;
  for (const DimensionSpec& dimension : cluster.fabric.fabric.dimensions) {
    text += ", " + dimension.name + ": ";
    std::string shape;
    for (const std::int64_t size : dimension.shape) {
      if (!shape.empty()) shape += 'x';
      shape += size == FabricTemplate::kFill ? "any" : format_count(size);
    }
    text += fmt::format("{} of {}", name_of(dimension.kind), shape);
    if (dimension.kind == DimensionKind::custom) {
      text += " with " + format_count(dimension.custom.links.size()) + " links";
    } else {
      text += " at " + format_si(dimension.bandwidth.value(), "B/s");
      if (dimension.basis == BandwidthBasis::gpu) text += " per GPU";
    }
  }
  return text;
}

std::string facts(const yaml::StackPreset& stack) {
  const std::string& years = stack.tables.years;
  return fmt::format("{}{} attention, {} partition, {} per collective, links at {} / {}",
                     years.empty() ? "" : fmt::format("of {}: ", years), name_of(stack.attention),
                     name_of(stack.partition), format_seconds(stack.communication.call.value()),
                     format_percent(stack.communication.scale_up_fraction),
                     format_percent(stack.communication.scale_out_fraction));
}

std::string facts(const technology::LogicNode& logic) {
  const technology::LogicScaling& step = logic.step;
  return fmt::format("over {}: density x{}, clock x{} at equal power, power x{} at equal clock",
                     logic.relative_to ? logic.relative_to->name : "its predecessor",
                     format_fixed(step.density, 2), format_fixed(step.clock_at_equal_power, 2),
                     format_fixed(step.power_at_equal_clock, 2));
}

std::string picojoules(technology::JoulesPerBit energy) {
  return format_fixed(energy.value() * 1e12, 2) + " pJ/b";
}

std::string facts(const technology::MemoryTechnology& memory) {
  return format_bytes(memory.capacity_per_stack.value()) + " at " +
         format_si(memory.bandwidth_per_stack.value(), "B/s") + " per stack, " + picojoules(memory.energy);
}

std::string facts(const technology::NetworkTechnology& network) {
  return format_si(network.bandwidth.value(), "B/s") + " per GPU, " + picojoules(network.energy);
}

std::string facts(const technology::Floorplan& plan) {
  constexpr double kSquareMillimetres = 1e6;
  return fmt::format("{}, {}, {} mm2, {} W", plan.logic.name, plan.memory.name,
                     format_fixed(plan.area.value() * kSquareMillimetres, 0),
                     format_fixed(plan.power.value(), 0));
}

/// What `use` returns for the spec behind a preset, or the problems of its file.
template <class Use>
tl::expected<std::string, std::string> with_preset(const Catalog& catalog, PresetKind kind,
                                                   const std::string& name, const Use& use) {
  const auto apply = [&](const auto& loaded) -> tl::expected<std::string, std::string> {
    if (!loaded) return tl::unexpected(loaded.error().to_string());
    return use(*loaded);
  };
  switch (kind) {
    case PresetKind::model:
      return apply(yaml::load_model(catalog, name));
    case PresetKind::device:
      return apply(yaml::load_device(catalog, name));
    case PresetKind::cluster:
      return apply(yaml::load_cluster(catalog, name));
    case PresetKind::stack:
      return apply(yaml::load_stack(catalog, name));
    case PresetKind::logic:
      return apply(yaml::load_logic(catalog, name));
    case PresetKind::memory:
      return apply(yaml::load_memory(catalog, name));
    case PresetKind::network:
      return apply(yaml::load_network(catalog, name));
    case PresetKind::floorplan:
      return apply(yaml::load_floorplan(catalog, name));
  }
  return tl::unexpected(std::string("?"));
}

int list_presets(const Catalog& catalog) {
  for (const auto& [kind, title] : kKinds) {
    TextTable table = TextTable::pairs();
    for (const Catalog::Entry& entry : catalog.list(kind)) {
      const auto line = with_preset(catalog, kind, entry.name, [](const auto& spec) { return facts(spec); });
      table.add_row(
          {entry.name, line ? *line : "broken: " + line.error().substr(0, line.error().find('\n'))});
    }
    if (table.empty()) continue;
    std::cout << title << '\n';
    table.print(std::cout, 2);
  }
  return kDone;
}

/// Keys that identify what a file describes; the first one that it has decides. See yaml/specs.cc.
constexpr std::array<std::pair<const char*, PresetKind>, 11> kTellingKeys = {
    {{"dimensions", PresetKind::cluster},
     {"sm", PresetKind::device},
     {"technology", PresetKind::device},
     {"peak", PresetKind::device},
     {"layers", PresetKind::model},
     {"communication", PresetKind::stack},
     {"density", PresetKind::logic},
     {"capacity_per_stack", PresetKind::memory},
     {"sm_share", PresetKind::floorplan},
     {"hidden", PresetKind::model},
     {"energy", PresetKind::network}}};

/// The kind of a preset that only lists differences from a base: the kind of its base, which may be a file that has
/// one.
std::optional<PresetKind> kind_of_base(const Catalog& catalog, const yaml::Node& base,
                                       const std::filesystem::path& folder,
                                       std::size_t files = yaml::kLongestChain) {
  if (base.is_scalar() && base.text.ends_with(".json")) return PresetKind::model;
  if (base.is_scalar() && yaml::is_path(base.text) && files > 0) {
    const std::filesystem::path file = folder / base.text;
    yaml::Diagnostics ignored;  // whoever loads it says what is wrong
    const auto text = yaml::read_text(file);
    const auto node = text ? yaml::parse(*text, file.string(), ignored) : std::nullopt;
    if (const yaml::Node* const next = node && node->is_map() ? node->find("base") : nullptr)
      return kind_of_base(catalog, *next, file.parent_path(), files - 1);
    for (const auto& [key, kind] : kTellingKeys)
      if (node && node->is_map() && node->find(key) != nullptr) return kind;
  }
  for (const PresetKind kind :
       {PresetKind::device, PresetKind::cluster, PresetKind::stack, PresetKind::model}) {
    if (base.is_scalar() && catalog.find(kind, base.text, folder)) return kind;
  }
  return std::nullopt;
}

/// The kind of preset in a file, judged by its keys.
PresetKind kind_of(const Catalog& catalog, const std::string& file) {
  if (file.ends_with(".json")) return PresetKind::model;
  const auto text = yaml::read_text(file);
  if (!text) throw BadInput(file + ": " + text.error());
  yaml::Diagnostics diagnostics;
  const auto node = yaml::parse(*text, file, diagnostics);
  if (!node) throw BadInput(diagnostics);
  if (const yaml::Node* const base = node->find("base")) {
    if (const auto kind = kind_of_base(catalog, *base, std::filesystem::path(file).parent_path()))
      return *kind;
  }
  for (const auto& [key, kind] : kTellingKeys) {
    if (node->find(key) != nullptr) return kind;
  }
  if (node->find("workload") != nullptr)
    throw BadInput(file + ": is a study; 'shardscape check " + file + "' says what it holds");
  throw BadInput(file +
                 ": what it describes is not clear: a model has the key layers, a device sm, a cluster "
                 "dimensions, a stack communication");
}

/// Prints a preset with every default filled in, below its kind and file.
void show(const Catalog& catalog, PresetKind kind, const std::string& name, const std::string& file) {
  const auto text = with_preset(
      catalog, kind, name, [](const auto& spec) { return "# " + facts(spec) + '\n' + yaml::to_yaml(spec); });
  if (!text) throw BadInput(split_lines(text.error()));
  std::cout << "# " << name_of(kind) << ", " << file << '\n';
  if (const auto config = file.ends_with(".json") ? yaml::read_text(file) : tl::unexpected(std::string()))
    if (const auto stored = yaml::checkpoint_precision(*config))
      std::cout << "# the checkpoint's weights are in " << name_of(*stored)
                << ": workload.precision: " << name_of(*stored) << '\n';
  std::cout << *text;
}

int show_preset(const Catalog& catalog, const std::string& name) {
  const auto file = catalog.find(PresetKind::model, name, {});
  const auto model = catalog.find_model(name, {});
  if (!file && model) {  // a name that no file has: a hub's name, or one with a number of layers
    show(catalog, PresetKind::model, name, model->file.string());
    return kDone;
  }
  if (yaml::is_path(name)) {
    if (!file) throw BadInput("presets: " + file.error());
    show(catalog, kind_of(catalog, name), name, name);
    return kDone;
  }
  std::vector<std::string> names;
  bool found = false;
  for (const auto& [kind, title] : kKinds) {
    for (const Catalog::Entry& entry : catalog.list(kind)) {
      names.push_back(entry.name);
      if (entry.name == name) show(catalog, kind, name, entry.file.string());
      found = found || entry.name == name;
    }
  }
  if (found) return kDone;
  throw BadInput("presets: no preset '" + name + "'" + did_you_mean(name, names) +
                 "; 'shardscape presets' lists all");
}

int run_presets(const std::string& name, const CommonOptions& common) {
  const Catalog catalog = make_catalog(common);
  return name.empty() ? list_presets(catalog) : show_preset(catalog, name);
}

}  // namespace

void add_presets_command(const Program& program) {
  const auto [command, name] =
      program.add("presets", "List models, devices, clusters, stacks and technologies, or show one",
                  kPresetsFooter, run_presets);
  command->add_option("NAME", *name,
                      "Show this preset, or the model, device, cluster or stack of this file, with every "
                      "default filled in");
}

}  // namespace shardscape::cli
