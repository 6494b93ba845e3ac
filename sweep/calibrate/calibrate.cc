// Runs a calibration: reads and selects rows, settles folds, fits times and then memory (ConstantFit), rounds the
// result, and evaluates all rows before and after.
#include "sweep/calibrate/calibrate.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "sweep/calibrate/constant_fit.h"
#include "sweep/calibrate/dataset.h"

namespace shardscape::calibrate {

namespace {

using Problems = std::vector<validate::TableProblem>;

bool contains(const std::vector<const Constant*>& list, const Constant& constant) {
  return std::ranges::find(list, &constant) != list.end();
}

/// The calibration between reading the tables and reporting.
class Calibrator {
 public:
  Calibrator(validate::Presets& presets, const CalibrateOptions& options)
      : presets_(presets), options_(options) {}

  tl::expected<Calibration, Problems> run(const std::vector<validate::Table>& tables) {
    read_presets();
    for (const validate::Table& table : tables) read_table(table);
    if (problems_.empty()) set_start_values();
    std::vector<validate::Evaluation> before;
    if (problems_.empty()) before = evaluate_all(result_.before);
    for (std::size_t f = 0; f < before.size(); ++f) sort_problems(before[f], sources_[f].table);
    if (!problems_.empty()) return tl::unexpected(std::move(problems_));
    fit_sorts();
    round();
    report(before);
    return std::move(result_);
  }

 private:
  void problem(const std::string& file, const std::string& column, const std::string& message) {
    problems_.push_back({file, 0, column, message});
  }

  void read_presets() {
    const auto stack = presets_.stack(options_.stack);
    if (stack) {
      result_.before.stack = **stack;
    } else {
      problem("--stack " + options_.stack, "", stack.error());
    }
    if (!options_.device) return;
    const auto device = presets_.device(*options_.device);
    if (device) {
      result_.before.device = **device;
    } else {
      problem("--device " + *options_.device, "", device.error());
    }
  }

  /// The selection of rows: for public tables by device, and by the software that the stack stands for.
  [[nodiscard]] RowSelection selection() {
    RowSelection rows = options_.rows;
    if (rows.stacks == std::vector{options_.stack}) {
      const std::vector<std::string>& names = result_.before.stack.tables.software;
      rows.software.insert(rows.software.end(), names.begin(), names.end());
      rows.sources = result_.before.stack.tables.software_of;
    }
    rows.software.insert(rows.software.end(), rows.stacks.begin(), rows.stacks.end());
    if (result_.before.device) {
      rows.devices = result_.before.device->tables.also;
      rows.devices.push_back(result_.before.device->name);
    }
    return rows;
  }

  void read_table(const validate::Table& table) {
    const std::optional<validate::TableKind> kind = validate::recognise(table.columns);
    SourceTable source{kind.value_or(validate::TableKind::plans), table, {}};
    source.options.reference = options_.reference;
    source.options.folder = std::filesystem::path(table.file).parent_path();
    source.options.collective_stack = kFittedStack;
    if (options_.device) source.options.device = *options_.device;
    if (kind) source.table = select_rows(table, *kind, selection());
    // Problems of cells are found by evaluating the table; they are reported here where no row is left to evaluate.
    if (kind && source.table.rows.empty()) {
      problems_.insert(problems_.end(), source.table.problems.begin(), source.table.problems.end());
    } else if (kind && !options_.rows.where.empty()) {
      auto filtered = rows_where(source.table, options_.rows.where);
      if (filtered) {
        source.table = *std::move(filtered);
      } else {
        problem(table.file, "--where", filtered.error());
      }
    }
    sources_.push_back(std::move(source));
  }

  /// Sets the start values, around which the priors lie.
  void set_start_values() {
    start_ = result_.before;
    for (const auto& [constant, value] : options_.start) {
      if (constant->of_device() && !start_.device) {
        problem(fmt::format("--start {}", constant->path), "", "has no effect without --device");
      } else {
        constant->set(start_, value);
      }
    }
    for (const Constant& constant : constants()) {
      if (constant.of_device() && !start_.device) continue;
      const double value = constant.get(start_);
      if (!moves(constant) || value == 0 || (value >= constant.low && value <= constant.high)) continue;
      problem(
          "--stack " + options_.stack, std::string(constant.path),
          fmt::format(
              "{} is outside its physical range, {} to {} ({}); --start gives another value to start from",
              format_value(constant, value), format_value(constant, constant.low),
              format_value(constant, constant.high), constant.reason));
    }
  }

  [[nodiscard]] bool moves(const Constant& constant) const {
    if (constant.of_device() ? !options_.device : options_.device_alone) return false;
    if (!constant.acts_in(start_)) return false;
    return (options_.only.empty() || contains(options_.only, constant)) && !contains(options_.keep, constant);
  }

  std::vector<validate::Evaluation> evaluate_all(const Candidate& candidate) {
    install(presets_, candidate);
    std::vector<validate::Evaluation> list;
    for (const SourceTable& source : sources_) {
      list.push_back(validate::evaluate(source.table, presets_, source.options));
    }
    return list;
  }

  /// Leaves out impossible plans, which are reported as such; any other problem stops the calibration.
  void sort_problems(const validate::Evaluation& evaluation, validate::Table& table) {
    for (const validate::UnpredictedRow& row : evaluation.unpredicted) {
      result_.left_out.push_back({table.file, row.line, "", row.reason, true});
      std::erase_if(table.rows, [&](const validate::TableRow& cells) { return cells.line == row.line; });
    }
    for (const validate::EvaluatedRow& row : evaluation.rows) {
      if (!row.kin.empty()) kin_.emplace(row.id, row.kin);
      if (!row.regime.model.empty()) model_.emplace(row.id, whole_model(row.regime.model));
    }
    for (const validate::TableProblem& found : evaluation.problems) {
      if (!found.rejected) {
        problems_.push_back(found);
        continue;
      }
      result_.left_out.push_back(found);
      std::erase_if(table.rows, [&](const validate::TableRow& row) { return row.line == found.line; });
    }
  }

  [[nodiscard]] bool fitted(const std::string& id) const {
    return !options_.hold_out || !validate::is_held_out(id, *options_.hold_out);
  }

  /// The fold of a row: by its model, or by its plan or shape group where it has one, else by its id.
  [[nodiscard]] int fold(const std::string& id) const {
    if (!models_.empty()) {
      if (const auto model = model_.find(id); model != model_.end())
        return static_cast<int>(std::distance(models_.begin(), models_.find(model->second)));
    }
    const auto kin = kin_.find(id);
    return fold_of(kin == kin_.end() ? id : kin->second, folds_);
  }

  void set_folds() {
    folds_ = options_.folds < 2 ? 0 : options_.folds;
    if (folds_ == 0 || options_.folds_by == FoldsBy::plan) return;
    for (const auto& [id, model] : model_) models_.insert(model);
    if (models_.size() > 1) {
      folds_ = static_cast<int>(models_.size());
    } else {
      models_.clear();  // with a single model, nothing would be left to fit on
    }
  }

  ConstantFit::Progress progress() const {
    if (!options_.progress) return {};
    return [this](const std::string& what, const FitProgress& step) { options_.progress({what, step}); };
  }

  void fit_sorts() {
    set_folds();
    fold_candidates_.assign(static_cast<std::size_t>(folds_), start_);
    result_.after = start_;
    for (const FitActsOn sort : {FitActsOn::time, FitActsOn::memory}) fit_sort(sort);
  }

  void fit_sort(FitActsOn sort) {
    std::vector<const Constant*> list;
    for (const Constant& constant : constants()) {
      if (constant.acts_on == sort && moves(constant)) list.push_back(&constant);
    }
    const Dataset data(sources_, sort, presets_, [&](const std::string& id) { return fitted(id); });
    if (data.size() == 0) {
      for (const Constant* constant : list) {
        const double prior = constant->get(start_);
        const double before = constant->get(result_.before);
        result_.constants.push_back({constant, before, prior, prior, {}, false, "no row measures it"});
      }
      return;
    }
    ConstantFit fit(sort, std::move(list), start_, progress());
    fit.run(data);
    result_.fits.push_back(fit.report());
    for (ConstantResult& found : fit.results()) {
      found.before = found.constant->get(result_.before);
      result_.constants.push_back(std::move(found));
    }
    for (std::size_t k = 0; k < fold_candidates_.size(); ++k) fit_fold(fit, sort, k);
  }

  void fit_fold(const ConstantFit& fit, FitActsOn sort, std::size_t fold_left_out) {
    const Dataset others(sources_, sort, presets_, [&](const std::string& id) {
      return fitted(id) && fold(id) != static_cast<int>(fold_left_out);
    });
    const std::string what = fmt::format("fold {} of {}", fold_left_out + 1, folds_);
    fit.apply(fit.refit(others, what), fold_candidates_[fold_left_out]);
  }

  /// Rounds constants to the values that their texts have, so that the report and the written file agree.
  void round() {
    for (ConstantResult& found : result_.constants) {
      if (found.after == found.before) continue;
      found.after = parse_value(*found.constant, format_value(*found.constant, found.after)).value();
      found.constant->set(result_.after, found.after);
    }
  }

  void report(const std::vector<validate::Evaluation>& before) {
    const std::vector<validate::Evaluation> after = evaluate_all(result_.after);
    std::vector<validate::Evaluation> crossed = after;
    for (std::size_t k = 0; k < fold_candidates_.size(); ++k) {
      const std::vector<validate::Evaluation> fold = evaluate_all(fold_candidates_[k]);
      for (std::size_t f = 0; f < crossed.size(); ++f) take_fold(fold[f], static_cast<int>(k), crossed[f]);
    }
    const auto in_fit = [&](const validate::EvaluatedRow& row) { return fitted(row.id); };
    const auto held = [&](const validate::EvaluatedRow& row) { return !fitted(row.id); };
    for (std::size_t f = 0; f < sources_.size(); ++f) {
      FileReport& file = result_.files.emplace_back();
      file.file = sources_[f].table.file;
      file.rows = before[f].rows.size();
      file.before = validate::subset(before[f], in_fit);
      file.after = validate::subset(after[f], in_fit);
      file.fitted_rows = file.before.rows.size();
      if (!fold_candidates_.empty()) file.cross_validated = validate::subset(crossed[f], in_fit);
      if (!options_.hold_out) continue;
      file.held_out_before = validate::subset(before[f], held);
      file.held_out_after = validate::subset(after[f], held);
    }
  }

  /// Copies the rows of fold `number`, as its candidate predicts them. Both evaluations have the same rows.
  void take_fold(const validate::Evaluation& from, int number, validate::Evaluation& to) const {
    const auto of_fold = [&](std::size_t row) { return fold(from.rows[row].id) == number; };
    for (std::size_t i = 0; i < from.rows.size(); ++i) {
      if (!of_fold(i)) continue;
      to.rows[i] = from.rows[i];
      to.predictions[i] = from.predictions[i];
    }
    for (std::size_t m = 0; m < from.metrics.size(); ++m) {
      for (std::size_t p = 0; p < from.metrics[m].pairs.size(); ++p) {
        if (of_fold(from.metrics[m].pairs[p].row)) to.metrics[m].pairs[p] = from.metrics[m].pairs[p];
      }
    }
  }

  validate::Presets& presets_;
  const CalibrateOptions& options_;
  Problems problems_;
  std::vector<SourceTable> sources_;
  std::map<std::string, std::string> kin_, model_;  ///< by id: the row's plan or shape group, and its model
  int folds_ = 0;
  std::set<std::string> models_;  ///< the models that are folds, where folds are by model
  Candidate start_;
  std::vector<Candidate> fold_candidates_;
  Calibration result_;
};

}  // namespace

std::string whole_model(const std::string& name) {
  const std::size_t cut = name.rfind("-l");
  const bool layers = cut != std::string::npos && cut + 2 < name.size() &&
                      name.find_first_not_of("0123456789", cut + 2) == std::string::npos;
  return layers ? name.substr(0, cut) : name;
}

int fold_of(std::string_view id, int folds) {
  const std::string key = fmt::format("fold {}", id);
  return static_cast<int>(validate::id_hash(key) % static_cast<std::uint64_t>(folds));
}

tl::expected<Calibration, Problems> calibrate(const std::vector<validate::Table>& tables,
                                              validate::Presets& presets, const CalibrateOptions& options) {
  return Calibrator(presets, options).run(tables);
}

}  // namespace shardscape::calibrate
