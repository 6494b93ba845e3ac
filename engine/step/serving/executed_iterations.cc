// Times iterations of a server by executing them at sampled numbers of tokens and rows and at sampled attention times,
// and interpolates linearly between these samples.
#include "engine/step/serving/executed_iterations.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "engine/model/block_kinds.h"

namespace shardscape::step {

namespace {

using serving::IterationTime;

/// Number of sampled attention times per factor of two.
constexpr double kPerOctave = 4;

/// A value of an iteration at which others like it are executed, and its weight.
using Choices = std::array<std::pair<double, double>, 2>;

/// The sampled attention times around `seconds`.
Choices bracket(double seconds) {
  if (seconds <= 0) return {{{0, 1}, {0, 0}}};
  const double step = std::floor(std::log2(seconds) * kPerOctave);
  const double low = std::exp2(step / kPerOctave), high = std::exp2((step + 1) / kPerOctave);
  const double share = (seconds - low) / (high - low);
  return {{{low, 1 - share}, {high, share}}};
}

/// Whether a rank books this class of time while it works. Waits are found from the times at which ranks end instead.
bool works(TimeClass c) { return c != TimeClass::pipeline_comm && c != TimeClass::bubble; }

class ExecutedIterations {
 public:
  /// All references must outlive this object. `plainly`: executions are not remembered.
  ExecutedIterations(const InferenceInputs& inputs, TokenCosts& costs,
                     const network::CollectivePrices& collectives, FlattenedRun& run, bool plainly)
      : in_(inputs),
        costs_(costs),
        collectives_(collectives),
        run_(run),
        plainly_(plainly),
        samples_(inputs, costs, collectives),
        layout_(inputs.plan) {}

  /// The time of an iteration. Zero, with run.unreachable set, where dead links cut ranks off that have to talk.
  IterationTime operator()(const serving::Iteration& iteration) {
    IterationTime time{};
    for (const Corner& corner : corners(iteration)) {
      if (run_.unreachable || !run_.deadlock.empty()) return {};
      const IterationTime& part = executed(corner.shape);
      for (const TimeClass c : enum_values<TimeClass>()) time[c] += corner.share * part[c];
    }
    time[TimeClass::compute] -= samples_.spared(iteration);
    return time;
  }

 private:
  struct Corner {
    IterationShape shape;
    double share = 1;
  };
  struct Outcome {
    std::vector<double> end;                  ///< index: rank
    std::vector<execution::Ledger> accounts;  ///< index: rank; seconds by account
  };

  [[nodiscard]] std::int32_t rank_of(std::int32_t replica, std::int32_t stage) const {
    return replica * layout_.stride(PlanAxis::data) + stage * layout_.stride(PlanAxis::pipeline);
  }

  std::optional<Outcome> outcome(const IterationShape& shape, std::int64_t groups, std::int64_t rounds) {
    execution::ProgramBuilder builder = run_.builder(in_.setting, collectives_);
    emit_iterations(in_, costs_, shape, groups, rounds, builder);
    if (collectives_.unreachable() || builder.unreachable()) {
      run_.unreachable = true;
      return std::nullopt;
    }
    const execution::Programs programs = builder.finish();
    const execution::ExecutionResult* const result = run_.execute(programs);
    return result != nullptr ? std::optional(Outcome{result->end, result->accounts}) : std::nullopt;
  }

  /// The replica that takes longest from the end of one outcome to the end of the other.
  [[nodiscard]] std::int32_t slowest_replica(const Outcome& before, const Outcome& after) const {
    std::int32_t slowest = 0;
    double longest = -1;
    for (std::int32_t replica = 0; replica < in_.plan.data; ++replica) {
      const auto rank = static_cast<std::size_t>(rank_of(replica, 0));
      const double seconds = after.end[rank] - before.end[rank];
      if (seconds > longest) slowest = replica, longest = seconds;
    }
    return slowest;
  }

  [[nodiscard]] IterationTime execute(const IterationShape& shape) {
    const std::optional<Outcome> trip = outcome(shape, 1, 1);
    if (!trip) return {};
    // What one iteration of a group adds, by class of time and summed over stages, between two executions that differ
    // by `passes` passes, on the slowest replica; and the time between their ends.
    const auto booked = [&](const Outcome& before, const Outcome& after, double passes) {
      const std::int32_t replica = slowest_replica(before, after);
      IterationTime time{};
      for (std::int32_t stage = 0; stage < in_.plan.pipeline; ++stage) {
        const auto rank = static_cast<std::size_t>(rank_of(replica, stage));
        for (const TimeClass c : enum_values<TimeClass>()) {
          if (!works(c)) continue;
          time[c] += (after.accounts[rank][c] - before.accounts[rank][c]) / passes;
        }
      }
      const auto origin = static_cast<std::size_t>(rank_of(replica, 0));
      return std::pair(time, after.end[origin] - before.end[origin]);
    };
    const std::size_t ranks = trip->end.size();
    const Outcome beginning{std::vector<double>(ranks), std::vector<execution::Ledger>(ranks)};
    auto [time, end] = booked(beginning, *trip, 1);
    if (in_.plan.pipeline == 1) return time;
    const double step =
        host_of_iteration(in_.setting.system.stack, in_.batches(), static_cast<double>(shape.rows)).total();
    const double moving = std::max(0.0, end - step - serving::total(time));
    if (in_.shape.groups > 1) {
      const std::optional<Outcome> first = outcome(shape, in_.shape.groups, 1),
                                   second = outcome(shape, in_.shape.groups, 2);
      if (!first || !second) return {};
      std::tie(time, end) = booked(*first, *second, static_cast<double>(in_.shape.groups));
    }
    time[TimeClass::host] += step;
    const double rest = std::max(0.0, end - serving::total(time));
    time[TimeClass::pipeline_comm] = std::min(moving, rest);
    time[TimeClass::bubble] = rest - time[TimeClass::pipeline_comm];
    return time;
  }

  const IterationTime& executed(const IterationShape& shape) {
    if (plainly_) return last_ = execute(shape);
    const auto [entry, fresh] = known_.try_emplace(shape);
    if (fresh) entry->second = execute(shape);
    return entry->second;
  }

  [[nodiscard]] std::vector<Corner> corners(const serving::Iteration& iteration) {
    const double rows = iteration.decoding + iteration.first_tokens;
    const TokenTable table = table_of(iteration);
    std::vector<Corner> list = {{{table, 0, 0, {}}, 1}};
    const auto split = [&](auto&& assign, const auto& choices) {
      std::vector<Corner> next;
      for (const Corner& corner : list) {
        for (const auto& [value, share] : choices) {
          if (share <= 0) continue;
          next.push_back(corner);
          assign(next.back().shape, value);
          next.back().share *= share;
        }
      }
      list = std::move(next);
    };
    const auto tokens = samples_.shares(table, iteration.prompt_tokens + iteration.decoding);
    if (table == TokenTable::decode) {  // every sequence gets a token, so tokens and rows are equal
      split([](IterationShape& s, std::int64_t n) { s.tokens = s.rows = n; }, tokens);
    } else {
      split([](IterationShape& s, std::int64_t n) { s.tokens = n; }, tokens);
      if (rows > 0)
        split([](IterationShape& s, std::int64_t n) { s.rows = n; }, samples_.shares(TokenTable::head, rows));
    }
    for (std::size_t k = 0, kinds = model::block_kinds(in_.setting.model).size(); k < kinds; ++k) {
      auto [prompt, decode] = samples_.stream().attention(k, iteration);
      // The two run one after the other with nothing beside them, so only their sum counts.
      if (in_.plan.context == 1 && prompt > 0) {
        prompt += decode;
        decode = 0;
      }
      split([k](IterationShape& s, double seconds) { s.attention[k].prompt = seconds; }, bracket(prompt));
      split([k](IterationShape& s, double seconds) { s.attention[k].decode = seconds; }, bracket(decode));
    }
    return list;
  }

  const InferenceInputs in_;
  TokenCosts& costs_;
  const network::CollectivePrices& collectives_;
  FlattenedRun& run_;
  const bool plainly_;
  IterationCosts samples_;  ///< knows at which numbers of tokens and rows to sample
  network::PlanLayout layout_;
  std::map<IterationShape, serving::IterationTime> known_;
  serving::IterationTime last_{};
};

}  // namespace

serving::Timer executed_timer(const InferenceInputs& inputs, TokenCosts& costs,
                              const network::CollectivePrices& collectives, FlattenedRun& run, bool plainly) {
  const auto executed = std::make_shared<ExecutedIterations>(inputs, costs, collectives, run, plainly);
  return [executed](const serving::Iteration& iteration) { return (*executed)(iteration); };
}

}  // namespace shardscape::step
