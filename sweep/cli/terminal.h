// How wide the terminal is that a stream leads to.
#pragma once

#include <cstddef>
#include <optional>
#include <ostream>

namespace shardscape::cli {

/// Characters on a line of the terminal behind std::cout or std::cerr: COLUMNS where it is set, or what the
/// terminal says. Nothing where the stream leads elsewhere: a file or a pipe takes lines of any length.
std::optional<std::size_t> terminal_width(const std::ostream& out);

}  // namespace shardscape::cli
