// The text of huggingface_keys.txt, which is built into the program.
#pragma once

#include <string_view>

namespace shardscape::yaml::data {

std::string_view huggingface_keys();

}  // namespace shardscape::yaml::data
