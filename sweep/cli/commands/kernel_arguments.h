// Arguments that the commands which price a single kernel share.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <optional>
#include <string>

#include "engine/base/suggest.h"
#include "engine/spec/device.h"
#include "sweep/cli/command.h"

namespace shardscape::cli {

inline constexpr std::int64_t kMostOfKernel = 1'000'000'000;  ///< limit of every extent

/// Reads arguments and collects what is wrong with them. In place of a bad one it goes on with the least value.
class KernelWords {
 public:
  explicit KernelWords(const yaml::Catalog& catalog) : catalog_(catalog) {}

  void bad(const std::string& where, const std::string& what) {
    problems_.add(fmt::format("{}: {}", where, what));
  }
  /// An integer from 1 to `most`.
  std::int64_t extent(const char* name, const std::string& text, std::int64_t most = kMostOfKernel);
  /// The device; empty where it cannot be read.
  DeviceSpec device(const std::string& text);
  /// Sets `value` to the type that `text` names; without text to bf16, or fp16 on a device without bf16. Returns
  /// whether the type is supported; a device that could not be read supports all.
  bool precision(const std::string& text, Precision& value);

  template <class E>
  E named(const std::string& option, const std::string& text) {
    const auto value = parse_enum<E>(text);
    const auto names = enum_names<E>();
    if (!value)
      bad(option, fmt::format("no '{}'{}; there are {}", text, did_you_mean(text, names), join_names(names)));
    return value.value_or(E{});
  }

  /// Whether device() has read a device.
  [[nodiscard]] bool has_device() const { return device_.has_value(); }
  /// Throws BadInput if there are problems.
  void finish() const { problems_.finish(); }

 private:
  const yaml::Catalog& catalog_;
  std::optional<DeviceSpec> device_;
  ProblemList problems_;
};

}  // namespace shardscape::cli
