// Tables of text with aligned columns.
#pragma once

#include <initializer_list>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace shardscape::cli {

class TextTable {
 public:
  enum class Align { left, right };
  /// The heading of a column: a text alone is that of numbers, left() that of texts.
  struct Heading {
    Heading(const char* words) : text(words) {}
    Heading(std::string words, Align side) : text(std::move(words)), align(side) {}
    std::string text;
    Align align = Align::right;
  };

  TextTable() = default;
  TextTable(std::initializer_list<Heading> headings) {
    for (const Heading& heading : headings) add_column(heading.text, heading.align);
  }
  /// A table of two left-aligned columns without headings: names and their values.
  static TextTable pairs();

  void add_column(std::string heading, Align align = Align::right);
  /// Adds one cell per column. Control characters, which a terminal would obey, are escaped (printable()).
  void add_row(std::vector<std::string> cells);
  [[nodiscard]] bool empty() const { return rows_.empty(); }

  /// Prints columns two spaces apart, each as wide as its widest cell, with `indent` spaces on the left and no trailing
  /// blanks. Headings are left out where all are empty. On a terminal that is too narrow the columns come in blocks
  /// below each other, with the first column in each, and long texts take several lines.
  void print(std::ostream& out, std::size_t indent = 0) const;
  /// Prints for lines of `width` characters; nothing: of any length.
  void print(std::ostream& out, std::size_t indent, std::optional<std::size_t> width) const;

 private:
  struct Column {
    std::string heading;
    Align align;
    std::size_t width;
  };
  /// A column of a block: its index, and its width in characters.
  struct Placed {
    std::size_t column;
    std::size_t width;
  };
  using Block = std::vector<Placed>;

  [[nodiscard]] std::vector<Block> blocks(std::size_t room) const;
  void print_block(std::ostream& out, const Block& block, std::size_t indent) const;
  void print_row(std::ostream& out, const Block& block, const std::vector<std::string>& cells,
                 std::size_t indent, bool heading) const;
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

/// The heading of a column of texts.
inline TextTable::Heading left(std::string heading) { return {std::move(heading), TextTable::Align::left}; }

/// The text in lines of at most `width` characters, broken after spaces and commas where possible.
std::vector<std::string> wrapped(std::string_view text, std::size_t width);

/// The line in so many characters: parts before a ", " that is in no brackets are left out from the left, then letters
/// from the right.
std::string shortened(std::string line, std::size_t width);

}  // namespace shardscape::cli
