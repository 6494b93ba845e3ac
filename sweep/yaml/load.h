// Loads files into validated specs. Each loader gives either a spec that passes its own validate(), or every problem of
// its files.
//
// Loaders read the file system and keep no state; they are safe to call from any thread. Names are looked up
// in the catalog or taken as paths (see Catalog::find).
#pragma once

#include <filesystem>
#include <string_view>
#include <tl/expected.hpp>

#include "engine/spec/device.h"
#include "engine/spec/fabric_spec.h"
#include "engine/spec/model.h"
#include "engine/spec/stack.h"
#include "sweep/technology/technology.h"
#include "sweep/yaml/catalog.h"
#include "sweep/yaml/diagnostics.h"
#include "sweep/yaml/preset_specs.h"

namespace shardscape::yaml {

template <class Spec>
using Loaded = tl::expected<Spec, Diagnostics>;

/// Loads a model description, or a Hugging Face config.json (see huggingface.h) where the file ends in .json.
Loaded<ModelSpec> load_model(const Catalog& catalog, std::string_view name,
                             const std::filesystem::path& relative_to = {});
Loaded<DevicePreset> load_device(const Catalog& catalog, std::string_view name,
                                 const std::filesystem::path& relative_to = {});
Loaded<Cluster> load_cluster(const Catalog& catalog, std::string_view name,
                             const std::filesystem::path& relative_to = {});
Loaded<StackPreset> load_stack(const Catalog& catalog, std::string_view name,
                               const std::filesystem::path& relative_to = {});
Loaded<technology::LogicNode> load_logic(const Catalog& catalog, std::string_view name,
                                         const std::filesystem::path& relative_to = {});
Loaded<technology::MemoryTechnology> load_memory(const Catalog& catalog, std::string_view name,
                                                 const std::filesystem::path& relative_to = {});
Loaded<technology::NetworkTechnology> load_network(const Catalog& catalog, std::string_view name,
                                                   const std::filesystem::path& relative_to = {});
Loaded<technology::Floorplan> load_floorplan(const Catalog& catalog, std::string_view name,
                                             const std::filesystem::path& relative_to = {});

}  // namespace shardscape::yaml
