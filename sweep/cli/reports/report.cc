#include "sweep/cli/reports/report.h"

#include <algorithm>
#include <cmath>

#include "engine/base/check.h"
#include "engine/base/safe_text.h"
#include "sweep/cli/terminal/format.h"

namespace shardscape::cli {

namespace {

Cell finite(double value, std::string text) {
  return std::isfinite(value) ? Cell{std::move(text), value} : Cell{"-", nullptr};
}

}  // namespace

Cell cell::words(std::string_view text) { return {std::string(text), text}; }
Cell cell::count(std::uint64_t number) { return {format_count(number), number}; }
Cell cell::number(std::int64_t number) { return {std::to_string(number), number}; }
Cell cell::seconds(double value) { return finite(value, format_seconds(value)); }
Cell cell::bytes(double value) { return finite(value, format_bytes(value)); }
Cell cell::share(double value, int digits) { return finite(value, format_percent(value, digits)); }
Cell cell::si(double value, std::string_view unit) { return finite(value, format_si(value, unit)); }

void Facts::add(std::string name, const char* key, Cell cell) {
  add_text(std::move(name), std::move(cell.text));
  add_value(key, std::move(cell.value));
}

void Facts::print(std::ostream& out, bool json) const {
  if (json) {
    out << json_text(values_, 2) << '\n';
    return;
  }
  TextTable table = TextTable::pairs();
  for (const std::vector<std::string>& line : lines_) table.add_row(line);
  table.print(out);
}

void Rows::add(std::vector<Cell> cells) {
  SHARDSCAPE_CHECK(cells.size() == columns_.size(), cells.size(), columns_.size());
  rows_.push_back(std::move(cells));
}

void Rows::print(std::ostream& out, std::size_t indent, std::size_t most) const {
  TextTable table;
  for (const Column& column : columns_)
    if (!column.hidden) table.add_column(column.heading.text, column.heading.align);
  for (std::size_t row = 0; row < std::min(most, rows_.size()); ++row) {
    std::vector<std::string> texts;
    for (std::size_t i = 0; i < columns_.size(); ++i)
      if (!columns_[i].hidden) texts.push_back(rows_[row][i].text);
    table.add_row(std::move(texts));
  }
  table.print(out, indent);
}

void Rows::print_csv(std::ostream& out) const {
  const char* separator = "";
  for (const Column& column : columns_)
    if (column.key != nullptr) out << std::exchange(separator, ",") << column.key;
  out << "\n";
  for (const std::vector<Cell>& row : rows_) {
    separator = "";
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      if (columns_[i].key == nullptr) continue;
      out << std::exchange(separator, ",");
      const Json& value = row[i].value;
      if (!value.is_null())
        out << (value.is_string() ? csv_cell(value.get<std::string>()) : json_text(value));
    }
    out << "\n";
  }
}

Json Rows::json() const {
  Json list = Json::array();
  for (const std::vector<Cell>& row : rows_) {
    Json& object = list.emplace_back(Json::object());
    for (std::size_t i = 0; i < columns_.size(); ++i)
      if (columns_[i].key != nullptr && !row[i].value.is_discarded()) object[columns_[i].key] = row[i].value;
  }
  return list;
}

}  // namespace shardscape::cli
