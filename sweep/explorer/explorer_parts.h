// The texts of page/, built into the program (scripts/cmake/EmbedText.cmake).
#pragma once

#include <string_view>

namespace shardscape::explorer {

std::string_view explorer_body();
std::string_view explorer_style();
std::string_view explorer_script();

}  // namespace shardscape::explorer
