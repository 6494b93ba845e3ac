// The texts of the data files, which are built into the program: frameworks/ and stack_keys.yaml.
#pragma once

#include <string_view>

namespace shardscape::launch::data {

std::string_view megatron_lm();
std::string_view nemo();
std::string_view torchtitan();
std::string_view vllm();
std::string_view sglang();
std::string_view trtllm();
std::string_view dynamo();
std::string_view stack_keys();

}  // namespace shardscape::launch::data
