// Does one command print the whole accuracy table?
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <initializer_list>
#include <string>

#include "tests/support/csv.h"
#include "tests/support/paths.h"

namespace shardscape {
namespace {

namespace fs = std::filesystem;

TEST(ValidateAll, PrintsALineForEveryTableAndWhatItWasFittedOn) {
  const fs::path reference = test::reference_dir();
  if (!fs::exists(reference / "measurements/modern-gemm.csv")) GTEST_SKIP() << "no reference measurements";
  const std::string script = (fs::path(test::source_dir()) / "scripts/validate-all").string();
  const std::string command =
      script + " --program " + test::program() + " --reference " + reference.string() + " 2>&1";
  FILE* const pipe = popen(command.c_str(), "r");
  ASSERT_NE(pipe, nullptr);
  std::string text;
  std::array<char, 4096> buffer{};
  while (const std::size_t n = fread(buffer.data(), 1, buffer.size(), pipe)) text.append(buffer.data(), n);
  ASSERT_EQ(pclose(pipe), 0) << text;
  const std::size_t served = test::read_csv(reference / "measurements/modern-inference.csv").size();
  for (const std::string& part : std::initializer_list<std::string>{
           "| Megatron-LM on A100", "`megatron-lm`: training-a100-megatron (11 of 11 rows)",
           "| out of memory |", "cuBLAS alone: h100-sxm-80gb", "NCCL in one node: b200-sxm-180gb",
           "attention of decoding alone: a100-sxm-80gb", "experts alone: h200-sxm-141gb",
           "latent attention alone: gb200-186gb, latent decode", "expert dispatch: b300-sxm-288gb",
           "| modern-inference | " + std::to_string(served) + " |"})
    EXPECT_NE(text.find(part), std::string::npos) << part << " not in\n" << text;
}

}  // namespace
}  // namespace shardscape
