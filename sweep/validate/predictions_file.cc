#include "sweep/validate/predictions_file.h"

#include <algorithm>

#include "engine/base/safe_text.h"

namespace shardscape::validate {

std::string predictions_csv(std::span<const NamedEvaluation> evaluations) {
  std::vector<std::string> columns;
  for (const NamedEvaluation& named : evaluations) {
    for (const std::string& column : named.evaluation->prediction_columns) {
      if (std::ranges::find(columns, column) == columns.end()) columns.push_back(column);
    }
  }
  const bool several = evaluations.size() > 1;
  std::string text = several ? "file,id" : "id";
  for (const std::string& column : columns) text += ',' + column;
  text += '\n';
  for (const auto& [file, evaluation] : evaluations) {
    const std::vector<std::string>& own = evaluation->prediction_columns;
    for (std::size_t row = 0; row < evaluation->rows.size(); ++row) {
      if (several) text += csv_cell(file) + ',';
      text += csv_cell(evaluation->rows[row].id);
      for (const std::string& column : columns) {
        const auto found = std::ranges::find(own, column);
        text += ',';
        if (found != own.end())
          text += evaluation->predictions[row][static_cast<std::size_t>(found - own.begin())];
      }
      text += '\n';
    }
  }
  return text;
}

}  // namespace shardscape::validate
