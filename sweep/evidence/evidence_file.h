// The evidence as a file: `hw_presets/evidence.yaml` of a preset folder, written by `validate --evidence`.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <tl/expected.hpp>

#include "sweep/evidence/evidence_table.h"
#include "sweep/yaml/catalog.h"
#include "sweep/yaml/diagnostics.h"

namespace shardscape::evidence {

/// Where the file lies below a preset folder.
inline constexpr const char* kEvidenceFile = "hw_presets/evidence.yaml";

/// Finds the file in the first preset folder that has one; empty where none has.
std::optional<std::filesystem::path> find_evidence(const yaml::Catalog& catalog);

/// Reads the evidence. The error holds every problem of the file, with its place.
tl::expected<Table, yaml::Diagnostics> read_evidence(const std::filesystem::path& file);
/// Parses the evidence from text; `name` stands for the file in messages.
tl::expected<Table, yaml::Diagnostics> parse_evidence(const std::string& text, const std::string& name);

/// Writes a table as YAML text that reads back as an equal table.
std::string evidence_yaml(const Table& table);

}  // namespace shardscape::evidence
