// Do configs of models survive any bytes? What is accepted is a model within the ranges of its numbers.
#include <cmath>
#include <cstdint>
#include <string>

#include "engine/base/check.h"
#include "sweep/yaml/huggingface.h"

using namespace shardscape;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  yaml::Diagnostics diagnostics;
  const auto model = yaml::read_huggingface(text, "model", "config.json", diagnostics);
  SHARDSCAPE_CHECK(model.has_value() == diagnostics.empty(), text);
  if (!model) return 0;
  SHARDSCAPE_CHECK(model->validate().empty(), text);
  SHARDSCAPE_CHECK(std::isfinite(model->parameters()) && model->parameters() > 0, text);
  return 0;
}
