// The machine of a setting as evaluators use it: its fabric with the faults of the point, priced.
#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "engine/execution/executor.h"
#include "engine/network/fabric/fabric.h"
#include "engine/network/prices/collective_prices.h"
#include "engine/network/prices/curve_store.h"
#include "engine/network/prices/priced_network.h"
#include "engine/simulate_options.h"
#include "engine/spec/scenario.h"
#include "engine/step/layers/host_work.h"
#include "engine/step/training/flattened.h"
#include "engine/step_watch.h"

namespace shardscape::evaluate {

class Machine {
 public:
  /// `setting` must outlive this object.
  Machine(const Setting& setting, SimulateOptions options);

  [[nodiscard]] const Setting& setting() const { return setting_; }
  [[nodiscard]] const SimulateOptions& options() const { return options_; }
  [[nodiscard]] const network::Fabric& fabric() const { return *shared_.fabric; }
  [[nodiscard]] bool flattened() const { return options_.mode == ExecutionMode::flattened; }
  [[nodiscard]] bool checks() const { return options_.mode == ExecutionMode::checked; }

  void set_faults(const FaultSet& faults);
  [[nodiscard]] const FaultSet& faults() const { return faults_; }

  /// Prices of collectives over all ranks of the machine; each rank of a plan lies on the fabric rank that
  /// SimulateOptions::placement gives it.
  [[nodiscard]] network::CollectivePrices& collectives() { return collectives_; }
  /// Separate prices of collectives over the ranks of a pool that has this setting, with the current faults.
  [[nodiscard]] network::CollectivePrices pool_collectives(const Setting& setting,
                                                           const std::vector<std::int32_t>& placement) const;
  /// The network that executions use, with the current faults.
  [[nodiscard]] network::PricedNetwork& network();
  void watch(StepWatch watch) { watch_ = std::move(watch); }
  /// The watch of a simulated load, which knows no bound of its times.
  [[nodiscard]] std::function<bool()> load_watch() const {
    if (!watch_) return {};
    return [watch = watch_] { return watch(Seconds(0)); };
  }
  /// Everything that an execution needs, where `placement` lists the ranks of the fabric to run on.
  [[nodiscard]] step::FlattenedRun run_on(std::span<const std::int32_t> placement) {
    using execution::Fold;
    if (setting_.workload.phase == Phase::training) {
      executor_.give_up_after(options_.most_events);
      executor_.watch(execution_watch());
    }
    return {network(), placement, executor_, options_.reference ? Fold::every_message : Fold::when_it_pays};
  }

 private:
  /// Adds to an executed time what the host adds to a step (step/training/flattened.h), so that the watch sees whole
  /// steps.
  [[nodiscard]] execution::ExecutionWatch execution_watch() const {
    if (!watch_) return {};
    return [this](double seconds) { return watch_(Seconds(seconds) + step::once_per_step(setting_)); };
  }

  const Setting& setting_;
  SimulateOptions options_;
  FaultSet faults_;
  network::SharedNetworks::Network shared_;
  network::CollectivePrices collectives_;
  std::unique_ptr<network::PricedNetwork> network_;
  execution::Executor executor_;
  StepWatch watch_;
};

}  // namespace shardscape::evaluate
