// Checks for bugs (never for bad input): a failed check prints where, what and the values involved, and
// aborts.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <string>

namespace shardscape {

/// What a failed check calls first, where a program defines it: one that is a guest inside another program, which must
/// not end, throws there (sweep/python). Elsewhere it is missing.
[[gnu::weak]] void on_failed_check(const std::string& message);

}  // namespace shardscape

namespace shardscape::detail {

template <class... Values>
[[noreturn, gnu::cold]] void check_failed(const char* file, int line, const char* condition,
                                          const Values&... values) {
  std::ostringstream text;
  text << file << ':' << line << ": check failed: " << condition;
  ((text << ' ' << values), ...);
  if (on_failed_check != nullptr) on_failed_check(text.str());
  std::fprintf(stderr, "%s\n", text.str().c_str());
  std::abort();
}

}  // namespace shardscape::detail

/// Aborts unless `condition` holds; further arguments are streamed into the message.
#define SHARDSCAPE_CHECK(condition, ...)                                                             \
  do {                                                                                               \
    if (!(condition)) [[unlikely]] {                                                                 \
      ::shardscape::detail::check_failed(__FILE__, __LINE__, #condition __VA_OPT__(, ) __VA_ARGS__); \
    }                                                                                                \
  } while (false)
