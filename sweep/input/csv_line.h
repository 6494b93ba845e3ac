// Cells of a line of comma-separated text.
#pragma once

#include <string_view>
#include <vector>

namespace shardscape::input {

/// The cells of a line, without blanks and quotes around them; commas within quotes are part of a cell, which no line
/// break is.
std::vector<std::string_view> cells_of(std::string_view line);

}  // namespace shardscape::input
