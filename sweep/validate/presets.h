// Models, clusters, devices and stacks by name; each is read once.
//
// And public recipes of disaggregated servers: how many workers prefill and how many decode, and how each is split,
// which tables of measurements often leave out. They stand in a table with their sources (hw_presets/pool_recipes.csv),
// and a row gets the one that was made for its device, engine, precision, lengths and number of clients; what was
// measured has no part in the choice.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <tl/expected.hpp>

#include "sweep/validate/measured_table.h"
#include "sweep/validate/row_reader.h"
#include "sweep/yaml/catalog.h"
#include "sweep/yaml/load.h"

namespace shardscape::validate {

/// Where the table lies below a preset folder.
inline constexpr const char* kPoolRecipes = "hw_presets/pool_recipes.csv";

/// What a row says about its pools.
struct PoolsOfRow {
  std::string model, device, software, precision;
  std::int64_t prompt = 0, output = 0, clients = 0;
  std::optional<bool> drafts;  ///< whether it decodes speculatively; nothing: it does not say
  /// What the row prints: ranks of a worker, their number, and GPUs of all; nothing: it does not say.
  std::optional<std::int64_t> prefill_ranks, decode_ranks, prefill_workers, decode_workers, gpus;
};

struct PoolRecipe {
  const TableRow* row = nullptr;  ///< cells of the table's columns, which are those of public tables of plans
  std::int64_t draft_tokens = 0;
  std::optional<std::int64_t>
      max_batch;  ///< of a rank that decodes, of TensorRT-LLM also where the table has none
  /// Another recipe may have run: one that differs in workers or in speculation fits as well, none is for as many
  /// clients, or its source is that it is "assumed".
  bool doubtful = false;
};

/// The table of recipes; empty where there is none.
class PoolRecipes {
 public:
  explicit PoolRecipes(Table table);

  /// The recipe for a row: of those for its model, device, software, precision, lengths and ranks the one that lists
  /// its number of clients, else the nearest, at most four times as many or as few; where the row does not say whether
  /// it speculates, first those that list its clients, of equals the one without. Software with a release is for that
  /// release. A row prints as the ranks of a worker those of its tensor group, all of them, or all GPUs. Why, where
  /// there is none, or where the table cannot be read.
  [[nodiscard]] tl::expected<PoolRecipe, std::string> find(const PoolsOfRow& of);
  /// Reads cells of a recipe.
  RowReader reader(const TableRow& row) { return {table_, index_, row, problems_}; }

 private:
  Table table_;
  ColumnIndex index_;
  std::vector<TableProblem> problems_;
};

/// Pointers stay valid as long as the object. Errors say what is wrong with the name or its file. Not thread-safe.
class Presets {
 public:
  explicit Presets(yaml::Catalog catalog) : catalog_(std::move(catalog)) {}

  template <class Spec>
  using Found = tl::expected<const Spec*, std::string>;

  /// Looks up a name or a path, relative to `folder` or the working directory.
  Found<ModelSpec> model(const std::string& name, const std::filesystem::path& folder = {});
  Found<yaml::Cluster> cluster(const std::string& name, const std::filesystem::path& folder = {});
  Found<yaml::DevicePreset> device(const std::string& name, const std::filesystem::path& folder = {});
  Found<yaml::StackPreset> stack(const std::string& name, const std::filesystem::path& folder = {});

  /// Makes `name` mean this profile from now on (for what-ifs and fits). Earlier pointers for that name see it, too.
  void replace_stack(const std::string& name, yaml::StackPreset stack);
  /// Whether the stack was replaced or read before.
  [[nodiscard]] bool has_stack(const std::string& name) const { return stacks_.contains(name); }
  /// Replaces the device of that name, also in every cluster that is made of it.
  void replace_device(const DeviceSpec& device);

  [[nodiscard]] const yaml::Catalog& catalog() const { return catalog_; }
  /// Public recipes of disaggregated servers, of the first preset folder that has any.
  PoolRecipes& pool_recipes();

 private:
  template <class Spec>
  using Cache = std::map<std::string, tl::expected<Spec, std::string>>;
  void replace_devices();

  yaml::Catalog catalog_;
  Cache<ModelSpec> models_;
  Cache<yaml::Cluster> clusters_;
  Cache<yaml::DevicePreset> devices_;
  Cache<yaml::StackPreset> stacks_;
  std::map<std::string, DeviceSpec> replaced_devices_;  ///< by name
  std::optional<PoolRecipes> pool_recipes_;
};

}  // namespace shardscape::validate
