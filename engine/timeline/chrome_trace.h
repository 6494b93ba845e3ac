// Writes a Chrome trace (Trace Event Format, JSON object form), which ui.perfetto.dev and chrome://tracing open: slices
// on the tracks of processes, counters, and their names. Times are given in seconds and written in microseconds.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace shardscape::timeline {

class ChromeTrace {
 public:
  /// `begin`: the moment of the trace, in seconds, from which the times given from here on are counted.
  explicit ChromeTrace(double begin = 0) : begin_(begin) {}

  /// The microseconds of a time.
  [[nodiscard]] double at(double time) const;
  /// Draws what lasts from `start` to `end`; nothing where that is no time. `category` may be empty.
  void slice(std::int64_t process, std::int64_t track, std::string_view name, std::string_view category,
             double start, double end, const nlohmann::ordered_json& args = nlohmann::ordered_json::object());
  /// Sets the values of a counter from that moment on.
  void counter(std::int64_t process, std::string_view name, double moment,
               const nlohmann::ordered_json& values);
  void name_process(std::int64_t process, std::string_view name);
  /// Names a track; tracks of a process are shown in the order of their numbers.
  void name_track(std::int64_t process, std::int64_t track, std::string_view name);
  /// Shows the process at this place among all.
  void order_process(std::int64_t process, std::int64_t place);

  /// The trace as text. `other`: what it says about itself, in otherData.
  [[nodiscard]] std::string document(const nlohmann::ordered_json& other) const;

 private:
  void begin_event(char phase, std::int64_t process, std::int64_t track, std::string_view name);
  void end_event(const nlohmann::ordered_json& args);
  void label(std::int64_t process, std::int64_t track, std::string_view what,
             const nlohmann::ordered_json& args);
  void number(std::string_view key, double value);

  double begin_;
  std::string events_;
};

}  // namespace shardscape::timeline
