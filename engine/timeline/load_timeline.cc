// Writes the record of a simulated load as a Chrome trace: requests by the order in which they were sent, then the work
// of every server with its counters.
#include "engine/timeline/load_timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <queue>
#include <utility>
#include <vector>

#include "engine/timeline/chrome_trace.h"

namespace shardscape::timeline {

namespace {

using nlohmann::ordered_json;
using serving::RequestRecord;
using serving::WorkRecord;

/// Gives each interval, taken in order of their beginnings, the lowest track that is free.
class Tracks {
 public:
  std::size_t track_for(double begin, double end) {
    for (; !busy_.empty() && busy_.top().first <= begin; busy_.pop()) free_.push(busy_.top().second);
    std::size_t track = count_;
    if (free_.empty()) {
      ++count_;
    } else {
      track = free_.top();
      free_.pop();
    }
    busy_.push({end, track});
    return track;
  }

 private:
  template <class T>
  using Lowest = std::priority_queue<T, std::vector<T>, std::greater<>>;
  Lowest<std::pair<double, std::size_t>> busy_;  ///< when each ends
  Lowest<std::size_t> free_;
  std::size_t count_ = 0;
};

class LoadWriter {
 public:
  LoadWriter(const serving::LoadRecord& record, std::size_t most_slices)
      : record_(record), most_slices_(most_slices) {}

  std::string write() {
    constexpr std::size_t kSlicesOfRequest = 3;
    const std::size_t requests =
        std::min(record_.requests.size(), std::max<std::size_t>(1, most_slices_ / kSlicesOfRequest));
    const std::size_t works = std::min(record_.works.size(), most_slices_);
    add_requests(requests);
    add_servers(works);
    return trace_.document({{"requests", record_.requests.size()},
                            {"requests_drawn", requests},
                            {"works", record_.works.size()},
                            {"works_drawn", works}});
  }

 private:
  void name_server(std::int64_t server) {
    const std::int64_t readers = record_.readers;
    const char* const pool = readers == 0 ? "" : server < readers ? "prefill " : "decode ";
    trace_.name_process(server + 1,
                        fmt::format("{}server {}", pool, server < readers ? server : server - readers));
  }
  void add_requests(std::size_t most) {
    trace_.name_process(0, "requests");
    std::vector<const RequestRecord*> sent;
    for (const RequestRecord& record : record_.requests) sent.push_back(&record);
    const auto order = [](const RequestRecord* r) { return std::pair(r->request.sent, r->request.number); };
    std::ranges::sort(sent, {}, order);
    sent.resize(most);
    Tracks tracks;
    for (const RequestRecord* const r : sent) {
      const std::size_t track = tracks.track_for(r->request.sent, r->done);
      ordered_json args = {{"request", r->request.number},
                           {"prompt_tokens", r->request.prompt},
                           {"output_tokens", r->request.output},
                           {"ttft_s", r->first_token - r->request.sent},
                           {"e2e_s", r->done - r->request.sent}};
      if (r->request.session >= 0) args["session"] = r->request.session, args["turn"] = r->request.turn;
      const auto slice = [&](const char* name, double begin, double end) {
        trace_.slice(0, static_cast<std::int64_t>(track), name, "request", begin, end, args);
      };
      slice("wait", r->request.sent, r->admitted);
      slice("prompt", r->admitted, r->first_token);
      slice("decode", r->first_token, r->done);
    }
  }

  void add_servers(std::size_t most) {
    std::int64_t named = 0;
    for (std::size_t i = 0; i < most; ++i) {
      const WorkRecord& work = record_.works[i];
      for (; named <= work.server; ++named) name_server(named);
      const std::int64_t process = work.server + 1;
      const ordered_json args = {{"iterations", work.iterations},
                                 {"prompts", work.reading},
                                 {"prompt_tokens", work.prompt_tokens},
                                 {"decoding", work.decoding}};
      trace_.slice(process, 0, name_of(work.kind()), "iteration", work.begin, work.end, args);
      trace_.counter(process, "queue", work.begin, {{"requests", work.waiting}});
      trace_.counter(process, "batch", work.begin, {{"prompts", work.reading}, {"decoding", work.decoding}});
      trace_.counter(process, "cache", work.end, {{"percent", 100 * work.cache}});
    }
  }

  const serving::LoadRecord& record_;
  const std::size_t most_slices_;
  ChromeTrace trace_;
};

}  // namespace

std::string load_timeline_json(const serving::LoadRecord& record, std::size_t most_slices) {
  return LoadWriter(record, most_slices).write();
}

}  // namespace shardscape::timeline
