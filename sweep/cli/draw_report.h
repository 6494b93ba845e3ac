// One fault sample of a study, drawn again alone.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <ostream>

#include "engine/prediction.h"
#include "engine/spec/scenario.h"
#include "sweep/faults/fault_sampler.h"
#include "sweep/study/study.h"

namespace shardscape::cli {

/// BadInput where the study has no faults, or no such sample.
sweep::FaultDraw draw_sample(const sweep::Study& study, const Setting& setting, std::uint64_t sample);

/// A draw and what a plan makes of it.
struct DrawReport {
  const sweep::FaultDraw& draw;
  const Setting& setting;
  const Prediction& healthy;
  const Prediction& sick;
};

/// {sample, faults: [{kind, link or device, derate}], healthy_time_s, time_s, slowdown}; times null where
/// there is none.
nlohmann::ordered_json to_json(const DrawReport& report);

void print_draw(std::ostream& out, const DrawReport& report);

}  // namespace shardscape::cli
