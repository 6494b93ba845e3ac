// Are presets found, shown and overlaid?
#include "tests/cli/program_under_test.h"

namespace shardscape::cli {
namespace {

class PresetsTest : public ProgramTest {};

TEST_F(PresetsTest, ListsEveryKindWithFacts) {
  const Finished finished = run({"presets"});
  ASSERT_EQ(finished.code, 0) << finished.err;
  for (const char* part :
       {"models\n", "llama3.1-70b", "70.55 B parameters, 80 layers", "devices\n", "a100-sxm-80gb", "108 SMs",
        "clusters\n", "dgx-a100", "switch of 8", "stacks\n", "megatron-lm"}) {
    EXPECT_TRUE(contains(finished.out, part)) << part << " not in\n" << finished.out;
  }
  EXPECT_FALSE(contains(finished.out, "broken")) << finished.out;
}

TEST_F(PresetsTest, ShownPresetIsAPresetItself) {
  const Finished shown = run({"presets", "llama3.1-8b"});
  ASSERT_EQ(shown.code, 0) << shown.err;
  EXPECT_TRUE(contains(shown.out, "kv_heads: 8")) << shown.out;
  fs::create_directories(work() / "mine/models");
  write("mine/models/tuned.yaml", shown.out);
  const Finished again = run({"presets", "tuned", "--presets", "mine"});
  ASSERT_EQ(again.code, 0) << again.err;
  const auto body = [](const std::string& text) {
    return text.substr(text.find('\n'));
  };  // without the first line, which states the origin
  EXPECT_EQ(body(again.out), body(shown.out));
}

TEST_F(PresetsTest, TheNearestPresetHasTheSizesOfAConfigThatIsNotRead) {
  // Llama 3.1 8B with a key that nobody knows. Others are as deep and wide, of other heads, MLPs and vocabularies.
  write("config.json", R"({"model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336,
    "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 128256, "foo": 3})");
  const Finished finished = run({"presets", "config.json"});
  EXPECT_NE(finished.code, 0);
  EXPECT_TRUE(contains(finished.err, "the nearest preset is llama3.1-8b:")) << finished.err;
}

TEST_F(PresetsTest, OwnDirectoriesComeFirst) {
  fs::create_directories(work() / "mine/models");
  std::string text = run({"presets", "llama3.1-8b"}).out;
  text.replace(text.find("layers: 32"), 10, "layers: 16");
  write("mine/models/llama3.1-8b.yaml", text);
  EXPECT_TRUE(contains(run({"presets", "llama3.1-8b", "--presets", "mine"}).out, "layers: 16"));
  EXPECT_TRUE(contains(run({"presets", "llama3.1-8b"}).out, "layers: 32"));
}

TEST_F(PresetsTest, HelpHasExamplesEverywhere) {
  for (const char* command :
       {"sweep", "check", "simulate", "top", "network", "presets", "launch", "compare"}) {
    const Finished finished = run({command, "--help"});
    EXPECT_EQ(finished.code, 0);
    EXPECT_TRUE(contains(finished.out, std::string("Examples:\n  shardscape ") + command)) << finished.out;
  }
  EXPECT_EQ(run({"--help"}).code, 0);
  EXPECT_EQ(run({"--version"}).out.rfind("shardscape ", 0), 0U);
}

// A checkpoint's own precision is one that workload.precision knows; what that does not know is not proposed.
TEST_F(PresetsTest, ConfigsSayThePrecisionOfTheirCheckpoint) {
  const std::string shapes = R"({"model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336,
    "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 128256,
    "add_classification_head": false, "dense_list": [4096, 0], "norm_topk_prob": true, "quantization_config": )";
  const std::string compressed = R"({"quant_method": "compressed-tensors", "format": "float-quantized",
    "config_groups": {"group_0": {"weights": {"num_bits": 8, "type": "float"}}}}})";
  const std::vector<std::pair<std::string, std::string>> formats = {
      {R"({"quant_method": "mxfp4", "modules_to_not_convert": ["lm_head"]}})", "fp4"}, {compressed, "fp8"}};
  for (const auto& [quantisation, precision] : formats) {
    write("config.json", shapes + quantisation);
    const Finished shown = run({"presets", "config.json"});
    EXPECT_TRUE(contains(shown.out, "workload.precision: " + precision + "\n")) << shown.out << shown.err;
    const Finished made = run({"new", "--model", "config.json", "--cluster", "dgx-b200", "--gpus", "8",
                               "--phase", "serving", "--force"});
    ASSERT_EQ(made.code, 0) << made.err;
    EXPECT_TRUE(contains(read_file(work() / "study.yaml"), "  precision: " + precision + " "));
  }
  // The format of the cache is none of the weights, wherever it stands.
  for (const char* const integers :
       {R"({"quant_method": "awq", "bits": 4}})",
        R"({"quant_method": "modelopt", "quant_algo": "W4A16_AWQ", "kv_cache_quant_algo": "FP8"}})",
        R"({"quantization": {"quant_algo": "W4A16_AWQ", "kv_cache_quant_algo": "FP8"}}})"}) {
    write("config.json", shapes + integers);
    const Finished refused = run({"presets", "config.json"});
    EXPECT_EQ(refused.code, 2);
    EXPECT_TRUE(contains(refused.err, "(fp8 and fp4 are)")) << refused.err;
  }
}

TEST_F(PresetsTest, DifferencesMayStandOnAConfig) {
  write("config.json", R"({"model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336,
    "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 128256})");
  write("shallow.yaml", "name: shallow\nbase: ./config.json\nlayers: 16\n");
  const Finished shallow = run({"presets", "shallow.yaml"});
  ASSERT_EQ(shallow.code, 0) << shallow.err;
  EXPECT_TRUE(contains(shallow.out, "# model, ")) << shallow.out;
  EXPECT_TRUE(contains(shallow.out, "\nlayers: 16\n")) << shallow.out;
  write("wide.yaml", "name: wide\nbase: config.json\nvocabulary: 256000\n");
  const Finished wide = run({"presets", "wide.yaml"});
  ASSERT_EQ(wide.code, 0) << wide.err;
  EXPECT_TRUE(contains(wide.out, "\nvocabulary: 256000\n")) << wide.out;
}

}  // namespace
}  // namespace shardscape::cli
