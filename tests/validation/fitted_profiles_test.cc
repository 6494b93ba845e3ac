// Every fitted profile that comes with the program is what its first line makes of the reference
// measurements.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tests/support/paths.h"
#include "tests/support/profile_text.h"

namespace shardscape {
namespace {

namespace fs = std::filesystem;

std::string text_of(const fs::path& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::string shell_word(const std::string& word) { return "'" + word + "' "; }

class FittedProfiles : public testing::TestWithParam<const char*> {};

TEST_P(FittedProfiles, AreWhatTheirFirstLineMakes) {
  const fs::path measurements = fs::path(test::reference_dir()) / "measurements";
  if (!fs::exists(measurements)) GTEST_SKIP() << measurements << " is absent";
  const fs::path presets = fs::path(test::source_dir()) / "hw_presets";
  const std::string shipped = text_of(presets / "stacks" / (std::string(GetParam()) + ".yaml"));
  const std::string mark = test::kFittedBy;
  ASSERT_TRUE(shipped.starts_with(mark));
  const fs::path output = fs::path(testing::TempDir()) / (GetParam() + std::to_string(getpid()) + ".yaml");
  const fs::path device_output = fs::path(output).replace_extension("device.yaml");
  std::string line = shell_word(test::program()), device;
  auto words = test::words_of(shipped.substr(mark.size(), shipped.find('\n') - mark.size()));
  for (std::size_t i = 0; i < words.size(); ++i) {
    std::string& word = words[i];
    const std::string before = i == 0 ? "" : words[i - 1];
    if (before == "-o") word = output.string();
    if (before == "--folds") word = "0";  // the result of the fit does not depend on folds
    if (before == "--device") device = word;
    if (word.ends_with(".csv")) word = (measurements / word).string();
    line += shell_word(word);
  }
  ASSERT_EQ(std::system((line + "--quiet >/dev/null").c_str()), 0) << line;
  EXPECT_EQ(test::keys_of(text_of(output)), test::keys_of(shipped));
  if (!device.empty()) {
    EXPECT_EQ(test::keys_of(text_of(device_output)),
              test::keys_of(text_of(presets / "devices" / (device + ".yaml"))));
  }
  fs::remove(output);
  fs::remove(device_output);
}

INSTANTIATE_TEST_SUITE_P(Shipped, FittedProfiles,
                         testing::Values("megatron-lm", "nanotron-a", "nanotron-b", "pytorch",
                                         "llama2-latency", "nim", "nccl-tests", "trtllm", "vllm", "sglang",
                                         "sglang-0.5.1", "megatron-core", "megatron-core-plain",
                                         "megatron-core-alltoall", "megatron-core-alltoall-25.05", "maxtext"),
                         [](const auto& profile) {
                           std::string name = profile.param;
                           std::ranges::replace(name, '-', '_');
                           std::ranges::replace(name, '.', '_');
                           return name;
                         });

}  // namespace
}  // namespace shardscape
