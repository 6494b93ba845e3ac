// The time of one pass (forward or backward) of one microbatch.
#pragma once

#include "engine/spec/time_class.h"

namespace shardscape::step {

/// Time by class of one pass of a microbatch through a layer or a stage.
struct PassTime : Breakdown {
  PassTime() = default;
  PassTime(const Breakdown& times) : Breakdown(times) {}

  /// The sum over the classes that a pass can have, in the order of the table; the others are zero.
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
