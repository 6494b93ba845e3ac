// Maps names in public tables to presets, from the lists of names in device and stack presets, and reads names of
// number formats.
#include "sweep/validate/table_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <tuple>

#include "engine/base/suggest.h"
#include "engine/base/words.h"
#include "sweep/validate/run_labels.h"

namespace shardscape::validate {

namespace {

/// Devices that public tables measure and no preset describes: PCIe cards without NVLink, AMD's accelerators, Google's.
constexpr auto kWithoutPreset = std::to_array<std::string_view>(
    {"l40s", "rtx_pro_6000_server", "b60", "mi300x", "mi325x", "mi350x", "mi355x", "tpu-v5p", "tpu-v6e"});
/// Software that public tables name and no preset stands for: AMD's server.
constexpr auto kSoftwareWithoutPreset = std::to_array<std::string_view>({"atom"});

struct FormatAlias {
  std::string_view text, name;
};
/// Names of formats in tables of kernels and of NVIDIA's recipes (Megatron Bridge: "cs" is current scaling, one scale
/// per tensor; "mx" is microscaling, one per 32 values; "alt" is not explained there).
constexpr auto kFormatAliases = std::to_array<FormatAlias>({
    {"bfloat16", "bf16"},
    {"float16", "fp16"},
    {"half", "fp16"},
    {"float", "fp32"},
    {"float32", "fp32"},
    {"fp8-cs", "fp8"},
    {"fp8-alt", "fp8"},
    {"fp8-mx", "mxfp8"},
    {"fp8_block", "fp8"},
});

/// Families of mixtures of experts by the beginning of their names, without the owner ("Qwen/").
constexpr auto kExpertFamilies = std::to_array<std::string_view>(
    {"deepseek", "gpt-oss", "grok", "mixtral", "llama-4", "llama4", "kimi", "glm-4.5"});

template <typename Name>
std::optional<Name> format_named(std::string_view text) {
  if (const auto own = parse_enum<Name>(text)) return own;
  const auto alias = std::ranges::find(kFormatAliases, text, &FormatAlias::text);
  return alias == kFormatAliases.end() ? std::nullopt : parse_enum<Name>(alias->name);
}

template <typename Name>
std::string format_names() {
  std::string text = join_names(enum_names<Name>());
  for (const FormatAlias& alias : kFormatAliases) {
    if (parse_enum<Name>(alias.name)) text += fmt::format(", {}", alias.text);
  }
  return text;
}

std::vector<std::string> keys_of(const std::map<std::string, std::string>& names) {
  std::vector<std::string> keys;
  for (const auto& [key, preset] : names) keys.push_back(key);
  return keys;
}

Nameless unknown(const char* what, const std::string& text, const std::map<std::string, std::string>& names) {
  const std::vector<std::string> keys = keys_of(names);
  return {fmt::format("no {} is called '{}'{}; there are {}", what, text, did_you_mean(text, keys),
                      join_names(keys))};
}

}  // namespace

void TableNames::add_device(const std::string& preset) {
  const auto device = presets_.device(preset);
  if (!device) return;  // rows that name the device report what is wrong
  clusters_.insert_or_assign(preset, (*device)->tables.cluster);
  devices_.emplace((*device)->name, preset);
  for (const std::string& name : (*device)->tables.also) devices_.emplace(name, preset);
}

void TableNames::read() {
  if (std::exchange(read_, true)) return;
  if (yaml::is_path(own_device_)) add_device(own_device_);
  const yaml::Catalog& catalog = presets_.catalog();
  for (const yaml::Catalog::Entry& entry : catalog.list(yaml::PresetKind::device)) {
    devices_.emplace(entry.name, entry.name);
    add_device(entry.name);
  }
  for (const yaml::Catalog::Entry& entry : catalog.list(yaml::PresetKind::stack)) {
    stacks_.emplace(entry.name, entry.name);
  }
  for (const yaml::Catalog::Entry& entry : catalog.list(yaml::PresetKind::stack)) {
    const auto stack = presets_.stack(entry.name);
    if (!stack) continue;
    // As the name of software, a text may mean another profile than the one of that name.
    const yaml::StackTables& tables = (*stack)->tables;
    for (const std::string& name : tables.software) {
      if (tables.software_of.empty()) stacks_.insert_or_assign(name, entry.name);
      for (const std::string& source : tables.software_of) of_sources_.push_back({name, source, entry.name});
    }
    const double from = release_number(tables.expert_software_from).value_or(0);
    for (const std::string& name : tables.expert_software)
      of_experts_[name].push_back({from, tables.expert_software_on, entry.name});
  }
}

TableNames::Named TableNames::device(const std::string& text) {
  if (yaml::is_path(text)) return text;
  read();
  if (const auto found = devices_.find(text); found != devices_.end()) return found->second;
  if (std::ranges::find(kWithoutPreset, text) != kWithoutPreset.end())
    return tl::unexpected(Nameless{.why = "no preset describes the device " + text, .understood = true});
  return tl::unexpected(unknown("device", text, devices_));
}

TableNames::Named TableNames::cluster(const std::string& device_text) {
  const Named device_name = device(device_text);
  if (!device_name) return device_name;
  const auto found = clusters_.find(*device_name);
  if (found != clusters_.end() && !found->second.empty()) return found->second;
  return tl::unexpected(Nameless{"device " + device_text +
                                 " names no cluster; give the column cluster, or "
                                 "the device's preset the key 'cluster'"});
}

Architecture TableNames::architecture(const std::string& device_text) {
  const Named name = device(device_text);
  if (!name) return Architecture::other;
  const auto found = presets_.device(*name);
  return found ? (*found)->architecture : Architecture::other;
}

TableNames::Named TableNames::stack(const std::string& text, bool experts, const SoftwareRun& run) {
  if (yaml::is_path(text)) return text;
  read();
  const std::string first_word = text.substr(0, text.find(' '));
  const bool of_release = text != first_word && stacks_.contains(text);
  for (const auto& [software, source, preset] : of_sources_)
    if (!of_release && first_word == software && run.source.starts_with(source)) return preset;
  const auto found_experts = of_experts_.find(first_word);
  if (experts && found_experts != of_experts_.end()) {
    const OfExperts* last = nullptr;
    for (const OfExperts& profile : found_experts->second) {
      if (profile.from > run.release.value_or(0) || profile.on > run.architecture) continue;
      if (last == nullptr || std::tie(profile.from, profile.on) > std::tie(last->from, last->on))
        last = &profile;
    }
    if (last != nullptr) return last->preset;
  }
  if (const auto found = stacks_.find(text); found != stacks_.end()) return found->second;
  if (const auto found = stacks_.find(first_word); found != stacks_.end()) return found->second;
  if (presets_.has_stack(first_word)) return first_word;  // the profile that a fit has put in place
  if (std::ranges::find(kSoftwareWithoutPreset, first_word) != kSoftwareWithoutPreset.end())
    return tl::unexpected(
        Nameless{.why = "no preset describes the software " + first_word, .understood = true});
  return tl::unexpected(unknown("software or stack", text, stacks_));
}

std::optional<Precision> TableNames::precision(std::string_view text) {
  return format_named<Precision>(text);
}

std::optional<PolicyName> TableNames::policy(std::string_view text) { return format_named<PolicyName>(text); }

std::string TableNames::precisions() { return format_names<Precision>(); }

std::string TableNames::policies() { return format_names<PolicyName>(); }

bool has_experts(std::string_view model) {
  const std::string name = lower_case(model.substr(model.rfind('/') + 1));
  const bool family =
      std::ranges::any_of(kExpertFamilies, [&](std::string_view start) { return name.starts_with(start); });
  // Names such as "qwen3-30b-a3b" give the number of parameters and of those that are active.
  const std::size_t active = name.find("b-a");
  const bool counted = active != std::string::npos && active + 3 < name.size() &&
                       std::isdigit(static_cast<unsigned char>(name[active + 3])) != 0;
  return family || counted;
}

}  // namespace shardscape::validate
