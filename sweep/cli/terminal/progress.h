// Shows progress, to people and to scripts.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "engine/base/enum_names.h"

namespace shardscape::cli {

/// line: a single line on stderr, rewritten in place. plain: a line on stderr from time to time. json: one object per
/// line on stdout.
enum class ProgressMode : std::uint8_t { automatic, plain, json, none, line };
SHARDSCAPE_ENUM_NAMES(ProgressMode, "auto", "plain", "json", "none");

/// Prints progress at most a few times per second.
class ProgressLine {
 public:
  /// `automatic` is a rewritten line on a terminal, and plain lines elsewhere.
  explicit ProgressLine(ProgressMode mode);
  ~ProgressLine() { close(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  /// Asks for the text or, for programs, the JSON where it is time to print it.
  void update(const std::function<std::string()>& text, const std::function<nlohmann::ordered_json()>& json);
  /// Moves the terminal to a fresh line; nothing is printed afterwards.
  void close();
  [[nodiscard]] double elapsed_seconds() const;

 private:
  using Clock = std::chrono::steady_clock;
  ProgressMode mode_;
  Clock::time_point start_, next_;
  std::size_t width_ = 0;  ///< characters of the line on the terminal
};

}  // namespace shardscape::cli
