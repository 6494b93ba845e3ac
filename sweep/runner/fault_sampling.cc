#include "sweep/runner/fault_sampling.h"

#include <limits>

namespace shardscape::sweep {

FaultDraws::FaultDraws(const FaultStudy& study, const network::Fabric& fabric) : study_(study) {
  const FaultSampler sampler(study, fabric);
  for (std::uint64_t sample = 0; sample < sampler.samples(); ++sample) draws_.push_back(sampler.draw(sample));
}

namespace {

void append_rows(std::uint64_t point_id, const FaultDraw& draw, Status status, double seconds,
                 double slowdown, std::vector<results::FaultSampleRecord>& rows) {
  for (std::size_t i = 0; i < draw.faults.size(); ++i) {
    const DrawnFault& fault = draw.faults[i];
    rows.push_back({point_id, static_cast<std::int32_t>(draw.sample), static_cast<std::uint8_t>(i), status,
                    fault.kind, fault.link, fault.device, fault.derate, seconds, slowdown});
  }
}

}  // namespace

SampledTime time_under(const FaultDraw& draw, const Prediction& healthy, Phase phase, Evaluator& evaluator) {
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
  const Prediction sick = evaluator.evaluate_again(draw.set);
  const double seconds = sick.status == Status::ok ? sick.whole(phase).value() : kNaN;
  return {sick.status, seconds, seconds / healthy.whole(phase).value() - 1};
}

double sample_fault(const FaultDraw& draw, std::uint64_t point_id, const Prediction& healthy, Phase phase,
                    Evaluator& evaluator, std::vector<results::FaultSampleRecord>& rows) {
  const SampledTime sampled = time_under(draw, healthy, phase, evaluator);
  append_rows(point_id, draw, sampled.status, sampled.seconds, sampled.slowdown, rows);
  return sampled.slowdown;
}

results::FaultSummary sample_faults(const FaultDraws& draws, std::uint64_t point_id,
                                    const Prediction& healthy, Phase phase, Evaluator& evaluator,
                                    std::vector<results::FaultSampleRecord>& rows) {
  StoppingRule rule(draws.study().target_ci);
  std::vector<SampleOutcome> outcomes;
  outcomes.reserve(draws.draws().size());
  for (const FaultDraw& draw : draws.draws()) {
    const double slowdown = sample_fault(draw, point_id, healthy, phase, evaluator, rows);
    outcomes.push_back({slowdown, draw.faults.front().link, draw.faults.front().device});
    if (rule.add(slowdown)) break;
  }
  return summarise(outcomes);
}

}  // namespace shardscape::sweep
