// Measurement rows in the form that a fit needs: predicted again and again under changing constants.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "sweep/calibrate/constants.h"
#include "sweep/validate/evaluation.h"
#include "sweep/validate/measured_table.h"
#include "sweep/validate/plan_row.h"
#include "sweep/validate/presets.h"

namespace shardscape::calibrate {

/// What rows are evaluated with: the candidate takes the place of the stack of every row, and of the device
/// `device` wherever a cluster or a row has it.
inline constexpr const char* kFittedStack = "(fitted)";

/// Which rows of a table take part.
struct RowSelection {
  std::vector<std::string> stacks;         ///< those whose `stack` is one of these
  bool all = false;                        ///< whatever their stack
  std::vector<std::string> software = {};  ///< public tables: those whose software begins with one of these
  std::vector<std::string> devices = {};   ///< public tables: of these devices only; empty: of any
  std::string where = {};  ///< of them, those for which this holds (row_filter.h); empty: no condition
};

/// The rows of the selection, `stack` replaced by kFittedStack; the kind of table must have been recognised.
/// Tables without a stack column, and cells of collectives that are blank, belong to every stack. Of public
/// tables (device and software in place of cluster and stack) it takes the rows of `software` and `devices`.
/// Rows without an id get their number in the table, those of public kernels with the kind before it. A
/// selection without rows is a problem that names the stacks that there are.
validate::Table select_rows(const validate::Table& table, validate::TableKind kind,
                            const RowSelection& selection);

/// Puts a candidate where rows of the selection look for it. `device`: name of the preset it replaces.
void install(validate::Presets& presets, const Candidate& candidate);

/// A table after select_rows().
struct SourceTable {
  validate::TableKind kind = validate::TableKind::plans;
  validate::Table table;
  validate::EvaluateOptions options;
};

/// Rows of some tables that have a measurement of one sort, grouped so that each group shares its simulator.
class Dataset {
 public:
  /// Rows whose id `keep` takes. They must be free of problems: validate::evaluate() says so. `presets` are
  /// copied, with everything they have read so far.
  Dataset(const std::vector<SourceTable>& tables, ActsOn sort, const validate::Presets& presets,
          const std::function<bool(const std::string& id)>& keep);

  /// Residuals of the dataset: ln(predicted / measured) of every time (training step; TTFT, ITL, end to end;
  /// kernel, with its own tile where the row names it; collective; dispatch and combine) or of the memory that the allocator
  /// reserves at its peak. A run that did not go out of memory adds max(0, ln(needed / capacity)), one that
  /// did min(0, ln(needed / capacity)).
  [[nodiscard]] std::size_t size() const { return size_; }

  /// Residuals under each candidate, in a fixed order; groups and candidates in parallel on oneTBB, the same
  /// result for any number of threads.
  [[nodiscard]] std::vector<std::vector<double>> residuals(const std::vector<Candidate>& candidates) const;

 private:
  /// A residual of a row of plans.
  enum class Measure : std::uint8_t { step_time, ttft, itl, e2e, memory, fits, does_not_fit };
  struct Target {
    std::size_t row = 0;  ///< of the group
    Measure measure = Measure::step_time;
    double measured = 0;  ///< of fits and does_not_fit: the capacity
  };
  struct Group {
    std::vector<validate::PlanRow> rows;  ///< of plans
    std::vector<Target> targets;
    validate::Table table;  ///< of other kinds: rows and targets are empty
    validate::EvaluateOptions options;
    std::size_t ways = 1;              ///< residuals of a row of `table`: 2 where it is sent and brought back
    std::size_t first = 0, count = 0;  ///< where its residuals go
  };

  void add_plans(const SourceTable& source, ActsOn sort, const std::function<bool(const std::string&)>& keep);
  void add_group(Group group, ActsOn sort);
  void add_table(const SourceTable& source, const std::function<bool(const std::string&)>& keep);
  void predict(const Group& group, validate::Presets& presets, std::vector<double>& out) const;

  validate::Presets presets_;
  std::vector<Group> groups_;
  std::size_t size_ = 0;
};

}  // namespace shardscape::calibrate
