// The width of the terminal that a stream leads to.
#pragma once

#include <cstddef>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>

namespace shardscape::cli {

/// Characters per line of the terminal behind std::cout or std::cerr: COLUMNS if that is set, or else the terminal's
/// own width. Nothing where the stream leads to a file or a pipe, which take lines of any length.
std::optional<std::size_t> terminal_width(const std::ostream& out);

/// The text in bold, or in another style of SGR ("31": red), where the stream leads to a terminal that shows it; the text
/// alone elsewhere, and where NO_COLOR is set (no-color.org).
std::string styled(const std::ostream& out, std::string_view text, std::string_view style = "1");

}  // namespace shardscape::cli
