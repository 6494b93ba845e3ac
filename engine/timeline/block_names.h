// Names of the blocks that one rank runs: '#' in a block's name is replaced by the number of earlier blocks of that
// name.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>

#include "engine/execution/program.h"

namespace shardscape::timeline {

class BlockNames {
 public:
  /// `programs` must outlive the object.
  explicit BlockNames(const execution::Programs& programs) : programs_(programs) {}

  /// The name of the next block of the rank (an index in Programs::blocks); counts it.
  std::string next(std::int32_t block) {
    std::string name = programs_.block_names[static_cast<std::size_t>(block)];
    const std::size_t mark = name.find('#');
    if (mark == std::string::npos) return name;
    const std::int32_t number = seen_[name]++;
    return name.replace(mark, 1, std::to_string(number));
  }

 private:
  const execution::Programs& programs_;
  std::unordered_map<std::string, std::int32_t> seen_;
};

}  // namespace shardscape::timeline
