// Tells runs of servers apart that stand for something else than they say, by what the table itself shows: no label
// depends on a prediction but `saturated`. Labelled rows are predicted and reported like any other, apart. Releases of
// their software are numbers in order of time.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "engine/base/enum_names.h"

namespace shardscape::validate {

struct PlanRow;

/// What is known against a run of a server.
///   clean        nothing
///   saturated    requests fill the key-value cache and wait for room, or wait for servers that prefill: the wait is
///                c / throughput less the rest of the request, a small difference of large times
///   repeated     the same run as a row before, under another id
///   start_up     the first round compiled or loaded: as many times the TTFT of the fewest clients (at most 4; of pools
///                at most 16) as their client has rounds is more than a request, or the slowest of c clients' requests
///                (p99) waits more than c times as long as half of them (p50)
///   jump         TTFT grows more than three times as much as the clients do, and stays there: a first round that
///                compiled, or a cache that is full
///   falling      TTFT falls by more than 15 % with more clients: the run with fewer was disturbed
///   faster_twin  another row of the same server, lengths and clients takes 1.5 times as long per token: this one runs
///                speculative decoding, or another release
///   mislisted    a disaggregated deployment listed as one server of all its GPUs
///   two_recipes  the row leaves out its workers, and several public recipes fit it, or none quite: others may have run
///   unexplained  series of a source that contradict each other or grow with what no server depends on
enum class RunLabel : std::uint8_t {
  clean,
  saturated,
  repeated,
  start_up,
  jump,
  falling,
  faster_twin,
  mislisted,
  two_recipes,
  unexplained
};

/// Labels the runs of a table.
void label_runs(std::span<PlanRow> rows);

/// Reads "26.04" or "26.04.01", year, month and patch, as 26.04 or 26.0401. Nothing for other texts.
std::optional<double> release_number(std::string_view text);

/// The release behind the first word of `software` ("megatron-bridge 26.04"), or else in the row's source: "26.04.01
/// NeMo Container" (Megatron Bridge's summaries), "dgxc-benchmarking v25.05.05" (NVIDIA's recipes).
std::optional<double> stated_release(std::string_view software, std::string_view source);

/// The release behind the first word of `software` ("trtllm 1.2.0rc6.post2") in order of time: numbers one by one, a
/// final release behind its candidates: 1.2.0rc6 < 1.2.0rc10 < 1.2.0. Software without a release is before none.
class ReleaseOrder {
 public:
  explicit ReleaseOrder(std::string_view software);
  [[nodiscard]] bool stated() const { return !numbers_.empty(); }
  [[nodiscard]] bool before(std::string_view release) const;

 private:
  std::vector<int> numbers_;
};

}  // namespace shardscape::validate
