// What one more GB/s, GB or TFLOP/s, or a microsecond less, is worth at a plan: each number of device, fabric and stack
// that has a unit is made a share larger and smaller, and the plan is simulated with it, all others as they are.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/simulate_options.h"
#include "engine/spec/scenario.h"
#include "sweep/study/study.h"

namespace shardscape::explorer {

/// The least share of a time by which a number counts as one that moves it.
inline constexpr double kMovesTime = 1e-5;

/// One number. Times are seconds of a step, or of a request.
struct Worth {
  std::string key;        ///< as --set takes it: "hardware.device.hbm.bandwidth"
  std::string text;       ///< its value as a file has it: "3.35 TB/s"
  std::string unit_text;  ///< of one more unit: "1 GB/s more", "1 us less"
  bool less_is_better = false;
  /// The time with a share more and a share less; nothing outside the range of the number, or where the plan has no
  /// time then.
  std::optional<double> more, less;
  /// Seconds by which one more unit changes the time, on the line through both; nothing where neither is there.
  std::optional<double> per_unit;

  /// How much the time moves at most from `base`, in seconds.
  [[nodiscard]] double reach(double base) const;
};

struct WorthOfNumbers {
  std::optional<double> base;  ///< the time as the setting is; nothing where the plan has none
  std::vector<Worth> numbers;  ///< in the order of device, fabric and stack; none where there is no base
};

/// `share`: above 0, below 1. `asked`: of which keys; empty: all. Numbers that are 0 are left out: no share moves them.
/// What the mode `checked` would execute now and then is priced, so that all times are of one mode.
WorthOfNumbers worth_of_numbers(const sweep::Study& study, const Setting& setting, const ParallelPlan& plan,
                                SimulateOptions options, double share,
                                const std::function<bool(std::string_view)>& asked = {});

}  // namespace shardscape::explorer
