// Releases of software as public tables state them, as numbers in order of time.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

namespace shardscape::validate {

/// Reads "26.04" or "26.04.01", year, month and patch, as 26.04 or 26.0401. Nothing for other texts.
std::optional<double> release_number(std::string_view text);

/// The release behind the first word of `software` ("megatron-bridge 26.04"), or else in the row's source: "26.04.01
/// NeMo Container" (Megatron Bridge's summaries), "dgxc-benchmarking v25.05.05" (NVIDIA's recipes).
std::optional<double> stated_release(std::string_view software, std::string_view source);

/// The release behind the first word of `software` ("trtllm 1.2.0rc6.post2") in order of time: numbers one by one, a
/// final release behind its candidates: 1.2.0rc6 < 1.2.0rc10 < 1.2.0. Software without a release is before none.
class ReleaseOrder {
 public:
  explicit ReleaseOrder(std::string_view software);
  [[nodiscard]] bool stated() const { return !numbers_.empty(); }
  [[nodiscard]] bool before(std::string_view release) const;

 private:
  std::vector<int> numbers_;
};

}  // namespace shardscape::validate
