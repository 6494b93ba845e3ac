#include "sweep/program/table.h"

#include <algorithm>
#include <utility>

#include "engine/base/check.h"

namespace shardscape::program {

TextTable TextTable::pairs() {
  TextTable table;
  table.add_column("", Align::left);
  table.add_column("", Align::left);
  return table;
}

void TextTable::add_column(std::string heading, Align align) {
  const std::size_t width = heading.size();
  columns_.push_back({std::move(heading), align, width});
}

void TextTable::add_row(std::vector<std::string> cells) {
  SHARDSCAPE_CHECK(cells.size() == columns_.size(), cells.size(), columns_.size());
  for (std::size_t i = 0; i < cells.size(); ++i)
    columns_[i].width = std::max(columns_[i].width, cells[i].size());
  rows_.push_back(std::move(cells));
}

void TextTable::print(std::ostream& out, std::size_t indent) const {
  std::vector<std::string> headings;
  for (const Column& column : columns_) headings.push_back(column.heading);
  const bool bare = std::ranges::all_of(headings, [](const std::string& heading) { return heading.empty(); });
  if (!bare) print_row(out, headings, indent);
  for (const auto& row : rows_) print_row(out, row, indent);
}

void TextTable::print_row(std::ostream& out, const std::vector<std::string>& cells,
                          std::size_t indent) const {
  std::string line(indent, ' ');
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const std::string padding(columns_[i].width - cells[i].size(), ' ');
    if (i > 0) line += "  ";
    line += columns_[i].align == Align::right ? padding + cells[i] : cells[i] + padding;
  }
  line.erase(line.find_last_not_of(' ') + 1);
  out << line << '\n';
}

std::string csv_field(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(text);
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + "\"";
}

}  // namespace shardscape::program
