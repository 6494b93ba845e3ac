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

/// Below a preset folder.
inline constexpr const char* kEvidenceFile = "hw_presets/evidence.yaml";

/// The file of the first preset folder that has one.
std::optional<std::filesystem::path> find_evidence(const yaml::Catalog& catalog);

/// Every problem of the file, located.
tl::expected<Table, yaml::Diagnostics> read_evidence(const std::filesystem::path& file);
/// `name` stands for the file in messages.
tl::expected<Table, yaml::Diagnostics> parse_evidence(const std::string& text, const std::string& name);

/// Reads back as an equal table.
std::string evidence_yaml(const Table& table);

}  // namespace shardscape::evidence
