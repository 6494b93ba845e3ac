// Does a launch say the plan, all of it, and nothing else? At random points of the studies that come with it.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "engine/base/counter_rng.h"
#include "engine/simulate.h"
#include "engine/spec/parallel_groups.h"
#include "engine/spec/zero.h"
#include "sweep/launch/said_items.h"
#include "sweep/launch/write_launch.h"
#include "sweep/space/point_text.h"
#include "sweep/study/load_study.h"
#include "sweep/yaml/specs.h"
#include "tests/support/paths.h"
#include "tests/support/seeds.h"

namespace shardscape::launch {
namespace {

namespace fs = std::filesystem;

const std::uint64_t kPoints = test::seeds(16);

std::vector<std::reference_wrapper<const Framework>> frameworks() {
  std::vector<std::reference_wrapper<const Framework>> all;
  for (const std::string& name : framework_names()) all.emplace_back(*find_framework(name));
  return all;
}

/// Calls visit(study, setting, plan) for random points of every study that come as far as its memory.
template <class Visit>
void each_point(const Visit& visit) {
  const fs::path root = test::source_dir();
  const yaml::Catalog catalog({root});
  for (const auto& file : fs::directory_iterator(root / "sweep/studies")) {
    if (file.path().extension() != ".yaml") continue;
    const auto study = sweep::load_study(file.path(), catalog);
    ASSERT_TRUE(study) << file.path();
    const sweep::DesignSpace space = study->design_space();
    CounterRng random(space.size(), 0);
    for (std::uint64_t i = 0; i < kPoints; ++i) {
      const sweep::PointIndex point = space.point(random.below(space.size()));
      const Setting setting = study->setting(point.setting);
      Simulator simulator(setting);
      const Status status = simulator.judge(point.plan).status;
      if (status == Status::ok || status == Status::memory) visit(*study, setting, point.plan);
    }
  }
}

Launch launched(const Framework& framework, const Setting& setting, const ParallelPlan& plan) {
  const ParallelPlan whole = with_replicas(plan, setting.model, setting.system.stack.serving);
  return write_launch(framework, {setting, whole, usual_gpus_per_node(setting.system), "a/model"});
}

/// The number behind an option, `otherwise` where the text has no such option.
std::int64_t number(const std::string& text, const std::string& option, std::int64_t otherwise) {
  const std::regex pattern(option + R"([ :=]+"?([0-9]+))");
  std::smatch found;
  return std::regex_search(text, found, pattern) ? std::stoll(found[1]) : otherwise;
}
bool has(const std::string& text, const std::string& words) { return text.find(words) != std::string::npos; }

std::vector<std::string> leaves(const yaml::Node& node, const std::string& path) {
  if (!node.is_map()) return {path};
  std::vector<std::string> all;
  for (const yaml::Entry& entry : node.entries)
    for (const std::string& leaf : leaves(entry.value, path.empty() ? entry.key : path + '.' + entry.key))
      all.push_back(leaf);
  return all;
}

TEST(LaunchPlans, EveryKeyOfAStackIsAChoiceOrMeasured) {
  for (const std::string& key : leaves(yaml::write(StackProfile()), ""))
    EXPECT_TRUE(is_measured(key)) << key
                                  << ": neither in the table of choices nor in that of measured constants";
}

TEST(LaunchPlans, EveryRowSaysSomethingThatThereIs) {
  std::set<std::string> known = {"pools",
                                 "workload.precision",
                                 "workload.sequence_length",
                                 "workload.global_batch",
                                 "workload.prompt_tokens",
                                 "workload.output_tokens",
                                 "workload.concurrency",
                                 "workload.load",
                                 "workload.expert_load",
                                 "workload.speculation",
                                 "model."};
  for (const PlanAxisRow& row : kPlanRows) known.insert(std::string(row.name));
  StackProfile stack;
  stack.pipeline_layout = "EL";
  for (const std::string& key : leaves(yaml::write(stack), ""))
    if (!is_measured(key).value_or(true)) known.insert("stack." + key);
  ModelSpec model;
  for (const std::string& key : leaves(yaml::write(model), "")) known.insert("model." + key);
  model.moe.emplace();
  model.latent.emplace();
  model.attention_dropout = model.embedding_dropout = 0.1;
  model.rotary_base = 10'000;  // written where they are known
  model.rotary_scaling = 8;
  model.norm_epsilon = 1e-5;
  for (const std::string& key : leaves(yaml::write(model), "")) known.insert("model." + key);
  for (const Framework& framework : frameworks()) {
    for (const Option& row : framework.options) {
      for (const std::string& key : row.keys)
        EXPECT_TRUE(known.contains(key)) << framework.name << ": " << row.name << ": " << key;
      EXPECT_TRUE(row.source.starts_with("https://")) << framework.name << ": " << row.name;
    }
    for (const auto& [key, why] : framework.missing)
      EXPECT_TRUE(known.contains(key)) << framework.name << ": " << key;
  }
}

/// What the launch of a training plan says, read back from its text.
void expect_training(const std::string& name, const std::string& text, const ParallelPlan& plan,
                     bool experts) {
  static const std::map<std::string, std::map<std::string, std::string>> kNames = {
      {"megatron-lm",
       {{"tp", "--tensor-model-parallel-size"},
        {"pp", "--pipeline-model-parallel-size"},
        {"cp", "--context-parallel-size"},
        {"ep", "--expert-model-parallel-size"},
        {"mbs", "--micro-batch-size"}}},
      {"nemo",
       {{"tp", "tensor_model_parallel_size"},
        {"pp", "[^_]pipeline_model_parallel_size"},
        {"cp", "context_parallel_size"},
        {"ep", "expert_model_parallel_size"},
        {"mbs", "micro_batch_size"}}},
      {"torchtitan",
       {{"tp", "[^_]tensor_parallel_degree"},
        {"pp", "pipeline_parallel_degree"},
        {"cp", "context_parallel_degree"},
        {"ep", "expert_parallel_degree"},
        {"mbs", plan.pipeline > 1 ? "pipeline_parallel_microbatch_size" : "local_batch_size"}}}};
  const auto& names = kNames.at(name);
  EXPECT_EQ(number(text, names.at("tp"), 0), plan.tensor);
  EXPECT_EQ(number(text, names.at("pp"), 0), plan.pipeline);
  EXPECT_EQ(number(text, names.at("cp"), 0), plan.context);
  EXPECT_EQ(number(text, names.at("ep"), 1), experts ? plan.expert : 1);
  EXPECT_EQ(
      number(text, name == "torchtitan" && plan.pipeline == 1 ? "local_batch_size" : names.at("mbs"), 0),
      plan.microbatch);
  EXPECT_EQ(number(text, "--nproc-per-node", 0) * number(text, "--nnodes", 1), plan.gpus());
  if (name == "torchtitan") {
    EXPECT_EQ(number(text, "replicate_degree", 0) * number(text, "shard_degree", 0), plan.data);
  }
  if (name == "megatron-lm") {
    EXPECT_EQ(has(text, "--sequence-parallel "), plan.sequence_parallel);
    EXPECT_EQ(has(text, "--recompute-granularity"), plan.recompute != Recompute::none);
    EXPECT_EQ(has(text, "--use-distributed-optimizer"), plan.zero_stage > 0);
  }
}

/// The same of servers: GPUs of all programs, and the degrees of attention and experts.
void expect_served(const std::string& name, const std::string& text, const ParallelPlan& plan,
                   std::int64_t token_budget) {
  const std::int64_t programs = number(text, "#", 1);
  const std::int64_t tensor = number(text,
                                     name == "vllm"     ? "--tensor-parallel-size"
                                     : name == "sglang" ? "--tp-size"
                                                        : "--tp_size",
                                     0);
  const std::int64_t stages = number(text, name == "vllm" ? "--pipeline-parallel-size" : "--pp.size", 1);
  const std::int64_t replicas = name == "vllm" ? number(text, "--data-parallel-size", 1) : 1;
  EXPECT_EQ(stages, plan.pipeline);
  EXPECT_EQ(programs * tensor * stages * replicas, plan.stage_ranks() * plan.pipeline);
  if (name == "sglang" && has(text, "--enable-dp-attention")) {
    EXPECT_EQ(tensor / number(text, "--dp-size", 0), plan.tensor);
    EXPECT_EQ(number(text, "--ep-size", 0), plan.expert);
  }
  if (name == "sglang") {  // it divides the tokens of a prompt by the data parallelism of attention
    EXPECT_EQ(number(text, "--chunked-prefill-size", 0), token_budget * number(text, "--dp-size", 1));
  }
}

// Degrees that are read back are those of the plan, and a plan that differs in anything is launched otherwise, or what
// differs is named.
TEST(LaunchPlans, SayThePlanAndNoOther) {
  std::map<std::string, int> ran;
  std::map<std::string, std::string> seen;
  each_point([&](const sweep::Study& study, const Setting& setting, const ParallelPlan& plan) {
    for (const Framework& framework : frameworks()) {
      if (framework.phase != study.phase()) continue;
      const std::string name(framework.name);
      SCOPED_TRACE(fmt::format("{}, {}: {}", study.title, name, sweep::to_point_text(plan, study.phase())));
      const Launch launch = launched(framework, setting, plan);
      for (const std::string& why : launch.refused) {
        const std::regex pattern("^([a-z_]+=|two pools)[^ ]*: [A-Za-z -]+ cannot run it: .");
        EXPECT_TRUE(std::regex_search(why, pattern)) << why;
      }
      if (!launch.refused.empty()) continue;
      ++ran[name];
      std::string text = launch.command;
      for (const LaunchFile& file : launch.files) text += file.name + '\n' + file.text;
      if (study.phase() == Phase::training) {
        expect_training(name, text, plan, setting.model.moe.has_value());
      } else if (name != "dynamo" && !plan.disaggregated()) {
        expect_served(name, text, plan, setting.system.stack.serving.token_budget);
      }
      ParallelPlan same = plan;
      // Stages 1 and 2 are the same where gradients are scattered once a step, and so are some orders.
      same.zero_stage = timed_zero_stage(plan, setting.system.stack);
      for (std::int32_t code = kRankOrders; code-- > 0;)
        if (sweep::same_layout(plan, plan.order, rank_order_of(code))) same.order = rank_order_of(code);
      for (const NotExpressed& one : launch.not_expressed) text += one.what + '=' + one.value + '\n';
      const std::string point = sweep::to_point_text(same, study.phase());
      const auto [at, is_new] = seen.emplace(study.title + name + text, point);
      EXPECT_TRUE(is_new || at->second == point) << "as " << at->second << "\n" << text;
    }
  });
  for (const Framework& framework : frameworks())
    EXPECT_GT(ran[std::string(framework.name)], test::at_least(5)) << framework.name;
}

/// The number with a point behind an option; 0 where the text has no such option.
double share(const std::string& text, const std::string& option) {
  std::smatch found;
  return std::regex_search(text, found, std::regex(option + " ([0-9.]+)")) ? std::stod(found[1]) : 0;
}

// What vLLM and SGLang make of their shares, as their documents have it, is the cache that the study gives: kv_share of
// what weights, activations and reserve leave on the stage that has the least room.
TEST(LaunchPlans, ShareOfMemoryGivesThePlansCache) {
  int looked = 0;
  each_point([&](const sweep::Study& study, const Setting& setting, const ParallelPlan& plan) {
    if (study.phase() != Phase::inference || plan.disaggregated()) return;
    SCOPED_TRACE(fmt::format("{}: {}", study.title, sweep::to_point_text(plan, study.phase())));
    Details details;
    if (Simulator(setting, {.load_floors = true}).run(plan, {}, &details).status != Status::ok) return;
    const double capacity = setting.system.device.memory_capacity().value();
    const double kv_share = setting.system.stack.serving.kv_share, digit = 1e-4 * capacity;
    const Launch vllm = launched(*find_framework("vllm"), setting, plan);
    const Launch sglang = launched(*find_framework("sglang"), setting, plan);
    const double whole = share(vllm.command, "--gpu-memory-utilization");
    const double fixed = share(sglang.command, "--mem-fraction-static");
    // Bytes that the cache of a stage lacks, of all stages the most: all but one may have more room than they need.
    double most[2] = {-capacity, -capacity};
    for (const MemoryUse& use : details.stage_memory) {
      const double others = (use.total() - use.kv_cache).value(), held = use.kv_cache.value();
      const double due = std::max(held, kv_share * (capacity - others));
      const double caches[] = {whole * capacity - others,
                               fixed * (capacity - use.reserve.value()) - use.weights.value()};
      for (const std::size_t of : {std::size_t{0}, std::size_t{1}}) {
        if ((of == 0 ? vllm : sglang).refused.size() > 0) continue;
        EXPECT_GE(caches[of], held * (1 - 1e-9)) << of;
        most[of] = std::max(most[of], due - caches[of]);
        ++looked;
      }
    }
    for (const double lack : most) {
      if (lack == -capacity) continue;  // refused
      EXPECT_GE(lack, -digit);
      EXPECT_TRUE(lack <= digit || details.stage_memory.size() > 1) << lack;
    }
    // vLLM does not start where its longest request has no room in the cache.
    const ModelSpec& model = setting.model;
    if (model.latent || model.sliding_window > 0 || details.stage_memory.size() > 1 || !vllm.refused.empty())
      return;
    const double element = setting.policy().kv_cache == Precision::fp8 ? 1 : 2;
    const auto heads = static_cast<double>(std::max<std::int64_t>(1, model.kv_heads / plan.tensor));
    const double token = 2 * heads * static_cast<double>(model.head_dim * model.layers) * element;
    const MemoryUse& use = details.stage_memory.front();
    const double room = whole * capacity - (use.total() - use.kv_cache).value();
    EXPECT_LE(static_cast<double>(number(vllm.command, "--max-model-len", 0)) * token, room);
  });
  EXPECT_GT(looked, test::at_least(5));
}

using S = const Setting&;
using P = const ParallelPlan&;

/// Words of a launch, and what a plan must have where they are written, as the framework stops otherwise.
struct Demand {
  std::string_view framework, words;
  bool (*met)(S setting, P plan);
};
bool shards_optimizer(S /*setting*/, P plan) { return plan.zero_stage > 0; }
bool splits_sequence(S setting, P plan) {
  return !setting.model.moe || plan.tensor == 1 || plan.sequence_parallel;
}
bool sigmoid_scores(S setting, P /*plan*/) {
  return setting.model.moe && setting.model.moe->router == RouterKind::sigmoid;
}
bool shares_experts(S setting, P plan) {
  return setting.model.moe && setting.model.moe->shared_experts > 0 && plan.expert > 1 &&
         setting.system.stack.experts.dispatch != ExpertDispatcher::kernels;
}
bool not_delayed(S setting, P /*plan*/) { return setting.workload.precision != PolicyName::fp8; }
const Demand kDemands[] = {
    {"megatron-lm", "--overlap-moe-expert-parallel-comm",
     [](S setting, P plan) {
       return plan.expert > 1 && plan.recompute != Recompute::full &&
              (plan.pipeline == 1 || plan.virtual_stages > 1) && !setting.system.stack.experts.shared_overlap;
     }},
    {"megatron-lm", "--tensor-model-parallel-size", splits_sequence},
    {"nemo", "tensor_model_parallel_size", splits_sequence},
    {"megatron-lm", "--moe-router-enable-expert-bias", sigmoid_scores},
    {"nemo", "moe_router_enable_expert_bias", sigmoid_scores},
    {"megatron-lm", "--use-precision-aware-optimizer", shards_optimizer},
    {"megatron-lm", "--exp-avg-dtype", shards_optimizer},
    {"megatron-lm", "--exp-avg-sq-dtype", shards_optimizer},
    {"megatron-lm", "--fp8-param-gather",
     [](S setting, P plan) { return plan.zero_stage > 0 && setting.workload.precision == PolicyName::fp8; }},
    {"nemo", "fp8_param_gather",
     [](S setting, P plan) { return plan.zero_stage > 0 && setting.workload.precision == PolicyName::fp8; }},
    {"megatron-lm", "--moe-token-dispatcher-type flex",
     [](S setting, P /*plan*/) {
       return setting.system.stack.experts.dispatch == ExpertDispatcher::kernels;
     }},
    {"megatron-lm", "--moe-shared-expert-overlap", shares_experts},
    {"nemo", "moe_shared_expert_overlap", shares_experts},
    {"megatron-lm", " moe_act",
     [](S setting, P plan) { return setting.model.moe.has_value() && not_delayed(setting, plan); }},
    {"megatron-lm", " layernorm", not_delayed},
    {"megatron-lm", " mla_up_proj", [](S setting, P /*plan*/) { return setting.model.latent.has_value(); }},
    {"torchtitan", "data_parallel_replicate_degree",
     [](S /*setting*/, P plan) {
       return plan.zero_stage >= 2 || plan.data == 1 || plan.tensor * plan.context * plan.pipeline == 1;
     }},
    {"torchtitan", "expert_parallel_degree",
     [](S /*setting*/, P plan) {
       const std::int32_t shards = plan.context * (plan.zero_stage >= 2 ? plan.data : 1);
       if (plan.expert == 1) return true;
       if (plan.expert_tensor == plan.tensor)
         return plan.expert % plan.context == 0 && shards % plan.expert == 0;
       return plan.expert % (plan.context * plan.tensor) == 0 && shards * plan.tensor % plan.expert == 0;
     }},
    {"vllm", "--async-scheduling",
     [](S setting, P plan) {
       const auto& load = setting.workload.load;
       return plan.pipeline == 1 && (!load || load->speculation.draft_tokens == 0);
     }},
    {"vllm", "--data-parallel-size-local",
     [](S setting, P plan) {
       return usual_gpus_per_node(setting.system) % (std::int64_t{plan.tensor} * plan.pipeline) == 0;
     }},
    {"sglang", "--moe-a2a-backend deepep",
     [](S /*setting*/, P plan) {
       return plan.expert_tensor == 1 && plan.expert == plan.tensor * coupled_replicas(plan);
     }},
};

/// The setting with a stack and a model that ask for all that has demands; `code` says in which of eight ways.
Setting demanding(Setting setting, unsigned code) {
  const bool shared = (code & 1) != 0, kernels = (code & 2) != 0, block_scales = (code & 4) != 0;
  StackProfile& stack = setting.system.stack;
  stack.state.moment_bytes = 4;
  stack.kept.fp8_weights = true;
  stack.selective_recompute = {RecomputePart::attention_core, RecomputePart::norms, RecomputePart::latent_up,
                               RecomputePart::activations};
  stack.experts.shared_overlap = shared;
  stack.communication.expert_overlap = shared ? 0 : 0.5;
  stack.experts.dispatch = !kernels       ? ExpertDispatcher::library
                           : block_scales ? ExpertDispatcher::hybrid
                                          : ExpertDispatcher::kernels;
  setting.workload.precision = block_scales ? PolicyName::mxfp8
                               : kernels    ? PolicyName::bf16
                                            : PolicyName::fp8;
  if (setting.model.moe) {
    setting.model.moe->router_bias = true;
    setting.model.moe->router = kernels ? RouterKind::softmax : RouterKind::sigmoid;
    setting.model.moe->shared_experts = 1;
  }
  return setting;
}

void expect_demands_met(S setting, P plan, std::map<std::string, int>& written) {
  for (const Framework& framework : frameworks()) {
    if (framework.phase != setting.workload.phase) continue;
    const Launch launch = launched(framework, setting, plan);
    if (!launch.refused.empty()) continue;
    std::string text = launch.command;
    for (const LaunchFile& file : launch.files) text += file.text;
    for (const Demand& demand : kDemands) {
      const std::string words(demand.words);
      if (demand.framework != framework.name || !has(text, words)) continue;
      ++written[std::string(framework.name) + ' ' + words];
      EXPECT_TRUE(demand.met(setting, plan)) << framework.name << ": " << words << "\n" << text;
    }
  }
}

/// A stack may be called as the deployment is: its servers are of another framework.
void expect_servers_deployed(Setting setting, P plan) {
  setting.system.stack.name = "dynamo-of-our-own";
  const Launch launch = launched(*find_framework("dynamo"), setting, plan);
  if (!launch.refused.empty()) return;
  EXPECT_FALSE(has(launch.files.back().text, "dynamo.dynamo")) << launch.files.back().text;
}

TEST(LaunchPlans, FlagsWhoseDemandsAreNotMetAreNeverWritten) {
  std::map<std::string, int> written;
  each_point([&](const sweep::Study& study, const Setting& setting, const ParallelPlan& plan) {
    if (plan.disaggregated()) return;
    SCOPED_TRACE(fmt::format("{}: {}", study.title, sweep::to_point_text(plan, study.phase())));
    expect_demands_met(setting, plan, written);
    if (study.phase() != Phase::training) return expect_servers_deployed(setting, plan);
    for (unsigned code = 0; code < 8; ++code) {
      ParallelPlan again = plan;
      again.recompute = static_cast<Recompute>(code % 3);
      expect_demands_met(demanding(setting, code), again, written);
    }
  });
  for (const char* usual : {"--overlap-moe-expert-parallel-comm", "--moe-router-enable-expert-bias",
                            "--use-precision-aware-optimizer", "--fp8-param-gather",
                            "--moe-shared-expert-overlap", " moe_act", " layernorm"})
    EXPECT_GE(written[std::string("megatron-lm ") + usual], test::at_least(1)) << usual;
}

// Shared experts are one MLP as wide as all of them: two of 1,536 make 3,072, as DeepSeek-V2's.
TEST(LaunchPlans, SharedExpertsAreOneMlpAsWideAsAll) {
  int seen = 0;
  each_point([&](const sweep::Study& study, const Setting& setting, const ParallelPlan& plan) {
    if (seen > 0 || study.phase() != Phase::training || !setting.model.moe) return;
    Setting two = setting;
    two.model.moe->shared_experts = 2;
    two.model.moe->shared_ffn_hidden = 3072;
    const Launch launch = launched(*find_framework("megatron-lm"), two, plan);
    if (!launch.refused.empty()) return;
    EXPECT_TRUE(has(launch.command, "--moe-shared-expert-intermediate-size 3072")) << launch.command;
    ++seen;
  });
  EXPECT_EQ(seen, 1);
}

}  // namespace
}  // namespace shardscape::launch
