// Builds the operator table of inference: adds up what the iterations of each phase do, weighted by how often the mean
// request meets them, and writes one row per operator and phase.
#include <fmt/format.h>

#include <array>
#include <map>
#include <string>
#include <utility>

#include "engine/model/block_kinds.h"
#include "engine/step/serving/inference.h"

namespace shardscape::step {

namespace {

using serving::Iteration;
using serving::Trajectory;

Iteration last_of(const WeightedIterations& segment) {
  Iteration last = segment.first;
  last.cached += last.decoding * static_cast<double>(segment.iterations - 1);
  return last;
}

/// What the iterations of one phase do, weighted by how often they occur.
struct PhaseWork {
  std::map<std::int64_t, double> block, head;  ///< key: tokens at which costs are priced; value: weight
  /// One kind of attention: the weight of the iterations that have it, the one that works on most, and the weighted
  /// seconds of a block of each kind.
  struct Core {
    double weight = 0;
    Iteration example = {};
    std::array<double, model::kMostBlockKinds> seconds{};
  };
  Core prompt, decode;

  void add(const IterationCosts& costs, const WeightedIterations& segment);
};

void PhaseWork::add(const IterationCosts& costs, const WeightedIterations& segment) {
  const Iteration &first = segment.first, last = last_of(segment);
  const double tokens = first.prompt_tokens + first.decoding, rows = first.decoding + first.first_tokens;
  const double weight = segment.weight * static_cast<double>(segment.iterations);
  const auto add_shares = [&](TokenTable table, double number, std::map<std::int64_t, double>& weights) {
    for (const auto& [at, share] : costs.shares(table, number))
      if (share > 0) weights[at] += weight * share;
  };
  add_shares(table_of(first), tokens, block);
  if (rows > 0) add_shares(TokenTable::head, rows, head);
  // Attention's time is linear in the tokens met, so the mean over the iterations is that of the first and the last.
  for (const auto& [kind, count] : costs.stream().all_blocks()) {
    const auto batches = static_cast<double>(costs.stream().batches(kind, tokens));
    const AttentionSeconds begins = costs.stream().attention(kind, first),
                           ends = costs.stream().attention(kind, last);
    prompt.seconds[kind] += weight * batches * begins.prompt;
    decode.seconds[kind] += 0.5 * weight * batches * (begins.decode + ends.decode);
  }
  if (first.prompt_tokens > 0) prompt.weight += weight;
  if (first.prompt_pairs > prompt.example.prompt_pairs) prompt.example = first;
  if (first.decoding > 0) decode.weight += weight;
  if (last.cached > decode.example.cached) decode.example = last;
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
    if (more > before) sum.shape = row.shape, sum.product = row.product, sum.bound = row.bound;
    sum.count += row.count;
    sum.time = (before + more) / sum.count;
  }
  from.clear();
}

class RowTable {
 public:
  RowTable(const InferenceInputs& in, const IterationStream& stream,
           const network::CollectivePrices& collectives, TokenCosts& costs, std::vector<OperatorRow>& rows)
      : in_(in),
        stream_(stream),
        groups_(network::PlanLayout(in.plan).groups()),
        prices_{in.setting, in.plan, nullptr, groups_, collectives},
        costs_(costs),
        rows_(rows),
        begin_(rows.size()) {}

  void add(const PhaseWork& work, const char* phase, TokenTable table) {
    for (const auto& [tokens, weight] : work.block) {
      add_rest(costs_.operators(table, kEmbeddingLayer, tokens), phase, weight);
      for (const auto& [kind, count] : stream_.all_blocks()) {
        const auto [batches, each, slowest] = stream_.work_of(table, kind, tokens);
        add_rest(costs_.operators(table, block_layer(kind), each, slowest), phase,
                 static_cast<double>(batches) * weight * count);
      }
    }
    for (const auto& [kind, count] : stream_.all_blocks()) {
      const auto add_core = [&, of = kind, blocks = count](const char* name, const PhaseWork::Core& core,
                                                           const std::string& shape_text, Bound bound) {
        rows_.push_back({phase, name, shape_text, core.weight * blocks,
                         Seconds(core.seconds[of] / core.weight), std::string(name_of(bound)), ""});
      };
      const Iteration& reads = work.prompt.example;
      if (work.prompt.weight > 0)
        add_core("attention", work.prompt,
                 shape(reads.prompt_tokens, reads.prompt_pairs / reads.prompt_tokens),
                 costs_.price_prompts(kind, reads).bound);
      const Iteration& decodes = work.decode.example;
      if (work.decode.weight > 0)
        add_core("decode_attention", work.decode,
                 shape(decodes.decoding,
                       model::cached_tokens(in_.setting.model, kind, decodes.cached / decodes.decoding)),
                 costs_.price_decoding(kind, decodes.decoding, decodes.cached).bound);
    }
    for (const auto& [rows, weight] : work.head)
      add_rest(costs_.operators(TokenTable::head, kHeadLayer, rows), phase, weight);
  }

 private:
  void add_rest(const std::vector<model::Operator>& operators, const char* phase, double count) {
    std::vector<Node> rest = listed_nodes(operators, LayerPart::forward);
    std::erase_if(rest, [](const Node& node) { return !node.call && node.op->attention_core; });
    std::vector<OperatorRow> fresh;
    RowWriter(prices_, fresh).add(rest, phase, count);
    merge(fresh, rows_, begin_);
  }
  [[nodiscard]] std::string shape(double queries, double keys) const {
    const auto whole = [](double value) { return static_cast<std::int64_t>(value + 0.5); };
    const double heads = static_cast<double>(in_.setting.model.heads) / in_.plan.tensor;
    return fmt::format("{} heads, {} q x {} kv", whole(heads), whole(queries), whole(keys));
  }

  const InferenceInputs& in_;
  const IterationStream& stream_;
  const network::RankGroups groups_;
  const CallPrices prices_;
  TokenCosts& costs_;
  std::vector<OperatorRow>& rows_;
  std::size_t begin_;
};

}  // namespace

void explain_iterations(const InferenceInputs& in, const network::CollectivePrices& collectives,
                        InferenceMemo& memo, const std::vector<WeightedIterations>& iterations,
                        std::vector<OperatorRow>& rows) {
  const IterationCosts costs = iteration_costs(in, collectives, memo, IterationCosts::Unit::seconds);
  PhaseWork prefill, decode;
  for (const WeightedIterations& segment : iterations)
    (segment.first.prompt_tokens > 0 ? prefill : decode).add(costs, segment);
  RowTable table(in, costs.stream(), collectives, memo.token_costs(in.setting, in.plan), rows);
  table.add(prefill, "prefill", TokenTable::prompt);
  table.add(decode, "decode", TokenTable::decode);
}

void explain_inference(const InferenceInputs& in, const network::CollectivePrices& collectives,
                       InferenceMemo& memo, std::vector<OperatorRow>& rows) {
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
