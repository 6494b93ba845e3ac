// No machine keeps a step in which something is busier than the step is long: links, devices, hosts. On plans drawn at
// random on every shipped stack and every shipped cluster, both modes; of servers the same of a token, of a prompt and
// of all requests together.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/execution/program.h"
#include "engine/network/fabric/fabric.h"
#include "engine/network/placement/placement.h"
#include "engine/simulate.h"
#include "engine/spec/parallel_groups.h"
#include "sweep/yaml/load.h"
#include "tests/support/engine_fixture.h"
#include "tests/support/paths.h"
#include "tests/support/seeds.h"

namespace shardscape::laws_busy {
namespace {

constexpr double kRounding = 1e-9;

/// All that a training step, and what serves, may run on.
struct Shipped {
  std::vector<StackProfile> stacks, servers;
  std::vector<yaml::Cluster> clusters;
};

const Shipped& shipped() {
  static const Shipped all = [] {
    const yaml::Catalog catalog({test::source_dir()});
    Shipped list;
    for (const yaml::Catalog::Entry& entry : catalog.list(yaml::PresetKind::stack)) {
      const auto stack = yaml::load_stack(catalog, entry.name);
      EXPECT_TRUE(stack.has_value()) << entry.name;
      // Servers' launch no layers backward.
      if (stack && stack->host.backward_layer > Seconds(0)) list.stacks.push_back(*stack);
      if (stack && stack->host.decode_layer > Seconds(0)) list.servers.push_back(*stack);
    }
    for (const yaml::Catalog::Entry& entry : catalog.list(yaml::PresetKind::cluster)) {
      const auto cluster = yaml::load_cluster(catalog, entry.name);
      EXPECT_TRUE(cluster.has_value()) << entry.name;
      if (cluster) list.clusters.push_back(*cluster);
    }
    return list;
  }();
  return all;
}

/// Seeds in a row meet every stack, and then the next cluster.
std::pair<const StackProfile&, const yaml::Cluster&> machine_of(std::uint64_t seed,
                                                                const std::vector<StackProfile>& stacks) {
  const std::vector<yaml::Cluster>& clusters = shipped().clusters;
  return {stacks[seed % stacks.size()], clusters[seed / stacks.size() % clusters.size()]};
}

struct Case {
  Setting setting;
  ParallelPlan plan;
  std::string text;
};

/// A plan of all of so many GPUs; it may break a rule.
ParallelPlan draw_plan(test::ScenarioGenerator& random, const Setting& setting) {
  ParallelPlan plan = random.plan(setting);
  if (random.below(3) == 0) plan.order = kDefaultRankOrder;
  if (setting.model.moe) {
    const std::int32_t ranks = plan.tensor * plan.context * plan.data;
    plan.sequence_parallel = plan.tensor > 1;
    plan.expert = std::min(ranks, random.pick({1, 2, 4, 8}));
    plan.expert_tensor = std::min(ranks / plan.expert, random.pick({1, 1, 2}));
    if (plan.expert_tensor > 1 && random.coin()) plan.expert_tensor = 1;
  }
  if (plan.pipeline % 2 == 0 && random.below(5) == 0) {
    plan.schedule = ScheduleKind::dualpipe;
    plan.virtual_stages = 1;
    plan.zero_stage = std::min(plan.zero_stage, 1);
  }
  return plan;
}

/// So many GPUs of a cluster at most, their links slow or fast, so that there is something to hide and not room enough.
/// Returns the share of their bandwidth that is left.
double draw_fabric(test::ScenarioGenerator& random, const yaml::Cluster& cluster, std::int64_t most_gpus,
                   FabricSpec& fabric) {
  Problems problems;
  const std::int64_t gpus = std::min(most_gpus, random.pick<std::int64_t>({4, 8, 16, 32}));
  fabric = cluster.fabric.open() ? cluster.fabric.instantiate(gpus, problems) : cluster.fabric.fabric;
  if (!problems.empty()) fabric = {};
  const double slower = random.pick({1.0, 1.0, 0.3, 0.05});
  for (DimensionSpec& dimension : fabric.dimensions) {
    dimension.bandwidth *= slower;
    dimension.in_network_reduction = dimension.in_network_reduction && random.coin();
  }
  return slower;
}

Case draw(std::uint64_t seed, std::int64_t most_gpus) {
  test::ScenarioGenerator random(seed + 4711);
  const auto& [stack, cluster] = machine_of(seed, shipped().stacks);
  Case drawn;
  Setting& s = drawn.setting;
  s.model = random.coin() ? test::llama(random.pick<std::int64_t>({4, 6, 8}), 4096, 32, 8, 14336, 32000)
                          : test::llama_of_experts(6, 8, random.pick<std::int64_t>({0, 1}));
  s.system.stack = stack;
  s.system.device = cluster.device;
  s.workload = test::training(random.pick<std::int64_t>({1024, 4096}), random.pick<std::int64_t>({16, 32}));
  const double slower = draw_fabric(random, cluster, most_gpus, s.system.fabric);
  drawn.plan = draw_plan(random, s);
  drawn.text = stack.name + " on " + cluster.name + ", links at " + std::to_string(slower) + ", ep " +
               std::to_string(drawn.plan.expert) + " etp " + std::to_string(drawn.plan.expert_tensor) + ", " +
               test::describe(seed, drawn.plan);
  return drawn;
}

Prediction run(const Setting& setting, const ParallelPlan& plan, ExecutionMode mode,
               Details* details = nullptr) {
  return Simulator(setting, {.reference = false, .time_infeasible = true, .mode = mode})
      .run(plan, {}, details);
}

bool has_time(const Prediction& p) { return p.status == Status::ok || p.status == Status::memory; }

/// The setting with calls that cost nothing and a host that is never late.
Setting work_alone(Setting setting) {
  for (DimensionSpec& dimension : setting.system.fabric.dimensions) {
    dimension.bandwidth *= 1e9;
    dimension.latency = Seconds(0);
    if (dimension.fat_tree.uplink_bandwidth) *dimension.fat_tree.uplink_bandwidth *= 1e9;
    dimension.fat_tree.uplink_latency.reset();
  }
  StackProfile& stack = setting.system.stack;
  stack.communication.protocols = false;
  for (Seconds* const cost :
       {&stack.communication.call, &stack.communication.rank_step, &stack.communication.rank_step_scale_out})
    *cost = Seconds(0);
  stack.host = {};
  return setting;
}

/// The seconds that the ports of a rank into a dimension are busy at least, where no stage but one uses them: bytes
/// over bandwidth, of groups all of whose members differ in that dimension alone.
double busy_ports(const Case& of, std::size_t number, const GroupBytes& bytes) {
  std::int64_t stride = 1;
  const std::vector<DimensionSpec>& dimensions = of.setting.system.fabric.dimensions;
  for (std::size_t inner = 0; inner < number; ++inner) stride *= dimensions[inner].size();
  const DimensionSpec& dimension = dimensions[number];
  const bool switched =
      dimension.kind == DimensionKind::switched || dimension.kind == DimensionKind::fat_tree;
  if (!switched || dimension.basis != BandwidthBasis::link) return 0;
  const double adapters =
      std::max(1.0, static_cast<double>(dimension.nics_per_node.value_or(0)) / static_cast<double>(stride));
  const network::PlanLayout layout(of.plan);
  double busy = 0;
  for (const ParallelGroup group : enum_values<ParallelGroup>()) {
    if (!of.plan.folds_experts() && is_of_experts(group)) continue;
    const bool of_gradients = group == ParallelGroup::data_shard || group == ParallelGroup::expert_data;
    // Those go over the ranks of a stage and of its mirror, which differ in more dimensions.
    if (of.plan.schedule == ScheduleKind::dualpipe && of_gradients) continue;
    const network::RankGroup ranks = layout.group(group);
    bool inside = !ranks.alone();
    for (std::int32_t i = 0; i < ranks.depth; ++i) {
      const network::RankGroup::Level& level = ranks.levels[static_cast<std::size_t>(i)];
      inside = inside && level.stride >= stride && level.stride * level.extent <= stride * dimension.size();
    }
    // Switches that reduce take half of what a ring sends.
    if (inside) busy += (dimension.in_network_reduction ? 0.5 : 1) * bytes[group].value();
  }
  return busy / (adapters * dimension.bandwidth.value());
}

void expect_no_longer(std::string_view what, double busy, const Prediction& step) {
  EXPECT_LE(busy, step.step_time.value() * (1 + kRounding))
      << what << ": busy for " << busy / step.step_time.value() << " of the step";
}

void expect_parts_of_step(const Prediction& out) {
  for (const TimeClass c : enum_values<TimeClass>())
    EXPECT_GE(out.breakdown[c].value(), -kRounding * out.step_time.value()) << name_of(c);
  EXPECT_NEAR(out.breakdown.total() / out.step_time, 1, kRounding);
}

/// Work of a mean stage, launches of a mean host and, of a single stage, bytes.
void expect_busy_no_longer(const Case& of, ExecutionMode mode, const Prediction& out,
                           const Details& details) {
  const Prediction work = run(work_alone(of.setting), of.plan, mode);
  ASSERT_TRUE(has_time(work));
  const Breakdown& b = work.breakdown;
  const Seconds device = b[TimeClass::compute] + b[TimeClass::recompute] + b[TimeClass::optimizer];
  expect_no_longer("a device", device.value(), out);
  const StackProfile::Host& host = of.setting.system.stack.host;
  const double passes = static_cast<double>(of.setting.model.layers) * out.microbatches / of.plan.pipeline;
  const double again = of.plan.recompute == Recompute::full ? 1 : 0;
  const double launches = passes * ((1 + again) * host.forward_layer + host.backward_layer).value();
  expect_no_longer("a host", launches, out);
  for (const ParallelGroup group : enum_values<ParallelGroup>()) {
    GroupBytes alone;
    alone[group] = details.group_bytes[group];
    for (std::size_t d = 0; d < of.setting.system.fabric.dimensions.size(); ++d)
      expect_no_longer(name_of(group), busy_ports(of, d, alone), out);
  }
  if (of.plan.pipeline > 1) return;
  for (std::size_t d = 0; d < of.setting.system.fabric.dimensions.size(); ++d)
    expect_no_longer("ports of all groups", busy_ports(of, d, details.group_bytes), out);
}

TEST(BusyLaws, NothingIsBusierThanTheStepIsLong) {
  // What of a class of traffic there is shows where the stack hides nothing of it.
  const auto expect_traffic = [](const Case& of, const Prediction& out, TimeClass traffic) {
    Setting shown = of.setting;
    StackProfile::Communication& stack = shown.system.stack.communication;
    stack.tensor_overlap = stack.context_overlap = stack.data_overlap = stack.gather_overlap = 0;
    stack.expert_overlap = 0;
    shown.system.stack.experts.shared_overlap = false;
    const Prediction all = run(shown, of.plan, ExecutionMode::hierarchical);
    ASSERT_TRUE(has_time(all));
    expect_no_longer("calls one after the other", all.breakdown[traffic].value(), out);
  };
  int timed = 0;
  std::vector<std::uint64_t> seeds(test::seeds(1500));
  std::iota(seeds.begin(), seeds.end(), 0);
  // Calls, experts' exchanges and gradients that all hide keep the same ports busy for longer than any of them alone.
  seeds.insert(seeds.end(), {7494, 21231, 22444, 23341, 32294, 37078, 39487, 45450, 48141, 57709});
  for (const std::uint64_t seed : seeds) {
    const Case drawn = draw(seed, 32);
    SCOPED_TRACE(drawn.text);
    Details details;
    const Prediction out = run(drawn.setting, drawn.plan, ExecutionMode::hierarchical, &details);
    if (!has_time(out)) continue;
    ++timed;
    expect_parts_of_step(out);
    expect_busy_no_longer(drawn, ExecutionMode::hierarchical, out, details);
    for (const TimeClass traffic : {TimeClass::tensor_comm, TimeClass::context_comm, TimeClass::data_comm})
      expect_traffic(drawn, out, traffic);
    if (drawn.plan.schedule != ScheduleKind::dualpipe) expect_traffic(drawn, out, TimeClass::expert_comm);
  }
  EXPECT_GE(timed, test::at_least(300));
}

// A fault may leave less of a class than shared links take from it on the healthy machine.
TEST(BusyLaws, PartsAddUpToTheStepWithASickLink) {
  int timed = 0;
  for (std::uint64_t seed = 0; seed < test::seeds(1500); ++seed) {
    const Case drawn = draw(seed, 64);
    const std::size_t links = network::Fabric(drawn.setting.system.fabric).links().size();
    if (links == 0) continue;
    test::ScenarioGenerator generator(seed + 4000);
    const auto link = static_cast<std::int32_t>(generator.below(links));
    SCOPED_TRACE(drawn.text + " link " + std::to_string(link));
    const FaultSet faults{{{link, generator.between(0.02, 0.9), Seconds(0)}}};
    const Prediction out = Simulator(drawn.setting, {.time_infeasible = true}).run(drawn.plan, faults);
    if (!has_time(out)) continue;
    ++timed;
    expect_parts_of_step(out);
  }
  EXPECT_GE(timed, test::at_least(300));
}

/// The bytes that go over each link in a step, message by message along its route.
std::vector<double> bytes_by_link(const execution::Programs& programs, std::size_t links) {
  using Kind = execution::Instruction::Kind;
  std::vector<double> bytes(links);
  const auto add = [&](std::int32_t connection, double sent) {
    for (const std::int32_t link :
         programs.wires.path(programs.wires.connections[static_cast<std::size_t>(connection)]))
      bytes[static_cast<std::size_t>(link)] += sent;
  };
  const auto make_call = [&](const execution::CallTraffic& call, double times) {
    for (const execution::CallTraffic::Gate& gate : call.gates) {
      for (std::int32_t m = gate.first_message; m < gate.first_message + gate.messages; ++m) {
        const network::Message& message = call.messages[static_cast<std::size_t>(m)];
        add(message.connection, times * gate.times * message.bytes);
      }
    }
  };
  const auto ranks = static_cast<std::size_t>(programs.ranks);
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    for (const std::int32_t block :
         programs.sequences[static_cast<std::size_t>(programs.sequence_of[rank])]) {
      const execution::Block& range = programs.blocks[static_cast<std::size_t>(block)];
      for (std::int32_t i = range.begin; i < range.end; ++i) {
        const execution::Instruction& now = programs.instructions[static_cast<std::size_t>(i)];
        const std::size_t at = now.lane * ranks + rank;
        if (now.kind == Kind::send) add(programs.outgoing[at], now.value);
        if (now.kind != Kind::start || programs.communicator_of[at] == execution::kNone ||
            programs.member_of[at] != 0)
          continue;
        const auto group = static_cast<std::size_t>(programs.communicator_of[at]);
        make_call(programs.communicators[group].calls[static_cast<std::size_t>(now.what)], now.repeats);
      }
    }
  }
  return bytes;
}

struct Links {
  int timed = 0, near = 0;
};

/// Of a machine with up to `sick` slower links.
void expect_links_in_time(const Case& of, ExecutionMode mode, std::uint64_t seed, std::uint64_t sick,
                          Links& links) {
  const network::Fabric fabric(of.setting.system.fabric);
  std::vector<double> left;
  for (const network::Link& link : fabric.links()) left.push_back(link.bandwidth.value());
  if (left.empty()) return;
  test::ScenarioGenerator random(seed + 4000);
  FaultSet faults;
  for (std::uint64_t i = 0; i < sick; ++i) {
    const auto link = static_cast<std::int32_t>(random.below(left.size()));
    const double derate = random.between(0.05, 0.9);
    faults.links.push_back({link, derate, Seconds(0), false});
    left[static_cast<std::size_t>(link)] *= derate;
  }
  Details details;
  details.want_programs = true;
  const Prediction out =
      Simulator(of.setting, {.time_infeasible = true, .mode = mode}).run(of.plan, faults, &details);
  if (!has_time(out) || details.programs == nullptr) return;
  const std::vector<double> bytes = bytes_by_link(*details.programs, left.size());
  double busy = 0;
  for (std::size_t link = 0; link < left.size(); ++link) busy = std::max(busy, bytes[link] / left[link]);
  const double share = busy / out.step_time.value();
  EXPECT_LE(share, 1 + kRounding) << of.text;
  ++links.timed;
  links.near += share > 0.9 ? 1 : 0;
}

bool goes_round(const FabricSpec& fabric) {
  return std::ranges::any_of(fabric.dimensions, [](const DimensionSpec& dimension) {
    return dimension.kind == DimensionKind::torus || dimension.kind == DimensionKind::ring;
  });
}

/// Bytes of each link over its bandwidth, of any kind of fabric or of rings and tori alone.
Links expect_links_in_time(ExecutionMode mode, std::uint64_t seeds, bool rings, std::uint64_t sick) {
  Links links;
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    const Case drawn = draw(seed, rings ? 64 : 32);
    if (!rings || goes_round(drawn.setting.system.fabric))
      expect_links_in_time(drawn, mode, seed, sick, links);
  }
  return links;
}

TEST(BusyLaws, NoLinkIsBusierThanTheStepIsLong) {
  const Links any = expect_links_in_time(ExecutionMode::hierarchical, test::seeds(2000), false, 0),
              rings = expect_links_in_time(ExecutionMode::hierarchical, test::seeds(10000), true, 0);
  EXPECT_GE(any.timed, test::at_least(500));
  EXPECT_GE(rings.timed, test::at_least(150));
  if (!test::all_seeds()) return;
  EXPECT_GT(any.near, 5);
}

// A random plan whose messages between stages are on a link of a PCIe tree that calls keep busy for all of the step.
TEST(BusyLaws, NoLinkIsBusierThanTheStepIsLongWithMessages) {
  Links links;
  constexpr std::uint64_t kSeed = 8784;
  expect_links_in_time(draw(kSeed, 32), ExecutionMode::hierarchical, kSeed, 0, links);
  EXPECT_EQ(links.near, 1);
}

// All microbatches of GPipe go down one after the other over links so slow that messages pile up on them.
TEST(BusyLaws, NoLinkIsBusierThanTheStepIsLongWithMessagesAlone) {
  const yaml::Catalog catalog({test::source_dir()});
  const yaml::Cluster machine = yaml::load_cluster(catalog, "dgx-a100").value();
  Case of;
  Setting& s = of.setting;
  Problems problems;
  s.system.fabric = machine.fabric.instantiate(8, problems);
  for (DimensionSpec& dimension : s.system.fabric.dimensions) dimension.bandwidth = BytesPerSecond(2e8);
  s.system.device = machine.device;
  s.system.stack = yaml::load_stack(catalog, "torchtitan").value();
  s.model = test::llama(8, 4096, 32, 8, 14336, 32000);
  s.workload = test::training(2048, 64);
  of.plan = test::plan_of(1, 1, 8, 1);
  of.plan.schedule = ScheduleKind::gpipe;
  Links links;
  expect_links_in_time(of, ExecutionMode::hierarchical, 0, 0, links);
  EXPECT_EQ(links.near, 1);
}

TEST(BusyLaws, NoSickLinkIsBusierThanTheStepIsLong) {
  for (const std::uint64_t sick : {1, 2}) {
    const Links any = expect_links_in_time(ExecutionMode::hierarchical, test::seeds(2000), false, sick),
                rings = expect_links_in_time(ExecutionMode::hierarchical, test::seeds(8000), true, sick);
    EXPECT_GE(any.timed, test::at_least(500));
    EXPECT_GE(rings.timed, test::at_least(150));
    if (!test::all_seeds()) continue;
    EXPECT_GT(any.near, 10);
  }
}

/// An operation of which other groups use the link that is gone is priced anew as a whole, not group by group.
constexpr double kPricedAnewBand = 2e-3;

// Beside a link that is so slow that the step lasts as long as it is busy.
TEST(BusyLaws, TheLossOfALinkThatCarriesNothingMakesNoStepShorter) {
  int tried = 0;
  for (std::uint64_t seed = 0; seed < test::seeds(10000); ++seed) {
    const Case drawn = draw(seed, 32);
    if (!goes_round(drawn.setting.system.fabric)) continue;
    Details details;
    details.want_programs = true;
    Simulator simulator(drawn.setting, {.time_infeasible = true});
    if (!has_time(simulator.run(drawn.plan, {}, &details)) || details.programs == nullptr) continue;
    const std::vector<double> bytes =
        bytes_by_link(*details.programs, network::Fabric(drawn.setting.system.fabric).links().size());
    const auto number_of = [&](auto link) { return static_cast<std::int32_t>(link - bytes.begin()); };
    const auto idle = std::ranges::find(bytes, 0.0), busiest = std::ranges::max_element(bytes);
    if (idle == bytes.end() || *busiest <= 0) continue;
    const LinkFault slow{number_of(busiest), 0.02, Seconds(0), false},
        gone{number_of(idle), 1, Seconds(0), true};
    const Prediction alone = simulator.run(drawn.plan, {{slow}, {}}),
                     both = simulator.run(drawn.plan, {{slow, gone}, {}});
    EXPECT_GE(both.step_time / alone.step_time, 1 - kPricedAnewBand) << drawn.text;
    ++tried;
  }
  EXPECT_GE(tried, test::at_least(100));
}

TEST(BusyLaws, NoLinkIsBusierThanAnExecutedStepIsLong) {
  for (const std::uint64_t sick : {0, 1}) {
    const Links any = expect_links_in_time(ExecutionMode::flattened, test::seeds(300), false, sick),
                rings = expect_links_in_time(ExecutionMode::flattened, test::seeds(2000), true, sick);
    EXPECT_GE(any.timed, test::at_least(50));
    EXPECT_GE(rings.timed, test::at_least(20));
  }
}

TEST(BusyLaws, NothingIsBusierThanAnExecutedStepIsLong) {
  int timed = 0;
  for (std::uint64_t seed = 0; seed < 3000 && timed < test::cases(40); ++seed) {
    const Case drawn = draw(7 * seed, 8);
    if (drawn.setting.system.fabric.size() > 8) continue;
    SCOPED_TRACE(drawn.text);
    Details details;
    const Prediction out = run(drawn.setting, drawn.plan, ExecutionMode::flattened, &details);
    if (!has_time(out)) continue;
    ++timed;
    expect_parts_of_step(out);
    expect_busy_no_longer(drawn, ExecutionMode::flattened, out, details);
  }
  EXPECT_GE(timed, test::at_least(40));
}

/// A server of one pool or two.
Case draw_served(std::uint64_t seed, std::int64_t most_gpus) {
  test::ScenarioGenerator random(seed + 815);
  const auto& [stack, cluster] = machine_of(seed, shipped().servers);
  Case drawn;
  Setting& s = drawn.setting;
  s.model = random.coin() ? test::llama(random.pick<std::int64_t>({4, 8}), 4096, 32, 8, 14336, 32000)
                          : test::llama_of_experts(6, 8, random.pick<std::int64_t>({0, 1}));
  s.system.stack = stack;
  s.system.device = cluster.device;
  s.workload = test::inference(random.pick<std::int64_t>({16, 700, 3000}),
                               random.pick<std::int64_t>({1, 2, 40}), random.pick<std::int64_t>({1, 8, 48}));
  if (s.system.device.supports(Precision::fp8) && random.coin()) s.workload.precision = PolicyName::fp8;
  const double slower = draw_fabric(random, cluster, most_gpus, s.system.fabric);
  ParallelPlan& plan = drawn.plan = random.plan(s);
  plan.sequence_parallel = false;
  plan.zero_stage = 0;
  plan.recompute = Recompute::none;
  plan.microbatch = 1;
  if (s.model.moe) {
    const std::int32_t ranks = plan.tensor * plan.data;
    plan.expert = std::min(ranks, random.pick({1, 2, 4}));
  }
  if (plan.data > 1 && random.below(3) == 0) {
    plan.data /= 2;
    plan.prefill = {.tensor = plan.tensor, .pipeline = plan.pipeline, .data = plan.data * plan.context};
    plan.prefill.expert = std::min(plan.prefill.tensor * plan.prefill.data, plan.expert);
  }
  drawn.text = stack.name + " on " + cluster.name + ", links at " + std::to_string(slower) + ", ep " +
               std::to_string(plan.expert) + ", " + test::describe(seed, plan) + ", pool of " +
               std::to_string(plan.prefill.data) + ", prompts " + std::to_string(s.workload.prompt_tokens) +
               ", outputs " + std::to_string(s.workload.output_tokens) + ", concurrency " +
               std::to_string(s.workload.concurrency);
  return drawn;
}

/// Weights that each token meets whatever it asks of the router: of attention and of layers without experts.
double weights_met(const ModelSpec& m) {
  const auto hidden = static_cast<double>(m.hidden), queries = static_cast<double>(m.heads * m.head_dim),
             keys = static_cast<double>(m.kv_heads * m.head_dim);
  const double attention = 2 * hidden * queries + 2 * hidden * keys;
  const double dense = static_cast<double>(m.moe ? m.moe->first_dense_layers : m.layers);
  return static_cast<double>(m.layers) * attention + dense * 3 * hidden * static_cast<double>(m.ffn_hidden);
}

/// What is busy, over the time that there is for it: the most of all plans, so that laws which nothing comes near show.
using Nearest = std::map<std::string, double>;

/// A generated token waits for an iteration through all stages: each of their devices reads its share of the weights
/// and multiplies, each host launches its blocks. A prompt is multiplied before its first token. In a second all
/// devices together do no more than their peak. What a request lives through takes no less than the links need for it.
void expect_served_in_time(const Case& of, const Prediction& out, const Details& details, Nearest& nearest) {
  const Setting& s = of.setting;
  const WorkloadSpec& work = s.workload;
  const auto prompt = static_cast<double>(work.prompt_tokens),
             output = static_cast<double>(work.output_tokens);
  const PrecisionPolicy policy = s.policy();
  const double weights = weights_met(s.model), element = bytes_per_element(policy.products),
               peak = s.system.device.tensor_peak(policy.products).value();
  const double ranks = of.plan.tensor, hbm = s.system.device.hbm_peak().value();
  const auto expect_within = [&](const std::string& what, double busy, double time) {
    EXPECT_LE(busy, time * (1 + kRounding)) << what << ": busy for " << busy / time;
    nearest[what] = std::max(nearest[what], busy / time);
  };
  const StackProfile::Host& host = s.system.stack.host;
  const double launches = static_cast<double>(s.model.layers) * host.decode_layer.value() +
                          host.decode_step_fixed.value() + host.decode_sequence.value() +
                          host.decode_stream.value();
  if (work.output_tokens > 1) {
    expect_within("memory", weights * element / ranks / hbm, out.itl.value());
    expect_within("hosts", launches, out.itl.value());
  }
  const bool pools = of.plan.disaggregated();
  const double readers = pools ? of.plan.prefill.tensor : ranks * of.plan.context;
  expect_within("the units of a prompt", 2 * weights * prompt / (readers * peak), out.ttft.value());
  const double flops = 2 * weights * (prompt + output - 1) / output;
  expect_within("the units of all requests", out.tokens_per_s_per_gpu * flops, peak);
  if (pools) return;  // their requests live through iterations of two kinds of ranks
  for (const ParallelGroup group : enum_values<ParallelGroup>()) {
    GroupBytes alone;
    alone[group] = details.group_bytes[group];
    for (std::size_t d = 0; d < s.system.fabric.dimensions.size(); ++d)
      expect_within(std::string(name_of(group)), busy_ports(of, d, alone), out.e2e.value());
  }
}

void expect_served_parts(const Prediction& out) {
  for (const TimeClass c : enum_values<TimeClass>())
    EXPECT_GE(out.breakdown[c].value(), -kRounding * out.e2e.value()) << name_of(c);
  EXPECT_NEAR(out.breakdown.total() / out.e2e, 1, kRounding);
}

void expect_servers_keep(ExecutionMode mode, std::uint64_t seeds, int enough, std::int64_t most_gpus) {
  int timed = 0, pools = 0;
  Nearest nearest;
  for (std::uint64_t seed = 0; seed < seeds && timed < enough; ++seed) {
    const Case drawn = draw_served(seed, most_gpus);
    if (mode == ExecutionMode::flattened && drawn.setting.system.fabric.size() > most_gpus) continue;
    SCOPED_TRACE(drawn.text);
    Details details;
    const Prediction out = run(drawn.setting, drawn.plan, mode, &details);
    if (!has_time(out)) continue;
    ++timed;
    pools += drawn.plan.disaggregated() ? 1 : 0;
    expect_served_parts(out);
    expect_served_in_time(drawn, out, details, nearest);
    if (testing::Test::HasFailure()) return;
  }
  EXPECT_GE(timed, test::at_least(enough / 2));
  EXPECT_GE(pools, test::at_least(1));
  if (!test::all_seeds()) return;
  for (const char* const what :
       {"memory", "hosts", "the units of a prompt", "the units of all requests", "tensor"})
    EXPECT_GT(nearest[what], 0.5) << what << ": no plan comes near this law";
}

TEST(BusyLaws, NothingIsBusierThanRequestsTake) {
  expect_servers_keep(ExecutionMode::hierarchical, test::seeds(6000), 3000, 32);
}

TEST(BusyLaws, NothingIsBusierThanExecutedRequestsTake) {
  expect_servers_keep(ExecutionMode::flattened, test::seeds(4000), 500, 8);
}

}  // namespace
}  // namespace shardscape::laws_busy
