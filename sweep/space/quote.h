#pragma once

#include <string>
#include <string_view>

namespace shardscape::sweep {

/// 'text', as messages about expressions and points show what somebody wrote.
inline std::string quote(std::string_view text) { return "'" + std::string(text) + "'"; }

}  // namespace shardscape::sweep
