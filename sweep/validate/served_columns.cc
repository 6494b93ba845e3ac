#include "sweep/validate/served_columns.h"

namespace shardscape::validate {

namespace {

using Value = std::optional<double>;
using Get = Value (*)(const Prediction&, bool);

/// A time; nothing where there is none, as between the tokens of requests of one.
Value time_of(Seconds time) { return time.value() > 0 ? Value(time.value()) : std::nullopt; }
template <auto Member>
constexpr Get kMean = [](const Prediction& p, bool) { return time_of(p.*Member); };
template <auto Spread, auto Percentile>
constexpr Get kSpread = [](const Prediction& p, bool) { return time_of(p.*Spread.*Percentile); };
/// What a load that is simulated has alone.
template <auto Tail, auto Percentile>
constexpr Get kTail = [](const Prediction& p, bool simulated) {
  return simulated ? time_of(p.load.*Tail.*Percentile) : std::nullopt;
};
using P = Prediction;
using L = LoadPrediction;
constexpr auto kP50 = &InferenceLatency::p50, kP95 = &InferenceLatency::p95;
constexpr auto kP90 = &L::Tail::p90, kP99 = &L::Tail::p99;
/// Time per token after the first, mean over requests; in the steady state of alike requests that of all tokens.
constexpr Get kTpot = [](const Prediction& p, bool simulated) {
  return time_of(simulated ? p.load.tpot_mean : p.itl);
};

// What tables call ITL is (whole request - TTFT) / (tokens - 1), mean over requests.
constexpr std::array<ServedColumn, kServedColumns> kServedList = {{
    {"measured_ttft_s", "ttft", "TTFT", kMean<&P::ttft>},
    {"measured_itl_s", "itl", "ITL", kTpot},
    {"measured_e2e_s", "e2e", "end to end", kMean<&P::e2e>},
    {"measured_e2e_mean_s", "e2e_mean", "end to end, mean", kMean<&P::e2e>},
    {"measured_ttft_p50_s", "ttft_p50", "TTFT p50", kSpread<&P::ttft_spread, kP50>},
    {"measured_ttft_p90_s", "ttft_p90", "TTFT p90", kTail<&L::ttft, kP90>},
    {"measured_ttft_p95_s", "ttft_p95", "TTFT p95", kSpread<&P::ttft_spread, kP95>},
    {"measured_ttft_p99_s", "ttft_p99", "TTFT p99", kTail<&L::ttft, kP99>},
    {"measured_tpot_mean_s", "tpot", "TPOT, mean", kTpot},
    {"measured_tpot_p50_s", "tpot_p50", "TPOT p50", kTail<&L::tpot_spread, kP50>},
    {"measured_tpot_p90_s", "tpot_p90", "TPOT p90", kTail<&L::tpot, kP90>},
    {"measured_tpot_p99_s", "tpot_p99", "TPOT p99", kTail<&L::tpot, kP99>},
    {"measured_itl_mean_s", "itl_mean", "gaps between tokens, mean", kMean<&P::itl>},
    {"measured_itl_p50_s", "itl_p50", "gaps between tokens, p50", kSpread<&P::itl_spread, kP50>},
    {"measured_itl_p90_s", "itl_p90", "gaps between tokens, p90", kTail<&L::itl, kP90>},
    {"measured_itl_p99_s", "itl_p99", "gaps between tokens, p99", kTail<&L::itl, kP99>},
    {"measured_e2e_p50_s", "e2e_p50", "end to end p50", kSpread<&P::e2e_spread, kP50>},
    {"measured_e2e_p90_s", "e2e_p90", "end to end p90", kTail<&L::e2e, kP90>},
    {"measured_e2e_p99_s", "e2e_p99", "end to end p99", kTail<&L::e2e, kP99>},
    {"measured_tokens_per_s_per_gpu", "throughput", "output tokens per second, over all GPUs",
     [](const P& p, bool) { return Value(p.tokens_per_s_per_gpu); }, "1/s"},
}};

constexpr ServedColumn kOpenLoop[] = {
    {"ttft_mean_s", "ttft", "TTFT", kMean<&P::ttft>},
    {"tpot_derived_s", "tpot", "TPOT", kTpot},
    {"e2e_mean_s", "e2e", "end to end", kMean<&P::e2e>},
    {"ttft_p50_s", "ttft_p50", "TTFT p50", kSpread<&P::ttft_spread, kP50>},
    {"ttft_p90_s", "ttft_p90", "TTFT p90", kTail<&L::ttft, kP90>},
    {"ttft_p95_s", "ttft_p95", "TTFT p95", kSpread<&P::ttft_spread, kP95>},
    {"ttft_p99_s", "ttft_p99", "TTFT p99", kTail<&L::ttft, kP99>},
    {"e2e_p50_s", "e2e_p50", "end to end p50", kSpread<&P::e2e_spread, kP50>},
    {"e2e_p90_s", "e2e_p90", "end to end p90", kTail<&L::e2e, kP90>},
    {"e2e_p95_s", "e2e_p95", "end to end p95", kSpread<&P::e2e_spread, kP95>},
    {"e2e_p99_s", "e2e_p99", "end to end p99", kTail<&L::e2e, kP99>},
};

}  // namespace

std::string ServedColumn::predicted() const {
  constexpr std::string_view kMeasured = "measured_";
  std::string_view what = measured;
  if (what.starts_with(kMeasured)) what.remove_prefix(kMeasured.size());
  return "predicted_" + std::string(what);
}

std::span<const ServedColumn, kServedColumns> served_columns() { return kServedList; }

std::span<const ServedColumn> open_loop_columns() { return kOpenLoop; }

ServedValues read_served(RowReader& reader) {
  constexpr double kOneToken = 1.05;
  const bool events = reader.positive("itl_over_tpot_mean").value_or(kOneToken) >= kOneToken;
  ServedValues values;
  for (std::size_t i = 0; i < kServedColumns; ++i) {
    const std::string_view key = kServedList[i].key;
    values[i] = reader.positive(kServedList[i].measured);
    if (events && i != kItlColumn && key.starts_with("itl")) values[i].reset();
  }
  return values;
}

}  // namespace shardscape::validate
