#include "sweep/cli/commands/kernel_arguments.h"

#include <string_view>
#include <vector>

#include "sweep/yaml/load.h"
#include "sweep/yaml/number.h"

namespace shardscape::cli {

std::int64_t KernelWords::extent(const char* name, const std::string& text, std::int64_t most) {
  const auto value = yaml::parse_integer(text, 1, most);
  if (!value) bad(name, value.error());
  return value.value_or(1);
}

DeviceSpec KernelWords::device(const std::string& text) {
  const auto device = yaml::load_device(catalog_, text);
  if (!device) {
    problems_.add(device.error(), "--device");
    return {};
  }
  device_ = *device;
  return *device;
}

bool KernelWords::precision(const std::string& text, Precision& value) {
  if (text.empty()) {
    value = !device_ || device_->supports(Precision::bf16) ? Precision::bf16 : Precision::fp16;
    return true;
  }
  const auto names = enum_names<Precision>();
  const auto parsed = parse_enum<Precision>(text);
  if (!parsed) {
    bad("--dtype",
        fmt::format("no type '{}'{}; types: {}", text, did_you_mean(text, names), join_names(names)));
    return false;
  }
  value = *parsed;
  if (!device_ || device_->supports(value)) return true;
  std::vector<std::string_view> supported;
  for (const std::string_view name : names) {
    if (device_->supports(*parse_enum<Precision>(name))) supported.push_back(name);
  }
  bad("--dtype", fmt::format("{} has no unit for {}; it has {}", device_->name, text, join_names(supported)));
  return false;
}

}  // namespace shardscape::cli
