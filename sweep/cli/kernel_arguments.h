// What the commands that price one kernel have in common.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <optional>
#include <string>

#include "engine/base/suggest.h"
#include "engine/spec/device.h"
#include "sweep/cli/commands.h"

namespace shardscape::cli {

inline constexpr std::int64_t kMostOfKernel = 1'000'000'000;  ///< of any extent

/// Reads words and gathers what is wrong with them. After each bad one it goes on with the least value there is.
class KernelWords {
 public:
  explicit KernelWords(const yaml::Catalog& catalog) : catalog_(catalog) {}

  void bad(const std::string& where, const std::string& what) {
    problems_.add(fmt::format("{}: {}", where, what));
  }
  /// A whole number from 1 up.
  std::int64_t extent(const char* name, const std::string& text, std::int64_t most = kMostOfKernel);
  /// Empty where it can't be read.
  DeviceSpec device(const std::string& text);
  /// The type that `text` names, or where there is none bf16, or fp16 on a device without. Whether it stands;
  /// a device that could not be read supports all.
  bool precision(const std::string& text, Precision& value);

  template <class E>
  E named(const std::string& option, const std::string& text) {
    const auto value = parse_enum<E>(text);
    const auto names = enum_names<E>();
    if (!value)
      bad(option, fmt::format("no '{}'{}; there are {}", text, did_you_mean(text, names), join_names(names)));
    return value.value_or(E{});
  }

  /// Whether device() has read one.
  [[nodiscard]] bool has_device() const { return device_.has_value(); }
  /// Throws BadInput where there is a problem.
  void finish() const { problems_.finish(); }

 private:
  const yaml::Catalog& catalog_;
  std::optional<DeviceSpec> device_;
  ProblemList problems_;
};

}  // namespace shardscape::cli
