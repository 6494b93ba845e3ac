#include "sweep/validate/served_columns.h"

namespace shardscape::validate {

namespace {

using P = Prediction;
using Value = std::optional<double>;

Value if_simulated(bool simulated, Seconds value) {
  return simulated ? Value(value.value()) : std::nullopt;
}

#define SHARDSCAPE_SERVED(WHAT) "measured_" WHAT, "predicted_" WHAT

/// Printed gaps between tokens are those between events of a stream, which may have many tokens; only where a table's
/// `itl_over_tpot_mean` says that an event is a token they are read (read_served).
constexpr std::array<ServedColumn, kServedColumns> kColumns = {{
    {SHARDSCAPE_SERVED("ttft_s"), "ttft", "TTFT", "time to first token, mean, seconds", "s",
     [](const P& p, bool) { return Value(p.ttft.value()); }},
    // What tables call ITL is (whole request - TTFT) / (tokens - 1), mean over requests.
    {SHARDSCAPE_SERVED("itl_s"), "itl", "ITL", "inter-token latency, mean, seconds", "s",
     [](const P& p, bool simulated) { return Value((simulated ? p.load.tpot_mean : p.itl).value()); }},
    {SHARDSCAPE_SERVED("e2e_s"), "e2e", "end to end", "whole request, mean, seconds", "s",
     [](const P& p, bool) { return Value(p.e2e.value()); }},
    {SHARDSCAPE_SERVED("e2e_mean_s"), "e2e_mean", "end to end, mean", "likewise", "s",
     [](const P& p, bool) { return Value(p.e2e.value()); }},
    {SHARDSCAPE_SERVED("ttft_p50_s"), "ttft_p50", "TTFT p50", "median over requests", "s",
     [](const P& p, bool) { return Value(p.ttft_spread.p50.value()); }},
    {SHARDSCAPE_SERVED("ttft_p90_s"), "ttft_p90", "TTFT p90", "", "s",
     [](const P& p, bool simulated) { return if_simulated(simulated, p.load.ttft.p90); }},
    {SHARDSCAPE_SERVED("ttft_p95_s"), "ttft_p95", "TTFT p95", "", "s",
     [](const P& p, bool) { return Value(p.ttft_spread.p95.value()); }},
    {SHARDSCAPE_SERVED("ttft_p99_s"), "ttft_p99", "TTFT p99", "", "s",
     [](const P& p, bool simulated) { return if_simulated(simulated, p.load.ttft.p99); }},
    {SHARDSCAPE_SERVED("tpot_mean_s"), "tpot", "TPOT", "time per token after the first, over requests", "s",
     [](const P& p, bool simulated) { return Value((simulated ? p.load.tpot_mean : p.itl).value()); }},
    {SHARDSCAPE_SERVED("tpot_p50_s"), "tpot_p50", "TPOT p50", "", "s",
     [](const P& p, bool simulated) { return if_simulated(simulated, p.load.tpot_spread.p50); }},
    {SHARDSCAPE_SERVED("tpot_p90_s"), "tpot_p90", "TPOT p90", "", "s",
     [](const P& p, bool simulated) { return if_simulated(simulated, p.load.tpot.p90); }},
    {SHARDSCAPE_SERVED("tpot_p99_s"), "tpot_p99", "TPOT p99", "", "s",
     [](const P& p, bool simulated) { return if_simulated(simulated, p.load.tpot.p99); }},
    {SHARDSCAPE_SERVED("itl_mean_s"), "itl_mean", "gaps between tokens",
     "gaps between tokens; not read where itl_over_tpot_mean says that an event of the stream has several", "s",
     [](const P& p, bool) { return Value(p.itl.value()); }},
    {SHARDSCAPE_SERVED("itl_p50_s"), "itl_p50", "gaps between tokens, p50", "likewise", "s",
     [](const P& p, bool) { return Value(p.itl_spread.p50.value()); }},
    {SHARDSCAPE_SERVED("itl_p90_s"), "itl_p90", "gaps between tokens, p90", "likewise", "s",
     [](const P& p, bool simulated) { return if_simulated(simulated, p.load.itl.p90); }},
    {SHARDSCAPE_SERVED("itl_p99_s"), "itl_p99", "gaps between tokens, p99", "likewise", "s",
     [](const P& p, bool simulated) { return if_simulated(simulated, p.load.itl.p99); }},
    {SHARDSCAPE_SERVED("e2e_p50_s"), "e2e_p50", "end to end p50", "", "s",
     [](const P& p, bool) { return Value(p.e2e_spread.p50.value()); }},
    {SHARDSCAPE_SERVED("e2e_p90_s"), "e2e_p90", "end to end p90", "", "s",
     [](const P& p, bool simulated) { return if_simulated(simulated, p.load.e2e.p90); }},
    {SHARDSCAPE_SERVED("e2e_p99_s"), "e2e_p99", "end to end p99", "", "s",
     [](const P& p, bool simulated) { return if_simulated(simulated, p.load.e2e.p99); }},
    {SHARDSCAPE_SERVED("tokens_per_s_per_gpu"), "throughput", "tokens per second and GPU",
     "output tokens, over all GPUs", "1/s", [](const P& p, bool) { return Value(p.tokens_per_s_per_gpu); }},
}};
#undef SHARDSCAPE_SERVED

}  // namespace

std::span<const ServedColumn, kServedColumns> served_columns() { return kColumns; }

ServedValues read_served(RowReader& reader) {
  constexpr double kOneToken = 1.05;
  const bool events = reader.positive("itl_over_tpot_mean").value_or(kOneToken) >= kOneToken;
  ServedValues values;
  for (std::size_t i = 0; i < kServedColumns; ++i) {
    const std::string_view key = kColumns[i].key;
    values[i] = reader.positive(kColumns[i].measured);
    if (events && i != kItlColumn && key.starts_with("itl")) values[i].reset();
  }
  return values;
}

}  // namespace shardscape::validate
