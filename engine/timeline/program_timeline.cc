// Writes what an executor reports as Chrome trace slices. Decides in advance, from the number of slices, which ranks
// and passes are drawn in detail.
#include "engine/timeline/program_timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "engine/timeline/block_names.h"

namespace shardscape::timeline {

namespace {

using execution::Activity;
using execution::CallSpan;
using execution::Instruction;
using execution::MessageSpan;
using execution::Programs;
using nlohmann::ordered_json;

enum Track : std::int32_t { kPasses = 0, kHost = 1, kCompute = 2, kWait = 3, kCommunication = 4 };

/// The most slices that one instruction can give.
std::size_t slices_of(const Instruction& instruction) {
  switch (instruction.kind) {
    case Instruction::Kind::sync_host:
      return 0;
    case Instruction::Kind::launch:
    case Instruction::Kind::receive:
      return 2;
    case Instruction::Kind::start:
      return static_cast<std::size_t>(std::max(0, instruction.repeats));
    default:
      return 1;
  }
}

}  // namespace

ProgramTimeline::ProgramTimeline(const Programs& programs, Settings settings)
    : programs_(programs), settings_(std::move(settings)), ranks_(static_cast<std::size_t>(programs.ranks)) {
  choose();
}

/// Chooses what is drawn of each rank.
void ProgramTimeline::choose() {
  std::vector<std::size_t> of_block;
  for (const execution::Block& block : programs_.blocks) {
    std::size_t slices = 0;
    for (std::int32_t i = block.begin; i < block.end; ++i) {
      slices += slices_of(programs_.instructions[static_cast<std::size_t>(i)]);
    }
    of_block.push_back(slices);
  }
  std::size_t all = 0, passes = 0, longest = 0;
  std::map<std::int32_t, std::int32_t> shown;  // by sequence: the rank that is drawn in detail
  for (std::int32_t rank = 0; rank < programs_.ranks; ++rank) {
    for (const std::int32_t block : programs_.sequence(rank))
      all += of_block[static_cast<std::size_t>(block)];
    passes += programs_.sequence(rank).size();
    longest = std::max(longest, programs_.sequence(rank).size());
    const auto [entry, fresh] =
        shown.try_emplace(programs_.sequence_of[static_cast<std::size_t>(rank)], rank);
    if (rank == settings_.critical) entry->second = rank;
  }
  everything_ = all + passes <= settings_.most_slices;
  const bool all_passes = everything_ || passes <= settings_.most_slices / 3;
  for (Drawn& rank : ranks_) {
    rank.passes = all_passes;
    rank.operators = everything_;
  }
  for (const auto& [number, rank] : shown) {
    ranks_[static_cast<std::size_t>(rank)].passes = ranks_[static_cast<std::size_t>(rank)].operators = true;
  }
  for (std::int32_t rank = 0; rank < programs_.ranks; ++rank) {
    Drawn& drawn = ranks_[static_cast<std::size_t>(rank)];
    if (drawn.passes) drawn.pass.resize(programs_.sequence(rank).size());
  }
  detailed_passes_ = longest;
  if (everything_) return;
  std::size_t left = settings_.most_slices - settings_.most_slices / 3;
  for (detailed_passes_ = 0; detailed_passes_ < longest; ++detailed_passes_) {
    std::size_t more = 0;
    for (const auto& [number, rank] : shown) {
      const std::vector<std::int32_t>& blocks = programs_.sequence(rank);
      if (detailed_passes_ < blocks.size()) {
        more += of_block[static_cast<std::size_t>(blocks[detailed_passes_])];
      }
    }
    if (more > left) break;
    left -= more;
  }
  detailed_passes_ = std::max<std::size_t>(1, detailed_passes_);
}

bool ProgramTimeline::in_detail(std::int32_t rank, std::size_t position) const {
  return position < detailed_passes_ || position + 1 == programs_.sequence(rank).size();
}

bool ProgramTimeline::in_detail(std::int32_t rank, const Span& span) const {
  const Drawn& drawn = ranks_[static_cast<std::size_t>(rank)];
  if (everything_ || span.start < drawn.detail_until) return true;
  return drawn.end_begins >= 0 && span.end > drawn.end_begins;
}

void ProgramTimeline::executed(const Activity& activity) {
  Drawn& drawn = ranks_[static_cast<std::size_t>(activity.rank)];
  if (!drawn.passes) return;
  drawn.position = activity.position;
  // A pass is drawn from when its work begins; the wait before it is not part of it.
  if (activity.account != execution::Account::bubble) {
    Span& pass = drawn.pass[activity.position];
    if (pass.end == 0) pass.start = activity.start;
    pass.end = activity.end;
  }
  if (activity.position + 1 == drawn.pass.size() && drawn.end_begins < 0) drawn.end_begins = activity.start;
  if (activity.position < detailed_passes_) drawn.detail_until = activity.end;
  if (drawn.operators && in_detail(activity.rank, activity.position)) activities_.push_back(activity);
}

void ProgramTimeline::launched(std::int32_t rank, double start, double end) {
  const Drawn& drawn = ranks_[static_cast<std::size_t>(rank)];
  if (drawn.operators && in_detail(rank, drawn.position)) hosts_.push_back({rank, {start, end}});
}

void ProgramTimeline::called(const CallSpan& call) {
  if (ranks_[static_cast<std::size_t>(call.rank)].operators) calls_.push_back(call);
}

void ProgramTimeline::received(const MessageSpan& message) {
  if (ranks_[static_cast<std::size_t>(message.sender)].operators) messages_.push_back(message);
}

std::vector<std::string> ProgramTimeline::pass_names(std::int32_t rank) const {
  BlockNames names(programs_);
  std::vector<std::string> result;
  for (const std::int32_t block : programs_.sequence(rank)) result.push_back(names.next(block));
  return result;
}

void ProgramTimeline::write_labels(ChromeTrace& trace, std::int32_t rank) const {
  const auto index = static_cast<std::size_t>(rank);
  const std::string& program =
      programs_.sequence_names[static_cast<std::size_t>(programs_.sequence_of[index])];
  std::string name = fmt::format("rank {}{}", rank, program.empty() ? "" : ", " + program);
  if (rank == settings_.critical) name += " (ends last)";
  trace.name_process(rank, name);
  trace.order_process(rank, rank);
  const auto track = [&](std::int32_t number, const std::string& title) {
    trace.name_track(rank, number, title);
  };
  track(kPasses, "passes");
  if (!ranks_[index].operators) return;
  track(kHost, "host");
  track(kCompute, "compute");
  track(kWait, "wait");
  for (std::int32_t lane = 0; lane < programs_.lanes; ++lane) {
    if (programs_.communicator_of[programs_.at(lane, rank)] == Programs::kNone) continue;
    track(kCommunication + lane, "communication: " + programs_.lane_names[static_cast<std::size_t>(lane)]);
  }
  for (std::int32_t channel = 0; channel < programs_.channels; ++channel) {
    if (programs_.outgoing[programs_.at(channel, rank)] == Programs::kNone) continue;
    track(kCommunication + programs_.lanes + channel,
          "communication: " + programs_.channel_names[static_cast<std::size_t>(channel)]);
  }
  trace.slice(rank, kHost, "once per step", "host", -settings_.before, 0);
  trace.slice(rank, kWait, "host, once per step", "host", -settings_.before, 0, {{"class", "host"}});
}

void ProgramTimeline::write_passes(ChromeTrace& trace, std::int32_t rank) const {
  const Drawn& drawn = ranks_[static_cast<std::size_t>(rank)];
  const std::vector<std::string> names = pass_names(rank);
  for (std::size_t position = 0; position < drawn.pass.size(); ++position) {
    const Span& pass = drawn.pass[position];
    trace.slice(rank, kPasses, names[position], "pass", pass.start, pass.end);
  }
}

void ProgramTimeline::write_activities(ChromeTrace& trace) const {
  std::map<std::int32_t, std::vector<std::string>> names;
  for (const Activity& activity : activities_) {
    std::vector<std::string>& passes = names[activity.rank];
    if (passes.empty()) passes = pass_names(activity.rank);
    const Instruction& instruction = *activity.instruction;
    const std::string category(name_of(activity.account));
    ordered_json args = {{"class", category}, {"pass", passes[activity.position]}};
    const auto wait = [&](const std::string& what) {
      trace.slice(activity.rank, kWait, what, category, activity.start, activity.end, args);
    };
    switch (instruction.kind) {
      case Instruction::Kind::compute:
        args["bound"] = programs_.bounds[instruction.lane];
        trace.slice(activity.rank, kCompute, programs_.names[static_cast<std::size_t>(instruction.what)],
                    category, activity.start, activity.end, args);
        break;
      case Instruction::Kind::join:
        wait("communication: " + programs_.lane_names[instruction.lane]);
        break;
      case Instruction::Kind::sent:
      case Instruction::Kind::receive:
        wait("message " + programs_.channel_names[instruction.lane]);
        break;
      default:
        wait("host");
    }
  }
  for (const HostSpan& host : hosts_) {
    trace.slice(host.rank, kHost, "launches", "host", host.span.start, host.span.end);
  }
}

void ProgramTimeline::write_communication(ChromeTrace& trace) const {
  for (const CallSpan& call : calls_) {
    const Span span{call.start, call.end};
    if (!in_detail(call.rank, span)) continue;
    const auto lane = static_cast<std::size_t>(call.lane), number = static_cast<std::size_t>(call.call);
    const auto group =
        static_cast<std::size_t>(programs_.communicator_of[programs_.at(call.lane, call.rank)]);
    trace.slice(call.rank, kCommunication + call.lane, programs_.call_names[lane][number], "communication",
                span.start, span.end,
                {{"bytes", programs_.call_kinds[lane][number].bytes},
                 {"ranks", programs_.communicators[group].ranks.size()},
                 {"bound", "link"}});
  }
  // Messages of one connection follow each other, so that each is drawn from the arrival of the one before at the
  // earliest.
  std::vector<double> arrived(programs_.wires.connections.size(), 0);
  for (const MessageSpan& message : messages_) {
    double& last = arrived[static_cast<std::size_t>(message.connection)];
    const Span span{std::max(last, message.issued), message.received};
    last = std::max(last, message.received);
    if (!in_detail(message.sender, span)) continue;
    std::int32_t channel = 0;
    while (programs_.outgoing[programs_.at(channel, message.sender)] != message.connection) ++channel;
    trace.slice(message.sender, kCommunication + programs_.lanes + channel,
                fmt::format("message to rank {}", message.receiver), "communication", span.start, span.end,
                {{"bytes", message.bytes}, {"issued_us", trace.at(message.issued)}, {"bound", "link"}});
  }
}

std::string ProgramTimeline::json() const {
  ChromeTrace trace(settings_.before);
  ordered_json drawn = ordered_json::array();
  for (std::int32_t rank = 0; rank < programs_.ranks; ++rank) {
    const Drawn& of_rank = ranks_[static_cast<std::size_t>(rank)];
    if (!of_rank.passes) continue;
    write_labels(trace, rank);
    write_passes(trace, rank);
    if (of_rank.operators) drawn.push_back(rank);
  }
  write_activities(trace);
  write_communication(trace);
  return trace.document({{"title", settings_.title},
                         {"ranks", programs_.ranks},
                         {"ends_last", settings_.critical},
                         {"operators_of_ranks", drawn},
                         {"operators_of_passes", detailed_passes_}});
}

}  // namespace shardscape::timeline
