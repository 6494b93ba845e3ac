// Are models, devices, stacks and fabrics read from YAML with defaults and located problems, and do they read back
// equal?
#include "sweep/yaml/specs.h"

#include <gtest/gtest.h>

#include "tests/unit/yaml/problems_of.h"

namespace shardscape::yaml {
namespace {

const char* const kModel = R"(name: tiny
layers: 4
hidden: 256
heads: 8
ffn_hidden: 1024
vocabulary: 1000
max_positions: 128
source: made up
)";

const char* const kDevice = R"(name: gpu
sm:
  count: 10
  clock: 1 GHz
  tensor_flops_per_clock: {bf16: 1024, fp8: 2048.5}
  vector_flops_per_clock: 128
  registers: 256 KiB
  sram: 100 KiB
  sram_bytes_per_clock: 128
l2: {capacity: 4 MiB, bytes_per_clock: 512}
hbm: {stacks: 4, capacity: 64 GiB, bandwidth: 2 TB/s}
kernel_latency: 2 us
die: {area_mm2: 800, process_nm: 7}
package: {interposer: silicon}
links: {ports: 12, bandwidth_per_port: 25 GB/s}
power: 400 W
source: [one, two]
)";

const char* const kStack = R"(name: soft
attention: naive
host: {forward_layer: 100 us}
communication: {bucket: 25 MB, call: 5 us, pipeline_async: true}
memory: {reserve: 2 GiB, fragmentation: 1.1}
)";

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

template <class Read>
auto read_text(const std::string& text, Diagnostics& diagnostics, Read&& read) {
  const auto node = parse(text, "f", diagnostics);
  return node ? read(*node, "", diagnostics) : decltype(read(*node, "", diagnostics))();
}

template <class Read>
Diagnostics problems(const std::string& text, Read&& read) {
  Diagnostics diagnostics;
  EXPECT_FALSE(read_text(text, diagnostics, read).has_value());
  return diagnostics;
}

Diagnostics model_problems(const std::string& text) { return problems(text, read_model); }
Diagnostics device_problems(const std::string& text) { return problems(text, read_device); }
Diagnostics stack_problems(const std::string& text) { return problems(text, read_stack); }

TEST(ReadModel, FillsTheDefaultsItsCommentsState) {
  Diagnostics diagnostics;
  const auto model = read_text(kModel, diagnostics, read_model);
  ASSERT_TRUE(model.has_value()) << diagnostics.to_string();
  EXPECT_EQ(model->kv_heads, 8);
  EXPECT_EQ(model->head_dim, 32);
  EXPECT_EQ(model->mlp, MlpKind::gelu);
  EXPECT_EQ(model->dropout, 0);
}

TEST(ReadModel, EachErrorClassIsLocated) {
  const std::string text = kModel;
  EXPECT_TRUE(reports(model_problems(replaced(text, "hidden: 256", "hiden: 256")), "f:3:1: hiden",
                      "unknown key; did you mean \"hidden\"?"));
  EXPECT_TRUE(reports(model_problems(replaced(text, "hidden: 256\n", "")), "f:1:1: hidden", "missing"));
  EXPECT_TRUE(
      reports(model_problems(text + "layers: 5\n"), "f:9:1: layers", "duplicate key; first given at line 2"));
  EXPECT_TRUE(
      reports(model_problems(replaced(text, "layers: 4", "layers: [4]")), "f:2:9: layers", "not a list"));
  EXPECT_TRUE(
      reports(model_problems(replaced(text, "layers: 4", "layers:")), "f:2:1: layers", "not nothing"));
  EXPECT_TRUE(
      reports(model_problems(replaced(text, "layers: 4", "layers: \"4\"")), "f:2:9: layers", "in quotes"));
  EXPECT_TRUE(
      reports(model_problems(replaced(text, "layers: 4", "layers: 4.5")), "f:2:9: layers", "an integer"));
  EXPECT_TRUE(reports(model_problems(replaced(text, "layers: 4", "layers: 0")), "f:2:9: layers",
                      "must be from 1 to 1e+05, not 0"));
  EXPECT_TRUE(reports(model_problems(replaced(text, "layers: 4", "layers: 99999999999999999999")),
                      "f:2:9: layers", "from"));
  EXPECT_TRUE(reports(model_problems(text + "dropout: .nan\n"), "f:9:10: dropout", "finite"));
  EXPECT_TRUE(
      reports(model_problems(text + "dropout: 2\n"), "f:9:10: dropout", "must be from 0 to below 1, not 2"));
  EXPECT_TRUE(reports(model_problems(text + "mlp: swigul\n"), "f:9:6: mlp", "did you mean \"swiglu\"?"));
  EXPECT_TRUE(reports(model_problems(text + "linear_bias: yes\n"), "f:9:14: linear_bias", "true or false"));
  EXPECT_TRUE(reports(model_problems(text + "kv_heads: 3\n"), "f:9:11: kv_heads", "must divide heads"));
  EXPECT_TRUE(reports(model_problems(replaced(text, "made up", "{a: 1}")), "f:8:9: source", "list of texts"));
  EXPECT_TRUE(reports(model_problems("[1, 2]"), "f:1:1", "must be a map"));
}

TEST(ReadModel, AllProblemsComeAtOnceAndNoConsequences) {
  const Diagnostics found = model_problems(
      "name: x\nlayers: a\nhiden: 8\nheads: 0\nffn_hidden: 8\nvocabulary: -1\n"
      "max_positions: 8\nposition: rotaryy\n");
  EXPECT_TRUE(reports(found, "f:2:9: layers", "integer"));
  EXPECT_TRUE(reports(found, "f:3:1: hiden", "hidden"));
  EXPECT_TRUE(reports(found, "f:1:1: hidden", "missing"));
  EXPECT_TRUE(reports(found, "f:4:8: heads", "must be from 1 to 1e+06"));
  EXPECT_TRUE(reports(found, "f:6:13: vocabulary", "must be from 1 to 1e+09"));
  EXPECT_TRUE(reports(found, "f:8:11: position", "rotary"));
  EXPECT_EQ(found.size(), 6U) << found.to_string();
}

const char* const kExperts = R"(name: small
layers: 4
hidden: 256
heads: 8
attention: {kind: mla, kv_rank: 32, rope_dim: 8, nope_dim: 16, value_dim: 24}
moe: {experts: 16, top_k: 4, expert_ffn_hidden: 64, shared_experts: 2, first_dense_layers: 1}
ffn_hidden: 1024
vocabulary: 1000
mlp: swiglu
norm: rmsnorm
position: rotary
)";

TEST(ReadModel, ExpertsAndLatentAttention) {
  Diagnostics diagnostics;
  const auto model = read_text(kExperts, diagnostics, read_model);
  ASSERT_TRUE(model && model->moe && model->latent) << diagnostics.to_string();
  EXPECT_EQ(model->moe->shared_ffn_hidden, 2 * 64);
  EXPECT_EQ(model->moe->every, 1);
  EXPECT_EQ(model->moe->capacity_factor, 0);
  EXPECT_EQ(model->latent->q_rank, 0);
  EXPECT_EQ(model->kv_heads, 8);
  EXPECT_EQ(model->head_dim, 8 + 16);
  const std::string text = emit(write(*model));
  const auto back = read_text(text, diagnostics, read_model);
  ASSERT_TRUE(back) << diagnostics.to_string();
  EXPECT_EQ(emit(write(*back)), text);
  EXPECT_EQ(back->parameters(), model->parameters());
}

TEST(ReadModel, ExpertsInEveryLayerNeedNoOtherWidth) {
  const std::string text =
      replaced(replaced(kExperts, ", first_dense_layers: 1", ""), "ffn_hidden: 1024\n", "");
  Diagnostics diagnostics;
  const auto model = read_text(text, diagnostics, read_model);
  ASSERT_TRUE(model) << diagnostics.to_string();
  EXPECT_EQ(model->ffn_hidden, 64);
  EXPECT_TRUE(reports(model_problems(text + "ffn_hidden: 512\n"), "f:11:13: ffn_hidden", "leave it out"));
  EXPECT_TRUE(
      reports(model_problems(replaced(kExperts, "ffn_hidden: 1024\n", "")), "f:1:1: ffn_hidden", "missing"));
}

TEST(ReadModel, ProblemsOfExpertsAndLatentAttentionAreLocated) {
  const std::string text = kExperts;
  const auto told = [&](const std::string& from, const std::string& to, const std::string& where,
                        const std::string& gist) {
    return reports(model_problems(replaced(text, from, to)), where, gist);
  };
  EXPECT_TRUE(told("top_k: 4", "top_k: 17", "f:6:27: moe.top_k", "must be at most experts (16)"));
  EXPECT_TRUE(told("experts: 16", "experts: 0", "f:6:16: moe.experts", "must be from 1"));
  EXPECT_TRUE(told("experts: 16, ", "", "f:6:6: moe.experts", "missing"));
  EXPECT_TRUE(told("shared_experts: 2", "shared_ffn_hidden: 64", "f:6:72: moe.shared_ffn_hidden",
                   "without shared_experts"));
  EXPECT_TRUE(
      told("shared_experts: 2", "shared_gate: true", "f:6:66: moe.shared_gate", "without shared_experts"));
  EXPECT_TRUE(told("layers: 1}", "layers: 4}", "f:6:92: moe.first_dense_layers", "less than layers (4)"));
  EXPECT_TRUE(told("layers: 1}", "layers: 1, every: 5}", "f:6:102: moe.every", "leaves none of 4 layers"));
  EXPECT_TRUE(told("layers: 1}", "layers: 1, router: hash}", "f:6:103: moe.router", "softmax"));
  EXPECT_TRUE(told("heads: 8\n", "heads: 8\nkv_heads: 2\n", "f:5:11: kv_heads", "with latent attention"));
  EXPECT_TRUE(told("heads: 8\n", "heads: 8\nhead_dim: 24\n", "f:5:11: head_dim", "with latent attention"));
  EXPECT_TRUE(told("kind: mla", "kind: mlb", "f:5:19: attention.kind", "did you mean \"mla\"?"));
  EXPECT_TRUE(told("kv_rank: 32, ", "", "f:5:12: attention.kv_rank", "missing"));
  EXPECT_TRUE(told("value_dim: 24", "value_dim: 0", "f:5:75: attention.value_dim", "must be from 1"));
  EXPECT_TRUE(told("position: rotary\n", "position: rotary\nsliding_window: 64\n", "f:12:17: sliding_window",
                   "is not modelled with latent attention"));
}

TEST(ReadDevice, TotalsAreSharedOverTheStacks) {
  Diagnostics diagnostics;
  const auto device = read_text(kDevice, diagnostics, read_device);
  ASSERT_TRUE(device.has_value()) << diagnostics.to_string();
  EXPECT_EQ(device->hbm.capacity_per_stack.value(), 16.0 * (1 << 30));
  EXPECT_EQ(device->hbm.bandwidth_per_stack.value(), 0.5e12);
  EXPECT_EQ(device->sm.tensor_flops_per_clock[static_cast<std::size_t>(Precision::fp8)], 2048.5);
  EXPECT_FALSE(device->supports(Precision::fp16));
  EXPECT_EQ(device->die.area_mm2, 800);
  EXPECT_EQ(device->links.bandwidth_per_port.value(), 25e9);
  EXPECT_EQ(device->power.value(), 400);
  ASSERT_EQ(device->package.size(), 1U);
  EXPECT_EQ(device->package[0].second, "silicon");
}

TEST(ReadDevice, UnitsAreDueWhereTheDimensionIsPhysical) {
  const std::string text = kDevice;
  EXPECT_TRUE(reports(device_problems(replaced(text, "clock: 1 GHz", "clock: 1e9")), "f:4:10: sm.clock",
                      "bare number"));
  EXPECT_TRUE(
      reports(device_problems(replaced(text, "2 us", "2 GB")), "f:12:17: kernel_latency", "a time is due"));
  EXPECT_TRUE(reports(device_problems(replaced(text, "100 KiB", "100 KB")), "f:8:9: sm.sram", "\"kB\""));
  EXPECT_TRUE(
      reports(device_problems(replaced(text, "count: 10", "count: 10 GB")), "f:3:10: sm.count", "integer"));
  EXPECT_TRUE(reports(device_problems(replaced(text, "400 W", "400")), "f:16:8: power", "400 W"));
}

TEST(ReadDevice, TotalAndSharePreferNeither) {
  const std::string text = kDevice;
  const Diagnostics twice =
      device_problems(replaced(text, "stacks: 4,", "stacks: 4, capacity_per_stack: 16 GiB,"));
  EXPECT_TRUE(reports(twice, "f:11:56: hbm.capacity", "given twice"));
  const Diagnostics none = device_problems(replaced(text, ", bandwidth: 2 TB/s}", "}"));
  EXPECT_TRUE(reports(none, "f:11:6: hbm.bandwidth_per_stack", "or the total bandwidth"));
}

TEST(ReadDevice, RulesOfTheSpecAreLocatedAtTheirField) {
  const std::string text = kDevice;
  EXPECT_TRUE(reports(device_problems(replaced(text, "2 TB/s", "-2 TB/s")),
                      "f:11:47: hbm.bandwidth_per_stack", "must be from 1 B/s"));
  EXPECT_TRUE(reports(device_problems(replaced(text, "{bf16: 1024, fp8: 2048.5}", "{}")),
                      "f:5:27: sm.tensor_flops_per_clock", ""));
  EXPECT_TRUE(reports(device_problems(replaced(text, "bf16", "bf17")),
                      "f:5:28: sm.tensor_flops_per_clock.bf17", "did you mean \"bf16\"?"));
  EXPECT_TRUE(reports(device_problems(text + "sustained: {hbm: 1.5}\n"), "f:18:18: sustained.hbm",
                      "must be from 1e-06 to 1, not 1.5"));
  EXPECT_TRUE(reports(device_problems(replaced(text, "l2: {capacity: 4 MiB, bytes_per_clock: 512}", "l2: 3")),
                      "f:10:5: l2", "must be a map"));
}

TEST(ReadStack, NestedGroupsAndDefaults) {
  Diagnostics diagnostics;
  const auto stack = read_text(kStack, diagnostics, read_stack);
  ASSERT_TRUE(stack.has_value()) << diagnostics.to_string();
  EXPECT_EQ(stack->attention, AttentionKernel::naive);
  EXPECT_EQ(stack->host.forward_layer.value(), 100e-6);
  EXPECT_TRUE(stack->communication.pipeline_async);
  EXPECT_EQ(stack->state.moment_bytes, 8);
  EXPECT_EQ(stack->memory.reserve.value(), 2.0 * (1 << 30));
}

TEST(ReadStack, ProblemsInsideGroups) {
  const std::string text = kStack;
  EXPECT_TRUE(reports(stack_problems(replaced(text, "fragmentation: 1.1", "fragmentation: 0.5")),
                      "f:5:41: memory.fragmentation", ""));
  EXPECT_TRUE(
      reports(stack_problems(replaced(text, "call:", "cal:")), "f:4:32: communication.cal", "\"call\""));
  EXPECT_TRUE(reports(stack_problems(replaced(text, "bucket: 25 MB, ", "")), "f:4:16: communication.bucket",
                      "missing"));
}

TEST(ReadFabric, SizesShapesAndFill) {
  Diagnostics diagnostics;
  const Node* device = nullptr;
  const auto read = [&](const Node& node, const std::string& prefix, Diagnostics& out) {
    return read_fabric(node, prefix, out, &device);
  };
  const std::string text =
      "name: c\n"
      "device: gpu\n"
      "dimensions:\n"
      "  - {name: a, kind: torus, shape: [4, 2], bandwidth: 100 GB/s, latency: 1 us}\n"
      "  - {name: b, kind: switch, size: fill, bandwidth: 25 GB/s, latency: 2 us, scope: scale_out}\n";
  const auto fabric = read_text(text, diagnostics, read);
  ASSERT_TRUE(fabric.has_value()) << diagnostics.to_string();
  EXPECT_TRUE(fabric->open());
  EXPECT_EQ(fabric->fabric.dimensions[0].size(), 8);
  EXPECT_EQ(fabric->fabric.dimensions[1].scope, LinkScope::scale_out);

  EXPECT_TRUE(
      reports(problems(replaced(text, "[4, 2]", "[4, 0]"), read), "f:4:39: dimensions[0].shape", "from 1"));
  EXPECT_TRUE(reports(problems(replaced(text, "shape: [4, 2]", "size: fill"), read),
                      "f:4:34: dimensions[0].shape", "outermost"));
  EXPECT_TRUE(reports(problems(replaced(text, "shape: [4, 2], ", ""), read), "f:4:5: dimensions[0].shape",
                      "missing"));
  EXPECT_TRUE(reports(problems(replaced(text, "size: fill", "size: 2, shape: [2]"), read),
                      "f:5:45: dimensions[1].shape", "given twice"));
  EXPECT_TRUE(
      reports(problems(replaced(text, "name: b", "name: a"), read), "f:5:12: dimensions[1].name", "earlier"));
  EXPECT_TRUE(reports(problems(replaced(text, "device: gpu\n", ""), read), "f:1:1: device", "missing"));
  EXPECT_TRUE(
      reports(problems(replaced(text, "torus", "tours"), read), "f:4:21: dimensions[0].kind", "\"torus\""));
  EXPECT_TRUE(
      reports(problems(replaced(text, "[4, 2]", "[1000000, 1000000]"), read), "f:4:3: dimensions", "2^30"));
}

TEST(WriteSpecs, ReadingBackGivesTheSame) {
  Diagnostics diagnostics;
  const auto model = read_text(kModel, diagnostics, read_model);
  const auto device = read_text(kDevice, diagnostics, read_device);
  const auto stack = read_text(kStack, diagnostics, read_stack);
  ASSERT_TRUE(model && device && stack) << diagnostics.to_string();
  const std::string model_text = emit(write(*model));
  const std::string device_text = emit(write(*device));
  const std::string stack_text = emit(write(*stack));
  const auto model_back = read_text(model_text, diagnostics, read_model);
  const auto device_back = read_text(device_text, diagnostics, read_device);
  const auto stack_back = read_text(stack_text, diagnostics, read_stack);
  ASSERT_TRUE(model_back && device_back && stack_back) << diagnostics.to_string();
  EXPECT_EQ(emit(write(*model_back)), model_text);
  EXPECT_EQ(emit(write(*device_back)), device_text);
  EXPECT_EQ(emit(write(*stack_back)), stack_text);
  EXPECT_EQ(model_back->head_dim, model->head_dim);
  EXPECT_EQ(device_back->hbm.bandwidth_per_stack, device->hbm.bandwidth_per_stack);
  EXPECT_EQ(device_back->package, device->package);
  EXPECT_EQ(device_back->power, device->power);
  EXPECT_EQ(stack_back->memory.fragmentation, stack->memory.fragmentation);
}

/// Keys by which tables of measurements are read are a preset's, checked and kept, but not the profile's.
TEST(StackTables, AreThePresetsAlone) {
  Diagnostics diagnostics;
  const std::string keys = "software: [engine]\nusual_zero_stage: 2\n";
  const auto stack = read_text(kStack + keys, diagnostics, read_stack);
  ASSERT_TRUE(stack) << diagnostics.to_string();
  EXPECT_EQ(stack->tables.software, std::vector<std::string>{"engine"});
  EXPECT_NE(emit(write(*stack)).find("usual_zero_stage: 2"), std::string::npos);
  const StackProfile& profile = *stack;
  EXPECT_EQ(emit(write(profile)).find("usual_zero_stage"), std::string::npos);
  const auto refused = [&](const std::string& text) { return problems(kStack + text, read_stack); };
  EXPECT_TRUE(reports(refused("usual_zero_stage: 4\n"), "f:6:19: usual_zero_stage", "is 0..3"));
  EXPECT_TRUE(reports(refused("expert_software: [engine]\nexpert_software_from: \"26.13\"\n"),
                      "f:7:23: expert_software_from", "is a release by year and month"));
  EXPECT_TRUE(
      reports(refused("software: []\nsoftware_of: [a lab]\n"), "f:6:11: software", "whose runs from these"));
  EXPECT_TRUE(reports(refused("expert_software_on: blackwell\n"), "f:1:1: expert_software",
                      "must name the software"));
}

TEST(Leaves, KnowTypesAndAlternatives) {
  const std::vector<Leaf> leaves = device_leaves("device");
  const auto find = [&](const std::string& path) {
    const auto it = std::ranges::find(leaves, path, &Leaf::path);
    EXPECT_NE(it, leaves.end()) << path;
    return it == leaves.end() ? Leaf() : *it;
  };
  EXPECT_EQ(find("device.hbm.bandwidth").replaces, "device.hbm.bandwidth_per_stack");
  EXPECT_EQ(find("device.hbm.bandwidth").dimension, Dimension::bandwidth);
  EXPECT_EQ(find("device.sm.tensor_flops_per_clock.fp4").type, Leaf::Type::number);
  EXPECT_EQ(find("device.sm.count").type, Leaf::Type::integer);
  EXPECT_EQ(find("device.die.area_mm2").type, Leaf::Type::informational);
  EXPECT_EQ(find("device.power").type, Leaf::Type::quantity) << "steps go by it where energies are known";
}

}  // namespace
}  // namespace shardscape::yaml
