// Writes a timed step as a Chrome trace: the pipeline's overview, and per stage the operators of the first
// microbatches, placed within the spans of the schedule.
#include "engine/timeline/step_timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "engine/network/collectives/collective_rows.h"

namespace shardscape::timeline {

namespace {

using execution::Account;
using execution::Instruction;
using execution::Programs;
using nlohmann::ordered_json;
using schedule::PipelineSpan;

enum DeviceTrack : std::int32_t { kHostTrack, kComputeTrack, kCommunicationTrack, kWaitTrack };
/// Names of the tracks, and categories of the slices on them.
constexpr const char* kTrackNames[] = {"host", "compute", "communication", "wait"};

/// What one rank does in a block, in seconds from its beginning.
struct Piece {
  DeviceTrack track;
  std::string name;
  double start = 0, end = 0;
  ordered_json args;
};
struct DrawnBlock {
  std::vector<Piece> pieces;
  double seconds = 0;  ///< that the device takes
  double message = 0;  ///< bytes that it sends to a neighbour
};

/// Goes through blocks as one rank would alone: its device, its host and its lanes, on which calls take their prices.
class BlockWalk {
 public:
  BlockWalk(const Programs& programs, std::int32_t rank, const std::vector<std::vector<double>>& call_seconds)
      : programs_(programs),
        rank_(rank),
        call_seconds_(call_seconds),
        free_(static_cast<std::size_t>(programs.lanes)) {}

  DrawnBlock walk(const execution::Block& block) {
    for (std::int32_t i = block.begin; i < block.end; ++i)
      run(programs_.instructions[static_cast<std::size_t>(i)]);
    return {std::move(pieces_), device_, message_};
  }

 private:
  void run(const Instruction& next) {
    using Kind = Instruction::Kind;
    if (arriving_ && next.kind != Kind::sync_host) return;
    switch (next.kind) {
      case Kind::compute:
        return compute(next);
      case Kind::sync_host:
        arriving_ = false;
        host_ = device_;
        return;
      case Kind::launch:
        host_ += next.value;
        return wait_until(host_, "host", next.account);
      case Kind::start:
        return start(next);
      case Kind::join:
        return wait_until(lane(next.lane), programs_.lane_names[next.lane], next.account);
      case Kind::
          receive:  // what comes before the pass, up to where the host may launch it, is part of the message
        arriving_ = true;
        return;
      case Kind::send:
        message_ = next.value;
        return;
      case Kind::sent:
        return;
    }
  }

  /// The time until which the calls of a lane, and of those that take turns with it, are under way.
  double& lane(std::size_t number) { return free_[static_cast<std::size_t>(programs_.turns[number])]; }

  void compute(const Instruction& next) {
    const std::string& name = programs_.names[static_cast<std::size_t>(next.what)];
    const bool works = next.account == Account::compute || next.account == Account::recompute;
    if (!works) return wait_until(device_ + next.value, name, next.account);
    pieces_.push_back({kComputeTrack,
                       name,
                       device_,
                       device_ + next.value,
                       {{"class", name_of(next.account)}, {"bound", programs_.bounds[next.lane]}}});
    device_ += next.value;
  }

  void wait_until(double time, const std::string& name, Account account) {
    if (time <= device_) return;
    pieces_.push_back({kWaitTrack, name, device_, time, {{"class", name_of(account)}}});
    device_ = time;
  }

  void start(const Instruction& next) {
    if (programs_.communicator_of[programs_.at(next.lane, rank_)] == Programs::kNone) return;
    const auto call = static_cast<std::size_t>(next.what);
    const execution::CallKind& kind = programs_.call_kinds[next.lane][call];
    double& free = lane(next.lane);
    const double begin = std::max(free, device_);
    free = begin + next.repeats * call_seconds_[next.lane][call];
    pieces_.push_back({kCommunicationTrack,
                       programs_.call_names[next.lane][call],
                       begin,
                       free,
                       {{"operation", network::row_of(kind.op).name},
                        {"group", programs_.lane_names[next.lane]},
                        {"bytes", kind.bytes * next.repeats},
                        {"calls", next.repeats},
                        {"bound", "link"}}});
  }

  const Programs& programs_;
  const std::int32_t rank_;
  const std::vector<std::vector<double>>& call_seconds_;
  std::vector<double> free_;  ///< by lane
  double device_ = 0, host_ = 0, message_ = 0;
  bool arriving_ = false;
  std::vector<Piece> pieces_;
};

class TimelineWriter {
 public:
  TimelineWriter(const TimedStep& step, const StagePrograms& programs)
      : step_(step), programs_(programs), trace_(step.step_fixed), stages_(programs.ranks.size()) {
    ends_ = schedule::run_in_order(step.shape, step.times, step.transfer, &spans_);
    for (const PipelineSpan& span : spans_)
      stages_[static_cast<std::size_t>(span.stage)].spans.push_back(span);
    for (std::size_t s = 0; s < stages_.size(); ++s) walk_blocks(s);
    choose_detail();
  }

  std::string write() {
    constexpr std::int64_t kPipeline = 0;
    trace_.name_process(kPipeline, "pipeline");
    draw_pipeline(trace_, spans_, ends_, step_.tails);
    for (std::size_t s = 0; s < stages_.size(); ++s) draw_stage(s);
    return trace_.document({{"title", step_.title},
                            {"operators_of_microbatches", std::min(detailed_, step_.shape.microbatches)}});
  }

 private:
  struct Stage {
    std::vector<PipelineSpan> spans;           ///< of its operations, in their order
    std::map<std::int32_t, DrawnBlock> drawn;  ///< key: number of the block
  };

  [[nodiscard]] const std::vector<std::int32_t>& sequence(std::size_t stage) const {
    return programs_.programs.sequence(programs_.ranks[stage]);
  }

  void walk_blocks(std::size_t stage) {
    const Programs& all = programs_.programs;
    for (const std::int32_t block : sequence(stage)) {
      const auto [entry, fresh] = stages_[stage].drawn.try_emplace(block);
      if (!fresh) continue;
      BlockWalk walk(all, programs_.ranks[stage], programs_.call_seconds[stage]);
      entry->second = walk.walk(all.blocks[static_cast<std::size_t>(block)]);
    }
  }

  /// Chooses the number of microbatches whose operators are drawn.
  void choose_detail() {
    constexpr std::size_t kBetweenPasses =
        4;  // waits before a pass and at its end, its message, and the wait for that
    std::size_t slices = 1;
    for (std::size_t s = 0; s < stages_.size(); ++s)
      for (const std::int32_t block : sequence(s))
        slices += stages_[s].drawn.at(block).pieces.size() + kBetweenPasses;
    detailed_ = static_cast<std::int32_t>(std::max<std::size_t>(
        1, kMostOperatorSlices * static_cast<std::size_t>(step_.shape.per_chunk()) / slices));
  }

  void draw_stage(std::size_t s) {
    Stage& stage = stages_[s];
    process_ = static_cast<std::int64_t>(s) + 1;
    const auto alike =
        std::ranges::count(programs_.programs.sequence_of,
                           programs_.programs.sequence_of[static_cast<std::size_t>(programs_.ranks[s])]);
    trace_.name_process(process_, fmt::format("stage {}: rank {}{}", s, programs_.ranks[s],
                                              alike > 1 ? fmt::format(" and {} alike", alike - 1) : ""));
    for (const DeviceTrack track : {kHostTrack, kComputeTrack, kCommunicationTrack, kWaitTrack})
      trace_.name_track(process_, track, kTrackNames[track]);
    draw(kHostTrack, "once per step", -step_.step_fixed, 0, ordered_json::object());
    double free = 0;
    std::size_t position = 0;
    for (std::size_t i = 0; i < stage.spans.size(); ++position) {
      const std::size_t count = stage.spans[i].operation.paired ? 2 : 1;
      draw_pass(stage.drawn.at(sequence(s)[position]), std::span(stage.spans).subspan(i, count), free);
      i += count;
    }
    draw_tail(s, position);
  }

  void draw(DeviceTrack track, std::string_view name, double start, double end, const ordered_json& args) {
    trace_.slice(process_, track, name, kTrackNames[track], start, end, args);
  }

  /// Draws a pass, or two that run together. `free`: when the stage has ended what came before.
  void draw_pass(const DrawnBlock& block, std::span<const PipelineSpan> spans, double& free) {
    const double start = spans.front().start, end = spans.back().end, before = free;
    const std::int32_t microbatch = spans.back().operation.microbatch;
    free = end;
    if (step_.transfer.blocking)
      for (const PipelineSpan& span : spans) free = std::max(free, span.sent);
    if (microbatch >= detailed_) return;
    const ordered_json only_microbatch = {{"microbatch", microbatch}};
    draw(kWaitTrack, "pipeline", before, start, only_microbatch);
    const double scale = std::min(1.0, (end - start) / block.seconds);
    for (const Piece& piece : block.pieces) {
      ordered_json args = only_microbatch;
      args.update(piece.args);
      draw(piece.track, piece.name, start + scale * piece.start, start + scale * piece.end, args);
    }
    draw(kWaitTrack, "rest of the pass", start + scale * block.seconds, end, only_microbatch);
    const PipelineSpan& last = *std::ranges::max_element(spans, {}, &PipelineSpan::sent);
    const char* const what = last.operation.backward ? "send gradient" : "send activation";
    draw(kCommunicationTrack, what, end, last.sent,
         {{"microbatch", microbatch}, {"bytes", block.message}, {"bound", "link"}});
    draw(kWaitTrack, what, end, free, only_microbatch);
  }

  void draw_tail(std::size_t s, std::size_t position) {
    const StageTailSpan& tail = step_.tails[s];
    const double begin = ends_[s] + tail.deferred, reduced = begin + tail.data_comm;
    const std::vector<std::int32_t>& blocks = sequence(s);
    draw(kComputeTrack, "deferred weight gradients", ends_[s], begin,
         {{"microbatches", blocks.size() - 1 - position}, {"bound", "compute"}});
    double bytes = 0;
    for (const Piece& piece : stages_[s].drawn.at(blocks.back()).pieces)
      if (piece.track == kCommunicationTrack) bytes += piece.args.at("bytes").get<double>();
    draw(kCommunicationTrack, "gradients and weights", begin, reduced, {{"bytes", bytes}, {"bound", "link"}});
    draw(kWaitTrack, "data-parallel communication", begin, reduced, {{"class", name_of(Account::data_comm)}});
    draw(kComputeTrack, "optimizer", reduced, reduced + tail.optimizer,
         {{"class", name_of(Account::optimizer)}, {"bound", "hbm"}});
  }

  const TimedStep& step_;
  const StagePrograms& programs_;
  ChromeTrace trace_;
  std::int32_t detailed_ = 0;
  std::vector<PipelineSpan> spans_;
  std::vector<double> ends_;  ///< of the pipeline, by stage
  std::vector<Stage> stages_;
  std::int64_t process_ = 0;  ///< of the stage that is being drawn
};

}  // namespace

std::string step_timeline_json(const TimedStep& step, const StagePrograms& programs) {
  return TimelineWriter(step, programs).write();
}

}  // namespace shardscape::timeline
