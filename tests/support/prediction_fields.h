// Every field of a Prediction, by name, and what differs between two of them. The structured bindings, and the count of
// the fields that it has beside those of a step, do not compile once a field is added, until it stands here, too.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "engine/spec/prediction.h"

namespace shardscape::test {

struct PredictionField {
  /// Codes and counts are equal or not; times are parts of a whole, shares of 1.
  enum class Kind { code, time, share, number };
  std::string name;
  double value;
  Kind kind;
};

/// Stands for a value of any field.
struct AnyField {
  template <typename T>
  operator T() const;  // NOLINT(google-explicit-constructor): fields are initialised from it
};

/// Whether a T, whose base is `Base`, has at least as many fields of its own as there are indices.
template <typename T, typename Base, std::size_t... kIndices>
constexpr bool has_fields(std::index_sequence<kIndices...> /*indices*/) {
  return requires { T{Base{}, (static_cast<void>(kIndices), AnyField{})...}; };
}

inline std::vector<PredictionField> fields_of(const Prediction& prediction) {
  using Kind = PredictionField::Kind;
  std::vector<PredictionField> all;
  const auto code = [&](const std::string& name, auto value) {
    all.push_back({name, static_cast<double>(value), Kind::code});
  };
  const auto time = [&](const std::string& name, Seconds value) {
    all.push_back({name, value.value(), Kind::time});
  };
  const auto bytes = [&](const std::string& name, Bytes value) {
    all.push_back({name, value.value(), Kind::number});
  };
  const auto number = [&](const std::string& name, double value) {
    all.push_back({name, value, Kind::number});
  };
  const auto spread = [&](const std::string& name, const InferenceLatency& latency) {
    const auto& [p50, p95] = latency;
    time(name + " p50", p50);
    time(name + " p95", p95);
  };
  const auto& [step_time, tokens_per_s_per_gpu, mfu, breakdown, contention, contended_share] =
      static_cast<const StepPrediction&>(prediction);
  static_assert(has_fields<Prediction, StepPrediction>(std::make_index_sequence<17>()) &&
                    !has_fields<Prediction, StepPrediction>(std::make_index_sequence<18>()),
                "name the fields of a prediction below, and count them here");
  code("status", prediction.status);
  code("reason", prediction.reason);
  code("microbatches", prediction.microbatches);
  code("peak_stage", prediction.peak_stage);
  time("step_time", step_time);
  time("ttft", prediction.ttft);
  time("itl", prediction.itl);
  time("e2e", prediction.e2e);
  spread("ttft", prediction.ttft_spread);
  spread("itl", prediction.itl_spread);
  spread("e2e", prediction.e2e_spread);
  const auto& [ttft_tail, itl_tail, tpot_tail, e2e_tail, tpot, tpot_spread, queue, requests_per_s, kv_mean,
               kv_peak, preemptions, attainment, prefix_hits, accepted_tokens, sustained_per_s, done] =
      prediction.load;
  for (const auto& tail : {ttft_tail, itl_tail, tpot_tail, e2e_tail}) {
    time("p90", tail.p90);
    time("p99", tail.p99);
  }
  time("tpot", tpot);
  spread("tpot", tpot_spread);
  time("queue", queue);
  number("requests_per_s", requests_per_s);
  number("kv_mean", kv_mean);
  number("kv_peak", kv_peak);
  number("preemptions", preemptions);
  number("attainment", attainment);
  for (const double share : prefix_hits) number("prefix_hits", share);
  number("accepted_tokens", accepted_tokens);
  number("sustained_per_s", sustained_per_s);
  number("done", done);
  number("decode_batch", prediction.decode_batch);
  number("tokens_per_s_per_gpu", tokens_per_s_per_gpu);
  number("mfu", mfu);
  bytes("memory_peak", prediction.memory_peak);
  {
    const auto& [weights, gradients, optimizer, activations, logits, kv_cache, buffers, reserve] =
        prediction.memory;
    bytes("memory.weights", weights);
    bytes("memory.gradients", gradients);
    bytes("memory.optimizer", optimizer);
    bytes("memory.activations", activations);
    bytes("memory.logits", logits);
    bytes("memory.kv_cache", kv_cache);
    bytes("memory.buffers", buffers);
    bytes("memory.reserve", reserve);
  }
  bytes("kv_bytes", prediction.kv_bytes);
  time("kv_transfer", prediction.kv_transfer);
  bytes("prefill_memory_peak", prediction.prefill_memory_peak);
  {
    for (const TimeClass c : enum_values<TimeClass>())
      time("breakdown." + std::string(name_of(c)), breakdown[c]);
  }
  time("contention", contention);
  all.push_back({"contended_share", contended_share, Kind::share});
  return all;
}

/// The step without what operations on the same links cost each other: this part follows laws of numbers exactly.
inline double uncontended(const Prediction& prediction) {
  return (prediction.step_time - prediction.contention).value();
}

/// The number with all of its digits.
inline std::string shown(double value) {
  char text[40];
  std::snprintf(text, sizeof text, "%.17g", value);
  return text;
}

/// "name: a / b" for every field that differs by more than `tolerance`, relative: times to the whole step or
/// request or to themselves, whichever is more, shares to 1, other numbers to themselves. Codes and counts
/// must be equal.
inline std::vector<std::string> differences(const Prediction& a, const Prediction& b, double tolerance) {
  using Kind = PredictionField::Kind;
  const double whole = std::max(b.step_time.value(), b.e2e.value());
  const std::vector<PredictionField> left = fields_of(a), right = fields_of(b);
  std::vector<std::string> found;
  for (std::size_t i = 0; i < left.size(); ++i) {
    const double x = left[i].value, y = right[i].value;
    double scale = std::max(std::abs(x), std::abs(y));
    if (left[i].kind == Kind::code) scale = 0;
    if (left[i].kind == Kind::time) scale = std::max(scale, whole);
    if (left[i].kind == Kind::share) scale = 1;
    // Written so that what is no number differs from everything but itself.
    const bool same = x == y || std::abs(x - y) <= tolerance * scale || (std::isnan(x) && std::isnan(y));
    if (!same) found.push_back(left[i].name + ": " + shown(x) + " / " + shown(y));
  }
  return found;
}

}  // namespace shardscape::test
