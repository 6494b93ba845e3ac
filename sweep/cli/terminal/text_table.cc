#include "sweep/cli/terminal/text_table.h"

#include <algorithm>
#include <limits>

#include "engine/base/check.h"
#include "engine/base/safe_text.h"
#include "sweep/cli/terminal/terminal.h"

namespace shardscape::cli {

namespace {

constexpr std::size_t kGap = 2;  // characters between columns
// Texts are not squeezed below this while another block can take them.
constexpr std::size_t kShortestText = 20;

std::string_view first_characters(std::string_view text, std::size_t count) {
  std::size_t end = 0;
  for (; count > 0 && end < text.size(); --count) end += std::max<std::size_t>(1, utf8_length(text, end));
  return text.substr(0, end);
}

}  // namespace

std::vector<std::string> wrapped(std::string_view text, std::size_t width) {
  std::vector<std::string> lines;
  while (character_count(text) > width) {
    std::string_view line = first_characters(text, width);
    const bool whole_words = text[line.size()] == ' ';
    const std::size_t gap = line.find_last_of(" ,");
    if (!whole_words && gap != std::string_view::npos && gap > 0) line = line.substr(0, gap + 1);
    text.remove_prefix(line.size());
    lines.emplace_back(line.substr(0, line.find_last_not_of(' ') + 1));
    text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  }
  if (!text.empty() || lines.empty()) lines.emplace_back(text);
  return lines;
}

std::string shortened(std::string line, std::size_t width) {
  std::size_t cut = 0, depth = 0;
  for (std::size_t at = 0; at + 1 < line.size() && character_count(line.substr(cut)) > width; ++at) {
    if (line[at] == '(') ++depth;
    if (line[at] == ')' && depth > 0) --depth;
    if (depth == 0 && line.compare(at, 2, ", ") == 0) cut = at + 2;
  }
  line.erase(0, cut);
  while (character_count(line) > width) line.pop_back();
  return line;
}

TextTable TextTable::pairs() { return {left(""), left("")}; }

void TextTable::add_column(std::string heading, Align align) {
  heading = printable(heading);
  const std::size_t width = character_count(heading);
  columns_.push_back({std::move(heading), align, width});
}

void TextTable::add_row(std::vector<std::string> cells) {
  SHARDSCAPE_CHECK(cells.size() == columns_.size(), cells.size(), columns_.size());
  for (std::size_t i = 0; i < cells.size(); ++i) {
    cells[i] = printable(cells[i]);
    columns_[i].width = std::max(columns_[i].width, character_count(cells[i]));
  }
  rows_.push_back(std::move(cells));
}

void TextTable::print(std::ostream& out, std::size_t indent) const {
  print(out, indent, terminal_width(out));
}

void TextTable::print(std::ostream& out, std::size_t indent, std::optional<std::size_t> width) const {
  const std::size_t endless = std::numeric_limits<std::size_t>::max() / 2;
  const std::size_t room = width ? std::max(*width, indent + kShortestText) - indent : endless;
  const std::vector<Block> list = blocks(room);
  for (const Block& block : list) {
    if (&block != &list.front()) out << '\n';
    print_block(out, block, indent);
  }
}

/// Divides the columns into blocks. Each block has the first column and then the next ones as long as they fit. A text
/// that does not fit is squeezed into the rest of its block, if that leaves enough room to read it.
std::vector<TextTable::Block> TextTable::blocks(std::size_t room) const {
  std::vector<Block> list;
  if (columns_.empty()) return list;
  const std::size_t first = std::min(columns_[0].width, room);
  list.push_back({{0, first}});
  std::size_t used = first;
  for (std::size_t i = 1; i < columns_.size(); ++i) {
    const Column& column = columns_[i];
    const bool text = column.align == Align::left;
    const auto left = [&] { return used + kGap < room ? room - used - kGap : 0; };
    if (column.width > left() && !(text && left() >= kShortestText) && list.back().size() > 1) {
      list.push_back({{0, first}});
      used = first;
    }
    const std::size_t width = std::min(column.width, std::max(left(), std::min(kShortestText, room)));
    list.back().push_back({i, width});
    used += kGap + width;
  }
  return list;
}

void TextTable::print_block(std::ostream& out, const Block& block, std::size_t indent) const {
  std::vector<std::string> headings;
  for (const Column& column : columns_) headings.push_back(column.heading);
  const bool bare = std::ranges::all_of(headings, [](const std::string& heading) { return heading.empty(); });
  if (!bare) print_row(out, block, headings, indent, true);
  for (const auto& row : rows_) print_row(out, block, row, indent, false);
}

void TextTable::print_row(std::ostream& out, const Block& block, const std::vector<std::string>& cells,
                          std::size_t indent, bool heading) const {
  std::vector<std::vector<std::string>> lines;
  std::size_t height = 1;
  for (const Placed& placed : block) {
    lines.push_back(wrapped(cells[placed.column], placed.width));
    height = std::max(height, lines.back().size());
  }
  for (std::size_t at = 0; at < height; ++at) {
    std::string line(indent, ' ');
    for (std::size_t i = 0; i < block.size(); ++i) {
      const std::string text = at < lines[i].size() ? lines[i][at] : "";
      const std::string padding(block[i].width - character_count(text), ' ');
      if (i > 0) line += std::string(kGap, ' ');
      line += columns_[block[i].column].align == Align::right ? padding + text : text + padding;
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out << (heading ? styled(out, line) : line) << '\n';
  }
}

}  // namespace shardscape::cli
