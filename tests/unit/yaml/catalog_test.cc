#include "sweep/yaml/catalog.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "sweep/yaml/load.h"
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
  EXPECT_EQ(found.error(), "unknown model \"lama-70b\"; did you mean llama-70b?; available: gpt, llama-70b");
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
  std::size_t count = 0;
  for (const auto& [name, file] : catalog.list(PresetKind::model)) {
    const auto loaded = load_model(catalog, name);
    ASSERT_TRUE(loaded.has_value()) << loaded.error().to_string();
    EXPECT_EQ(loaded->name, name);
    ++count;
  }
  for (const auto& [name, file] : catalog.list(PresetKind::device)) {
    const auto loaded = load_device(catalog, name);
    ASSERT_TRUE(loaded.has_value()) << loaded.error().to_string();
    EXPECT_EQ(loaded->name, name);
    ++count;
  }
  for (const auto& [name, file] : catalog.list(PresetKind::cluster)) {
    const auto loaded = load_cluster(catalog, name);
    ASSERT_TRUE(loaded.has_value()) << loaded.error().to_string();
    EXPECT_EQ(loaded->name, name);
    ++count;
  }
  for (const auto& [name, file] : catalog.list(PresetKind::stack)) {
    const auto loaded = load_stack(catalog, name);
    ASSERT_TRUE(loaded.has_value()) << loaded.error().to_string();
    EXPECT_EQ(loaded->name, name);
    ++count;
  }
  EXPECT_GE(count, 1U);
}

}  // namespace
}  // namespace shardscape::yaml
