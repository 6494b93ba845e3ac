// Public recipes of disaggregated servers: how many workers prefill and how many decode, and how each is split, which
// tables of measurements often leave out. They stand in a table with their sources (hw_presets/pool_recipes.csv), and a
// row gets the one that was made for its device, engine, precision, lengths and number of clients; what was measured
// has no part in the choice.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <tl/expected.hpp>

#include "sweep/validate/measured_table.h"
#include "sweep/validate/row_reader.h"

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

}  // namespace shardscape::validate
