// What one iteration of a server costs on a plan: the engine's own operators and collectives, at the number
// of tokens that the iteration works on.
//
//   time = layers x (max(operators + attention + exposed communication, host launch) + gap)
//          + embedding + LM head of the sequences that get a token + stage hops
//          + fixed host cost of a step + host cost per such sequence
//
// which is the trip through all stages. Groups that take turns on them (inference.h) wait where their number
// times the busiest stage's share is longer than the trip; a stage is busy until what it sends has arrived
// unless sends are asynchronous.
//
// Everything but attention depends on the number of tokens m alone (weights are read once whatever m). It is
// priced where m is a power of two, and at those m that a load meets most (all sequences decoding, a whole
// prompt, a full budget), and runs linearly between: exact at those, elsewhere off by no more than the tiles
// of a product jump in one octave.
//
// Attention is priced for what the iteration does: the decode kernel for the decoding sequences at their mean
// length, linearly between the shortest and the longest that the load meets; the prompt kernel for all pieces
// at once, with as many query-key pairs as they have.
//
// Blocks that two half batches take in turn (two_batches.h) are priced at half of m beside it, at the same samples.
//
// Where the loads of experts differ a block takes as long as that of the rank which is slowest with its own experts.
//
// Left out: merging the parts of a decoding sequence's attention over a context group; different lengths of
// the sequences of one batch (they only matter where a kernel waits for its longest).
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "engine/base/hash.h"
#include "engine/model/layer_key.h"
#include "engine/model/stage_layers.h"
#include "engine/network/collective_model.h"
#include "engine/serving/server.h"
#include "engine/step/price_layers.h"
#include "engine/step/two_batches.h"

namespace shardscape::step {

/// Device time of an operator's forward alone: inference has no use for gradients.
Seconds price_forward(const model::Operator& op, const Setting& setting);

/// Device time and calls of one forward trip's parts at one number of tokens, without the attention core.
struct TokenCost {
  std::vector<PartCost> blocks;  ///< by kind
  PartCost embedding;
  Bytes boundary;
};

/// The parts of a layout of the layers that depend on no fabric and no plan beside: shared by plans.
class TokenCosts {
 public:
  TokenCosts(const Setting& setting, const ParallelPlan& plan);

  /// A prompt iteration of `tokens`; a decode iteration of as many sequences; the head for as many rows.
  const TokenCost& prompt(std::int64_t tokens);
  const TokenCost& decode(std::int64_t sequences);
  const PartCost& head(std::int64_t rows);
  /// Attention of one block of a kind.
  [[nodiscard]] Seconds prompt_attention(std::size_t kind, const serving::Iteration& iteration);
  [[nodiscard]] Seconds decode_attention(std::size_t kind, double sequences, double cached);
  [[nodiscard]] Bound prompt_attention_bound(std::size_t kind, const serving::Iteration& iteration) const;
  [[nodiscard]] Bound decode_attention_bound(std::size_t kind, const serving::Iteration& iteration) const;

  /// Whether blocks of a kind send their tokens to ranks that deal experts, and back.
  [[nodiscard]] bool deals(std::size_t kind) const { return cores_[kind].deals; }

  /// Of the members of an expert group the one whose block takes longest; iterations wait for it. Decoding is bound by
  /// the weights of experts that any token meets, so that it need not be the one with most tokens. A load that leaves
  /// all members less than a balanced one, whose few tokens fall unevenly by chance, is no better than that:
  /// model::kBalancedMember. Where all get as much, kBusiest.
  enum class Tokens : std::uint8_t { of_prompts, decoding };
  [[nodiscard]] std::int32_t slowest_member(Tokens which, std::size_t kind, std::int64_t tokens);

  /// The operators of one block, of the embedding and of the head behind those prices. `expert_rank`: whose block.
  [[nodiscard]] std::vector<model::Operator> prompt_block(
      std::size_t kind, std::int64_t tokens, std::int32_t expert_rank = model::LayerKey::kBusiest) const;
  [[nodiscard]] std::vector<model::Operator> prompt_embedding(std::int64_t tokens) const;
  [[nodiscard]] std::vector<model::Operator> decode_block(
      std::size_t kind, std::int64_t sequences, std::int32_t expert_rank = model::LayerKey::kBusiest) const;
  [[nodiscard]] std::vector<model::Operator> block(Tokens which, std::size_t kind, std::int64_t tokens,
                                                   std::int32_t expert_rank) const {
    return which == Tokens::of_prompts ? prompt_block(kind, tokens, expert_rank)
                                       : decode_block(kind, tokens, expert_rank);
  }
  [[nodiscard]] std::vector<model::Operator> decode_embedding(std::int64_t sequences) const;
  [[nodiscard]] std::vector<model::Operator> head_rows(std::int64_t rows) const;

 private:
  struct Chord {
    double at_shortest = -1;  ///< < 0: not priced yet
    double per_token = 0;
  };
  [[nodiscard]] model::LayerKey key(std::int64_t sequences, std::int32_t context) const;
  /// Costs of the slowest member's.
  [[nodiscard]] PartCost price_block(Tokens which, std::size_t kind, std::int64_t tokens);
  [[nodiscard]] compute::OperatorCost price_prompt_attention(std::size_t kind,
                                                             const serving::Iteration& iteration) const;
  [[nodiscard]] compute::OperatorCost price_decode_attention(std::size_t kind, double sequences,
                                                             double cached) const;

  /// What attention asks of the prompts that an iteration reads: tokens, pairs, and of these those that are visible.
  using Pieces = std::array<double, 3>;
  struct PiecesHash {
    std::size_t operator()(const Pieces& pieces) const { return hash_words(pieces); }
  };
  [[nodiscard]] Pieces pieces_of(std::size_t kind, const serving::Iteration& iteration) const;

  const Setting& setting_;
  model::LayerKey layout_;
  struct Core {
    model::Operator prompt, decode;
    std::vector<Chord> chords;  ///< by sequences
    bool deals = false;
    std::unordered_map<Pieces, Seconds, PiecesHash> prompts;  ///< attention of these pieces of prompts
  };
  std::vector<Core> cores_;  ///< by kind of block
  /// Of an expert group one for each load that some have; none where all get as much.
  std::vector<std::int32_t> distinct_members_;
  std::map<std::tuple<Tokens, std::size_t, std::int64_t>, std::int32_t> slowest_;
  std::unordered_map<std::int64_t, TokenCost> prompt_, decode_;
  std::unordered_map<std::int64_t, PartCost> head_;
};

/// Iterations of one plan on the fabric as it is now. All references outlive it.
class IterationCosts {
 public:
  /// seconds, or the bytes that a rank sends in each class of communication (on the stage that sends most).
  enum class Unit : std::uint8_t { seconds, bytes };
  /// The class that counts a group's bytes: ranks that split experts share a class of time with those that deal them, and
  /// servers have no data traffic.
  static constexpr TimeClass class_of_bytes(ParallelGroup group) {
    return group == ParallelGroup::expert_tensor ? TimeClass::data_comm : class_of(group);
  }

  struct Inputs {
    const Setting& setting;
    const ParallelPlan& plan;
    const std::vector<model::StageLayers>& layers;  ///< per stage
    serving::Load load;
    serving::Rules rules;
    std::int64_t groups = 1;  ///< that take turns on the stages
  };

  IterationCosts(const Inputs& inputs, TokenCosts& costs, network::CollectiveModel& collectives,
                 Unit unit = Unit::seconds);

  serving::IterationTime operator()(const serving::Iteration& iteration);

  enum class Table : std::uint8_t { prompt, decode, head };
  /// Where a table is priced for `tokens`, and how much of each counts: one sample, or its two neighbours.
  struct Share {
    std::int64_t tokens = 0;
    double share = 0;
  };
  [[nodiscard]] std::array<Share, 2> shares(Table table, double tokens) const;
  /// The table that an iteration's block is taken from.
  static Table table_of(const serving::Iteration& iteration) {
    return iteration.prompt_tokens > 0 ? Table::prompt : Table::decode;
  }
  /// Whether an iteration of so many tokens runs blocks of a kind as two half batches (two_batches.h).
  [[nodiscard]] bool in_halves(std::size_t kind, double tokens) const {
    return in_.setting.system.stack.serving.two_batch_overlap && costs_.deals(kind) && splits(tokens);
  }

 private:
  /// A part of the model at some number of tokens: device seconds; communication and hops in the unit.
  struct Amounts {
    double device = 0, calls = 0;
    EnumArray<ParallelGroup, double> comm;
  };
  using BlockParts = std::array<Amounts, model::kMostBlockKinds>;  ///< by kind
  /// A block of a kind that is run in halves, on one of them: seconds.
  struct HalfBlock {
    Amounts whole;                             ///< of it
    std::array<double, kHalfPieces> pieces{};  ///< compute, without the attention core
    double dispatch = 0, combine = 0;
  };
  using HalfParts = std::array<HalfBlock, model::kMostBlockKinds>;  ///< by kind
  struct Sample {
    std::int64_t tokens = 0;
    bool priced = false;
    BlockParts block;
    HalfParts half;            ///< of half of the tokens
    Amounts end;               ///< the embedding, or the head
    std::vector<double> hops;  ///< over each boundary between stages
  };
  using Samples = std::vector<Sample>;
  /// Between two samples.
  struct Cost {
    BlockParts block;
    Amounts end;
    const Sample *low = nullptr, *high = nullptr;
    double share = 1;  ///< of the higher one
    double trip = 0;   ///< all hops
    [[nodiscard]] double hop(std::size_t boundary) const;
  };

  static Samples samples(std::int64_t most, std::initializer_list<std::int64_t> exact);
  [[nodiscard]] const Cost& at(Table table, double tokens);
  [[nodiscard]] Cost between_samples(Table table, double tokens);
  const Sample& price_sample(Table table, Sample& sample);
  [[nodiscard]] Amounts amounts(const PartCost& layer);
  void price_hops(Bytes boundary, std::vector<double>& hops);
  using BlockSeconds = std::array<double, model::kMostBlockKinds>;  ///< by kind
  /// Attention of one block of each kind.
  struct Attention {
    BlockSeconds prompt{}, decode{};
  };
  [[nodiscard]] Attention attention_of(const serving::Iteration& iteration);
  [[nodiscard]] double exposed(ParallelGroup group, double comm, double beside) const;
  /// Books `blocks` alike. Returns the seconds of one with what is exposed of its calls, launch and gap.
  double add_blocks(const Amounts& amounts, double prompt_attention, double decode_attention, double blocks,
                    serving::IterationTime& time) const;
  /// Books all blocks where some of them run in halves. stages_ are then the seconds of each stage's.
  void add_halves(const serving::Iteration& iteration, const Cost& body, serving::IterationTime& time);
  /// Books a block that runs in halves, of which `attention` is that of each. Returns its seconds.
  double add_half_layer(const HalfBlock& block, const HalfBlock& previous, PlaceInRun place, double attention,
                        serving::IterationTime& time) const;
  [[nodiscard]] HalfBlock half_block(const PartCost& layer);
  [[nodiscard]] static HalfBlock mixed(const HalfBlock& low, const HalfBlock& high, double share);
  [[nodiscard]] static Amounts mixed(const Amounts& low, const Amounts& high, double share);
  /// With stages_ for the blocks.
  [[nodiscard]] double longest_stage(double embedding, double head, const Cost& hops) const;
  [[nodiscard]] serving::IterationTime bytes(const Cost& body, const Cost& head) const;

  const Inputs in_;
  model::StageLayers all_;  ///< blocks of the model
  TokenCosts& costs_;
  network::CollectiveModel& collectives_;
  network::PlanLayout layout_;
  Unit unit_;
  std::array<Samples, 3> tables_;
  std::vector<double> stages_;  ///< of an iteration: seconds of each stage's blocks, where they are asked for
  struct TokensHash {
    std::size_t operator()(double tokens) const { return hash_word(0, std::bit_cast<std::uint64_t>(tokens)); }
  };
  std::array<std::unordered_map<double, Cost, TokensHash>, 3> costs_at_;  ///< of each table, by tokens
};

}  // namespace shardscape::step
