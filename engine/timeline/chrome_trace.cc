#include "engine/timeline/chrome_trace.h"

#include <fmt/format.h>

#include "engine/base/safe_text.h"

namespace shardscape::timeline {

using nlohmann::ordered_json;

namespace {

constexpr double kMicroseconds = 1e6;

}  // namespace

double ChromeTrace::at(double time) const { return (begin_ + time) * kMicroseconds; }

void ChromeTrace::begin_event(char phase, std::int64_t process, std::int64_t track, std::string_view name) {
  if (!events_.empty()) events_ += ",\n";
  events_ += fmt::format(R"({{"ph":"{}","pid":{},"tid":{},"name":{})", phase, process, track,
                         json_text(ordered_json(name)));
}

void ChromeTrace::end_event(const ordered_json& args) { events_ += R"(,"args":)" + json_text(args) + "}"; }

void ChromeTrace::number(std::string_view key, double value) {
  events_ += fmt::format(R"(,"{}":{})", key, value);
}

void ChromeTrace::slice(std::int64_t process, std::int64_t track, std::string_view name,
                        std::string_view category, double start, double end, const ordered_json& args) {
  if (end <= start) return;
  begin_event('X', process, track, name);
  if (!category.empty()) events_ += fmt::format(R"(,"cat":"{}")", category);
  number("ts", at(start));
  number("dur", (end - start) * kMicroseconds);
  end_event(args);
}

void ChromeTrace::counter(std::int64_t process, std::string_view name, double moment,
                          const ordered_json& values) {
  begin_event('C', process, 0, name);
  number("ts", at(moment));
  end_event(values);
}

void ChromeTrace::label(std::int64_t process, std::int64_t track, std::string_view what,
                        const ordered_json& args) {
  begin_event('M', process, track, what);
  end_event(args);
}

void ChromeTrace::name_process(std::int64_t process, std::string_view name) {
  label(process, 0, "process_name", {{"name", name}});
}

void ChromeTrace::name_track(std::int64_t process, std::int64_t track, std::string_view name) {
  label(process, track, "thread_name", {{"name", name}});
  label(process, track, "thread_sort_index", {{"sort_index", track}});
}

void ChromeTrace::order_process(std::int64_t process, std::int64_t place) {
  label(process, 0, "process_sort_index", {{"sort_index", place}});
}

std::string ChromeTrace::document(const ordered_json& other) const {
  return R"({"displayTimeUnit":"ms","otherData":)" + json_text(other) + R"(,"traceEvents":[)" + events_ +
         "]}";
}

}  // namespace shardscape::timeline
