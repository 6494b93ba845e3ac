// The width of the terminal that a stream leads to.
#pragma once

#include <cstddef>
#include <optional>
#include <ostream>

namespace shardscape::cli {

/// Characters per line of the terminal behind std::cout or std::cerr: COLUMNS if that is set, or else the terminal's
/// own width. Nothing where the stream leads to a file or a pipe, which take lines of any length.
std::optional<std::size_t> terminal_width(const std::ostream& out);

}  // namespace shardscape::cli
