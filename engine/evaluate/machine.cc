#include "engine/evaluate/machine.h"

#include <vector>

#include "engine/model/expert_shares.h"

namespace shardscape::evaluate {

namespace {

network::SharedNetworks::Network network_of(const Setting& setting, const SimulateOptions& options) {
  const FabricSpec& fabric = setting.system.fabric;
  if (options.networks == nullptr || options.reference)
    return {std::make_shared<network::Fabric>(fabric), nullptr};
  return options.networks->network_for(fabric,
                                       network::link_shares(setting.system.stack.communication, fabric));
}

}  // namespace

Machine::Machine(const Setting& setting, SimulateOptions options)
    : setting_(setting),
      options_(std::move(options)),
      shared_(network_of(setting, options_)),
      collectives_(pool_collectives(setting, options_.placement)) {}

namespace {

network::TokenExchange exchange_of(const Setting& setting) {
  if (!setting.model.moe) return {};
  const MixtureOfExperts& moe = *setting.model.moe;
  const StackProfile::Experts& stack = setting.system.stack.experts;
  network::TokenExchange exchange;
  exchange.hidden = static_cast<double>(setting.model.hidden);
  exchange.top_k = static_cast<double>(moe.top_k);
  exchange.experts = static_cast<double>(moe.experts);
  exchange.groups = moe.expert_groups;
  exchange.top_groups = moe.top_groups;
  exchange.sms = static_cast<double>(stack.dispatch_sms);
  exchange.dispatch_value = dispatched_value_bytes(setting.policy(), stack);
  exchange.closed_form = stack.dispatch == ExpertDispatcher::kernels;
  return exchange;
}

}  // namespace

network::CollectivePrices Machine::pool_collectives(const Setting& setting,
                                                    const std::vector<std::int32_t>& placement) const {
  const DeviceSpec& device = setting.system.device;
  network::CollectiveSetup setup{fabric(), setting.system.stack.communication, device.hbm_peak(),
                                 &device.node, exchange_of(setting)};
  // Servers are assumed to send evenly: they keep copies of busy experts to that end, and the plan says which ranks
  // hold them (compute/expert_replicas.h).
  if (setting.workload.phase == Phase::training) setup.expert_shares = model::expert_shares(setting);
  setup.placement = placement;
  setup.tolerance = options_.collective_tolerance;
  if (options_.reference) setup.analysis = network::Analysis::plain;
  setup.curves = shared_.curves;
  network::CollectivePrices prices(std::move(setup));
  prices.set_faults(faults_);
  return prices;
}

void Machine::set_faults(const FaultSet& faults) {
  faults_ = faults;
  collectives_.set_faults(faults);
}

network::PricedNetwork& Machine::network() {
  if (!network_)
    network_ = std::make_unique<network::PricedNetwork>(fabric(), setting_.system.stack.communication);
  network_->set_faults(faults_);
  return *network_;
}

}  // namespace shardscape::evaluate
