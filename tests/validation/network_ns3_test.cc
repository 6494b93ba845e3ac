// Does the fluid model predict packet-level simulation? A table of our own: the cases in network_cases/,
// which also says how their ns-3 times were made.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <map>
#include <set>
#include <string>

#include "engine/network/collectives/traffic_builder.h"
#include "engine/network/flows/flow_simulator.h"
#include "sweep/network_case/network_case.h"
#include "tests/support/csv.h"
#include "tests/support/packet_level.h"
#include "tests/support/paths.h"

namespace shardscape::network {
namespace {

namespace fs = std::filesystem;

fs::path case_folder() { return fs::path(test::source_dir()) / "tests" / "validation" / "network_cases"; }

double predicted_seconds(const fs::path& file) {
  const auto network = network_case::load_case(file);
  if (!network) {
    ADD_FAILURE() << network.error();
    return std::nan("");
  }
  FaultyFabric fabric(network->fabric);
  fabric.set_faults(network->faults);
  const auto plan = build_traffic(network->patterns, fabric);
  if (!plan) {
    ADD_FAILURE() << network_case::located(plan.error(), file.string());
    return std::nan("");
  }
  EXPECT_GE(smallest_message(plan->traffic), kPacketGrain);
  const FlowResult result = FlowSimulator().run_traffic(plan->traffic, fabric.bytes_per_second());
  EXPECT_EQ(result.received, plan->traffic.sent());
  return result.completion_time;
}

TEST(NetworkNs3, OwnCasesAgreeWithPacketLevelTimes) {
  const auto rows = test::read_csv(case_folder() / "ns3.csv");
  EXPECT_GE(rows.size(), 12U);
  std::printf("%-34s %14s %14s %9s %14s %9s\n", "case", "predicted", "ns-3 fq", "error", "ns-3 cc", "error");
  for (const test::CsvRow& row : rows) {
    const std::string& name = row.at("name");
    SCOPED_TRACE(name);
    const double predicted = predicted_seconds(case_folder() / (name + ".json"));
    const double fq = std::stod(row.at("ns3_fq_s")), cc = std::stod(row.at("ns3_cc_s"));
    const double fq_error = predicted / fq - 1, cc_error = predicted / cc - 1;
    std::printf("%-34s %11.3f us %11.3f us %+8.3f%% %11.3f us %+8.3f%%\n", name.c_str(), 1e6 * predicted,
                1e6 * fq, 100 * fq_error, 1e6 * cc, 100 * cc_error);
    EXPECT_LE(std::abs(fq_error), kFairQueueTolerance);
    EXPECT_LE(std::abs(cc_error), kCongestionControlTolerance);
  }
}

// A slower link can end a chain of contending patterns earlier: ranks that come late to one pattern leave the
// links of the next to others. Packets say so, too, so it is no fault of the fluid model, and the size
// agrees.
TEST(NetworkNs3, ASickLinkCanEndAChainOfPatternsEarlier) {
  const std::string healthy = "ring8_switch2_chain", sick = "ring8_switch2_chain_derated";
  std::map<std::string, test::CsvRow> rows;
  for (const test::CsvRow& row : test::read_csv(case_folder() / "ns3.csv")) rows[row.at("name")] = row;
  const auto gain = [&](const std::string& column) {
    return 1 - std::stod(rows.at(sick).at(column)) / std::stod(rows.at(healthy).at(column));
  };
  const double predicted = 1 - predicted_seconds(case_folder() / (sick + ".json")) /
                                   predicted_seconds(case_folder() / (healthy + ".json"));
  EXPECT_GT(gain("ns3_fq_s"), 0.03);
  EXPECT_GT(gain("ns3_cc_s"), 0.03);
  EXPECT_NEAR(predicted, gain("ns3_fq_s"), 0.015);
  EXPECT_NEAR(predicted, gain("ns3_cc_s"), 0.015);
}

TEST(NetworkNs3, EveryCaseFileHasItsRow) {
  std::set<std::string> files, names;
  for (const auto& entry : fs::directory_iterator(case_folder())) {
    if (entry.path().extension() == ".json") files.insert(entry.path().stem().string());
  }
  for (const test::CsvRow& row : test::read_csv(case_folder() / "ns3.csv")) {
    EXPECT_TRUE(names.insert(row.at("name")).second) << row.at("name") << " is there twice";
  }
  EXPECT_EQ(files, names);
}

}  // namespace
}  // namespace shardscape::network
