// Does `shardscape network` print what it promises, and refuse what it should?
#include <cmath>
#include <nlohmann/json.hpp>

#include "tests/cli/program_under_test.h"

namespace shardscape::cli {
namespace {

using nlohmann::json;

class NetworkTest : public ProgramTest {
 protected:
  /// An all-reduce of 8 MB around a ring of four; link 1 <-> 2 as told.
  std::string ring(const std::string& faults = "[]", const std::string& bytes = "8e6") {
    return R"({"name": "ring4", "topology": {"dims": [{"type": "ring", "size": 4, "bw": 1e9, "lat": 1e-6}]},
      "faults": )" +
           faults + R"(, "patterns": [{"op": "allreduce", "groups": [[0, 1, 2, 3]], "bytes": )" + bytes +
           "}]}";
  }
};

TEST_F(NetworkTest, JsonHasTheSixFigures) {
  write("case.json", ring());
  for (const bool reference : {false, true}) {
    std::vector<std::string> words = {"network", "case.json", "--json"};
    if (reference) words.push_back("--reference");
    const Finished finished = run(words);
    ASSERT_EQ(finished.code, 0) << finished.err;
    const json result = json::parse(finished.out);
    ASSERT_EQ(result.size(), 6U) << finished.out;
    // 6 steps of 2 MB at 1 GB/s and 1 us; each of the four + links carries 12 MB.
    const double time = 6 * (2e-3 + 1e-6);
    EXPECT_NEAR(result.at("completion_time_s").get<double>(), time, 1e-12);
    EXPECT_EQ(result.at("messages"), 24);
    EXPECT_EQ(result.at("links_used"), 4);
    EXPECT_NEAR(result.at("max_link_utilisation").get<double>(), 12e-3 / time, 1e-9);
    EXPECT_GT(result.at("events").get<int>(), 0);
    EXPECT_GE(result.at("cpu_s").get<double>(), 0);
  }
}

TEST_F(NetworkTest, ASickLinkSlowsTheRingAndLeadsTheTable) {
  write("case.json", ring(R"([{"kind": "derate", "a": 1, "b": 2, "factor": 0.5, "both": false}])"));
  const json result = json::parse(run({"network", "case.json", "--json"}).out);
  EXPECT_GT(result.at("completion_time_s").get<double>(), 6 * 2e-3 * 1.5);
  const Finished table = run({"network", "case.json"});
  ASSERT_EQ(table.code, 0) << table.err;
  EXPECT_TRUE(contains(table.out, "ring4")) << table.out;
  const std::size_t heading = table.out.find("busiest links");
  ASSERT_NE(heading, std::string::npos);
  EXPECT_LT(table.out.find("1 -> 2"), table.out.find("0 -> 1", heading)) << table.out;
}

TEST_F(NetworkTest, TimelineIntegratesToTheBytesOfTheLink) {
  write("case.json", ring());
  ASSERT_EQ(run({"network", "case.json", "--json", "--timeline", "links.json"}).code, 0);
  const std::string text = read_file(work() / "links.json");
  ASSERT_EQ(run({"network", "case.json", "--json", "--timeline", "plain.json", "--reference"}).code, 0);
  EXPECT_EQ(read_file(work() / "plain.json"), text);
  const json trace = json::parse(text);
  double last_time = 0, last = 0, bytes = 0;
  int events = 0;
  for (const json& event : trace.at("traceEvents")) {
    if (!contains(event.at("name"), "0 -> 1")) continue;
    EXPECT_EQ(event.at("ph"), "C");
    const double time = event.at("ts").get<double>() * 1e-6;
    EXPECT_GE(time, last_time);
    bytes += last * 1e9 * (time - last_time);
    last_time = time;
    last = event.at("args").at("utilisation");
    ++events;
  }
  EXPECT_GE(events, 2);
  EXPECT_EQ(last, 0) << "idle at the end";
  EXPECT_NEAR(bytes, 12e6, 1);
}

/// `text` with one part of it replaced.
std::string with(std::string text, const std::string& part, const std::string& instead) {
  const std::size_t at = text.find(part);
  EXPECT_NE(at, std::string::npos) << part;
  return text.replace(at, part.size(), instead);
}

TEST_F(NetworkTest, BadCasesAreRefused) {
  const std::string members = "[[0, 1, 2, 3]]", type = R"("ring", "size": 4)";
  const std::string bandwidth = "case.json: topology.dims[0].bw: ";
  const std::vector<std::pair<std::string, std::string>> cases = {
      {ring("[]", "-1"), "case.json: patterns[0].bytes: "},
      {ring("[]", "NaN"), "case.json:2:"},
      {ring(R"([{"kind": "remove", "a": 0, "b": 2}])"), "case.json: faults[0]: there is no link from 0 to 2"},
      {ring(R"([{"kind": "remove", "a": 0, "b": 1}, {"kind": "remove", "a": 0, "b": 3}])"),
       "case.json: patterns[0]: no way from 0 to 1: all links that lead on are dead (dim0: 0 -> 1, dim0: 0 "
       "-> 3)"},
      {ring(R"([{"kind": "derate", "a": 0, "b": 1, "factor": -0.5}])"), "case.json: faults[0].factor: "},
      {with(ring(), members, "[[0, 1, 2, 4]]"),
       "case.json: patterns[0].groups[0][3]: rank 4 is out of range"},
      {with(ring(), members, "[[0, 1, -1]]"), "case.json: patterns[0].groups[0][2]: rank -1 is out of range"},
      {with(ring(), members, "[[0, 1], [2, 3, 2]]"), "case.json: patterns[0].groups[1][2]: rank 2 is in the"},
      {with(ring(), members, "[[0, 1], 2]"), "case.json: patterns[0].groups[1]: must be a list"},
      {with(ring(), "1e9", "0"), bandwidth + "must be from 1 B/s to 1e+18 B/s, not 0"},
      {with(ring(), "1e9", "-1e9"), bandwidth + "must be from 1 B/s"},
      {with(ring(), "1e9", "NaN"), "case.json:1:"},
      {with(ring(), "1e9", "1e999"), "case.json:1:"},
      {with(ring(), "1e9", R"("1 GB/s")"), bandwidth + "must be a number"},
      {with(ring(), "1e-6", "-1e-6"), "case.json: topology.dims[0].lat: must be from 1e-15 s"},
      {with(ring(), type, R"("torus", "size": 4, "shape": [2, 4])"),
       "case.json: topology.dims[0].shape: multiplies to 8, but the size is 4"},
      {with(ring(), type, R"("hypercube", "size": 6)"), "case.json: topology.dims[0]: "},
      {with(ring(), "patterns", "patern"), "case.json: patern: unknown key (did you mean 'patterns'?)"},
      {"[]", "case.json: must be an object"},
      {"", "case.json:1:1: "},
      {"{", "case.json:1:"}};
  for (const auto& [text, line] : cases) {
    write("case.json", text);
    const Finished finished = run({"network", "case.json", "--json", "--timeline", "links.json"});
    EXPECT_EQ(finished.code, 2) << finished.err;
    EXPECT_TRUE(contains(finished.err, line)) << line << " not in\n" << finished.err;
    EXPECT_EQ(finished.out, "");
    EXPECT_EQ(left_behind(), std::vector<std::string>{"case.json"});
  }
  EXPECT_EQ(run({"network", "absent.json"}).code, 2);
  write("case.json", ring());
  EXPECT_EQ(run({"network", "case.json", "--timeline", "no/such/folder/links.json"}).code, 1);
}

}  // namespace
}  // namespace shardscape::cli
