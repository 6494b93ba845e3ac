// The evaluators of one thread, by setting.
//
// What a server's operators, calls and iterations cost does not depend on how many requests are in flight: of workloads
// that differ in the concurrency alone one evaluator serves all, and with it all that it remembers. Evaluators of the
// other workloads of a machine are kept for a while, since loads often vary more slowly than what is beside them.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "sweep/runner/evaluator.h"
#include "sweep/study/study.h"

namespace shardscape::sweep {

class SettingEvaluators {
 public:
  /// `study` and `factory` must outlive this object.
  SettingEvaluators(const Study& study, const EvaluatorFactory& factory) : study_(study), factory_(factory) {}

  /// The evaluator of a setting, valid until the next call.
  Evaluator& of(std::uint64_t setting);

 private:
  struct Bound {
    Setting setting;                       ///< its concurrency changes with the points
    std::unique_ptr<Evaluator> evaluator;  ///< refers to `setting`
  };
  void make(std::uint64_t setting);

  const Study& study_;
  const EvaluatorFactory& factory_;
  std::vector<std::unique_ptr<Bound>> bound_;  ///< evaluators of one machine, oldest first
  std::size_t current_ = 0;                    ///< index of the evaluator that was asked for last
  std::optional<std::uint64_t> index_;         ///< the setting that it is bound to
};

}  // namespace shardscape::sweep
