#include "sweep/calibrate/fit.h"

#include <stdexcept>
#include <string>

#include "sweep/modules/module.h"

namespace shardscape::calibrate {

Fit fit(const FitProblem& problem) {
  const auto module = modules::find(kFitModule);
  if (!module) {
    throw std::runtime_error(
        std::string(kFitModule) +
        ": is not beside the program and not where it was installed with it; fits need it");
  }
  Fit found;
  modules::entry<FitEntry>(*module, kFitEntry)(problem, found);
  return found;
}

}  // namespace shardscape::calibrate
