// Names of the blocks that one rank goes through: '#' in the name of a block stands for the number of blocks
// of that name before it.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>

#include "engine/execution/program.h"

namespace shardscape::timeline {

class BlockNames {
 public:
  /// `programs` outlives the object.
  explicit BlockNames(const execution::Programs& programs) : programs_(programs) {}

  /// The name of the block (an index in Programs::blocks) that comes next.
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
