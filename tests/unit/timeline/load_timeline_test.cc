// Does the timeline of a load show what became of every request, and what every server did?
#include "engine/timeline/load_timeline.h"

#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace shardscape::timeline {
namespace {

using nlohmann::json;

serving::RequestRecord request(std::int64_t number, double sent, double admitted, double first, double done) {
  serving::RequestRecord done_request{{}, admitted, first, done};
  done_request.request.number = number;
  done_request.request.sent = sent;
  done_request.request.prompt = 100;
  done_request.request.output = 10;
  return done_request;
}

/// Two servers; requests 0 and 1 overlap, 2 begins when 0 is done.
serving::LoadRecord record_of_two() {
  serving::LoadRecord record;
  record.requests = {request(0, 0, 0, 1, 3), request(1, 0.5, 1, 2, 5), request(2, 3, 3, 4, 6)};
  record.works = {{0, 0, 1, 1, 1, 0, 0, 0.1}, {0, 1, 3, 9, 0, 1, 2, 0.2}, {1, 1, 2, 1, 1, 1, 0, 0.5}};
  return record;
}

std::vector<json> events_of(const json& trace, const std::string& kind) {
  std::vector<json> events;
  for (const json& event : trace.at("traceEvents"))
    if (event.at("ph") == kind) events.push_back(event);
  return events;
}

// The slices of a request cover it from when it was sent until it was done, and no two requests share a track at once.
TEST(LoadTimeline, SlicesOfARequestAddUpToIt) {
  const json trace = json::parse(load_timeline_json(record_of_two()));
  std::map<int, double> covered, track;
  for (const json& slice : events_of(trace, "X")) {
    if (slice.at("pid") != 0) continue;
    const int number = slice.at("args").at("request");
    covered[number] += slice.at("dur").get<double>();
    track[number] = slice.at("tid");
  }
  EXPECT_DOUBLE_EQ(covered.at(0), 3e6);
  EXPECT_DOUBLE_EQ(covered.at(1), 4.5e6);
  EXPECT_DOUBLE_EQ(covered.at(2), 3e6);
  EXPECT_NE(track.at(0), track.at(1));
  EXPECT_EQ(track.at(2), track.at(0));
}

TEST(LoadTimeline, ServersShowTheirWorkAndCounters) {
  const json trace = json::parse(load_timeline_json(record_of_two()));
  std::map<std::pair<int, std::string>, int> slices;
  for (const json& slice : events_of(trace, "X"))
    if (slice.at("pid") != 0) ++slices[{slice.at("pid"), slice.at("name")}];
  const std::map<std::pair<int, std::string>, int> expected = {
      {{1, "prompts"}, 1}, {{1, "decode"}, 1}, {{2, "prompts and decode"}, 1}};
  EXPECT_EQ(slices, expected);
  double highest = 0;
  for (const json& counter : events_of(trace, "C"))
    if (counter.at("name") == "cache")
      highest = std::max(highest, counter.at("args").at("percent").get<double>());
  EXPECT_DOUBLE_EQ(highest, 50);
}

TEST(LoadTimeline, SaysHowMuchIsDrawn) {
  const json trace = json::parse(load_timeline_json(record_of_two(), 2));
  EXPECT_EQ(trace.at("otherData").at("requests"), 3);
  EXPECT_EQ(trace.at("otherData").at("requests_drawn"), 1);
  EXPECT_EQ(trace.at("otherData").at("works_drawn"), 2);
}

}  // namespace
}  // namespace shardscape::timeline
