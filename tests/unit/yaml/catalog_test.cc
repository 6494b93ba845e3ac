// Are presets found by name and path, are problems located in the right file, and do shipped presets have the sizes of
// their originals?
#include "sweep/yaml/catalog.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <vector>

#include "sweep/yaml/load.h"
#include "sweep/yaml/loader.h"
#include "tests/support/paths.h"
#include "tests/support/temporary_folder.h"
#include "tests/unit/yaml/problems_of.h"

namespace shardscape::yaml {
namespace {

namespace fs = std::filesystem;

class CatalogTest : public test::TemporaryFolder {
 protected:
  static std::string model(const std::string& name, int layers) {
    return "name: " + name + "\nlayers: " + std::to_string(layers) +
           "\nhidden: 8\nheads: 2\nffn_hidden: 8\nvocabulary: 8\nmax_positions: 8\n";
  }
};

TEST_F(CatalogTest, FirstDirectoryWinsAndListIsSorted) {
  write("one/models/b.yaml", model("b", 1));
  write("two/models/b.yaml", model("b", 2));
  write("two/models/a.yaml", model("a", 2));
  write("two/models/notes.txt", "no preset");
  const Catalog catalog({root_ / "one", root_ / "two", root_ / "absent"});
  const auto entries = catalog.list(PresetKind::model);
  ASSERT_EQ(entries.size(), 2U);
  EXPECT_EQ(entries[0].name, "a");
  EXPECT_EQ(entries[1].file, root_ / "one/models/b.yaml");
  const auto loaded = load_model(catalog, "b");
  ASSERT_TRUE(loaded.has_value()) << loaded.error().to_string();
  EXPECT_EQ(loaded->layers, 1);
  EXPECT_TRUE(catalog.list(PresetKind::stack).empty());
}

TEST_F(CatalogTest, UnknownNamesListTheClosestAndAll) {
  write("one/models/llama-70b.yaml", model("x", 1));
  write("one/models/gpt.yaml", model("x", 1));
  const Catalog catalog({root_ / "one"});
  const auto found = catalog.find(PresetKind::model, "lama-70b", {});
  ASSERT_FALSE(found.has_value());
  EXPECT_EQ(found.error(), "unknown model \"lama-70b\"; did you mean llama-70b?");
}

TEST_F(CatalogTest, PathsAreRelativeToTheFolderGiven) {
  const fs::path file = write("studies/own.yaml", model("own", 3));
  const Catalog catalog;
  EXPECT_EQ(catalog.find(PresetKind::model, "own.yaml", root_ / "studies").value(), file);
  EXPECT_EQ(catalog.find(PresetKind::model, "../studies/own.yaml", root_ / "studies").value(),
            root_ / "studies" / "../studies/own.yaml");
  EXPECT_EQ(catalog.find(PresetKind::model, file.string(), {}).value(), file);
  EXPECT_NE(catalog.find(PresetKind::model, "absent.yaml", root_).error().find("no such file"),
            std::string::npos);
}

TEST_F(CatalogTest, HuggingFaceConfigIsNamedAfterItsFolder) {
  const fs::path file =
      write("tiny/config.json",
            R"({"model_type": "llama", "hidden_size": 8, "num_hidden_layers": 1, "vocab_size": 8,
                                  "num_attention_heads": 2, "intermediate_size": 8})");
  const auto loaded = load_model(Catalog(), file.string());
  ASSERT_TRUE(loaded.has_value()) << loaded.error().to_string();
  EXPECT_EQ(loaded->name, "tiny");
}

TEST_F(CatalogTest, NamesOfAHubAreNotFetched) {
  write("one/models/llama3.1-8b.yaml", model("llama3.1-8b", 2));
  const Catalog catalog({root_ / "one"});
  const auto message = [&](const std::string& name) {
    const auto found = catalog.find(PresetKind::model, name, root_);
    EXPECT_FALSE(found.has_value());
    return found ? std::string() : found.error();
  };
  const std::string hub = message("meta-llama/Llama-3.1-8B");
  EXPECT_NE(
      hub.find("names of a hub are not fetched: download the config.json of meta-llama/Llama-3.1-8B and "
               "pass its path, such as Llama-3.1-8B/config.json, or take llama3.1-8b"),
      std::string::npos)
      << hub;
  EXPECT_EQ(message("./mine/model.yaml").find("hub"), std::string::npos);
  EXPECT_EQ(message("mine/model.yaml").find("hub"), std::string::npos);
  EXPECT_EQ(message("a/b/c").find("hub"), std::string::npos);
  // A folder that has been downloaded: its config.
  const fs::path config = write("org/tiny/config.json", "{}");
  const std::string folder = message("org/tiny");
  EXPECT_NE(folder.find("that is a folder: its Hugging Face config is " + config.string()), std::string::npos)
      << folder;
}

TEST_F(CatalogTest, ProblemsAreLocatedInTheFileThatHasThem) {
  const fs::path file = write("one/models/b.yaml", model("b", 0));
  const auto loaded = load_model(Catalog({root_ / "one"}), "b");
  ASSERT_FALSE(loaded.has_value());
  EXPECT_TRUE(reports(loaded.error(), file.string() + ":2:9: layers", "from 1 to 1e+05"));
}

// Every preset of the repository obeys its own format.
TEST(Presets, AllLoadAndReadBack) {
  const Catalog catalog({test::source_dir()});
  const auto check = [&](PresetKind kind, auto load) {
    const auto presets = catalog.list(kind);
    EXPECT_FALSE(presets.empty()) << name_of(kind);
    for (const auto& entry : presets) {
      const auto loaded = load(catalog, entry.name, std::filesystem::path());
      ASSERT_TRUE(loaded.has_value()) << loaded.error().to_string();
      EXPECT_EQ(loaded->name, entry.name);
    }
  };
  check(PresetKind::model, load_model);
  check(PresetKind::device, load_device);
  check(PresetKind::cluster, load_cluster);
  check(PresetKind::stack, load_stack);
}

// What the authors' checkpoints hold, as their hub pages count it (shared weights once).
TEST(Presets, HaveTheParametersOfTheirCheckpoints) {
  struct Published {
    const char* name;
    double parameters;
  };
  const Catalog catalog({test::source_dir()});
  for (const auto& [name, parameters] : std::vector<Published>{
           {"llama3.2-1b", 1'235'814'400.0},    {"llama3.2-3b", 3'212'749'824.0},
           {"qwen2.5-0.5b", 494'032'768.0},     {"qwen2.5-1.5b", 1'543'714'304.0},
           {"qwen2.5-3b", 3'085'938'688.0},     {"qwen2.5-7b", 7'615'616'512.0},
           {"qwen2.5-14b", 14'770'033'664.0},   {"qwen2.5-32b", 32'763'876'352.0},
           {"qwen2.5-72b", 72'706'203'648.0},   {"qwen3-0.6b", 596'049'920.0},
           {"qwen3-4b", 4'022'468'096.0},       {"qwen3-8b", 8'190'735'360.0},
           {"qwen3-14b", 14'768'307'200.0},     {"qwen3-32b", 32'762'123'264.0},
           {"mistral-7b", 7'241'732'096.0},     {"mpt-7b", 6'649'286'656.0},
           {"codellama-34b", 33'743'970'304.0}, {"mistral-nemo-12b", 12'247'782'400.0},
           {"gemma-2b", 2'506'172'416.0},       {"gemma-7b", 8'537'680'896.0},
           {"gemma-2-2b", 2'614'341'888.0},     {"gemma-2-9b", 9'241'705'984.0},
           {"gemma-2-27b", 27'227'128'320.0},   {"gemma-3-1b", 999'885'952.0},
           {"gemma-3-4b", 3'880'263'168.0},     {"gemma-3-12b", 11'766'034'176.0},
           {"gemma-3-27b", 27'009'346'304.0},   {"opt-125m", 125'239'296.0},
           {"opt-1.3b", 1'315'758'080.0},       {"opt-6.7b", 6'658'473'984.0},
           {"opt-13b", 12'853'473'280.0},       {"opt-30b", 29'974'540'288.0},
           {"phi-2", 2'779'683'840.0},          {"phi-3-mini", 3'821'079'552.0},
           {"phi-3-medium", 13'960'238'080.0},  {"phi-4", 14'659'507'200.0},
           {"falcon-7b", 6'921'720'704.0},      {"falcon-40b", 41'303'293'952.0},
           {"bloom-176b", 176'247'271'424.0},   {"starcoder2-15b", 15'957'889'024.0},
           {"olmo2-7b", 7'298'617'344.0},       {"olmo2-13b", 13'716'198'400.0},
           {"internlm2-7b", 7'737'708'544.0},   {"gpt-j-6b", 6'050'882'784.0},
           {"gpt-neox-20b", 20'554'567'680.0},
       }) {
    const auto loaded = load_model(catalog, name);
    ASSERT_TRUE(loaded.has_value()) << loaded.error().to_string();
    EXPECT_EQ(loaded->parameters(), parameters) << name;
  }
  // Parmar et al. 2024, table 1: 12.5 B without the embeddings and 3.1 B in them; Nemotron-4 340B, table 1:
  // 331.6 B and 9.4 B.
  const auto split = [&](const char* name, double blocks, double embeddings) {
    const auto model = load_model(catalog, name);
    ASSERT_TRUE(model.has_value());
    const double ends = model->embedding_parameters() + model->head_parameters();
    EXPECT_NEAR(ends, embeddings, 0.05e9) << name;
    EXPECT_NEAR(model->parameters() - ends, blocks, 0.05e9) << name;
  };
  split("nemotron4-15b", 12.5e9, 3.15e9);
  split("nemotron4-340b", 331.6e9, 9.44e9);
}

TEST_F(CatalogTest, ModelsHaveNamesOfHubsAndOfTheirDepth) {
  write("one/models/b.yaml", model("b", 4) + "also: [Org/B-Big, bee]\n");
  write("one/models/b-l7.yaml", model("b-l7", 7));
  const Catalog catalog({root_ / "one"});
  const auto layers = [&](const std::string& name, const std::string& called) {
    const auto loaded = load_model(catalog, name);
    EXPECT_TRUE(loaded.has_value()) << name;
    if (!loaded) return std::int64_t{0};
    EXPECT_EQ(loaded->name, called);
    return loaded->layers;
  };
  EXPECT_EQ(layers("bee", "b"), 4);
  EXPECT_EQ(layers("org/b-big", "b"), 4);
  EXPECT_EQ(layers("b-l2", "b-l2"), 2);
  EXPECT_EQ(layers("Org/B-Big-l9", "b-l9"), 9);
  EXPECT_EQ(layers("b-l7", "b-l7"), 7);  // a file of that name goes first
  for (const char* name : {"b-l", "b-l0", "b-lx", "b-l2-l3", "-l2", "c-l2", "b-l1x"})
    EXPECT_FALSE(load_model(catalog, name).has_value()) << name;
}

// A checkpoint of the same shapes may differ in keys, which stand beside its name; what is wrong with them is located.
TEST_F(CatalogTest, CheckpointsMayDifferInKeys) {
  write("one/models/b.yaml",
        model("b", 4) + "also: [Org/B, {name: Org/B-Late, norm_epsilon: 1e-5, vocabulary: 16}]\n");
  write("one/models/c.yaml", model("c", 4) + "also: [{name: Org/C, layers: x, wings: 2}]\n");
  write("one/models/d.yaml", model("d", 4) + "also: [{layers: 3}]\n");
  write("one/models/e.yaml", model("e", 4) + "also: [Org/E, [1]]\n");
  const Catalog catalog({root_ / "one"});
  EXPECT_EQ(load_model(catalog, "b")->norm_epsilon, 0);
  EXPECT_EQ(load_model(catalog, "Org/B")->vocabulary, 8);
  const auto late = load_model(catalog, "org/b-late-l2");
  ASSERT_TRUE(late.has_value());
  EXPECT_EQ(late->name, "b-l2");
  EXPECT_EQ(late->norm_epsilon, 1e-5);
  EXPECT_EQ(late->vocabulary, 16);
  EXPECT_EQ(late->layers, 2);
  const auto broken = load_model(catalog, "c");  // found when the file is read, whatever name is asked for
  ASSERT_FALSE(broken.has_value());
  const std::string problems = broken.error().to_string();
  EXPECT_NE(problems.find("c.yaml:8:"), std::string::npos) << problems;
  EXPECT_NE(problems.find("also.layers: must be an integer"), std::string::npos) << problems;
  EXPECT_NE(problems.find("also.wings: unknown key"), std::string::npos) << problems;
  EXPECT_FALSE(load_model(catalog, "Org/C").has_value());
  for (const char* nameless : {"d", "e"}) EXPECT_FALSE(load_model(catalog, nameless).has_value()) << nameless;
}

TEST_F(CatalogTest, NamesOfCheckpointsAreTextsAndDiffer) {
  const auto problem_of = [&](const std::string& keys) {
    write("one/models/f.yaml", model("f", 4) + keys + '\n');
    const auto loaded = load_model(Catalog({root_ / "one"}), "f");
    return loaded.has_value() ? std::string() : loaded.error().to_string();
  };
  for (const char* good : {"also: Org/F", "also: [Org/F, {name: Org/G, layers: 2}]", "also: []"})
    EXPECT_EQ(problem_of(good), "") << good;
  for (const char* nameless :
       {"also: ''", "also: [Org/F, '']", "also: [{name: [Org/F]}]", "also: [{name: ''}]",
        "also: [{layers: 2}]", "also: {name: Org/F}", "also: [[Org/F]]"})
    EXPECT_NE(problem_of(nameless).find("also: must be a name, or a list of names"), std::string::npos)
        << nameless << problem_of(nameless);
  for (const char* twice : {"also: [Org/F, org/f]", "also: [Org/F, {name: Org/F, layers: 2}]"})
    EXPECT_NE(problem_of(twice).find("twice"), std::string::npos) << twice << problem_of(twice);
  // Maps are for checkpoints alone.
  EXPECT_NE(problem_of("source: [{name: a paper}]").find("source: must be text or a list of texts"),
            std::string::npos);
}

// An item without a name is nobody's, as results of other versions may hold.
TEST(Checkpoints, HaveNames) {
  Diagnostics diagnostics;
  const auto node = parse("also: [{layers: 3}, '', {name: Org/F}]", "model", diagnostics);
  ASSERT_TRUE(node.has_value());
  EXPECT_EQ(also_entry(*node, ""), nullptr);
  ASSERT_NE(also_entry(*node, "org/f"), nullptr);
  EXPECT_EQ(also_name(*also_entry(*node, "org/f")), "Org/F");
}

TEST_F(CatalogTest, PartsOfAGroupMayDiffer) {
  write("one/models/e.yaml",
        "name: e\nlayers: 4\nhidden: 8\nheads: 2\nvocabulary: 100\nmlp: swiglu\nposition: rotary\n"
        "moe: {experts: 8, top_k: 2, expert_ffn_hidden: 16, shared_experts: 1}\n");
  const Catalog catalog({root_ / "one"});
  const auto read = [&](const std::string& text) {
    Diagnostics diagnostics;
    const auto node = parse(text, "study", diagnostics);
    const auto model = Loader(catalog, diagnostics).model({*node, "model", {}});
    EXPECT_TRUE(model.has_value()) << diagnostics.to_string();
    return model.value_or(ModelSpec());
  };
  const ModelSpec changed = read("{base: e, moe: {expert_ffn_hidden: 24, top_k: 3}}");
  EXPECT_EQ(changed.moe->experts, 8);
  EXPECT_EQ(changed.moe->top_k, 3);
  EXPECT_EQ(changed.moe->shared_ffn_hidden, 24);  // widths that follow from it, as in a file of its own
  EXPECT_EQ(changed.ffn_hidden, 24);
  const ModelSpec latent =
      read("{base: e, attention: {kind: mla, kv_rank: 4, rope_dim: 2, nope_dim: 4, value_dim: 6}}");
  EXPECT_EQ(latent.head_dim, 6);
  EXPECT_EQ(latent.moe->experts, 8);
}

TEST_F(CatalogTest, AModelMayDifferFromItsBase) {
  write("one/models/b.yaml", model("b", 4));
  const Catalog catalog({root_ / "one"});
  const auto read = [&](const std::string& text, Diagnostics& diagnostics) {
    const auto node = parse(text, "study", diagnostics);
    EXPECT_TRUE(node.has_value());
    return Loader(catalog, diagnostics).model({*node, "model", {}});
  };
  Diagnostics none;
  const auto changed = read("{base: b, layers: 2, hidden: 16}", none);
  ASSERT_TRUE(changed.has_value()) << none.to_string();
  EXPECT_EQ(changed->name, "b-l2");
  EXPECT_EQ(changed->layers, 2);
  EXPECT_EQ(changed->head_dim, 8);  // 16 / 2 heads, as in a file that leaves it out
  EXPECT_EQ(changed->ffn_hidden, 8);
  const auto named = read("{base: b, layers: 2, name: mine}", none);
  ASSERT_TRUE(named.has_value());
  EXPECT_EQ(named->name, "mine");
  const auto refused = [&](const char* text, const char* place, const char* why) {
    Diagnostics problems;
    EXPECT_FALSE(read(text, problems).has_value()) << text;
    EXPECT_TRUE(reports(problems, place, why)) << text;
  };
  refused("{base: b, layer: 2}", "study:1:11: model.layer", "unknown key");
  refused("{base: b, layers: 0}", "study:1:19: model.layers", "from 1");
  refused("{base: b, layers: 2, layers: 3}", "study:1:22: model.layers", "duplicate key");
  refused("{base: c, layers: 2}", "study:1:8: model.base", "unknown model");
}

TEST_F(CatalogTest, AsManyFilesMayRestOnEachOtherAsTheLimitSays) {
  const auto chained = [&](std::size_t files) {  // the last rests on a preset, which does not count
    for (std::size_t i = 0; i < files; ++i) {
      const std::string next = i + 1 < files ? "./k" + std::to_string(i + 1) + ".yaml" : "megatron-lm";
      write("k" + std::to_string(i) + ".yaml", "base: " + next + "\nname: k\n");
    }
    Diagnostics diagnostics;
    const Catalog catalog({test::source_dir()});
    const auto node = parse("./k0.yaml", "study", diagnostics);
    const bool loaded = Loader(catalog, diagnostics).stack({*node, "stack", root_}).has_value();
    EXPECT_EQ(loaded, diagnostics.list().empty());
    return loaded ? std::string() : diagnostics.to_string();
  };
  EXPECT_EQ(chained(kLongestChain), "");
  EXPECT_NE(chained(kLongestChain + 1).find("is file 65 of a chain"), std::string::npos);
}

}  // namespace
}  // namespace shardscape::yaml
