// Runs a schedule operation by operation, in the order lists of its stages.
#pragma once

#include <span>
#include <vector>

#include "engine/schedule/pipeline.h"

namespace shardscape::schedule {

class OrderedRun {
 public:
  /// As run_in_order(); the result is valid until the next call. Order lists are kept while the shape stays the same.
  const std::vector<double>& run(const PipelineShape& shape, std::span<const StageTime> times,
                                 const Transfer& transfer, std::vector<PipelineSpan>* spans = nullptr);

 private:
  void prepare(const PipelineShape& shape);
  [[nodiscard]] std::size_t slot(std::int32_t part, const PipelineOperation& op) const;
  [[nodiscard]] double ready(std::int32_t stage, const PipelineOperation& op) const;
  /// Runs the next operation of a stage; false where its input has not arrived yet.
  bool step(std::int32_t stage);
  [[nodiscard]] const StageTime& time_of(std::int32_t stage, const PipelineOperation& op) const;
  /// Sends the message of an operation that ends at `end`; returns when it arrives, or `end` where nothing is sent.
  double send(std::int32_t stage, const PipelineOperation& op, double end);

  PipelineShape shape_;
  std::vector<std::vector<PipelineOperation>> orders_;
  std::span<const StageTime> times_;
  bool by_chunk_ = false;
  const Transfer* transfer_ = nullptr;
  std::vector<PipelineSpan>* spans_ = nullptr;
  std::vector<double> forward_arrival_,
      backward_arrival_;  ///< by part and microbatch; under dualpipe also by chunk
  std::vector<double> end_;
  std::vector<std::size_t> next_;
};

}  // namespace shardscape::schedule
