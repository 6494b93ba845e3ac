#include "sweep/input/csv_line.h"

#include <cstddef>

namespace shardscape::input {

std::vector<std::string_view> cells_of(std::string_view line) {
  std::vector<std::string_view> cells;
  while (true) {
    std::size_t comma = 0;
    for (bool quoted = false; comma < line.size() && (quoted || line[comma] != ','); ++comma)
      if (line[comma] == '"') quoted = !quoted;
    std::string_view cell = line.substr(0, comma);
    while (!cell.empty() && (cell.front() == ' ' || cell.front() == '"')) cell.remove_prefix(1);
    while (!cell.empty() && (cell.back() == ' ' || cell.back() == '"' || cell.back() == '\r'))
      cell.remove_suffix(1);
    cells.push_back(cell);
    if (comma == line.size()) return cells;
    line.remove_prefix(comma + 1);
  }
}

}  // namespace shardscape::input
