// Draws a single fault sample of a study again and reports it.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <ostream>

#include "engine/spec/prediction.h"
#include "engine/spec/scenario.h"
#include "sweep/faults/fault_sampler.h"
#include "sweep/study/study.h"

namespace shardscape::cli {

/// Draws a sample. BadInput where the study has no faults, or no such sample.
sweep::FaultDraw draw_sample(const sweep::Study& study, const Setting& setting, std::uint64_t sample);

/// A draw, and the times of a plan with and without it.
struct DrawReport {
  const sweep::FaultDraw& draw;
  const Setting& setting;
  const Prediction& healthy;
  const Prediction& sick;
};

/// The report as {sample, faults: [{kind, link or device, derate}], healthy_time_s, time_s, slowdown}; times are null
/// where there are none.
nlohmann::ordered_json to_json(const DrawReport& report);

void print_draw(std::ostream& out, const DrawReport& report);

}  // namespace shardscape::cli
