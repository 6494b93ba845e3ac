// Sums the operations of all stages by link, from the loads that the network's prices are made of.
#include "engine/step/training/sent_in_step.h"

#include <algorithm>
#include <utility>

#include "engine/step/training/contention.h"

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
  for (const SentInStep::Operation& operation : sent.operations) {
    std::ranges::fill(users, Users());
    const std::vector<network::LinkSet>& stages = costs.links_by_slice(operation.key);
    for (std::size_t s = 0; s < stages.size(); ++s)
      stages[s].for_each([&](std::int32_t link) {
        Users& of = users[static_cast<std::size_t>(link)];
        of.stages += 1;
        of.seconds += operation.of_stage[s].value();
      });
    for (const network::LinkLoad& load : costs.loads(operation.key))
      for (auto link = static_cast<std::size_t>(load.link); std::cmp_less(link, load.end()); ++link)
        if (users[link].stages > 0) sent.busy[link] += load.use * users[link].seconds / users[link].stages;
  }
}

/// Adds operations of a stage, which take so many seconds on their links.
void add(const StepMachine& healthy, network::CollectiveKey key, std::size_t stage, Seconds seconds,
         std::vector<SentInStep::Operation>& operations) {
  key.slice = network::stage_slice(0, network::PlanLayout(healthy.in.plan), healthy.in.plan);
  auto known = std::ranges::find(operations, key, &SentInStep::Operation::key);
  if (known == operations.end())
    known = operations.insert(known, {key, std::vector<Seconds>(healthy.in.layers.size())});
  known->of_stage[stage] += seconds;
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
      add(healthy, gather, receiver, often * costs.time_on_links(gather), sent.operations);
    }
  }
}

}  // namespace

SentInStep sent_in_step(const StepMachine& healthy) {
  SentInStep sent;
  sent.messages.resize(healthy.collectives.healthy().network().bytes_per_second().size());
  sent.busy = sent.messages;
  for (std::size_t s = 0; s < healthy.in.layers.size(); ++s) {
    const Operations all = operations_of(healthy, s);
    for (std::size_t i = 0; i < all.keys.size(); ++i)
      add(healthy, all.keys[i], s, all.seconds[i], sent.operations);
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
  for (const SentInStep::Operation& operation : sent.operations) {
    const network::LinkLoad* const load = load_of(healthy.loads(operation.key), slow.link);
    if (load == nullptr) continue;
    const double use = load->use;  // the next question may overwrite it
    const auto uses = [&](const network::LinkSet& links) { return links.contains(slow.link); };
    const std::vector<network::LinkSet> stages = healthy.links_by_slice(operation.key);
    const auto users = static_cast<double>(std::ranges::count_if(stages, uses));
    for (std::size_t s = 0; s < stages.size(); ++s) {
      if (operation.of_stage[s] <= Seconds(0) || !uses(stages[s])) continue;
      network::CollectiveKey key = operation.key;
      key.slice = network::stage_slice(static_cast<std::int32_t>(s), network::PlanLayout(plan), plan);
      network::CollectiveKey call = key;
      call.bytes = (1 / key.calls) * key.bytes;
      call.calls = 1;
      const Seconds now = healthy.time_of_call(call, 1).on_links + sick.added_by_faults(key);
      const double longest = key.calls * now / healthy.time_on_links(key);
      busy += std::min(slow.times * use, longest) / users * operation.of_stage[s].value();
    }
  }
  return Seconds(busy);
}

}  // namespace shardscape::step
