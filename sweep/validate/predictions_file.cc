#include "sweep/validate/predictions_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "engine/base/safe_text.h"

namespace shardscape::validate {

namespace {

/// By line, why nothing is predicted for it. Problems take precedence, since they can be mended.
std::map<int, std::string> reasons(const Evaluation& evaluation) {
  std::map<int, std::string> by_line;
  for (const TableProblem& problem : evaluation.problems) {
    std::string& text = by_line[problem.line];
    if (!text.empty()) text += "; ";
    if (!problem.column.empty()) text += problem.column + ": ";
    text += problem.message;
  }
  for (const UnpredictedRow& row : evaluation.unpredicted) by_line.emplace(row.line, row.reason);
  return by_line;
}

class Writer {
 public:
  explicit Writer(std::span<const NamedEvaluation> evaluations) : several_(evaluations.size() > 1) {
    for (const NamedEvaluation& named : evaluations) {
      for (const std::string& column : named.evaluation->prediction_columns) {
        if (std::ranges::find(columns_, column) == columns_.end()) columns_.push_back(column);
      }
    }
    text_ = several_ ? "file,line,id" : "line,id";
    for (const std::string& column : columns_) text_ += ',' + column;
    text_ += ",reason\n";
  }

  void add(const NamedEvaluation& named) {
    const Evaluation& evaluation = *named.evaluation;
    const std::map<int, std::string> why = reasons(evaluation);
    std::map<int, std::size_t> rows;
    for (std::size_t i = 0; i < evaluation.rows.size(); ++i) rows.emplace(evaluation.rows[i].line, i);
    for (const TableLine& line : evaluation.lines) {
      if (several_) text_ += csv_cell(named.file) + ',';
      text_ += fmt::format("{},{}", line.line, csv_cell(line.id));
      const auto row = rows.find(line.line);
      const auto reason = why.find(line.line);
      for (const std::string& column : columns_) {
        text_ += ',';
        if (row != rows.end()) text_ += value(evaluation, row->second, column);
      }
      text_ += ',';
      if (row == rows.end() && reason != why.end()) text_ += csv_cell(reason->second);
      text_ += '\n';
    }
  }

  std::string take() { return std::move(text_); }

 private:
  static std::string value(const Evaluation& evaluation, std::size_t row, const std::string& column) {
    const std::vector<std::string>& own = evaluation.prediction_columns;
    const auto found = std::ranges::find(own, column);
    return found == own.end() ? ""
                              : evaluation.predictions[row][static_cast<std::size_t>(found - own.begin())];
  }

  bool several_;
  std::vector<std::string> columns_;
  std::string text_;
};

}  // namespace

std::string predictions_csv(std::span<const NamedEvaluation> evaluations) {
  Writer writer(evaluations);
  for (const NamedEvaluation& named : evaluations) writer.add(named);
  return writer.take();
}

}  // namespace shardscape::validate
