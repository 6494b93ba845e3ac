// Parses CSV after RFC 4180 record by record, with the line of each row, and checks encoding, quotes and numbers of
// cells.
#include "sweep/validate/measured_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "engine/base/safe_text.h"
#include "engine/base/words.h"
#include "sweep/input/input_file.h"
#include "sweep/space/axis_names.h"

namespace shardscape::validate {

namespace {

constexpr std::size_t kLongestRecord = 1'000'000;
/// The most columns of a table; published tables have a few dozen.
constexpr std::size_t kMostColumns = 4096;

/// Goes through the text record by record.
class CsvParser {
 public:
  explicit CsvParser(std::string_view text) : text_(text) {
    constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
    if (text_.starts_with(kByteOrderMark)) at_ = kByteOrderMark.size();
  }

  [[nodiscard]] bool more() const { return at_ < text_.size(); }
  [[nodiscard]] int line() const { return line_; }
  [[nodiscard]] std::size_t at() const { return at_; }

  /// The cells up to the end of the record; `fault` is set to what is wrong with its quotes.
  std::vector<std::string> record(std::string& fault) {
    std::vector<std::string> cells;
    do {
      cells.push_back(peek_quote() ? quoted(fault) : plain());
    } while (take(','));
    take('\r');
    take('\n');
    if (fault.empty() && !std::ranges::all_of(cells, is_utf8)) fault = "is not UTF-8 text";
    return cells;
  }

 private:
  [[nodiscard]] bool ends() const {
    return at_ >= text_.size() || text_[at_] == '\n' || text_.substr(at_, 2) == "\r\n";
  }

  bool take(char c) {
    if (at_ >= text_.size() || text_[at_] != c) return false;
    if (c == '\n') ++line_;
    ++at_;
    return true;
  }

  bool peek_quote() {
    const std::size_t first = text_.find_first_not_of(" \t", at_);
    if (first == std::string_view::npos || text_[first] != '"') return false;
    at_ = first + 1;
    return true;
  }

  std::string plain() {
    std::string cell;
    while (!ends() && text_[at_] != ',') cell += text_[at_++];
    return std::string(trimmed(cell));
  }

  /// Reads a quoted cell, after the opening quote.
  std::string quoted(std::string& fault) {
    std::string cell;
    for (;; ++at_) {
      if (at_ >= text_.size()) {
        fault = "a quote is never closed";
        return cell;
      }
      if (text_[at_] == '\n') ++line_;
      if (text_[at_] != '"') {
        cell += text_[at_];
      } else if (text_.substr(at_, 2) == "\"\"") {
        cell += '"';
        ++at_;
      } else {
        break;
      }
    }
    ++at_;
    if (!plain().empty()) fault = "text after a closing quote; a quote inside a quoted cell is doubled";
    return cell;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  int line_ = 1;
};

void read_header(CsvParser& parser, Table& table) {
  std::string fault;
  const int line = parser.line();
  table.columns = parser.record(fault);
  if (!fault.empty()) {
    table.problems.push_back({table.file, line, "", fault});
    if (!std::ranges::all_of(table.columns, is_utf8)) table.columns.clear();
  }
  if (table.columns.size() > kMostColumns) {
    table.problems.push_back(
        {table.file, line, "",
         fmt::format("names {} columns; a table has at most {}", table.columns.size(), kMostColumns)});
    table.columns.clear();
  }
  for (std::string& column : table.columns)
    if (const PlanAxisRow* const axis = sweep::find_axis(column)) column = axis->column;  // tp for its column
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    const auto here = table.columns.begin() + static_cast<std::ptrdiff_t>(i);
    if (std::find(table.columns.begin(), here, *here) == here) continue;
    table.problems.push_back({table.file, line, *here, "is named twice in the header"});
  }
}

}  // namespace

std::optional<std::size_t> Table::column(std::string_view name) const {
  const auto found = std::ranges::find(columns, name);
  if (found == columns.end()) return std::nullopt;
  return static_cast<std::size_t>(found - columns.begin());
}

std::string to_string(const TableProblem& problem) {
  std::string text = problem.file;
  if (problem.line > 0) text += fmt::format(":{}", problem.line);
  if (!problem.column.empty()) text += ": " + problem.column;
  return text + ": " + problem.message;
}

tl::expected<std::string, std::string> read_table(const std::filesystem::path& file) {
  return input::read_file(file, input::kMostTableBytes, "a table");
}

Table parse_csv(std::string_view text, std::string file) {
  Table table;
  table.file = std::move(file);
  CsvParser parser(text);
  if (!parser.more()) {
    table.problems.push_back({table.file, 0, "", "is empty; the first line should name the columns"});
    return table;
  }
  read_header(parser, table);
  if (table.columns.empty()) return table;  // without columns the cells have no meaning
  while (parser.more()) {
    const int line = parser.line();
    const std::size_t begin = parser.at();
    std::string fault;
    std::vector<std::string> cells = parser.record(fault);
    if (parser.at() - begin > kLongestRecord)
      fault = fmt::format("is longer than the {} bytes of any row; is a quote not closed?", kLongestRecord);
    if (cells.size() == 1 && cells.front().empty()) continue;
    if (fault.empty() && cells.size() != table.columns.size()) {
      fault = fmt::format("has {} cells, the header names {} columns", cells.size(), table.columns.size());
    }
    if (fault.empty()) {
      table.rows.push_back({line, std::move(cells)});
    } else {
      table.problems.push_back({table.file, line, "", fault});
    }
  }
  return table;
}

}  // namespace shardscape::validate
