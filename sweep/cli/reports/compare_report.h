// Two plans side by side and why one is faster, as text and as JSON.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "sweep/cli/reports/report.h"
#include "sweep/cli/reports/simulate_report.h"
#include "sweep/compare/waterfall.h"
#include "sweep/study/choose_point.h"
#include "sweep/study/study.h"

namespace shardscape::cli {

/// One of the two: a point of a study with its prediction.
struct ComparedPlan {
  std::string from;  ///< the file, and how the point was found
  sweep::Study study;
  sweep::ChosenPoint point;
  std::vector<std::string> words;  ///< of a shell: the file and what changes it
  std::string id = {};             ///< of the point, where it was chosen by that
  Prediction prediction = {};
  Details details = {};

  [[nodiscard]] compare::Side side() const { return {point.setting, point.plan, prediction, details}; }
};

struct Comparison {
  const ComparedPlan &a, &b;
  std::vector<compare::Bar> bars;
  std::vector<compare::LighterRecompute> lighter_a, lighter_b;
  PointRemarks remarks_a, remarks_b;
  std::string launch_a, launch_b;  ///< launch_line()
};
Comparison compare_plans(const ComparedPlan& a, const ComparedPlan& b);

Json to_json(const Comparison& comparison);
void print_compared(std::ostream& out, const Comparison& comparison);

}  // namespace shardscape::cli
