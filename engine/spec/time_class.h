// THE table of classes of time: what the seconds of a step, of an iteration of a server or of a request are
// booked on. Accounts of execution, breakdowns, columns of results, timelines and the tables of the commands
// list the classes from here.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "engine/base/enum_array.h"
#include "engine/base/quantity.h"
#include "engine/spec/parallel_groups.h"
#include "engine/spec/phase.h"

namespace shardscape {

enum class TimeClass : std::uint8_t {
  compute,
  recompute,
  tensor_comm,
  context_comm,
  expert_comm,
  pipeline_comm,
  data_comm,
  bubble,
  optimizer,
  host,
  kv_transfer
};

struct TimeClassRow {
  TimeClass time_class;
  std::string_view name;  ///< name in timelines
  const char* column;     ///< column of results and key in JSON, in seconds
  const char* label;      ///< heading in tables
  const char* meaning;    ///< description of the column
  Phases phases;
  bool of_pass = false;  ///< whether a pass of a microbatch through a layer or a stage can take such time
};
inline constexpr auto kTimeClasses = std::to_array<TimeClassRow>({
    {TimeClass::compute, "compute", "compute_s", "compute",
     "forward and backward computation on the critical rank", Phases::both, true},
    {TimeClass::recompute, "recompute", "recompute_s", "recompute",
     "recomputation of activations on the critical rank", Phases::training, true},
    {TimeClass::tensor_comm, "tensor_comm", "tp_comm_s", "tensor comm",
     "exposed tensor-parallel communication", Phases::both, true},
    {TimeClass::context_comm, "context_comm", "cp_comm_s", "context comm",
     "exposed context-parallel communication", Phases::both, true},
    {TimeClass::expert_comm, "expert_comm", "ep_comm_s", "expert comm",
     "exposed dispatch and combine of the tokens of experts", Phases::both, true},
    {TimeClass::pipeline_comm, "pipeline_comm", "pp_comm_s", "pipeline comm",
     "exposed pipeline communication", Phases::both},
    {TimeClass::data_comm, "data_comm", "dp_comm_s", "data comm", "exposed data-parallel communication",
     Phases::training, true},
    {TimeClass::bubble, "bubble", "bubble_s", "bubble", "pipeline bubble on the critical rank", Phases::both},
    {TimeClass::optimizer, "optimizer", "optimizer_s", "optimizer", "optimizer step", Phases::training},
    {TimeClass::host, "host", "host_s", "host", "device idle while the host launches", Phases::both, true},
    {TimeClass::kv_transfer, "kv_transfer", "kv_transfer_exposed_s", "KV transfer",
     "waiting for the key-value cache: from pool to pool, after the end of the prefill, or back from host "
     "and disk",
     Phases::inference},
});
constexpr auto list_of_names(TimeClass /*value*/) {
  return names_of_table(kTimeClasses, &TimeClassRow::time_class);
}
/// The classes that a pass can have, in the order of the table.
inline constexpr auto kPassClasses = [] {
  std::array<TimeClass, std::ranges::count(kTimeClasses, true, &TimeClassRow::of_pass)> classes{};
  std::size_t used = 0;
  for (const TimeClassRow& row : kTimeClasses)
    if (row.of_pass) classes[used++] = row.time_class;
  return classes;
}();

/// The class of time of messages between the ranks of a group.
constexpr TimeClass class_of(ParallelGroup group) {
  switch (group) {
    case ParallelGroup::tensor:
      return TimeClass::tensor_comm;
    case ParallelGroup::context:
      return TimeClass::context_comm;
    case ParallelGroup::data_shard:
      return TimeClass::data_comm;
    case ParallelGroup::pipeline:
      return TimeClass::pipeline_comm;
    case ParallelGroup::expert:
    case ParallelGroup::expert_tensor:
      return TimeClass::expert_comm;
    case ParallelGroup::expert_data:
      return TimeClass::data_comm;
  }
  return {};  // not reached: the switch handles every group, or does not compile
}
/// Whether messages of any of the groups are booked on the class.
constexpr bool is_communication(TimeClass time_class,
                                std::span<const ParallelGroup> groups = enum_values<ParallelGroup>()) {
  return std::ranges::any_of(groups, [&](ParallelGroup group) { return class_of(group) == time_class; });
}

/// Seconds by class. Along the critical rank every second of the step (training) or of one request
/// (inference) belongs to exactly one class; communication counts only where it is exposed. The classes add
/// up to step_time (training) or e2e (inference).
struct Breakdown : EnumArray<TimeClass, Seconds> {
  [[nodiscard]] Seconds total() const {
    Seconds sum;
    for (const Seconds part : values) sum += part;
    return sum;
  }
  Breakdown& operator+=(const Breakdown& o) {
    for (const TimeClass c : enum_values<TimeClass>()) (*this)[c] += o[c];
    return *this;
  }
  friend Breakdown operator*(double n, Breakdown times) {
    for (Seconds& part : times) part *= n;
    return times;
  }
};

}  // namespace shardscape
