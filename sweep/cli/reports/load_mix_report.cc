#include "sweep/cli/reports/load_mix_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <string_view>

#include "sweep/cli/reports/report.h"
#include "sweep/cli/terminal/format.h"
#include "sweep/cli/terminal/text_table.h"

namespace shardscape::cli {

namespace {

std::string pool_name(const LoadMixes& mixes, const LoadMix& mix) {
  return mixes.size() == 1 ? "replicas" : &mix == &mixes.front() ? "prefill" : "decode";
}

double over(double sum, double number) { return number > 0 ? sum / number : 0; }

/// Parts of the mean request's time. That after the first token is dealt out over kinds of iterations as the time of
/// all sequences that decode is.
Rows time_rows(const Prediction& p, const LoadMixes& mixes) {
  Rows rows({{left("part"), "part"}, {"time", "time_s"}, {"share", "share"}});
  const auto add = [&](std::string_view part, double seconds) {
    if (seconds > 0)
      rows.add({cell::words(part), cell::seconds(seconds), cell::share(seconds / p.e2e.value())});
  };
  // Replicas send no caches: of them that class is what iterations wait for blocks from host and disk.
  const double sent = mixes.size() == 1 ? 0 : p.breakdown[TimeClass::kv_transfer].value();
  const double queue = p.load.queue.value();
  const double decoding = (p.e2e - p.ttft).value();
  add("waits until its prompt is read", queue);
  add(mixes.size() == 1 ? "its prompt is read" : "its prompt is read, and waits for a decoder",
      p.ttft.value() - queue - sent);
  add("its cache is sent", sent);
  const auto& kinds = mixes.back().kinds;
  double alone = kinds[WorkKind::decode].decoding_seconds, beside = kinds[WorkKind::both].decoding_seconds;
  const double paused = kinds[WorkKind::prompts].paused_seconds, all = alone + beside + paused;
  add("decodes, no prompts beside it", decoding * over(alone, all));
  add("decodes beside prompts of others", decoding * over(beside, all));
  add("pauses for prompts of others", decoding * over(paused, all));
  return rows;
}

Rows iteration_rows(const LoadMixes& mixes) {
  Rows rows({{left("servers"), "servers"},
             {left("iterations"), "kind"},
             {"count", "count"},
             {"share of time", "share"},
             {"time each", "time_s"},
             {"prompt tokens", "prompt_tokens"},
             {"decoding", "decoding"}});
  const Cell none{"-", nullptr};
  for (const LoadMix& mix : mixes) {
    const double time = mix.span * static_cast<double>(mix.servers);
    double idle = time;
    for (const WorkKind of : enum_values<WorkKind>()) {
      const LoadMix::Kind& kind = mix.kinds[of];
      idle -= kind.seconds;
      if (kind.iterations == 0) continue;
      const auto each = [&](double sum) {
        const double mean = sum / kind.iterations;
        return Cell{fmt::format("{:.1f}", mean), mean};
      };
      rows.add({cell::words(pool_name(mixes, mix)), cell::words(name_of(of)),
                cell::count(static_cast<std::uint64_t>(kind.iterations)), cell::share(kind.seconds / time),
                cell::seconds(kind.seconds / kind.iterations), each(kind.prompt_tokens),
                each(kind.decoding)});
    }
    rows.add({cell::words(pool_name(mixes, mix)), cell::words("none: idle"), none,
              cell::share(std::max(0.0, idle) / time), none, none, none});
  }
  return rows;
}

/// Where several limits hold at once the first of this order is named (engine/serving/live/live_server.cc).
Rows wait_rows(const LoadMix& mix) {
  constexpr EnumArray<WaitsFor, std::string_view> kTexts{
      {"nothing: all have been admitted", "the server to look at them", "a place in the batch (max_batch)",
       "tokens of the budget (token_budget)", "blocks of the key-value cache"}};
  Rows rows({{left("requests wait for")}, Rows::hidden("for"), {"share of time at work", "share"}});
  const double all = std::accumulate(mix.waits.begin(), mix.waits.end(), 0.0);
  for (const WaitsFor of : enum_values<WaitsFor>())
    if (mix.waits[of] > 0)
      rows.add({cell::words(kTexts[of]), cell::words(name_of(of)), cell::share(over(mix.waits[of], all))});
  return rows;
}

}  // namespace

Json load_mix_json(const Prediction& prediction, const LoadMixes& mixes) {
  Json json = Json::object();
  if (mixes.empty()) return json;
  json["load_time"] = time_rows(prediction, mixes).json();
  json["iterations"] = iteration_rows(mixes).json();
  if (mixes.size() == 1) json["waits"] = wait_rows(mixes.front()).json();
  return json;
}

void print_load_mix(std::ostream& out, const Prediction& prediction, const LoadMixes& mixes) {
  if (mixes.empty()) return;
  out << "\nwhere the time of a request goes, in the mean\n";
  time_rows(prediction, mixes).print(out, 2);
  const auto& hits = prediction.load.prefix_hits;
  if (const double found = std::accumulate(hits.begin(), hits.end(), 0.0); found > 0)
    out << "  " << format_percent(found, 1) << " of the tokens of prompts were found in a cache\n";
  out << fmt::format("\niterations of all servers, in {}\n", format_seconds(mixes.front().span));
  iteration_rows(mixes).print(out, 2);
  if (mixes.size() > 1) return;  // what waits before two pools waits at none of them
  out << '\n';
  wait_rows(mixes.front()).print(out, 2);
}

}  // namespace shardscape::cli
