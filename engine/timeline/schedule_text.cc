// Draws a schedule as lines of characters: operations as letters and dashes in proportion to their times, with a time
// scale above and the stages' idle shares at the end of the rows.
#include "engine/timeline/schedule_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace shardscape::timeline {

namespace {

using schedule::PipelineOperation;
using schedule::PipelineSpan;

constexpr char kIdle = '.';
constexpr char kFill = '-';

std::string seconds_text(double seconds) {
  if (seconds >= 1 || seconds == 0) return fmt::format("{:.4g} s", seconds);
  if (seconds >= 1e-3) return fmt::format("{:.4g} ms", 1e3 * seconds);
  return fmt::format("{:.4g} us", 1e6 * seconds);
}

class ChartWriter {
 public:
  ChartWriter(const ScheduleChart& chart, std::int32_t width) : chart_(chart) {
    const std::size_t stages = chart.stage_end.size();
    label_ = fmt::format("stage {}  ", stages - 1).size();
    constexpr std::size_t kIdleText = sizeof("  idle 100.0 %") - 1;
    columns_ =
        static_cast<std::size_t>(std::clamp(width, kNarrowestChart, kWidestChart)) - label_ - kIdleText;
    for (std::size_t s = 0; s < stages; ++s) end_ = std::max(end_, chart.stage_end[s] + tail(s).total());
    rows_.assign(stages, std::string(columns_, kIdle));
    busy_.assign(stages, 0);
  }

  std::string write() {
    for (const PipelineSpan& span : chart_.spans) draw(span);
    for (std::size_t s = 0; s < rows_.size(); ++s) draw_tail(s);
    std::string text = heading() + scale();
    for (std::size_t s = 0; s < rows_.size(); ++s) {
      std::string name = fmt::format("stage {}", s);
      name.resize(label_, ' ');
      text +=
          name + rows_[s] + fmt::format("  idle {:.1f} %\n", end_ > 0 ? 100 * (1 - busy_[s] / end_) : 0.0);
    }
    return text + legend();
  }

 private:
  [[nodiscard]] StageTailSpan tail(std::size_t stage) const {
    return stage < chart_.tails.size() ? chart_.tails[stage] : StageTailSpan{};
  }
  [[nodiscard]] std::size_t column(double time) const {
    return end_ > 0 ? static_cast<std::size_t>(std::lround(time / end_ * static_cast<double>(columns_))) : 0;
  }

  void fill(std::size_t stage, double begin, double end, const std::string& letter,
            const std::string& number) {
    busy_[stage] += end - begin;
    const std::size_t from = column(begin), to = std::min(column(end), columns_);
    if (from >= to) return;
    const std::size_t room = to - from;
    std::string text = letter + number;
    if (text.size() > room) text = letter;
    text.resize(room, letter == ">" ? '>' : kFill);
    rows_[stage].replace(from, room, text);
  }

  void draw(const PipelineSpan& span) {
    const PipelineOperation& op = span.operation;
    const auto stage = static_cast<std::size_t>(span.stage);
    std::string number = std::to_string(op.microbatch);
    if (chart_.shape.virtual_stages > 1) number += static_cast<char>('a' + op.chunk % 26);
    const bool part = op.cut && chart_.shape.both_ways();
    fill(stage, span.start, span.end, op.weight ? "W" : part ? "I" : op.backward ? "B" : "F", number);
    if (chart_.transfer.blocking && span.sent > span.end) {
      fill(stage, span.end, span.sent, ">", "");
      sends_ = true;
    }
  }

  void draw_tail(std::size_t stage) {
    const StageTailSpan t = tail(stage);
    const double end = chart_.stage_end[stage] + t.deferred;
    if (t.deferred > 0) fill(stage, chart_.stage_end[stage], end, "W", "");
    deferred_ = deferred_ || t.deferred > 0;
    if (t.data_comm > 0) fill(stage, end, end + t.data_comm, "D", "");
    if (t.optimizer > 0) fill(stage, end + t.data_comm, end + t.data_comm + t.optimizer, "O", "");
    tails_ = tails_ || t.data_comm > 0 || t.optimizer > 0;
  }

  [[nodiscard]] std::string heading() const {
    const schedule::PipelineShape& shape = chart_.shape;
    std::string text = std::string(name_of(shape.kind)) + fmt::format(", {} stages", shape.stages);
    if (shape.wraps()) text += fmt::format(" of {} chunks", shape.virtual_stages);
    return text + fmt::format(", {} microbatches; a column is ", shape.microbatches) +
           seconds_text(end_ / static_cast<double>(columns_)) + "\n";
  }

  /// The time scale: a tick and its time every 20 columns or so.
  [[nodiscard]] std::string scale() const {
    constexpr std::size_t kTick = 20;
    std::string line;
    for (std::size_t c = 0; c + kTick / 2 < columns_; c += kTick) {
      std::string tick = "|" + seconds_text(end_ * static_cast<double>(c) / static_cast<double>(columns_));
      tick.resize(kTick, ' ');
      line += tick;
    }
    line.resize(std::min(line.size(), columns_));
    line.erase(line.find_last_not_of(' ') + 1);
    return std::string(label_, ' ') + line + "\n";
  }

  [[nodiscard]] std::string legend() const {
    std::string text =
        chart_.shape.cuts() ? "F forward, B input gradient, W weight gradient" : "F forward, B backward";
    if (chart_.shape.both_ways()) text += ", I input gradient, W weight gradient";
    text += "; the number is the microbatch";
    if (chart_.shape.both_ways()) {
      text += " of those that go down (a) or up (b) the stages";
    } else if (chart_.shape.virtual_stages > 1) {
      text += ", the small letter the chunk";
    }
    text += "\n";
    std::string more;
    if (sends_) more += "> sending, ";
    if (deferred_) more += "W weight gradients of the head, ";
    if (tails_) more += "D data-parallel communication, O optimizer, ";
    return text + more + ". idle\n";
  }

  const ScheduleChart& chart_;
  std::size_t label_ = 0, columns_ = 0;
  double end_ = 0;
  bool sends_ = false, deferred_ = false, tails_ = false;
  std::vector<std::string> rows_;
  std::vector<double> busy_;
};

}  // namespace

std::string schedule_text(const ScheduleChart& chart, std::int32_t width) {
  return ChartWriter(chart, width).write();
}

}  // namespace shardscape::timeline
