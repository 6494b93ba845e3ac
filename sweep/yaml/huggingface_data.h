// The texts of huggingface_keys.txt and huggingface_families.json, which are built into the program.
#pragma once

#include <string_view>

namespace shardscape::yaml::data {

std::string_view huggingface_keys();
std::string_view huggingface_families();

}  // namespace shardscape::yaml::data
