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

/// Collects fields.
struct PredictionFields {
  using Kind = PredictionField::Kind;
  std::vector<PredictionField> list;

  void add(const std::string& name, double value, Kind kind) { list.push_back({name, value, kind}); }
  template <class Code>
  void code(const std::string& name, Code value) {
    add(name, static_cast<double>(value), Kind::code);
  }
  void time(const std::string& name, Seconds value) { add(name, value.value(), Kind::time); }
  void bytes(const std::string& name, Bytes value) { add(name, value.value(), Kind::number); }
  void number(const std::string& name, double value) { add(name, value, Kind::number); }
  void spread(const std::string& name, const InferenceLatency& latency) {
    const auto& [p50, p95] = latency;
    time(name + " p50", p50);
    time(name + " p95", p95);
  }
};

inline void add_load(const LoadPrediction& load, PredictionFields& all) {
  const auto& [ttft_tail, itl_tail, tpot_tail, e2e_tail, tpot, tpot_spread, queue, requests_per_s, kv_mean,
               kv_peak, preemptions, attainment, prefix_hits, accepted_tokens, sustained_per_s, done,
               unsteady] = load;
  for (const auto& tail : {ttft_tail, itl_tail, tpot_tail, e2e_tail}) {
    all.time("p90", tail.p90);
    all.time("p99", tail.p99);
  }
  all.time("tpot", tpot);
  all.spread("tpot", tpot_spread);
  all.time("queue", queue);
  all.number("requests_per_s", requests_per_s);
  all.number("kv_mean", kv_mean);
  all.number("kv_peak", kv_peak);
  all.number("preemptions", preemptions);
  all.number("attainment", attainment);
  for (const double share : prefix_hits) all.number("prefix_hits", share);
  all.number("accepted_tokens", accepted_tokens);
  all.number("sustained_per_s", sustained_per_s);
  all.number("done", done);
  all.code("unsteady", unsteady);
}

inline void add_memory(const MemoryUse& memory, PredictionFields& all) {
  const auto& [weights, gradients, optimizer, activations, logits, kv_cache, buffers, reserve] = memory;
  all.bytes("memory.weights", weights);
  all.bytes("memory.gradients", gradients);
  all.bytes("memory.optimizer", optimizer);
  all.bytes("memory.activations", activations);
  all.bytes("memory.logits", logits);
  all.bytes("memory.kv_cache", kv_cache);
  all.bytes("memory.buffers", buffers);
  all.bytes("memory.reserve", reserve);
}

inline std::vector<PredictionField> fields_of(const Prediction& prediction) {
  PredictionFields all;
  const auto& [step_time, tokens_per_s_per_gpu, mfu, breakdown, contention, contended_share] =
      static_cast<const StepPrediction&>(prediction);
  static_assert(has_fields<Prediction, StepPrediction>(std::make_index_sequence<20>()) &&
                    !has_fields<Prediction, StepPrediction>(std::make_index_sequence<21>()),
                "name the fields of a prediction below, and count them here");
  all.code("status", prediction.status);
  all.code("reason", prediction.reason);
  all.code("microbatches", prediction.microbatches);
  all.code("peak_stage", prediction.peak_stage);
  all.time("step_time", step_time);
  all.time("ttft", prediction.ttft);
  all.time("itl", prediction.itl);
  all.time("e2e", prediction.e2e);
  all.spread("ttft", prediction.ttft_spread);
  all.spread("itl", prediction.itl_spread);
  all.spread("e2e", prediction.e2e_spread);
  add_load(prediction.load, all);
  all.number("decode_batch", prediction.decode_batch);
  all.number("tokens_per_s_per_gpu", tokens_per_s_per_gpu);
  all.number("mfu", mfu);
  all.number("joules_per_token", prediction.joules_per_token);
  all.number("cost_per_million_tokens", prediction.cost_per_million_tokens);
  all.bytes("memory_peak", prediction.memory_peak);
  add_memory(prediction.memory, all);
  all.bytes("kv_bytes", prediction.kv_bytes);
  all.time("kv_transfer", prediction.kv_transfer);
  all.bytes("prefill_memory_peak", prediction.prefill_memory_peak);
  all.code("peak_in_prefill", prediction.peak_in_prefill);
  {
    for (const TimeClass c : enum_values<TimeClass>())
      all.time("breakdown." + std::string(name_of(c)), breakdown[c]);
  }
  all.time("contention", contention);
  all.add("contended_share", contended_share, PredictionField::Kind::share);
  return all.list;
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
