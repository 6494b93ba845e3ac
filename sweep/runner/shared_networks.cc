#include "sweep/runner/shared_networks.h"

#include <oneapi/tbb/concurrent_unordered_map.h>

#include <deque>
#include <mutex>
#include <optional>
#include <vector>

#include "engine/base/fields.h"

namespace shardscape::sweep {

namespace {

/// Number of networks (fabrics with shares of their links) that are kept for neighbouring settings which alternate
/// between them.
constexpr std::size_t kMostKept = 4;

/// Remembers curves for ever, so that look-ups need no lock.
class ConcurrentCurves final : public network::CurveStore {
 public:
  [[nodiscard]] std::optional<network::CostCurve> find(const network::CurveKey& key) const override {
    const auto found = curves_.find(key);
    if (found == curves_.end()) return std::nullopt;
    return found->second;
  }
  void keep(const network::CurveKey& key, const network::CostCurve& curve) override {
    curves_.emplace(key, curve);
  }
  [[nodiscard]] std::optional<double> find(const network::CurvePoint& point) const override {
    const auto found = seconds_.find(point);
    if (found == seconds_.end()) return std::nullopt;
    return found->second;
  }
  void keep(const network::CurvePoint& point, double seconds) override { seconds_.emplace(point, seconds); }
  [[nodiscard]] std::optional<network::KeptPaces> find(const network::CurveKey& one,
                                                       const network::CurveKey& other) const override {
    const auto found = paces_.find(Both{one, other});
    if (found == paces_.end()) return std::nullopt;
    return found->second;
  }
  void keep(const network::CurveKey& one, const network::CurveKey& other,
            const network::KeptPaces& paces) override {
    paces_.emplace(Both{one, other}, paces);
  }

 private:
  struct Both {
    network::CurveKey one, other;
    friend bool operator==(const Both&, const Both&) = default;
  };
  tbb::concurrent_unordered_map<network::CurveKey, network::CostCurve, FieldsHash> curves_;
  tbb::concurrent_unordered_map<network::CurvePoint, double, FieldsHash> seconds_;
  tbb::concurrent_unordered_map<Both, network::KeptPaces, FieldsHash> paces_;
};

class Networks final : public network::SharedNetworks {
 public:
  Network network_for(const FabricSpec& fabric, const network::LinkShares& shares) override {
    const std::scoped_lock lock(mutex_);  // taken only once per setting and thread
    std::erase_if(known_, [](const Known& k) { return k.fabric.expired() || k.curves.expired(); });
    Network network;
    for (const Known& known : known_) {  // other threads may release it at any moment
      const auto same_fabric = known.fabric.lock();
      if (!same_fabric || same_fabric->spec() != fabric) continue;
      network.fabric = same_fabric;
      if (known.shares == shares) network.curves = known.curves.lock();
      if (network.curves) break;
    }
    if (!network.fabric) network.fabric = std::make_shared<const network::Fabric>(fabric);
    if (!network.curves) {
      network.curves = std::make_shared<ConcurrentCurves>();
      known_.push_back({shares, network.fabric, network.curves});
    }
    std::erase_if(last_, [&](const Network& kept) { return kept.curves == network.curves; });
    last_.push_front(network);
    if (last_.size() > kMostKept) last_.pop_back();
    return network;
  }

 private:
  struct Known {
    network::LinkShares shares;
    std::weak_ptr<const network::Fabric> fabric;
    std::weak_ptr<network::CurveStore> curves;
  };
  std::mutex mutex_;
  std::vector<Known> known_;  ///< networks that some simulator holds
  std::deque<Network> last_;  ///< the networks asked for last, most recent first
};

}  // namespace

std::shared_ptr<network::SharedNetworks> shared_networks() { return std::make_shared<Networks>(); }

}  // namespace shardscape::sweep
