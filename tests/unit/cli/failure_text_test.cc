// Is memory that there is not told apart from a length that no memory has?
#include "sweep/cli/terminal/failure_text.h"

#include <gtest/gtest.h>

#include <new>
#include <stdexcept>
#include <string>
#include <vector>

namespace shardscape::cli {
namespace {

TEST(FailureText, TellsMemoryFromLengths) {
  EXPECT_EQ(failure_text(std::bad_alloc()), "memory: this needs more than there is");
  std::string text;
  try {
    std::vector<int> list;
    list.reserve(list.max_size() + 1);
  } catch (const std::length_error& error) {
    text = failure_text(error);
  }
  EXPECT_EQ(text.find("memory: "), std::string::npos) << text;
  EXPECT_NE(text.find("a number of the input is too large"), std::string::npos) << text;
  EXPECT_EQ(failure_text(std::runtime_error("out.h5: is foreign")), "out.h5: is foreign");
}

}  // namespace
}  // namespace shardscape::cli
