#include "sweep/study/study_parts.h"

#include <algorithm>
#include <string_view>

#include "sweep/study/axis_values.h"
#include "sweep/study/column_names.h"
#include "sweep/yaml/closest_names.h"
#include "sweep/yaml/value.h"

namespace shardscape::sweep {

namespace {

using results::RowChoice;
using results::StoredRows;

constexpr const char* kRows = "store.rows";
constexpr const char* kForms = "all, feasible, pareto, {pareto: [columns]} or top N, such as top 1000";

class StoreParser {
 public:
  StoreParser(const StudyOptions& options, Study& study, yaml::Diagnostics& diagnostics)
      : options_(options), study_(study), diagnostics_(diagnostics) {}

  void run(const yaml::Node& node) {
    yaml::ReadState state(node.where, "", diagnostics_);
    yaml::Reader reader(node, "store", state);
    const yaml::Node* const columns = reader.take("columns");
    const yaml::Node* const rows = reader.take("rows");
    reader.finish();
    if (columns == nullptr && rows == nullptr && !state.failed())
      diagnostics_.add(node.where, "store", "says nothing; give columns, rows or both");
    if (columns != nullptr) read_columns(*columns);
    if (rows != nullptr) read_rows(*rows);
  }

 private:
  void bad(const yaml::Node& node, const std::string& path, const std::string& message) {
    diagnostics_.add(node.where, path, message);
  }

  std::vector<std::string> names(const yaml::Node& node, const std::string& path,
                                 const std::vector<std::string>& known) {
    return parse_axis<std::string>(
        {node, path, diagnostics_}, [&](const yaml::Node& item) -> yaml::Parsed<std::string> {
          auto name = yaml::scalar_text(item, "text");
          if (name) *name = column_meant(*name, known);
          if (!name || known.empty() || std::ranges::find(known, *name) != known.end()) return name;
          return tl::unexpected("unknown column \"" + *name + '"' +
                                yaml::suggestion(*name, known, "columns"));
        });
  }

  void read_columns(const yaml::Node& node) {
    std::vector<std::string> known = options_.fixed_columns;
    for (const HardwareAxis& axis : study_.hardware) {
      if (!known.empty()) known.push_back(axis.column);
    }
    study_.stored_columns = names(node, "store.columns", known);
  }

  void read_rows(const yaml::Node& node) {
    if (node.is_map()) return read_map(node);
    const auto text = yaml::scalar_text(node, kForms);
    if (!text) return bad(node, kRows, text.error());
    constexpr std::string_view kTop = "top ";
    if (text->starts_with(kTop)) return read_top(node, text->substr(kTop.size()));
    if (*text == name_of(RowChoice::top)) return bad(node, kRows, "must say how many, such as top 1000");
    const auto choice = parse_enum<RowChoice>(*text);
    if (!choice) return bad(node, kRows, std::string("must be ") + kForms + ", not \"" + *text + '"');
    study_.stored_rows.choice = *choice;
    if (*choice == RowChoice::pareto) study_.stored_rows.front = study_.objectives;
  }

  /// Reads the number behind the word `top`.
  void read_top(const yaml::Node& node, const std::string& text) {
    yaml::Node number = node;
    number.text = text.substr(std::min(text.find_first_not_of(' '), text.size()));
    number.quoted = false;
    set_top(number, kRows);
  }

  void set_top(const yaml::Node& number, const std::string& path) {
    const auto count = yaml::parse_integer_node(number, 1, kMostTopRows);
    if (!count) return bad(number, path, count.error());
    study_.stored_rows = {RowChoice::top, static_cast<std::uint64_t>(*count), {}};
  }

  void read_map(const yaml::Node& node) {
    yaml::ReadState state(node.where, "", diagnostics_);
    yaml::Reader reader(node, kRows, state);
    const yaml::Node* const top = reader.take("top");
    const yaml::Node* const pareto = reader.take("pareto");
    reader.finish();
    if (state.failed()) return;
    if ((top == nullptr) == (pareto == nullptr))
      return bad(node, kRows, "must be either {top: N} or {pareto: [columns]}");
    if (top != nullptr) return set_top(*top, std::string(kRows) + ".top");
    const std::string path = std::string(kRows) + ".pareto";
    study_.stored_rows = {RowChoice::pareto, 0, names(*pareto, path, options_.objective_columns)};
  }

  const StudyOptions& options_;
  Study& study_;
  yaml::Diagnostics& diagnostics_;
};

yaml::Node write_rows(const StoredRows& rows) {
  if (rows.choice == RowChoice::feasible) return yaml::Node::scalar(std::string(name_of(rows.choice)));
  yaml::Node map = yaml::Node::map();
  if (rows.choice == RowChoice::top) map.set("top", yaml::Node::scalar(std::to_string(rows.count)));
  if (rows.choice == RowChoice::pareto) map.set("pareto", yaml::flow_list(rows.front));
  return map;
}

}  // namespace

void parse_store(const yaml::Node& node, const StudyOptions& options, Study& study,
                 yaml::Diagnostics& diagnostics) {
  StoreParser(options, study, diagnostics).run(node);
}

std::optional<yaml::Node> write_store(const Study& study) {
  if (!study.stored_columns && study.stored_rows.all()) return std::nullopt;
  yaml::Node store = yaml::Node::map();
  if (study.stored_columns) store.set("columns", yaml::flow_list(*study.stored_columns));
  if (!study.stored_rows.all()) store.set("rows", write_rows(study.stored_rows));
  return store;
}

}  // namespace shardscape::sweep
