// Is a case read as written, and is every mistake in it found and located?
#include "sweep/network_case/network_case.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace shardscape::network_case {
namespace {

using network::Algorithm;
using network::Operation;

constexpr const char* kRing = R"({
  "name": "small",
  "topology": {"dims": [{"type": "ring", "size": 8, "bw": 5e10, "lat": 1e-6}]},
  "faults": [{"kind": "derate", "a": 2, "b": 3, "factor": 0.5}],
  "patterns": [
    {"op": "allreduce", "algo": "ring", "groups": [[0, 1, 2, 3], [4, 5, 6, 7]], "bytes": 1048576},
    {"op": "p2p", "list": [[0, 1, 10], [2, 3, 20, 0.5]], "start": 0.25, "after": [0]},
    {"op": "pipeline", "chains": [[0, 1, 2]], "bytes": 7, "microbatches": 3, "interval": 1e-3, "compute": 1e-4}
  ]
})";

std::string with(std::string what, const std::string& instead) {
  std::string text = kRing;
  const std::size_t at = text.find(what);
  EXPECT_NE(at, std::string::npos) << what;
  return text.replace(at, what.size(), instead);
}

/// The problems, or "" where there are none.
std::string problems(const std::string& text, const CaseLimits& limits = {}) {
  const auto result = parse_case(text, "case.json", limits);
  return result ? "" : result.error();
}

TEST(NetworkCase, IsReadAsWritten) {
  const auto result = parse_case(kRing, "case.json");
  ASSERT_TRUE(result) << result.error();
  EXPECT_EQ(result->name, "small");
  EXPECT_EQ(result->fabric.ranks(), 8);
  EXPECT_EQ(result->fabric.links()[0].bandwidth.value(), 5e10);
  EXPECT_EQ(result->fabric.links()[0].latency.value(), 1e-6);
  ASSERT_EQ(result->faults.links.size(), 2U) << "both directions unless told otherwise";
  EXPECT_EQ(result->faults.links[0].link, result->fabric.find_link(2, 3));
  EXPECT_EQ(result->faults.links[1].link, result->fabric.find_link(3, 2));
  EXPECT_EQ(result->faults.links[0].derate, 0.5);
  ASSERT_EQ(result->patterns.size(), 3U);
  const network::Pattern& ring = result->patterns[0];
  EXPECT_EQ(ring.operation, Operation::all_reduce);
  EXPECT_EQ(ring.algorithm, Algorithm::ring);
  EXPECT_EQ(ring.groups, (std::vector<std::vector<std::int32_t>>{{0, 1, 2, 3}, {4, 5, 6, 7}}));
  EXPECT_EQ(ring.bytes, 1048576);
  const network::Pattern& sends = result->patterns[1];
  EXPECT_EQ(sends.operation, Operation::point_to_point);
  EXPECT_EQ(sends.after, std::vector<std::int32_t>{0});
  ASSERT_EQ(sends.sends.size(), 2U);
  EXPECT_EQ(sends.sends[0].start, 0.25) << "the pattern's start unless it has its own";
  EXPECT_EQ(sends.sends[1].start, 0.5);
  EXPECT_EQ(sends.sends[1].bytes, 20);
  const network::Pattern& chain = result->patterns[2];
  EXPECT_EQ(chain.microbatches, 3);
  EXPECT_EQ(chain.interval, 1e-3);
  EXPECT_EQ(chain.compute, 1e-4);
}

TEST(NetworkCase, NamesInAnyLetterCase) {
  for (const char* type : {"Ring", "FullyConnected", "fully_connected", "SWITCH", "Mesh", "Torus", "KingMesh",
                           "king-mesh", "HyperCube"}) {
    EXPECT_EQ(
        problems(with("\"ring\", \"size\": 8, \"bw\": 5e10, \"lat\": 1e-6}]},\n  \"faults\": [{\"kind\": "
                      "\"derate\", \"a\": 2, \"b\": 3, \"factor\": 0.5}]",
                      "\"" + std::string(type) + "\", \"size\": 8, \"bw\": 1, \"lat\": 0}]}")),
        "")
        << type;
  }
  for (const char* op : {"AllReduce", "all_reduce", "ALLGATHER", "reduce_scatter", "AllToAll"}) {
    EXPECT_EQ(problems(with("allreduce", op)), "") << op;
  }
}

TEST(NetworkCase, AllToAllIsDirectWhateverTheAlgorithmSays) {
  for (const char* algo : {"ring", "direct", "hd"}) {
    std::string text = with("allreduce", "alltoall");
    text.replace(text.find("\"ring\", \"groups\""), 6, "\"" + std::string(algo) + "\"");
    const auto result = parse_case(text, "case.json");
    ASSERT_TRUE(result) << result.error();
    EXPECT_EQ(result->patterns[0].algorithm, Algorithm::direct);
  }
}

struct Mistake {
  const char* what;
  const char* instead;
  const char* line;  ///< how a line of the answer starts
  const char* says;
};

TEST(NetworkCase, MistakesAreLocated) {
  const std::vector<Mistake> mistakes = {
      {"\"name\"", "\"nam\"", "case.json: nam: ", "did you mean 'name'"},
      {"\"type\"", "\"typ\"", "case.json: topology.dims[0].typ: ", "did you mean 'type'"},
      {"\"type\": \"ring\", ", "", "case.json: topology.dims[0].type: ", "is missing"},
      {"\"type\": \"ring\"", "\"type\": \"rign\"",
       "case.json: topology.dims[0].type: ", "did you mean 'ring'"},
      {"\"size\": 8", "\"size\": 0", "case.json: topology.dims[0].size: ", "at least 1"},
      {"\"size\": 8", "\"size\": 8.5", "case.json: topology.dims[0].size: ", "whole number"},
      {"\"size\": 8", "\"size\": 1e300", "case.json: topology.dims[0].size: ", "32 bits"},
      {"\"size\": 8, ", "", "case.json: topology.dims[0]: ", "size"},
      {"\"size\": 8", "\"size\": 8, \"shape\": [2, 2]",
       "case.json: topology.dims[0].shape: ", "multiplies to 4"},
      {"\"size\": 8", "\"shape\": [2, 4]", "case.json: topology.dims[0]: ", "several extents"},
      {"\"ring\", \"size\": 8", "\"hypercube\", \"size\": 6",
       "case.json: topology.dims[0]: ", "power of two"},
      {"5e10", "0", "case.json: topology.dims[0].bw: ", "from 1 B/s to 1e+18 B/s"},
      {"5e10", "-1", "case.json: topology.dims[0].bw: ", "from 1 B/s to 1e+18 B/s"},
      {"5e10", "\"fast\"", "case.json: topology.dims[0].bw: ", "a number, not \"fast\""},
      {"5e10", "null", "case.json: topology.dims[0].bw: ", "a number, not null"},
      {"5e10", "NaN", "case.json:3:", "invalid literal"},
      {"5e10", "1e999", "case.json:3:", "overflow"},
      {"\"lat\": 1e-6", "\"lat\": -1e-6",
       "case.json: topology.dims[0].lat: ", "from 1e-15 s to 1e+09 s, or 0"},
      {"\"lat\": 1e-6", "\"lat\": 1e-6, \"lat\": 2", "case.json:3:", "twice"},
      {"\"a\": 2", "\"a\": 1", "case.json: faults[0]: ", "lead to 0, 2"},
      {"\"a\": 2", "\"a\": 99", "case.json: faults[0]: ", "0 .. 7"},
      {"\"factor\": 0.5", "\"factor\": 0", "case.json: faults[0].factor: ", "from 1e-06 to 1"},
      {"\"factor\": 0.5", "\"factor\": 2", "case.json: faults[0].factor: ", "from 1e-06 to 1"},
      {"\"factor\": 0.5", "\"both\": 1", "case.json: faults[0].both: ", "true or false"},
      {"derate", "remove", "case.json: faults[0].factor: ", "no effect"},
      {"derate", "degrade", "case.json: faults[0].kind: ", "derate, remove, delay"},
      {"allreduce", "allredcue", "case.json: patterns[0].op: ", "did you mean 'allreduce'"},
      {"\"algo\": \"ring\"", "\"algo\": \"rings\"", "case.json: patterns[0].algo: ", "did you mean 'ring'"},
      {"\"algo\": \"ring\"", "\"algo\": \"pairwise\"", "case.json: patterns[0].algo: ", "no algorithm"},
      {"\"algo\": \"ring\"", "\"algo\": \"direct\", \"order\": \"listed\"",
       "case.json: patterns[0].order: ", "no effect"},
      {"\"algo\": \"ring\"", "\"algo\": \"ring\", \"chunks\": 4",
       "case.json: patterns[0].chunks: ", "no effect"},
      {"\"algo\": \"ring\"", "\"algo\": \"in_network\"",
       "case.json: patterns[0].groups[0]: ", "in_network_reduction"},
      {"\"ring\", \"groups\": [[0, 1, 2, 3]", "\"hd\", \"groups\": [[0, 1, 2]",
       "case.json: patterns[0].groups[0]: ", "power of two"},
      {"[0, 1, 2, 3]", "[0, 1, 2, 8]", "case.json: patterns[0].groups[0][3]: ", "0 .. 7"},
      {"[0, 1, 2, 3]", "[0, 1, 2, 1]", "case.json: patterns[0].groups[0][3]: ", "already"},
      {"[0, 1, 2, 3]", "[]", "case.json: patterns[0].groups[0]: ", "no ranks"},
      {"[0, 1, 2, 3]", "3", "case.json: patterns[0].groups[0]: ", "a list, not 3"},
      {"1048576", "0", "case.json: patterns[0].bytes: ", "from 1e-06 B to 1e+18 B"},
      {", \"bytes\": 1048576", "", "case.json: patterns[0].bytes: ", "is missing"},
      {"[0, 1, 10]", "[0, 0, 10]", "case.json: patterns[1].list[0][1]: ", "itself"},
      {"[0, 1, 10]", "[0, 1]", "case.json: patterns[1].list[0]: ", "[source, destination, bytes]"},
      {"[0, 1, 10]", "[0, 1, -10]", "case.json: patterns[1].list[0][2]: ", "from 1e-06 B to 1e+18 B"},
      {"\"after\": [0]", "\"after\": [1]", "case.json: patterns[1].after[0]: ", "patterns 0 .. 0"},
      {"\"after\": [0]", "\"after\": [0, 0]", "case.json: patterns[1].after[1]: ", "again"},
      {"[0, 1, 2]]", "[0, 1, 1]]", "case.json: patterns[2].chains[0][2]: ", "follows itself"},
      {"\"microbatches\": 3", "\"microbatches\": 0", "case.json: patterns[2].microbatches: ", "at least 1"},
      {"\"chains\"", "\"groups\"", "case.json: patterns[2].groups: ", "unknown key"},
  };
  for (const Mistake& mistake : mistakes) {
    const std::string answer = problems(with(mistake.what, mistake.instead));
    EXPECT_NE(("\n" + answer).find("\n" + std::string(mistake.line)), std::string::npos)
        << mistake.instead << ":\n"
        << answer;
    EXPECT_NE(answer.find(mistake.says), std::string::npos) << mistake.says << " not in\n" << answer;
  }
}

TEST(NetworkCase, SyntaxErrorsHaveLineAndColumn) {
  EXPECT_TRUE(problems("{\n  \"name\": ]\n}").starts_with("case.json:2:11: "));
  EXPECT_TRUE(problems("{\"a\": 1,\n \"a\": 2}").starts_with("case.json:2:"));
  EXPECT_TRUE(problems("").starts_with("case.json:1:1: "));
  EXPECT_TRUE(problems("{} {}").starts_with("case.json:1:4: "));
  EXPECT_NE(problems(std::string(100000, '[')), "");
  EXPECT_NE(problems("[1]").find("must be an object"), std::string::npos);
}

TEST(NetworkCase, AllProblemsAtOnce) {
  std::string text = with("5e10", "0");
  text.replace(text.find("1048576"), 7, "-5");
  text.replace(text.find("\"interval\""), 10, "\"intervall\"");
  const std::string answer = problems(text);
  EXPECT_EQ(std::ranges::count(answer, '\n'), 3) << answer;
  // A pattern that is malformed does not hide what the engine says about another.
  text = with("1048576", "-5");
  text.replace(text.find("[0, 1, 10]"), 10, "[0, 9, 10]");
  EXPECT_EQ(std::ranges::count(problems(text), '\n'), 2) << problems(text);
}

TEST(NetworkCase, AMalformedValueHidesNothingBesideIt) {
  // Bytes and a rank of one collective, and of one send.
  std::string text = with("1048576", "-5");
  text.replace(text.find("[0, 1, 2, 3]"), 12, "[0, 1, 2, 8]");
  std::string answer = problems(text);
  EXPECT_NE(answer.find("patterns[0].bytes: "), std::string::npos) << answer;
  EXPECT_NE(answer.find("patterns[0].groups[0][3]: "), std::string::npos) << answer;
  EXPECT_EQ(std::ranges::count(answer, '\n'), 2) << answer;
  answer = problems(with("[0, 1, 10]", "[0, 9, -1], [3, 3, 1], [0, 1.5, 2], 7, [0, 1]"));
  for (const char* place : {"list[0][1]: ", "list[0][2]: ", "list[1][1]: ", "list[2][1]: must be a whole",
                            "list[3]: ", "list[4]: "}) {
    EXPECT_NE(answer.find(place), std::string::npos) << place << " not in\n" << answer;
  }
  EXPECT_EQ(std::ranges::count(answer, '\n'), 6) << answer;
  // What only follows from it is not said: an unreadable group has no ranks, ...
  answer = problems(with("[0, 1, 2, 3]", "[0, 1, 2.5]"));
  EXPECT_EQ(std::ranges::count(answer, '\n'), 1) << answer;
  // ... and the groups of an unknown operation may be anything.
  text = with("allreduce", "allredcue");
  text.replace(text.find("[0, 1, 2, 3]"), 12, "[0, 1, 2, 2]");
  EXPECT_EQ(std::ranges::count(problems(text), '\n'), 1) << problems(text);
}

TEST(NetworkCase, SizesAreLimited) {
  EXPECT_NE(problems(with("\"size\": 8", "\"size\": 2000000000")).find("ranks, the most"), std::string::npos);
  EXPECT_NE(
      problems(with("\"ring\", \"size\": 8", "\"fullyconnected\", \"size\": 100000")).find("links, the most"),
      std::string::npos);
  EXPECT_NE(problems(with("\"microbatches\": 3", "\"microbatches\": 2000000000")).find("messages"),
            std::string::npos);
  EXPECT_NE(problems(kRing, {4, 1000}).find("more than 4 ranks"), std::string::npos);
}

TEST(NetworkCase, MissingFileIsAProblem) {
  const auto result = load_case("/no/such/case.json");
  ASSERT_FALSE(result);
  EXPECT_TRUE(result.error().starts_with("/no/such/case.json: cannot read")) << result.error();
  EXPECT_FALSE(load_case("/"));
}

}  // namespace
}  // namespace shardscape::network_case
