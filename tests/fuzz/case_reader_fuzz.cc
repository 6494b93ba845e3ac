// Does the case reader survive any bytes, and can what it accepts be run? Every refusal must have lines of
// "file: ..."; every accepted case must become traffic whose gates all open.
#include <cstdint>
#include <string_view>

#include "engine/base/check.h"
#include "engine/network/collectives/traffic_builder.h"
#include "sweep/network_case/network_case.h"

using namespace shardscape;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr network_case::CaseLimits kSmall{1 << 10, 1 << 13};
  constexpr double kFewMessages = 20'000;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto read = network_case::parse_case(text, "case.json", kSmall);
  if (!read) {
    SHARDSCAPE_CHECK(read.error().starts_with("case.json:"), read.error());
    SHARDSCAPE_CHECK(read.error().ends_with("\n"), read.error());
    return 0;
  }
  double messages = 0;
  for (const network::Pattern& pattern : read->patterns) {
    for (const auto& group : pattern.groups) {
      messages += network::message_count(pattern, static_cast<std::int64_t>(group.size()));
    }
  }
  if (messages > kFewMessages) return 0;
  network::FaultyFabric fabric(read->fabric);
  fabric.set_faults(read->faults);
  const auto plan = network::build_traffic(read->patterns, fabric, network::TrafficLayout::compact);
  if (plan) SHARDSCAPE_CHECK(network::closed_gates(plan->traffic).empty(), plan->messages());
  return 0;
}
