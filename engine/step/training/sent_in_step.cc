// Sums the operations of all stages by link, from the loads that the network's prices are made of, and bytes by group.
#include "engine/step/training/sent_in_step.h"

#include <algorithm>
#include <utility>

#include "engine/network/collectives/collective_rows.h"
#include "engine/step/training/contention.h"
#include "engine/step/training/data_traffic.h"

namespace shardscape::step {

using network::CollectiveOp;

namespace {

/// Adds for how long the operations of all stages keep each link busy.
void add_busy(const StepMachine& healthy, SentInStep& sent) {
  const network::HealthyCosts& costs = healthy.collectives.healthy();
  struct Users {
    double stages = 0, seconds = 0;
  };
  std::vector<Users> users(sent.busy.size());
  for (const auto& operation : sent.operations) {
    std::ranges::fill(users, Users());
    const std::vector<network::LinkSet>& stages = costs.links_by_slice(operation.key);
    for (std::size_t s = 0; s < stages.size(); ++s)
      stages[s].for_each([&](std::int32_t link) {
        Users& of = users[static_cast<std::size_t>(link)];
        of.stages += 1;
        of.seconds += operation.value[s].value();
      });
    for (const network::LinkLoad& load : costs.loads(operation.key))
      for (auto link = static_cast<std::size_t>(load.link); std::cmp_less(link, load.end()); ++link)
        if (users[link].stages > 0) sent.busy[link] += load.use * users[link].seconds / users[link].stages;
  }
}

/// Adds operations of a stage, which take so many seconds on their links.
void add(const StepMachine& healthy, network::CollectiveKey key, std::size_t stage, Seconds seconds,
         SentInStep& sent) {
  key.slice = network::stage_slice(0, network::PlanLayout(healthy.in.plan), healthy.in.plan);
  std::vector<Seconds>& of_stage = sent.operations.at(key).value;
  of_stage.resize(healthy.in.layers.size());
  of_stage[stage] += seconds;
}

/// Adds messages between stages, and what the ranks that receive them gather.
void add_messages(const StepMachine& healthy, SentInStep& sent) {
  const TrainingStep& in = healthy.in;
  const network::HealthyCosts& costs = healthy.collectives.healthy();
  const network::RankGroup& stages = healthy.groups[ParallelGroup::pipeline];
  const std::int32_t count = in.plan.pipeline,
                     boundaries = count == 1 ? 0 : count - (in.pipeline.wraps() ? 0 : 1);
  const Boundary boundary = in.boundary();
  const network::CollectiveKey gather{CollectiveOp::all_gather, boundary.gathered,
                                      healthy.groups[ParallelGroup::tensor]};
  for (std::int32_t b = 0; b < boundaries; ++b) {
    const bool closes = b + 1 == count;
    const double often = in.pipeline.forwards() - (closes ? in.pipeline.per_chunk() : 0);
    for (const bool back : {false, true}) {
      network::OperationCosts& way = costs.message(costs.boundaries(stages), stages, b, back);
      for (const network::LinkLoad& load : costs.loads(way))
        for (auto link = static_cast<std::size_t>(load.link); std::cmp_less(link, load.end()); ++link)
          sent.messages[link] +=
              load.flows * often * boundary.message.value() / costs.network().bytes_per_second()[link];
      if (gather.nothing()) continue;
      const auto receiver = static_cast<std::size_t>(back ? b : (b + 1) % count);
      add(healthy, gather, receiver, often * costs.time_on_links(gather), sent);
    }
  }
}

/// Bytes that a rank of the group sends on average; `bytes` as the network counts them.
Bytes bytes_of(CollectiveOp op, Bytes bytes, double ranks) {
  const std::int32_t sweeps = network::row_of(op).sweeps;
  return sweeps > 0 ? sweeps * ((ranks - 1) / ranks * bytes) : bytes;
}

/// Bytes of one microbatch's calls in one stage, forward and backward.
GroupBytes stage_calls(const TrainingStep& in, std::int32_t stage,
                       const network::CollectivePrices& collectives) {
  const network::PlanLayout layout(in.plan);
  GroupBytes sum;
  in.each_part(in.stage_layers(stage), [&](const LayerRun& run, Pass /*pass*/, const PartCost& part) {
    for (const model::CollectiveCall& call : part.calls)
      sum[call.group] += run.count * sent_bytes(collectives, call, layout.group(call.group));
  });
  return sum;
}

/// Bytes of data-parallel traffic in one step.
GroupBytes data_bytes(const TrainingStep& in, std::int32_t stage) {
  GroupBytes sum;
  for (const DataTraffic::Part& part : data_traffic(in, stage).parts) {
    const double ranks = in.pipeline.copies() * ranks_of(in.plan, part.group);
    sum[part.group] += (part.once ? 1 : in.pipeline.per_chunk()) * bytes_of(part.op, part.bytes, ranks);
  }
  return sum;
}

}  // namespace

SentInStep sent_in_step(const StepMachine& healthy) {
  SentInStep sent;
  sent.messages.resize(healthy.collectives.healthy().network().bytes_per_second().size());
  sent.busy = sent.messages;
  for (std::size_t s = 0; s < healthy.in.layers.size(); ++s) {
    const Operations all = operations_of(healthy, s);
    for (std::size_t i = 0; i < all.keys.size(); ++i) add(healthy, all.keys[i], s, all.seconds[i], sent);
  }
  add_messages(healthy, sent);
  add_busy(healthy, sent);
  for (std::size_t link = 0; link < sent.busy.size(); ++link)
    if (sent.busy[link] + sent.messages[link] > 0) sent.used.insert(static_cast<std::int32_t>(link));
  return sent;
}

Seconds busy_on_slow_link(const SentInStep& sent, const ParallelPlan& plan,
                          const network::CollectivePrices& sick, const network::SickLinks::SlowLink& slow) {
  const network::HealthyCosts& healthy = sick.healthy();
  double busy = slow.times * sent.messages[static_cast<std::size_t>(slow.link)];
  for (const auto& [of_first, of_stage] : sent.operations) {
    const network::LinkLoad* const load = load_of(healthy.loads(of_first), slow.link);
    if (load == nullptr) continue;
    const double use = load->use;  // the next question may overwrite it
    const auto uses = [&](const network::LinkSet& links) { return links.contains(slow.link); };
    const std::vector<network::LinkSet> stages = healthy.links_by_slice(of_first);
    const auto users = static_cast<double>(std::ranges::count_if(stages, uses));
    for (std::size_t s = 0; s < stages.size(); ++s) {
      if (of_stage[s] <= Seconds(0) || !uses(stages[s])) continue;
      network::CollectiveKey key = of_first;
      key.slice = network::stage_slice(static_cast<std::int32_t>(s), network::PlanLayout(plan), plan);
      network::CollectiveKey call = key;
      call.bytes = (1 / key.calls) * key.bytes;
      call.calls = 1;
      const Seconds now = healthy.time_of_call(call, 1).on_links + sick.added_by_faults(key);
      const double longest = key.calls * now / healthy.time_on_links(key);
      busy += std::min(slow.times * use, longest) / users * of_stage[s].value();
    }
  }
  return Seconds(busy);
}

Bytes sent_bytes(const network::CollectivePrices& collectives, const model::CollectiveCall& call,
                 const network::RankGroup& group) {
  return call.repeats *
         bytes_of(call.op, collectives.healthy().wire_bytes(call.op, call.bytes, group), group.size());
}

GroupBytes training_bytes(const TrainingStep& in, const network::CollectivePrices& collectives) {
  GroupBytes most;
  const double m = in.pipeline.per_chunk();
  for (std::int32_t stage = 0; stage < in.plan.pipeline; ++stage) {
    const GroupBytes calls = stage_calls(in, stage, collectives);
    const GroupBytes data = data_bytes(in, stage);
    for (const ParallelGroup group : enum_values<ParallelGroup>())
      most[group] = std::max(most[group], m * calls[group] + data[group]);
  }
  if (in.plan.pipeline == 1) return most;
  const double messages = m * in.pipeline.virtual_stages;
  const Boundary boundary = in.boundary();
  most[ParallelGroup::pipeline] = messages * boundary.message;
  most.pipeline_wraps = in.pipeline.wraps();
  // The boundary is sent in parts, and gathered again on arrival, in forward and in backward.
  if (boundary.gathered > Bytes(0))
    most[ParallelGroup::tensor] +=
        2 * messages * bytes_of(CollectiveOp::all_gather, boundary.gathered, in.plan.tensor);
  return most;
}

}  // namespace shardscape::step
