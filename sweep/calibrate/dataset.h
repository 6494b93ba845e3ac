// Measured rows in the form that a fit needs, to be predicted again and again under changing constants.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

#include "sweep/calibrate/constants.h"
#include "sweep/validate/evaluation.h"
#include "sweep/validate/measured_table.h"
#include "sweep/validate/plan_row.h"
#include "sweep/validate/presets.h"

namespace shardscape::calibrate {

/// The name under which rows find the candidate: it replaces the stack of every row, and the device `device` in every
/// cluster or row that has it.
inline constexpr const char* kFittedStack = "(fitted)";

/// Selects the rows of a table that take part.
struct RowSelection {
  std::vector<std::string> stacks;         ///< rows whose `stack` is one of these
  bool all = false;                        ///< all rows, whatever their stack
  std::vector<std::string> software = {};  ///< public tables: rows whose software begins with one of these
  std::vector<std::string> sources = {};   ///< public tables: rows from these sources only; empty: from any
  std::vector<std::string> devices = {};   ///< public tables: rows of these devices only; empty: of any
  std::string where = {};  ///< condition that selected rows must satisfy (rows_where()); empty: none
};

/// The selected rows, with `stack` replaced by kFittedStack; the kind of the table must have been recognised. Tables
/// without a stack column, and blank cells of collectives, belong to every stack. In public tables (device and software
/// in place of cluster and stack) `software` and `devices` select. Rows without an id get their number in the table,
/// those of public kernels with the kind before it. If no row is selected, that is a problem that names the stacks that
/// there are.
validate::Table select_rows(const validate::Table& table, validate::TableKind kind,
                            const RowSelection& selection);

/// Puts a candidate where selected rows look it up. `device`: name of the preset that it replaces.
void install(validate::Presets& presets, const Candidate& candidate);

/// A table, as select_rows() returns it.
struct SourceTable {
  validate::TableKind kind = validate::TableKind::plans;
  validate::Table table;
  validate::EvaluateOptions options;
};

/// Rows that have a measurement of one sort, grouped so that each group shares its simulator.
class Dataset {
 public:
  /// Takes the rows whose id `keep` accepts. They must have no problems according to validate::evaluate(). `presets`
  /// are copied with all that they have read so far.
  Dataset(const std::vector<SourceTable>& tables, FitActsOn sort, const validate::Presets& presets,
          const std::function<bool(const std::string& id)>& keep);

  /// Number of residuals: one ln(predicted / measured) for every time (training step; TTFT, ITL, end to end; kernel,
  /// with its own tile where the row names it; collective; dispatch and combine), or for the memory that the allocator
  /// reserves at its peak. A run that fitted adds max(0, ln(needed / capacity)), one that ran out of memory min(0,
  /// ln(needed / capacity)).
  [[nodiscard]] std::size_t size() const { return size_; }

  /// The residuals under each candidate, in a fixed order. Groups and candidates run in parallel on oneTBB; the result
  /// does not depend on the number of threads.
  [[nodiscard]] std::vector<std::vector<double>> residuals(const std::vector<Candidate>& candidates) const;

 private:
  /// The quantity that a residual of a row of plans compares.
  enum class Measure : std::uint8_t { step_time, ttft, itl, e2e, memory, fits, does_not_fit };
  struct Target {
    std::size_t row = 0;  ///< index within the group
    Measure measure = Measure::step_time;
    double measured = 0;  ///< measured value; for fits and does_not_fit: the capacity
  };
  struct Group {
    std::vector<validate::PlanRow> rows;  ///< rows of a table of plans
    std::vector<Target> targets;
    validate::Table table;  ///< rows of any other table, for which `rows` and `targets` are empty
    validate::EvaluateOptions options;
    /// Residuals per row of `table`: 2 for an exchange, which sends and brings back.
    std::size_t ways = 1;
    std::size_t first = 0, count = 0;  ///< range of its residuals
  };

  void add_plans(const SourceTable& source, FitActsOn sort,
                 const std::function<bool(const std::string&)>& keep);
  void add_group(Group group, FitActsOn sort);
  void add_table(const SourceTable& source, const std::function<bool(const std::string&)>& keep);
  void predict(const Group& group, validate::Presets& presets, std::vector<double>& out) const;

  validate::Presets presets_;
  std::vector<Group> groups_;
  std::size_t size_ = 0;
};

/// The rows for which `expression` holds (in the language of sweep/space/expression.h, with the table's columns as
/// names). A column whose filled cells are all plain numbers is a number; any other is a choice among its texts. A
/// comparison with a blank cell holds only for !=. Problems: what is wrong with the expression, or that it holds for no
/// row. Tables that name software also have a column `release`: the number of the release that software and source of a
/// row state (validate/run_labels.h), if they do.
tl::expected<validate::Table, std::string> rows_where(const validate::Table& rows,
                                                      std::string_view expression);

}  // namespace shardscape::calibrate
