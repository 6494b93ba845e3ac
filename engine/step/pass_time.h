// The time of one direction of one microbatch.
#pragma once

#include "engine/spec/time_class.h"

namespace shardscape::step {

/// One direction of one microbatch through a layer or a stage.
struct PassTime : Breakdown {
  PassTime() = default;
  PassTime(const Breakdown& times) : Breakdown(times) {}

  /// Over the classes that a pass can have, in the order of the table; the others are zero.
  [[nodiscard]] Seconds total() const {
    Seconds sum;
    for (const TimeClass c :
         {TimeClass::compute, TimeClass::recompute, TimeClass::tensor_comm, TimeClass::context_comm,
          TimeClass::expert_comm, TimeClass::data_comm, TimeClass::host}) {
      sum += (*this)[c];
    }
    return sum;
  }
};

}  // namespace shardscape::step
