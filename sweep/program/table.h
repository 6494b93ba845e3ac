// Tables of text: aligned for the eye, or as CSV.
#pragma once

#include <ostream>
#include <string>
#include <string_view>
#include <vector>

namespace shardscape::program {

class TextTable {
 public:
  enum class Align { left, right };

  /// Two columns without headings, both on the left: names and what they stand for.
  static TextTable pairs();

  void add_column(std::string heading, Align align = Align::right);
  /// One cell per column.
  void add_row(std::vector<std::string> cells);
  [[nodiscard]] bool empty() const { return rows_.empty(); }

  /// Columns two spaces apart, each as wide as its widest cell, `indent` spaces on the left; no trailing
  /// blanks. Headings are left out where all are empty.
  void print(std::ostream& out, std::size_t indent = 0) const;

 private:
  struct Column {
    std::string heading;
    Align align;
    std::size_t width;
  };
  void print_row(std::ostream& out, const std::vector<std::string>& cells, std::size_t indent) const;
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

/// The text as one CSV field (RFC 4180): quoted only where it has to be.
std::string csv_field(std::string_view text);

}  // namespace shardscape::program
