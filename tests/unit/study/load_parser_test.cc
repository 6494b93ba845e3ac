// Are loads that are simulated request by request read as written, and refused where they mean nothing?
#include "sweep/study/load_parser.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <utility>

#include "sweep/study/trace_file.h"
#include "tests/support/paths.h"
#include "tests/support/temporary_folder.h"
#include "tests/unit/study/study_text.h"

namespace shardscape::sweep {
namespace {

/// A study of that inference workload; its keys begin in column 22 of line 31.
std::string with_workload(const std::string& keys, const std::string& more = "") {
  return std::string(kModel) + kSystem + "workload:\n  {phase: inference, " + keys + "}\n" + more;
}
LoadSpec load_of(const std::string& keys) { return *good(with_workload(keys)).workloads.front().load; }

TEST(SimulatedLoads, NoneWithoutTheirKeys) {
  EXPECT_FALSE(
      good(with_workload("prompt_tokens: 10, output_tokens: 5, concurrency: 4")).workloads.front().load);
}

TEST(SimulatedLoads, ClosedLoopOfAClient) {
  const Study study = good(
      with_workload("prompt_tokens: 1000, output_tokens: [10, {longest: 30, length_ratio: 0.5}, {mean: 90, "
                    "length_ratio: 0.8}], concurrency: [4, 8], client: inferencex"));
  ASSERT_EQ(study.workloads.size(), 6U);
  const WorkloadSpec& first = study.workloads.front();
  EXPECT_EQ(first.concurrency, 4);
  EXPECT_EQ(first.prompt_tokens, 1000) << "as written";
  EXPECT_EQ(first.load->prompt, Lengths::uniform(1000, 0.8));
  EXPECT_EQ(first.load->output, Lengths::uniform(10, 0.8));
  EXPECT_EQ(first.load->requests, (RequestCount{10, true}));
  EXPECT_EQ(first.load->warm_up, (RequestCount{2, true}));
  EXPECT_EQ(first.load->statistic, ClientStatistic::run);
  EXPECT_FALSE(first.load->open());
  EXPECT_EQ(study.workloads[2].load->output, Lengths::uniform(30, 0.5));
  EXPECT_EQ(study.workloads[4].load->output.mean, 90);
  EXPECT_EQ(study.workloads[4].load->output.longest, 100);
  EXPECT_EQ(study.workloads[4].load->output.shortest, 80);
  const Study again = good(study.resolved_yaml);
  EXPECT_EQ(again.workloads, study.workloads);
  EXPECT_EQ(again.resolved_yaml, study.resolved_yaml);
}

TEST(SimulatedLoads, OpenLoopsLastTwoMinutesAtEachOfTheirRates) {
  using Counts = std::vector<std::int64_t>;
  const auto counts = [](const std::string& keys, RequestCount LoadSpec::*of = &LoadSpec::requests) {
    const Study study = good(with_workload("prompt_tokens: 10, output_tokens: 5, request_rate: " + keys));
    const Study again = good(study.resolved_yaml);
    EXPECT_EQ(again.workloads, study.workloads);
    EXPECT_EQ(again.resolved_yaml, study.resolved_yaml);
    Counts numbers;
    for (const WorkloadSpec& workload : study.workloads) {
      EXPECT_FALSE(((*workload.load).*of).per_client);
      numbers.push_back(((*workload.load).*of).number);
    }
    return numbers;
  };
  EXPECT_EQ(counts("3 /s"), Counts{2000});  // 360, and no fewer than 2000
  EXPECT_EQ(counts("80 /s"), Counts{9600});
  EXPECT_EQ(counts("[1 /s, 60.001 /s, 80 /s]"), (Counts{2000, 7201, 9600}));
  EXPECT_EQ(counts("6000 /min"), Counts{12000});
  EXPECT_EQ(counts("50000 /s"), Counts{1000000});  // the most that a load may have
  EXPECT_EQ(counts("[80 /s, 100 /s], client: {requests: 300 s}"), (Counts{24000, 30000}));
  EXPECT_EQ(counts("[80 /s, 300 /s], client: {requests: 10 s}"), (Counts{2000, 3000}));
  EXPECT_EQ(counts("[80 /s, 100 /s], client: {requests: 500}"), (Counts{500, 500}));
  EXPECT_EQ(counts("[80 /s, 100 /s], client: vllm_bench"), (Counts{1000, 1000}));
  EXPECT_EQ(counts("80 /s, client: {profile: vllm_bench, requests: 60 s}"), Counts{4800});
  EXPECT_EQ(counts("80 /s, client: {profile: sglang_bench, statistic: steady}", &LoadSpec::warm_up),
            Counts{1});
  EXPECT_EQ(counts("[80 /s, 100 /s], client: {statistic: steady}", &LoadSpec::warm_up), (Counts{960, 1200}));
  EXPECT_EQ(counts("[80 /s, 100 /s], client: {statistic: steady, requests: 50}", &LoadSpec::warm_up),
            (Counts{5, 5}));
}

TEST(SimulatedLoads, OpenLoop) {
  const Study study =
      good(with_workload("prompt_tokens: {lognormal: {mean: 500, cv: 1}}, output_tokens: 20, request_rate: "
                         "[3 /s, 120/min], arrivals: "
                         "{process: gamma, cv: 2}, client: {requests: 500, statistic: steady, seed: 7}"));
  ASSERT_EQ(study.workloads.size(), 2U);
  const LoadSpec& load = *study.workloads.back().load;
  EXPECT_EQ(load.request_rate, 2);
  EXPECT_EQ(load.arrivals, ArrivalProcess::gamma);
  EXPECT_EQ(load.arrivals_cv, 2);
  Lengths prompt = Lengths::lognormal(500, 1);
  EXPECT_LT(load.prompt.longest, prompt.longest / 2) << "the longest that comes";
  prompt.longest = load.prompt.longest;
  EXPECT_EQ(load.prompt, prompt);
  EXPECT_EQ(load.output, Lengths::fixed(20));
  EXPECT_EQ(load.requests, (RequestCount{500, false}));
  EXPECT_EQ(load.warm_up, (RequestCount{50, false})) << "a tenth";
  EXPECT_EQ(load.seed, 7U);
  EXPECT_EQ(study.workloads.back().concurrency, 0);
  EXPECT_EQ(good(study.resolved_yaml).workloads, study.workloads);
}

TEST(SimulatedLoads, Sessions) {
  const Study study = good(
      with_workload("prompt_tokens: [1000, 2000], output_tokens: 50, request_rate: 2 /s, sessions: {turns: "
                    "3, new_tokens: 100, "
                    "think_time: {exponential: 500 ms}, shared_prefix_tokens: 200, context_tokens: 2300}"));
  ASSERT_EQ(study.workloads.size(), 2U);
  const LoadSpec& load = *study.workloads.front().load;
  ASSERT_TRUE(load.sessions.has_value());
  EXPECT_EQ(load.sessions->turns, Lengths::fixed(3));
  EXPECT_EQ(load.sessions->new_tokens, Lengths::fixed(100));
  EXPECT_EQ(load.sessions->first_prompt, Lengths::fixed(1000));
  EXPECT_EQ(load.sessions->shared.end, 200);
  EXPECT_EQ(load.sessions->think, 0.5);
  EXPECT_TRUE(load.sessions->random_think);
  EXPECT_TRUE(load.has_prefixes());
  // 1,000, 1,150 and 1,300 tokens.
  EXPECT_EQ(load.prompt.shortest, 1000);
  EXPECT_EQ(load.prompt.longest, 1300);
  EXPECT_EQ(study.workloads.front().prompt_tokens, 1150) << "the mean of all turns";
  EXPECT_EQ(study.workloads.back().load->prompt.longest, 2250) << "the context holds it with its answer";
  EXPECT_EQ(good(study.resolved_yaml).workloads, study.workloads);
  const LoadSpec agent = load_of(
      "prompt_tokens: 10, output_tokens: 5, concurrency: 4, sessions: {turns: {lognormal: {mean: 900, cv: "
      "3}}, "
      "new_tokens: {mean: 9, length_ratio: 0.5}, think_time: 1 s, context_tokens: 9000}, client: "
      "{length_ratio: 0.5}");
  EXPECT_EQ(agent.sessions->turns.longest, Sessions::kMostTurns);
  EXPECT_EQ(agent.sessions->first_prompt, Lengths::uniform(10, 0.5));
  EXPECT_FALSE(agent.sessions->random_think);
}

TEST(SimulatedLoads, ProblemsOfSessionsStandAtTheirPlace) {
  const auto says = [](const std::string& keys, const std::string& path, const std::string& what) {
    const yaml::Diagnostics found =
        bad(with_workload("prompt_tokens: 100, output_tokens: 50, concurrency: 4, sessions: {" + keys + "}"));
    EXPECT_TRUE(std::ranges::any_of(found.list(),
                                    [&](const yaml::Diagnostic& d) {
                                      return d.path == "workload.sessions" + path && d.where.line == 31 &&
                                             d.message.find(what) != std::string::npos;
                                    }))
        << keys << '\n'
        << found.to_string();
  };
  says("turns: 3", ".new_tokens", "missing");
  says("new_tokens: 3", ".turns", "missing");
  says("turns: 0, new_tokens: 3", ".turns", "from 1");
  says("turns: 5000, new_tokens: 3", ".turns", "must be from 1 to 4096");
  says("turns: 3, new_tokens: none", ".new_tokens", "");
  says("turns: 3, new_tokens: 5, think_time: 3", ".think_time", "unit");
  says("turns: 3, new_tokens: 5, think_time: -3 s", ".think_time", "must be");
  says("turns: 3, new_tokens: 5, think_time: {gamma: 3 s}", ".think_time.exponential", "missing");
  says("turns: 3, new_tokens: 5, shared_prefix_tokens: 100", ".shared_prefix_tokens",
       "100 leave nothing of the first prompt's 100 tokens");
  says("turns: 3, new_tokens: 5, context_tokens: 149", ".context_tokens",
       "149 do not hold the first turn: 100 tokens of its prompt and up to 50 of its answer");
  says("turns: 4000, new_tokens: 900000", ".context_tokens", "sessions may grow to 3599");
  says("turns: 3, new_token: 5", ".new_token", "did you mean \"new_tokens\"");
}

TEST(SimulatedLoads, EveryProfileIsRead) {
  for (const std::string_view name : client_profile_names()) {
    const LoadSpec load = load_of("prompt_tokens: 10, output_tokens: 5, concurrency: 4, client: {profile: " +
                                  std::string(name) + ", requests: 7}");
    EXPECT_EQ(load.requests, (RequestCount{7, false})) << name;
    EXPECT_EQ(load.warm_up, find_client_profile(name)->warm_up) << name;
  }
}

/// Whether some problem of that path, on line 31, says so.
bool says_at(const yaml::Diagnostics& diagnostics, const std::string& path, const std::string& what) {
  return std::ranges::any_of(diagnostics.list(), [&](const yaml::Diagnostic& d) {
    return d.path == path && to_string(d.where).starts_with("s.yaml:31:") &&
           d.message.find(what) != std::string::npos;
  });
}

TEST(SimulatedLoads, RatesHaveUnitsOrArePerSecond) {
  const Study study =
      good(with_workload("prompt_tokens: 10, output_tokens: 5, request_rate: [2, '3 /s', 240 /min]"));
  ASSERT_EQ(study.workloads.size(), 3U);
  for (std::size_t i = 0; i < 3; ++i)
    EXPECT_EQ(study.workloads[i].load->request_rate, 2.0 + static_cast<double>(i));
}

TEST(SimulatedLoads, ProblemsStandAtTheirPlace) {
  const auto says = [](const std::string& keys, const std::string& path, const std::string& what) {
    const yaml::Diagnostics found = bad(with_workload(keys));
    EXPECT_TRUE(says_at(found, "workload." + path, what)) << keys << '\n' << found.to_string();
  };
  const std::string lengths = "prompt_tokens: 10, output_tokens: 5, ", closed = lengths + "concurrency: 4, ",
                    open = lengths + "request_rate: 2 /s, ";
  says(lengths + "client: inferencex", "concurrency", "missing");
  says(closed + "request_rate: 2 /s", "concurrency", "excludes request_rate");
  says(lengths + "request_rate: 2 s", "request_rate", "180 /min");
  says(lengths + "request_rate: 2 /h", "request_rate", "180 /min");
  says(lengths + "request_rate: 0 /s", "request_rate", "must be from");
  says(lengths + "request_rate: [2 /s, 2/s]", "request_rate", "twice");
  says(open + "client: {requests: 10x}", "client", "open loop");
  says(open + "client: aiperf", "client", "open loop");
  says(open + "arrivals: gamma", "arrivals", "cv: 2");
  says(open + "arrivals: {process: poisson, cv: 2}", "arrivals.cv", "gamma alone");
  says(open + "arrivals: posson", "arrivals", "did you mean \"poisson\"");
  says(closed + "arrivals: poisson", "arrivals", "no effect without request_rate");
  says(closed + "speed_up: 2", "speed_up", "no effect without trace");
  says("trace: nowhere.csv, sessions: {turns: 3, new_tokens: 5}", "sessions", "excludes trace");
  says(closed + "client: infrencex", "client", "did you mean \"inferencex\"");
  says(closed + "client: {requests: 0}", "client.requests", "10x for ten of each");
  says(closed + "client: {requests: ten}", "client.requests", "10x for ten of each");
  says(closed + "client: {requests: 60 s}", "client.requests", "a time takes request_rate");
  says(open + "client: {requests: 0 s}", "client.requests", "a time above 0 is expected");
  says(closed + "client: {warmup: 1}", "client.warmup", "did you mean \"warm_up\"");
  says(closed + "client: {statistic: mean}", "client.statistic", "run");
  says(open + "arrivals: {process: gamma, cv: 0}", "arrivals.cv", "from 0.001 to 10");
  says("prompt_tokens: {mean: 9e8, length_ratio: 0}, output_tokens: 5, concurrency: 4", "prompt_tokens",
       "must be from 1 to 1e+09, not 1.8e+09");
  says("trace: {sha256: 0}", "trace.file", "missing");
  says("prompt_tokens: {mean: 5}, output_tokens: 5, concurrency: 4", "prompt_tokens.length_ratio", "missing");
  says("prompt_tokens: 5, output_tokens: {lognormal: {mean: 5, cv: 99}}, concurrency: 4",
       "output_tokens.lognormal.cv", "from 0.001 to 10");
  says("trace: nowhere.csv", "trace", "nowhere.csv: cannot read");
  EXPECT_TRUE(says_at(bad(std::string(kModel) + kSystem +
                          "workload:\n  {phase: training, sequence_length: 512, "
                          "global_batch: 32, client: aiperf}\n"),
                      "workload.client", "no effect in training"));
  EXPECT_TRUE(reports(bad(with_workload(closed + "client: {requests: 0}")),
                      "s.yaml:31:94: workload.client.requests", "an integer from 1"));
}

/// A model that drafts, in full, with so many words.
std::string drafting(int vocabulary) {
  return "draft_model: {name: small, layers: 2, hidden: 128, heads: 4, ffn_hidden: 256, vocabulary: " +
         std::to_string(vocabulary) + ", position: rotary, mlp: swiglu}";
}

TEST(SimulatedLoads, SpeculationIsAnAxis) {
  const Study study =
      good(with_workload("prompt_tokens: 10, output_tokens: 5, concurrency: 4, speculation: {draft_tokens: "
                         "[0, 3], acceptance: 0.5, " +
                         drafting(1000) + "}"));
  ASSERT_EQ(study.workloads.size(), 2U);
  const Speculation& none = study.workloads[0].load->speculation;
  const Speculation& three = study.workloads[1].load->speculation;
  EXPECT_EQ(none.draft_tokens, 0);
  EXPECT_EQ(three.draft_tokens, 3);
  EXPECT_EQ(three.method, DraftMethod::draft_model) << "which a model to draft means";
  ASSERT_TRUE(three.draft_model);
  EXPECT_EQ(three.draft_model->layers, 2);
  EXPECT_EQ(three.acceptance[0], 0.5);
  EXPECT_EQ(three.acceptance[2], 0.125) << "accepted where those before it are";
  const Study again = good(study.resolved_yaml);
  EXPECT_EQ(again.resolved_yaml, study.resolved_yaml);
}

TEST(SimulatedLoads, ProblemsOfSpeculationStandAtTheirPlace) {
  const auto says = [](const std::string& keys, const std::string& path, const std::string& what) {
    const yaml::Diagnostics found = bad(
        with_workload("prompt_tokens: 10, output_tokens: 5, concurrency: 4, speculation: {" + keys + "}"));
    EXPECT_TRUE(says_at(found, "workload.speculation" + path, what)) << keys << '\n' << found.to_string();
  };
  says("acceptance: 0.5", ".draft_tokens", "missing");
  says("draft_tokens: 3", ".acceptance", "missing");
  says("draft_tokens: 17, acceptance: 0.5", ".draft_tokens", "from 0 to 16");
  says("draft_tokens: 1, acceptance: 1.5", ".acceptance", "from 0 to 1");
  says("draft_tokens: 2, acceptance: [0.5, 0.6]", ".acceptance", "rises");
  says("draft_tokens: [1, 3], acceptance: [0.5, 0.4], " + drafting(1000), ".acceptance",
       "has 2 positions, but 3 tokens are drafted");
  says("draft_tokens: 1, acceptance: 0.5, method: eagle", ".method", "mtp");
  says("draft_tokens: 1, acceptance: 0.5, method: draft_model", ".draft_model", "missing");
  says("draft_tokens: 1, acceptance: 0.5, method: mtp", ".method", "name a draft_model");
  says("draft_tokens: 1, acceptance: 0.5, " + drafting(1001), ".draft_model", "vocabulary");
  says("draft_tokens: 1, acceptance: 0.5, method: mtp, " + drafting(1000), ".draft_model", "no effect");
}

class TracedStudy : public test::TemporaryFolder {};

TEST_F(TracedStudy, ATableOfLengthsIsToldWhereItIsWritten) {
  const std::filesystem::path table = write("lengths.csv", "model,draft_tokens,acceptance_length\nm,1,1.5\n");
  const auto of = [&](const std::string& tokens, const std::string& keys) {
    return with_workload(
        "prompt_tokens: 10, output_tokens: 5, concurrency: 4, speculation: {draft_tokens: " + tokens +
        ", draft_model: other, acceptance: {table: " + table.string() + keys + "}}");
  };
  const std::string at = "workload.speculation.acceptance";
  EXPECT_TRUE(says_at(bad(of("1", ", model: [m]")), at + ".model", "list"))
      << bad(of("1", ", model: [m]")).to_string();
  EXPECT_TRUE(says_at(bad(of("2", "")), at, "has 1 positions, but 2 tokens are drafted"));
  write("lengths.csv", "model,draft_tokens,acceptance_length\nm,1,1.5\nm,1,1.7\n");
  const Study study = good(replaced(of("1", ""), "draft_model: other", drafting(1000)));
  EXPECT_TRUE(std::ranges::any_of(study.assumptions, [&](const std::string& assumed) {
    return assumed.starts_with("s.yaml:31:") &&
           assumed.find(": " + at + ".table: accepted lengths are means") != std::string::npos;
  })) << study.assumptions.size();
}

TEST_F(TracedStudy, ReadsATraceBesideIt) {
  write("t.csv", "arrival_s,prompt_tokens,output_tokens\n10,100,5\n12,300,15\n");
  const yaml::Catalog catalog;
  const auto study = parse_study(with_workload("trace: t.csv, speed_up: 2"), "s.yaml", root_, catalog, {});
  ASSERT_TRUE(study);
  const WorkloadSpec& workload = study->workloads.front();
  EXPECT_EQ(workload.load->trace->requests.back().arrival, 2);
  EXPECT_EQ(workload.load->speed_up, 2);
  EXPECT_EQ(workload.prompt_tokens, 200) << "the mean";
  EXPECT_EQ(workload.longest_prompt(), 300);
  EXPECT_EQ(workload.load->requests, (RequestCount{2, false})) << "all of it";
  EXPECT_TRUE(parse_study(study->resolved_yaml, "r.yaml", "/", catalog, {})) << "wherever it lies";
}

TEST_F(TracedStudy, ATraceThatHasChangedIsAnotherStudy) {
  write("t.csv", "arrival_s,prompt_tokens,output_tokens\n10,100,5\n");
  const yaml::Catalog catalog;
  const auto study = parse_study(with_workload("trace: t.csv"), "s.yaml", root_, catalog, {});
  ASSERT_TRUE(study);
  write("t.csv", "arrival_s,prompt_tokens,output_tokens\n10,100,6\n");
  EXPECT_NE(parse_study(with_workload("trace: t.csv"), "s.yaml", root_, catalog, {})->resolved_yaml,
            study->resolved_yaml)
      << "or a sweep would go on with other requests";
  const auto again = parse_study(study->resolved_yaml, "r.yaml", "/", catalog, {});
  ASSERT_FALSE(again);
  EXPECT_NE(
      again.error().to_string().find("workload.trace.sha256: " + (root_ / "t.csv").string() + " has changed"),
      std::string::npos)
      << again.error().to_string();
}

TEST_F(TracedStudy, AQueueByPrioritiesNeedsThem) {
  const std::string by_priority = "hardware: {stack.serving.queue: [priority]}\n";
  const yaml::Catalog catalog;
  write("t.csv", "arrival_s,prompt_tokens,output_tokens\n10,100,5\n12,100,5\n");
  const auto none = parse_study(with_workload("trace: t.csv", by_priority), "s.yaml", root_, catalog, {});
  ASSERT_FALSE(none);
  EXPECT_NE(none.error().to_string().find("stack.serving.queue: has no effect"), std::string::npos);
  write("t.csv", "arrival_s,prompt_tokens,output_tokens,priority\n10,100,5,1\n12,100,5,0\n");
  EXPECT_TRUE(parse_study(with_workload("trace: t.csv", by_priority), "s.yaml", root_, catalog, {}));
}

TEST(Traces, ReadTheColumnsOfTheirPublishers) {
  const Trace own =
      *parse_trace("arrival_s,prompt_tokens,more,output_tokens,priority\n5,7,x,2,-1\n5.5,9,y,4,3\n");
  ASSERT_EQ(own.requests.size(), 2U);
  EXPECT_EQ(own.requests[1].arrival, 0.5);
  EXPECT_EQ(own.requests[1].prompt, 9);
  EXPECT_EQ(own.requests[1].output, 4);
  EXPECT_EQ(own.requests[0].priority, -1);
  EXPECT_EQ(own.prompt.mean, 8);
  EXPECT_EQ(own.prompt.shortest, 7);
  EXPECT_EQ(own.output.longest, 4);
  const Trace azure = *parse_trace(
      "TIMESTAMP,ContextTokens,GeneratedTokens\r\n2023-11-30 23:59:59.5000000,4808,10\r\n2023-12-01 "
      "00:00:01.0000000,3180,8\r\n");
  EXPECT_DOUBLE_EQ(azure.requests[1].arrival, 1.5);
  const Trace later = *parse_trace(
      "\xEF\xBB\xBFTIMESTAMP,ContextTokens,GeneratedTokens\n2024-05-10 00:00:00.009930+00:00,2162,5\n"
      "2024-05-10T00:00:01.009930Z,2399,6\n");
  EXPECT_DOUBLE_EQ(later.requests[1].arrival, 1) << "behind a byte order mark, in universal time";
  const Trace mooncake = *parse_trace("timestamp,input_length,output_length\n0,6758,500\n3000,10,1\n");
  EXPECT_EQ(mooncake.requests[1].arrival, 3);
}

/// The third prompt begins as the second does, which has its first block from the first one.
TEST(Traces, PrefixesArePiecesOfEarlierRequests) {
  const Trace trace = *parse_trace(
      "arrival_s,prompt_tokens,output_tokens,reused_prefix_blocks,parent_request\n"
      "0,2000,5,0,\n1,2000,5,1,0\n2,1200,5,3,1\n3,50,1,0,\n");
  ASSERT_EQ(trace.piece_begin.size(), 5U);
  EXPECT_TRUE(trace.pieces_of(0).empty());
  ASSERT_EQ(trace.pieces_of(1).size(), 1U);
  EXPECT_EQ(trace.pieces_of(1)[0].owner, 0);
  EXPECT_EQ(trace.pieces_of(1)[0].end, 512);
  ASSERT_EQ(trace.pieces_of(2).size(), 2U);
  EXPECT_EQ(trace.pieces_of(2)[0].owner, 0);
  EXPECT_EQ(trace.pieces_of(2)[0].end, 512);
  EXPECT_EQ(trace.pieces_of(2)[1].owner, 1);
  EXPECT_EQ(trace.pieces_of(2)[1].end, 1200) << "the last block is shorter: all of the prompt";
  EXPECT_TRUE(trace.pieces_of(3).empty());
}

/// The published shares of tokens whose blocks an earlier request had (traces/statistics.csv).
TEST(Traces, MooncakesShareAsManyTokensAsPublished) {
  for (const auto& [name, share] : {std::pair("conversation", 0.3736), std::pair("synthetic", 0.6512)}) {
    const std::string path = test::reference_dir() + "/traces/mooncake-" + name + ".csv";
    std::ifstream file(path);
    if (!file) GTEST_SKIP() << "no " << path;
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    const auto trace = parse_trace(text);
    ASSERT_TRUE(trace) << trace.error().front();
    double found = 0, all = 0;
    for (std::size_t i = 0; i < trace->requests.size(); ++i) {
      const auto pieces = trace->pieces_of(i);
      found += pieces.empty() ? 0 : static_cast<double>(pieces.back().end);
      all += trace->requests[i].prompt;
    }
    EXPECT_NEAR(found / all, share, 1e-4) << name;
  }
}

// Each bad line is told, what is right beside it and below is not; and a file of bad lines alone ends.
TEST(Traces, EveryBadLineIsTold) {
  const std::string names = "arrival_s,prompt_tokens,output_tokens\n";
  const auto found =
      parse_trace(names + "5,-5,10\n6,100,\n\n1e300,7,7\n7,99999999999999,10\n8,5,5\n7,5,5\n9,abc,5\n");
  ASSERT_FALSE(found);
  std::vector<std::string> begins;
  for (const std::string& problem : found.error()) begins.push_back(problem.substr(0, problem.find(' ', 9)));
  EXPECT_EQ(begins, (std::vector<std::string>{"line 2: prompt_tokens", "line 3: output_tokens",
                                              "line 5: arrival_s", "line 6: prompt_tokens",
                                              "line 8: arrival_s", "line 9: prompt_tokens"}));
  std::string bad = names;
  for (int i = 0; i < 100000; ++i) bad += "0,0,0\n";
  EXPECT_EQ(parse_trace(bad).error().size(), 201U);
  EXPECT_EQ(parse_trace("a,b\n" + bad).error().size(), 1U);  // without names no line can be read
  const std::string good = "\n" + names + " \r\n0,1,1\n1,1,1";
  ASSERT_EQ(parse_trace(good)->requests.size(), 2U);
  EXPECT_EQ(line_of_request(good, 0), 4U);
  EXPECT_EQ(line_of_request(good, 1), 5U);
}

TEST(Traces, HostileOnesAreRefusedWithLineAndReason) {
  const std::string names = "arrival_s,prompt_tokens,output_tokens\n0,10,5\n";
  const auto says = [](const std::string& text, const std::string& what) {
    const auto trace = parse_trace(text);
    ASSERT_FALSE(trace) << text;
    ASSERT_EQ(trace.error().size(), 1U) << text;
    EXPECT_NE(trace.error().front().find(what), std::string::npos) << trace.error().front();
  };
  says(names + "2,10,5\n1,10,5\n", "line 4: arrival_s lies before that of the line above");
  says(names + "2,-3,5\n", "line 3: prompt_tokens must be");
  says(names + "2,0,5\n", "line 3: prompt_tokens must be");
  says(names + "2,99999999999999999999,5\n", "line 3: prompt_tokens");
  says(names + "2,10\n", "line 3: output_tokens is missing");
  says(names + "2,,5\n", "line 3: prompt_tokens is missing");
  says(names + "2,1,024,5\n", "line 3: has 4 fields, but the first line names 3");
  says(names + "2,10,5,\n", "line 3: has 4 fields");
  for (const char* twice : {"arrival_s", "prompt_tokens", "output_tokens"})
    says("arrival_s,prompt_tokens,output_tokens," + std::string(twice) + "\n0,10,5,7\n",
         "line 1: has " + std::string(twice) + " twice");
  EXPECT_TRUE(parse_trace("arrival_s,note,prompt_tokens,output_tokens,note\n0,,10,5\n"))
      << "columns that nobody reads, and lines that end before them";
  says(names + "nan,10,5\n", "line 3: arrival_s is no time");
  says(names + "1e300,10,5\n", "line 3: arrival_s is too far");
  says(names + ",10,5\n", "line 3: arrival_s is missing");
  says("arrival_s,prompt_tokens,output_tokens\n-1,10,5\n", "line 2: arrival_s is negative");
  says("arrival_s,prompt_tokens,output_tokens\n", "has no requests");
  says("", "has no requests");
  const std::string prefixes = "arrival_s,prompt_tokens,output_tokens,reused_prefix_blocks,parent_request\n";
  says(prefixes + "0,10,5,1,0\n", "line 2: parent_request must be the number of an earlier request");
  says(prefixes + "0,10,5,0,\n1,10,5,2,1\n", "line 3: parent_request must be");
  says(prefixes + "0,10,5,0,\n1,10,5,2,\n", "line 3: parent_request must be");
  says(prefixes + "0,10,5,-1,\n", "line 2: reused_prefix_blocks must be");
  says("a,b\n1,2\n", "line 1: needs the columns arrival_s");
  says("TIMESTAMP,ContextTokens,GeneratedTokens\n2023-02-30 00:00:00,1,1\n", "line 2: TIMESTAMP is no time");
}

}  // namespace
}  // namespace shardscape::sweep
