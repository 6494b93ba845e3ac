// What an executor does as a Chrome trace (chrome_trace.h). Execution begins after the host's fixed time of the step.
//
// A process per rank, with tracks: the passes of its program; its host; its device's operators with their
// bounds; what the device waits for; and its communication, a track per lane (calls with algorithm and bytes)
// and per channel (messages that it sends). Every slice of device and wait has the class of Breakdown it is
// booked on, so that they add up to it.
//
// A file of everything could have millions of slices. Where there would be more than kMostTimelineSlices,
// operators and communication are drawn for one rank of each program only (the critical rank for its own),
// and of those for their first passes and the end of the step; passes for these ranks alone where those of
// all would be too many. otherData says what is left.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/execution/executor.h"
#include "engine/timeline/chrome_trace.h"

namespace shardscape::timeline {

constexpr std::size_t kMostTimelineSlices = 120'000;

class ProgramTimeline : public execution::ExecutionObserver {
 public:
  struct Settings {
    std::string title;
    std::int32_t critical = 0;  ///< the rank that ends last
    double before = 0;          ///< seconds of the host before everything else
    std::size_t most_slices = kMostTimelineSlices;
  };
  /// `programs` must outlive the object.
  ProgramTimeline(const execution::Programs& programs, Settings settings);

  void executed(const execution::Activity& activity) override;
  void launched(std::int32_t rank, double start, double end) override;
  void called(const execution::CallSpan& call) override;
  void received(const execution::MessageSpan& message) override;

  /// The trace of what has been heard so far. Pure; the same execution gives the same text.
  [[nodiscard]] std::string json() const;

 private:
  struct Span {
    double start = 0, end = 0;
  };
  struct HostSpan {
    std::int32_t rank = 0;
    Span span;
  };
  struct Drawn {
    bool passes = false, operators = false;
    std::size_t position = 0;  ///< place in the sequence of the pass that the rank is in
    double detail_until = 0;   ///< end of the first passes, in seconds
    double end_begins = -1;    ///< begin of the last pass, in seconds; -1: not yet
    std::vector<Span> pass;    ///< spans of the pass, by place in the sequence
  };
  void choose();
  [[nodiscard]] bool in_detail(std::int32_t rank, std::size_t position) const;
  [[nodiscard]] bool in_detail(std::int32_t rank, const Span& span) const;
  [[nodiscard]] std::vector<std::string> pass_names(std::int32_t rank) const;

  void write_labels(ChromeTrace& trace, std::int32_t rank) const;
  void write_passes(ChromeTrace& trace, std::int32_t rank) const;
  void write_activities(ChromeTrace& trace) const;
  void write_communication(ChromeTrace& trace) const;

  const execution::Programs& programs_;
  Settings settings_;
  std::size_t detailed_passes_ = 0;  ///< number of first passes drawn for each rank with operators
  bool everything_ = false;
  std::vector<Drawn> ranks_;
  std::vector<execution::Activity> activities_;
  std::vector<HostSpan> hosts_;
  std::vector<execution::CallSpan> calls_;
  std::vector<execution::MessageSpan> messages_;
};

}  // namespace shardscape::timeline
