#include "sweep/runner/shared_networks.h"

#include <oneapi/tbb/concurrent_unordered_map.h>

#include <algorithm>
#include <deque>
#include <mutex>
#include <optional>
#include <utility>

namespace shardscape::sweep {

namespace {

/// Fabrics, and shares of their links, that neighbouring settings take turns with.
constexpr std::size_t kMostKept = 4;

/// Never forgets, so that looking up needs no lock.
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

 private:
  tbb::concurrent_unordered_map<network::CurveKey, network::CostCurve, network::CurveKeyHash> curves_;
};

class Networks final : public network::SharedNetworks {
 public:
  Network of(const FabricSpec& fabric, const network::LinkShares& shares) override {
    const std::scoped_lock lock(mutex_);  // once per setting and thread
    const auto known = std::ranges::find_if(
        kept_, [&](const Kept& k) { return k.shares == shares && k.network.fabric->spec() == fabric; });
    Kept kept;
    if (known != kept_.end()) {
      kept = std::move(*known);
      kept_.erase(known);
    } else {
      const auto alike =
          std::ranges::find_if(kept_, [&](const Kept& k) { return k.network.fabric->spec() == fabric; });
      kept.shares = shares;
      kept.network.fabric =
          alike != kept_.end() ? alike->network.fabric : std::make_shared<const network::Fabric>(fabric);
      kept.network.curves = std::make_shared<ConcurrentCurves>();
    }
    kept_.push_front(kept);
    if (kept_.size() > kMostKept) kept_.pop_back();
    return kept.network;
  }

 private:
  struct Kept {
    network::LinkShares shares;
    Network network;
  };
  std::mutex mutex_;
  std::deque<Kept> kept_;  ///< the last one asked for first
};

}  // namespace

std::shared_ptr<network::SharedNetworks> shared_networks() { return std::make_shared<Networks>(); }

}  // namespace shardscape::sweep
