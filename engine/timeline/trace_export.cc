// Walks a stage's schedule and writes trace nodes: compute is held back until it is known where overlapped
// communication cuts it, then communication is added beside it.
#include "engine/timeline/trace_export.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>

#include "engine/network/groups/rank_group.h"

namespace shardscape::timeline {

namespace {

using network::PlanLayout;
using network::RankGroup;
using schedule::PipelineOperation;

/// The tag of messages inside a group; messages between stages have higher tags.
constexpr std::int32_t kGroupTag = 0;

std::vector<std::int32_t> members(const RankGroup& group, std::int32_t origin) {
  std::vector<std::int32_t> ranks;
  for (std::int32_t i = 0; i < group.size(); ++i) {
    std::int32_t rank = origin, index = i;
    for (std::int32_t l = 0; l < group.depth; ++l) {
      const RankGroup::Level& level = group.levels[static_cast<std::size_t>(l)];
      rank += index % level.extent * level.stride;
      index /= level.extent;
    }
    ranks.push_back(index == 0 ? rank : group.mirrored(rank));
  }
  return ranks;
}

/// Builds one rank's nodes in program order.
class RankBuilder {
 public:
  RankBuilder(const PricedStep& program, const std::vector<ProcessGroup>& groups,
              const std::vector<std::vector<std::int32_t>>& group_of, std::int32_t rank)
      : program_(program), groups_(groups), group_of_(group_of), rank_(rank) {
    const PlanLayout layout(program.plan);
    stride_ = layout.stride(PlanAxis::pipeline);
    stage_ = rank / stride_ % program.plan.pipeline;
  }

  RankTrace build() {
    if (program_.step_fixed > 0) {
      TraceNode fixed = compute_node("host once per step", program_.step_fixed);
      fixed.host = true;
      follow({add(std::move(fixed), {})});
    }
    std::vector<PipelineOperation> order;
    schedule::stage_order(program_.shape, stage_, order);
    for (std::size_t i = 0; i < order.size(); ++i) {
      const PipelineOperation& op = order[i];
      const PipelineOperation* const other = op.paired ? &order[++i] : nullptr;
      receive(op);
      if (other != nullptr) receive(*other);
      run(op);
      if (other != nullptr) run(*other);
      Ids sent = send(op);
      if (other != nullptr) {
        const Ids with = send(*other);
        sent.insert(sent.end(), with.begin(), with.end());
      }
      if (program_.transfer.blocking && !sent.empty()) follow(sent);
    }
    add_tail();
    return std::move(trace_);
  }

 private:
  using Ids = std::vector<std::uint64_t>;

  [[nodiscard]] const StageSteps& stage() const { return program_.stages[static_cast<std::size_t>(stage_)]; }

  std::uint64_t add(TraceNode node, const Ids& on) { return trace_.add(std::move(node), on); }
  /// Sets the nodes that the next step waits for.
  void follow(Ids ids) { front_ = std::move(ids); }

  // Compute is held back until it is known where it has to be cut.

  /// Cuts the last `hidden` seconds off the held compute (or less, where there is less) as a node of their own, and
  /// returns the nodes that communication beside it waits for.
  Ids cut_held(double hidden) {
    Held under = held_.split(std::max(0.0, held_.seconds - hidden));
    TraceNode tail = compute_node(under.name, under.seconds, under.work);
    flush();
    Ids start = front_;
    if (under.seconds > 0) beside_.push_back(add(std::move(tail), front_));
    return start;
  }
  void flush() {
    if (held_.seconds > 0) follow({add(compute_node(held_.name, held_.seconds, held_.work), front_)});
    held_ = {};
  }
  void hold(const std::string& name, double seconds, const Work& work) {
    if (seconds <= 0) return;
    if (!beside_.empty()) join();
    if (held_.seconds == 0) held_.first = held_.name = name;
    if (held_.first != name) held_.name = held_.first + " .. " + name;
    held_.seconds += seconds;
    held_.work += work;
  }
  /// Makes what follows wait for everything that ran beside.
  void join() {
    front_.insert(front_.end(), beside_.begin(), beside_.end());
    beside_.clear();
  }

  void run(const PipelineOperation& op) {
    const ChunkSteps& chunk = stage().chunks[static_cast<std::size_t>(op.chunk)];
    const std::vector<ProgramStep>& steps = chunk.of(op);
    std::string prefix = op.weight ? "W" : op.backward ? "B" : "F";
    prefix += fmt::format("{} ", op.microbatch);
    passing_.clear();
    double length = 0;
    for (const ProgramStep& step : steps) length += step.exposed();
    const double lead = (1 - program_.data_overlap) * length;
    const bool cut = program_.shape.cuts();
    if (!op.backward) start_within(stage().forward_gather, lead);
    const bool first = !op.backward && op.microbatch == 0, wraps = program_.shape.wraps();
    if (first && (op.chunk == 0 || !wraps)) start_within(stage().first_gather, 0);
    if (first) pass_ids_ = std::exchange(gather_ids_, {});
    if (op.backward && !op.weight) start_within(stage().backward_gather, lead);
    if (op.backward && op.weight == cut) start_within(stage().microbatch_gradients, lead);
    const bool completes = op.backward && op.weight == cut && op.microbatch + 1 == program_.shape.per_chunk();
    if (completes) start_buckets(op.chunk, length);
    double done = 0;
    for (const ProgramStep& step : steps) {
      done += step.exposed();
      run_step(prefix, step, done);
    }
    start_rest(done);
    flush();
    join();
    front_.insert(front_.end(), pass_ids_.begin(), pass_ids_.end());
    pass_ids_.clear();
    if (!first || !wraps || op.chunk + 1 == program_.shape.virtual_stages) return;
    for (const ProgramStep& step : stage().next_gather)
      gather_ids_ = communicate(step.name, step, joined(front_, gather_ids_));
  }

  void run_step(const std::string& prefix, const ProgramStep& step, double done) {
    if (step.kind == StepKind::compute || step.kind == StepKind::wait) {
      hold(prefix + step.name, step.seconds, step.work);
      start_due(done);
      return;
    }
    if (!beside_.empty()) {
      flush();
      join();
    }
    const Ids start = cut_held(step.hidden);
    const Ids ends = communicate(prefix + step.name, step, start);
    beside_.insert(beside_.end(), ends.begin(), ends.end());
    // No part of it is hidden: what follows waits for the communication alone.
    if (step.hidden == 0) {
      follow(beside_);
      beside_.clear();
    }
    start_due(done);
  }

  struct Passing {
    const ProgramStep* step = nullptr;
    double lead = 0;
    std::int32_t buckets = 0;  ///< number of gradient buckets to send; 0: the whole step
    std::size_t part = 0;      ///< which part of the gradients they belong to
  };
  /// Schedules data-parallel traffic to start `lead` seconds into the pass.
  void start_within(const std::vector<ProgramStep>& steps, double lead) {
    for (const ProgramStep& step : steps) passing_.push_back({&step, lead, 0, 0});
  }
  void start_buckets(std::int32_t chunk, double length) {
    for (std::size_t part = 0; part < stage().gradients.size(); ++part) {
      const GradientSteps& gradients = stage().gradients[part];
      for (const BucketRelease& release : gradients.releases) {
        if (release.chunk == chunk)
          passing_.push_back({&gradients.step, release.share * length, release.buckets, part});
      }
    }
  }
  /// Starts the traffic that is due, or all that is left at the end of the pass. `done`: predicted seconds of the pass
  /// so far.
  void start_due(double done) {
    for (Passing& passing : passing_)
      if (passing.lead <= done) start_passing(passing, done);
  }
  void start_rest(double done) {
    for (Passing& passing : passing_) start_passing(passing, done);
  }
  /// Starts this traffic unless it has started, cutting the held compute where it begins.
  void start_passing(Passing& passing, double done) {
    if (passing.step == nullptr) return;
    const double after = std::clamp(done - passing.lead, 0.0, held_.seconds);
    const Held rest = held_.split(held_.seconds - after);
    flush();
    if (passing.buckets > 0) {
      send_buckets(passing.part, passing.buckets);
    } else {
      pass_ids_ = communicate(passing.step->name, *passing.step, joined(front_, pass_ids_));
    }
    held_ = rest;
    passing.step = nullptr;
  }

  /// Sends buckets of gradients one after the other, behind those sent before; only the optimizer waits for them.
  void send_buckets(std::size_t part, std::int32_t buckets) {
    ProgramStep step = stage().gradients[part].step;
    step.repeats = buckets;
    buckets_gone_[part] += buckets;
    gradient_ids_ = communicate(step.name, step, joined(front_, gradient_ids_));
  }

  static Ids joined(Ids some, const Ids& more) {
    some.insert(some.end(), more.begin(), more.end());
    return some;
  }

  /// Adds a communication step with all its repeats; returns the nodes that end it.
  Ids communicate(const std::string& name, const ProgramStep& step, Ids start) {
    for (std::int32_t i = 0; i < step.repeats; ++i) {
      start = step.kind == StepKind::ring_pass  ? pass_round(name, step, start)
              : step.kind == StepKind::exchange ? exchange(name, step, start)
                                                : Ids{add(collective(name, step), start)};
    }
    return start;
  }

  [[nodiscard]] TraceNode collective(const std::string& name, const ProgramStep& step) const {
    TraceNode node;
    node.name = name;
    node.kind = NodeKind::collective;
    node.collective = step.collective;
    node.bytes = step.bytes;
    node.group = group_of_[static_cast<std::size_t>(step.group)][static_cast<std::size_t>(rank_)];
    return node;
  }

  [[nodiscard]] const std::vector<std::int32_t>& members_of(ParallelGroup group) const {
    const std::int32_t mine = group_of_[static_cast<std::size_t>(group)][static_cast<std::size_t>(rank_)];
    return groups_[static_cast<std::size_t>(mine)].ranks;
  }

  /// Adds an exchange with unequal parts as messages, since Chakra's collectives have equal parts.
  Ids exchange(const std::string& name, const ProgramStep& step, const Ids& start) {
    const std::vector<std::int32_t>& ranks = members_of(step.group);
    const auto n = ranks.size();
    const auto i = static_cast<std::size_t>(std::ranges::find(ranks, rank_) - ranks.begin());
    Ids ends;
    for (std::size_t offset = 1; offset < n; ++offset) {
      const std::size_t to = (i + offset) % n, from = (i + n - offset) % n;
      const double out = step.bytes * step.parts.part(i, to, n),
                   in = step.bytes * step.parts.part(from, i, n);
      if (out > 0) add(message_node(NodeKind::send, name, ranks[to], kGroupTag, out), start);
      if (in > 0)
        ends.push_back(add(message_node(NodeKind::receive, name, ranks[from], kGroupTag, in), start));
    }
    return ends.empty() ? start : ends;
  }

  Ids pass_round(const std::string& name, const ProgramStep& step, const Ids& start) {
    const std::vector<std::int32_t>& ring = members_of(step.group);
    const auto at = static_cast<std::size_t>(std::ranges::find(ring, rank_) - ring.begin());
    const std::int32_t to = ring[(at + 1) % ring.size()], from = ring[(at + ring.size() - 1) % ring.size()];
    return {add(message_node(NodeKind::send, name, to, kGroupTag, step.bytes), start),
            add(message_node(NodeKind::receive, name, from, kGroupTag, step.bytes), start)};
  }

  // Messages between stages: activations go to the next stage (from the last to the first for the next chunk),
  // gradients back.

  [[nodiscard]] std::int32_t rank_of_stage(std::int32_t stage) const {
    return rank_ + (stage - stage_) * stride_;
  }
  [[nodiscard]] std::int32_t tag_of(bool backward, std::int32_t chunk, std::int32_t microbatch) const {
    return kGroupTag + 1 + 2 * (microbatch * program_.shape.virtual_stages + chunk) + (backward ? 1 : 0);
  }
  /// The neighbouring stage and chunk in the order in which a microbatch meets them; nothing at the ends.
  struct Neighbour {
    std::int32_t stage = 0, chunk = 0;
  };
  [[nodiscard]] std::optional<Neighbour> neighbour(std::int32_t chunk, std::int32_t step) const {
    const schedule::PipelineShape& shape = program_.shape;
    const std::int32_t part = shape.part(stage_, chunk) + step;
    if (part < 0 || part >= shape.parts()) return std::nullopt;
    return Neighbour{shape.stage_of(part, chunk), shape.chunk_of(part, chunk)};
  }

  void receive(const PipelineOperation& op) {
    if (op.weight) return;
    const auto from = neighbour(op.chunk, op.backward ? 1 : -1);
    if (!from || from->stage == stage_) return;
    const std::string name = fmt::format("{}{}", op.backward ? "gradient " : "activation ", op.microbatch);
    Ids ends = {add(message_node(NodeKind::receive, name, rank_of_stage(from->stage),
                                 tag_of(op.backward, op.chunk, op.microbatch), program_.boundary_bytes),
                    {})};
    if (program_.boundary_gather_bytes > 0) {
      ProgramStep gather;
      gather.kind = StepKind::collective;
      gather.collective = CollectiveKind::all_gather;
      gather.bytes = program_.boundary_gather_bytes;
      ends.insert(ends.end(), front_.begin(), front_.end());
      ends = {add(collective(name + " gather", gather), ends)};
    }
    front_.insert(front_.end(), ends.begin(), ends.end());
  }

  /// Adds the message that an operation sends and returns its node; nothing where it sends none.
  Ids send(const PipelineOperation& op) {
    if (op.weight) return {};
    const auto to = neighbour(op.chunk, op.backward ? -1 : 1);
    if (!to || to->stage == stage_) return {};
    const std::string name = fmt::format("{}{}", op.backward ? "gradient " : "activation ", op.microbatch);
    return {add(message_node(NodeKind::send, name, rank_of_stage(to->stage),
                             tag_of(op.backward, to->chunk, op.microbatch), program_.boundary_bytes),
                front_)};
  }

  void add_tail() {
    for (std::int32_t i = 0; i < stage().deferrals; ++i) {
      for (const ProgramStep& step : stage().deferred) hold(step.name, step.seconds, step.work);
    }
    flush();
    for (std::size_t part = 0; part < stage().gradients.size(); ++part) {
      const std::int32_t left = stage().gradients[part].step.repeats - buckets_gone_[part];
      if (left > 0) send_buckets(part, left);
    }
    front_ = joined(front_, gradient_ids_);
    if (stage().lost > 0)
      follow({add(compute_node("lost to data-parallel traffic", stage().lost, Work{}), front_)});
    const double optimizer = program_.tails[static_cast<std::size_t>(stage_)].optimizer;
    if (optimizer > 0) follow({add(compute_node("optimizer", optimizer, stage().optimizer_work), front_)});
    for (const ProgramStep& step : stage().weights) follow(communicate(step.name, step, front_));
  }

  struct Held {
    std::string first, name;
    double seconds = 0;
    Work work = {};

    /// Keeps the first `kept` seconds with their share of the work; returns the rest.
    Held split(double kept) {
      Held rest = *this;
      const double share = seconds > 0 ? kept / seconds : 1;
      rest.seconds -= kept;
      rest.work -= share * work;
      seconds = kept;
      work = share * work;
      return rest;
    }
  };

  const PricedStep& program_;
  const std::vector<ProcessGroup>& groups_;
  const std::vector<std::vector<std::int32_t>>& group_of_;
  std::int32_t rank_ = 0, stage_ = 0, stride_ = 1;
  RankTrace trace_;
  Ids front_;   ///< nodes that the next step waits for
  Ids beside_;  ///< nodes that end what runs beside the latest compute
  Held held_;   ///< compute that is not yet a node; it follows front_
  std::vector<Passing> passing_;
  Ids pass_ids_;    ///< nodes that end the pass's data-parallel traffic so far; all groups in one order
  Ids gather_ids_;  ///< nodes that end the gather of the weights of the chunk whose first forward comes next
  Ids gradient_ids_;  ///< nodes that end the buckets of gradients sent so far
  /// Buckets sent so far, by part of the gradients.
  std::array<std::int32_t, kCopyGroups.size()> buckets_gone_{};
};

}  // namespace

TraceExport::TraceExport(const PricedStep& program) : program_(program) {
  const PlanLayout layout(program.plan);
  for (const ParallelGroup kind : enum_values<ParallelGroup>()) {
    std::vector<std::int32_t>& group_of = group_of_.emplace_back(static_cast<std::size_t>(ranks()), -1);
    const RankGroup along = layout.group(kind);
    // Pipeline: stages send to their neighbours, without a group.
    const bool idle =
        kind == ParallelGroup::pipeline || (is_of_experts(kind) && !program.plan.folds_experts());
    if (along.alone() || idle) continue;
    std::int32_t number = 0;
    for (std::int32_t r = 0; r < ranks(); ++r) {
      if (group_of[static_cast<std::size_t>(r)] >= 0) continue;
      const auto index = static_cast<std::int32_t>(groups_.size());
      groups_.push_back({fmt::format("{} {}", name_of(kind), number++), members(along, r), {}});
      for (const std::int32_t m : groups_.back().ranks) group_of[static_cast<std::size_t>(m)] = index;
    }
  }
}

RankTrace TraceExport::rank(std::int32_t rank) const {
  return RankBuilder(program_, groups_, group_of_, rank).build();
}

}  // namespace shardscape::timeline
