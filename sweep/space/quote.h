// Quotes texts for messages about expressions and points.
#pragma once

#include <string>
#include <string_view>

namespace shardscape::sweep {

/// The text in single quotes, as messages about expressions and points show it.
inline std::string quote(std::string_view text) {
  std::string quoted(1, '\'');
  quoted += text;
  quoted += '\'';
  return quoted;
}

}  // namespace shardscape::sweep
