// Output of `simulate --explain` about a simulated load: where its requests' time goes, what its servers' iterations
// do, and what requests wait for.
#pragma once

#include <nlohmann/json.hpp>
#include <ostream>

#include "engine/spec/load_mix.h"
#include "engine/spec/prediction.h"

namespace shardscape::cli {

/// {load_time: [...], iterations: [...], waits: [...]}; `mixes` as in Details.
nlohmann::ordered_json load_mix_json(const Prediction& prediction, const LoadMixes& mixes);
void print_load_mix(std::ostream& out, const Prediction& prediction, const LoadMixes& mixes);

}  // namespace shardscape::cli
