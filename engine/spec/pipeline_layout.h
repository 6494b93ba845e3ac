// Which layers lie on which stage of a pipeline, as text: what Megatron Core's pipeline_model_parallel_layout says.
//
//   E  the embedding, at the very beginning     t  a layer     m  a module that predicts a further token
//   L  head and loss, at the very end           |  between stages; commas and blanks mean nothing
//   t*3, (tt|)*29                               repetition of a letter or of a group
//
// "Et*3|(tt|)*29,m|L" is 32 stages: the embedding with three layers, 29 of two, one of the module alone and one of the
// loss alone. Under the interleaved schedule they are the chunks in the order in which a microbatch meets them: the
// n-th of p ranks has those from the n-th on, every p-th.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

namespace shardscape {

struct PipelineLayout {
  struct Stage {
    std::int32_t layers = 0;
    std::int32_t further = 0;  ///< modules that predict further tokens
    friend bool operator==(const Stage&, const Stage&) = default;
  };
  std::vector<Stage> stages;  ///< at most kMostStages; the first has the embedding, the last the head

  static constexpr std::size_t kMostStages = 10'000;

  [[nodiscard]] std::int64_t layers() const;
  [[nodiscard]] std::int64_t further() const;
  /// The layout in the form that read_layout() takes, runs of equal stages as repetitions: "Ettt|(tt|)*29m|L".
  [[nodiscard]] std::string text() const;
};

/// Reads a layout; the error says what would be right.
tl::expected<PipelineLayout, std::string> read_layout(std::string_view text);

}  // namespace shardscape
