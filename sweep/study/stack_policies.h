// What a stack decides unasked, in words: number formats, and in which step clients send.
#pragma once

#include <string>

#include "sweep/study/study.h"

namespace shardscape::sweep {

/// A format by the bytes of a number: "fp32", "16 bits".
std::string format_of_bytes(double bytes);

/// Of training, what gradients of weights are kept and sent in; of a server that multiplies in 8 bits or fewer, what
/// its key-value cache is in; and the keys that change it. Empty where there is nothing to say or settings differ.
std::string stack_policies(const Study& study);

/// Of a closed loop whose requests are not simulated one by one, where several clients share a server that reads
/// prompts beside decoding sequences, that TTFT is one of clients in lock-step, and the key that changes it; else
/// empty. (Where decoding pauses for prompts, clients come to be in step by themselves.)
std::string lockstep_clients(const Study& study);

}  // namespace shardscape::sweep
