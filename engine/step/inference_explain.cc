// Builds the operator table of inference: adds up what the iterations of each phase do, weighted by how often the mean
// request meets them, and writes one row per operator and phase.
#include <fmt/format.h>

#include <array>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "engine/model/block_kinds.h"
#include "engine/step/inference.h"

namespace shardscape::step {

namespace {

using serving::Iteration;
using serving::Trajectory;
using Table = IterationCosts::Table;

/// Attention time of one block of a kind, as weighted sums over iterations.
struct AttentionWork {
  Seconds prompt, decode;
};

/// What the iterations of one phase do, weighted by how often they occur.
struct PhaseWork {
  std::map<std::int64_t, double> block, head;  ///< key: tokens at which costs are priced; value: weight
  double prompt_weight = 0, decode_weight = 0;
  std::array<AttentionWork, model::kMostBlockKinds> attention;
  Iteration prompt_example, decode_example;
};

Iteration last_of(const WeightedIterations& segment) {
  Iteration last = segment.first;
  last.cached += last.decoding * static_cast<double>(segment.iterations - 1);
  return last;
}

/// What one call of the attention kernel works on, and how many calls a block makes.
struct AttentionCalls {
  Iteration each;
  double calls = 1;
};
AttentionCalls attention_calls(const IterationCosts& costs, std::size_t kind, const Iteration& iteration) {
  if (!costs.in_halves(kind, iteration.prompt_tokens + iteration.decoding)) return {iteration, 1};
  return {half_of(iteration), 2};
}

void add_attention(const model::StageLayers& blocks, const WeightedIterations& segment, double weight,
                   const IterationCosts& iterations, TokenCosts& costs, PhaseWork& work) {
  const Iteration& first = segment.first;
  if (first.prompt_tokens > 0) {
    work.prompt_weight += weight;
    for (const auto& [kind, count] : blocks) {
      const AttentionCalls calls = attention_calls(iterations, kind, first);
      work.attention[kind].prompt += weight * calls.calls * costs.prompt_attention(kind, calls.each);
    }
    if (first.prompt_pairs > work.prompt_example.prompt_pairs) work.prompt_example = first;
  }
  if (first.decoding > 0) {
    const Iteration last = last_of(segment);
    // The time is linear in the tokens met, so the mean over the iterations is the mean of the first and the last.
    for (const auto& [kind, count] : blocks) {
      const AttentionCalls at_first = attention_calls(iterations, kind, first),
                           at_last = attention_calls(iterations, kind, last);
      const Seconds ends = costs.decode_attention(kind, at_first.each.decoding, at_first.each.cached) +
                           costs.decode_attention(kind, at_last.each.decoding, at_last.each.cached);
      work.attention[kind].decode += 0.5 * weight * at_first.calls * ends;
    }
    work.decode_weight += weight;
    if (last.cached > work.decode_example.cached) work.decode_example = last;
  }
}

/// Joins rows of the same operator and phase.
void merge(std::vector<OperatorRow>& from, std::vector<OperatorRow>& rows, std::size_t begin) {
  for (OperatorRow& row : from) {
    std::size_t i = begin;
    while (i < rows.size() && (rows[i].phase != row.phase || rows[i].name != row.name)) ++i;
    if (i == rows.size()) {
      rows.push_back(std::move(row));
      continue;
    }
    OperatorRow& sum = rows[i];
    const Seconds before = sum.count * sum.time, more = row.count * row.time;
    if (more > before) sum.shape = row.shape, sum.bound = row.bound;
    sum.count += row.count;
    sum.time = (before + more) / sum.count;
  }
  from.clear();
}

class RowTable {
 public:
  RowTable(const InferenceInputs& in, const IterationCosts& iterations, network::CollectiveModel& collectives,
           InferenceMemo& memo, std::vector<OperatorRow>& rows)
      : in_(in),
        iterations_(iterations),
        collectives_(collectives),
        costs_(memo.token_costs(in.setting, in.plan)),
        rows_(rows),
        begin_(rows.size()),
        blocks_(model::all_layers(in.setting.model)) {}

  void add(const PhaseWork& work, const char* phase, bool reads) {
    const auto which = reads ? TokenCosts::Tokens::of_prompts : TokenCosts::Tokens::decoding;
    for (const auto& [tokens, weight] : work.block) {
      add_rest(reads ? costs_.prompt_embedding(tokens) : costs_.decode_embedding(tokens), phase, weight);
      for (const auto& [kind, count] : blocks_) {
        const bool halves = iterations_.in_halves(kind, static_cast<double>(tokens));
        const std::int64_t each = halves ? half_of(tokens) : tokens;
        add_rest(costs_.block(which, kind, each, costs_.slowest_member(which, kind, each)), phase,
                 (halves ? 2 : 1) * weight * count);
      }
    }
    for (const auto& [kind, count] : blocks_) {
      const AttentionWork& attention = work.attention[kind];
      if (work.prompt_weight > 0) {
        const Iteration& i = work.prompt_example;
        add_attention({phase, "attention", name_of(costs_.prompt_attention_bound(kind, i))}, count,
                      work.prompt_weight, attention.prompt, i.prompt_tokens, i.prompt_pairs);
      }
      if (work.decode_weight > 0) {
        const Iteration& i = work.decode_example;
        add_attention({phase, "decode_attention", name_of(costs_.decode_attention_bound(kind, i))}, count,
                      work.decode_weight, attention.decode, i.decoding,
                      i.decoding * model::cached_tokens(in_.setting.model, kind, i.cached / i.decoding));
      }
    }
    for (const auto& [rows, weight] : work.head) add_rest(costs_.head_rows(rows), phase, weight);
  }

 private:
  void add_rest(const std::vector<model::Operator>& operators, const char* phase, double count) {
    std::vector<Node> rest = listed_nodes(operators, Part::forward);
    std::erase_if(rest, [](const Node& node) { return !node.call && node.op->attention_core; });
    std::vector<OperatorRow> fresh;
    RowWriter(in_.setting, in_.plan, collectives_, {}, fresh).add(rest, phase, count);
    merge(fresh, rows_, begin_);
  }

  struct AttentionName {
    const char *phase, *name;
    std::string_view bound;
  };
  void add_attention(const AttentionName& name, double blocks, double weight, Seconds total, double queries,
                     double pairs) {
    const double heads = static_cast<double>(in_.setting.model.heads) / in_.plan.tensor;
    const double keys = pairs / queries;
    const auto whole = [](double value) { return static_cast<std::int64_t>(value + 0.5); };
    const std::string shape =
        fmt::format("{} heads, {} q x {} kv", whole(heads), whole(queries), whole(keys));
    rows_.push_back(
        {name.phase, name.name, shape, weight * blocks, total / weight, std::string(name.bound), ""});
  }

  const InferenceInputs& in_;
  const IterationCosts& iterations_;
  network::CollectiveModel& collectives_;
  TokenCosts& costs_;
  std::vector<OperatorRow>& rows_;
  std::size_t begin_;
  model::StageLayers blocks_;
};

}  // namespace

void explain_iterations(const InferenceInputs& in, network::CollectiveModel& collectives, InferenceMemo& memo,
                        const std::vector<WeightedIterations>& iterations, std::vector<OperatorRow>& rows) {
  const IterationCosts costs = iteration_costs(in, collectives, memo, IterationCosts::Unit::seconds);
  TokenCosts& tokens = memo.token_costs(in.setting, in.plan);
  PhaseWork prefill, decode;
  for (const WeightedIterations& group : iterations) {
    const Iteration& first = group.first;
    const double weight = group.weight * static_cast<double>(group.iterations);
    PhaseWork& work = first.prompt_tokens > 0 ? prefill : decode;
    for (const auto& [at, share] :
         costs.shares(IterationCosts::table_of(first), first.prompt_tokens + first.decoding)) {
      if (share > 0) work.block[at] += weight * share;
    }
    if (const double heads = first.decoding + first.first_tokens; heads > 0) {
      for (const auto& [at, share] : costs.shares(Table::head, heads)) {
        if (share > 0) work.head[at] += weight * share;
      }
    }
    add_attention(model::all_layers(in.setting.model), group, weight, costs, tokens, work);
  }
  RowTable table(in, costs, collectives, memo, rows);
  table.add(prefill, "prefill", true);
  table.add(decode, "decode", false);
}

void explain_inference(const InferenceInputs& in, network::CollectiveModel& collectives, InferenceMemo& memo,
                       std::vector<OperatorRow>& rows) {
  const serving::Load load = load_of(in);
  const Trajectory& course = memo.trajectory(load, rules_of(in));
  const double done = serving::requests_measured(course, load);
  std::vector<WeightedIterations> iterations;
  for (auto i = static_cast<std::size_t>(course.from); i < static_cast<std::size_t>(course.to); ++i) {
    const Trajectory::Segment& segment = course.segments[i];
    iterations.push_back(
        {segment.first, segment.iterations, static_cast<double>(segment.progressing) / done});
  }
  explain_iterations(in, collectives, memo, iterations, rows);
}

}  // namespace shardscape::step
