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

/// Device time of an operator's forward; inference needs no gradients.
Seconds price_forward(const model::Operator& op, const Setting& setting);

/// Device time and calls of one trip through the model at one number of tokens, without the attention core.
struct TokenCost {
  std::vector<PartCost> blocks;  ///< index: kind of block
  PartCost embedding;
  Bytes boundary;
};

/// Costs by number of tokens that depend on how layers are split, but on no fabric and nothing else of the plan; so
/// plans share them.
class TokenCosts {
 public:
  TokenCosts(const Setting& setting, const ParallelPlan& plan);

  /// Costs of a prompt iteration of `tokens`, of a decode iteration of `sequences`, and of the head for `rows`.
  const TokenCost& prompt(std::int64_t tokens);
  const TokenCost& decode(std::int64_t sequences);
  const PartCost& head(std::int64_t rows);
  /// Seconds of attention in one block of a kind.
  [[nodiscard]] Seconds prompt_attention(std::size_t kind, const serving::Iteration& iteration);
  [[nodiscard]] Seconds decode_attention(std::size_t kind, double sequences, double cached);
  [[nodiscard]] Bound prompt_attention_bound(std::size_t kind, const serving::Iteration& iteration) const;
  [[nodiscard]] Bound decode_attention_bound(std::size_t kind, const serving::Iteration& iteration) const;

  /// Whether blocks of a kind send their tokens to ranks that deal experts, and back.
  [[nodiscard]] bool deals(std::size_t kind) const { return cores_[kind].deals; }

  /// The member of an expert group whose block takes longest; iterations wait for it. Decoding is bound by the weights
  /// of all experts that any token meets, so it need not be the member with most tokens. If a load takes less on every
  /// member than a balanced one (whose few tokens fall unevenly by chance), it still counts as balanced:
  /// model::kBalancedMember. kBusiest where all members get equally much.
  enum class Tokens : std::uint8_t { of_prompts, decoding };
  [[nodiscard]] std::int32_t slowest_member(Tokens which, std::size_t kind, std::int64_t tokens);

  /// The operators that those prices are of: of one block, the embedding and the head. `expert_rank`: whose block it
  /// is.
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
    double at_shortest = -1;  ///< seconds; below 0: not priced yet
    double per_token = 0;
  };
  [[nodiscard]] model::LayerKey key(std::int64_t sequences, std::int32_t context) const;
  /// Costs of the block on the slowest member.
  [[nodiscard]] PartCost price_block(Tokens which, std::size_t kind, std::int64_t tokens);
  [[nodiscard]] compute::OperatorCost price_prompt_attention(std::size_t kind,
                                                             const serving::Iteration& iteration) const;
  [[nodiscard]] compute::OperatorCost price_decode_attention(std::size_t kind, double sequences,
                                                             double cached) const;

  /// What attention depends on in the prompts that an iteration reads: tokens, query-key pairs, and visible ones of
  /// these.
  using Pieces = std::array<double, 3>;
  struct PiecesHash {
    std::size_t operator()(const Pieces& pieces) const { return hash_words(pieces); }
  };
  [[nodiscard]] Pieces pieces_of(std::size_t kind, const serving::Iteration& iteration) const;

  const Setting& setting_;
  model::LayerKey layout_;
  struct Core {
    model::Operator prompt, decode;
    std::vector<Chord> chords;  ///< index: sequences
    bool deals = false;
    std::unordered_map<Pieces, Seconds, PiecesHash> prompts;  ///< attention time of these pieces of prompts
  };
  std::vector<Core> cores_;  ///< index: kind of block
  /// One member of an expert group for each distinct load; empty where all members get equally much.
  std::vector<std::int32_t> distinct_members_;
  std::map<std::tuple<Tokens, std::size_t, std::int64_t>, std::int32_t> slowest_;
  std::unordered_map<std::int64_t, TokenCost> prompt_, decode_;
  std::unordered_map<std::int64_t, PartCost> head_;
};

/// Prices the iterations of one plan on the fabric in its present state. All references must outlive it.
class IterationCosts {
 public:
  /// Whether it counts seconds, or the bytes that a rank sends in each class of communication (on the stage that sends
  /// most).
  enum class Unit : std::uint8_t { seconds, bytes };
  /// The class that counts a group's bytes. Ranks that split experts share a class of time with those that deal them,
  /// so their bytes go to the class of data traffic, which servers do not have.
  static constexpr TimeClass class_of_bytes(ParallelGroup group) {
    return group == ParallelGroup::expert_tensor ? TimeClass::data_comm : class_of(group);
  }

  struct Inputs {
    const Setting& setting;
    const ParallelPlan& plan;
    const std::vector<model::StageLayers>& layers;  ///< index: stage
    serving::Load load;
    serving::Rules rules;
    std::int64_t groups = 1;  ///< groups of requests that take turns on the stages
  };

  IterationCosts(const Inputs& inputs, TokenCosts& costs, network::CollectiveModel& collectives,
                 Unit unit = Unit::seconds);

  serving::IterationTime operator()(const serving::Iteration& iteration);

  enum class Table : std::uint8_t { prompt, decode, head };
  /// A number of tokens where a table is priced, and its weight: `tokens` is one sample, or lies between two of them.
  struct Share {
    std::int64_t tokens = 0;
    double share = 0;
  };
  [[nodiscard]] std::array<Share, 2> shares(Table table, double tokens) const;
  /// The table that gives the costs of an iteration's blocks.
  static Table table_of(const serving::Iteration& iteration) {
    return iteration.prompt_tokens > 0 ? Table::prompt : Table::decode;
  }
  /// Whether an iteration of so many tokens runs blocks of a kind as two half batches (two_batches.h).
  [[nodiscard]] bool in_halves(std::size_t kind, double tokens) const {
    return in_.setting.system.stack.serving.two_batch_overlap && costs_.deals(kind) && splits(tokens);
  }

 private:
  /// A part of the model at some number of tokens: seconds on the device; communication in the unit.
  struct Amounts {
    double device = 0, calls = 0;
    EnumArray<ParallelGroup, double> comm;
  };
  using BlockParts = std::array<Amounts, model::kMostBlockKinds>;  ///< index: kind of block
  /// One half of a block that is run in halves; in seconds.
  struct HalfBlock {
    Amounts whole;                             ///< of the half as a whole
    std::array<double, kHalfPieces> pieces{};  ///< seconds of compute, without the attention core
    double dispatch = 0, combine = 0;
  };
  using HalfParts = std::array<HalfBlock, model::kMostBlockKinds>;  ///< index: kind of block
  struct Sample {
    std::int64_t tokens = 0;
    bool priced = false;
    BlockParts block;
    HalfParts half;            ///< at half of the tokens
    Amounts end;               ///< of the embedding (head table: of the head)
    std::vector<double> hops;  ///< index: boundary between stages
  };
  using Samples = std::vector<Sample>;
  /// Costs at a number of tokens, interpolated between two samples.
  struct Cost {
    BlockParts block;
    Amounts end;
    const Sample *low = nullptr, *high = nullptr;
    double share = 1;  ///< weight of the higher sample
    double trip = 0;   ///< sum of all hops
    [[nodiscard]] double hop(std::size_t boundary) const;
  };

  static Samples samples(std::int64_t most, std::initializer_list<std::int64_t> exact);
  [[nodiscard]] const Cost& at(Table table, double tokens);
  [[nodiscard]] Cost between_samples(Table table, double tokens);
  const Sample& price_sample(Table table, Sample& sample);
  [[nodiscard]] Amounts amounts(const PartCost& layer);
  void price_hops(Bytes boundary, std::vector<double>& hops);
  using BlockSeconds = std::array<double, model::kMostBlockKinds>;  ///< index: kind of block
  /// Seconds of attention in one block of each kind.
  struct Attention {
    BlockSeconds prompt{}, decode{};
  };
  [[nodiscard]] Attention attention_of(const serving::Iteration& iteration);
  [[nodiscard]] double exposed(ParallelGroup group, double comm, double beside) const;
  /// Books `blocks` equal blocks. Returns the seconds of one, including exposed calls, launch and gap.
  double add_blocks(const Amounts& amounts, double prompt_attention, double decode_attention, double blocks,
                    serving::IterationTime& time) const;
  /// Books all blocks where some of them run in halves. Sets stages_ to the seconds of each stage's blocks.
  void add_halves(const serving::Iteration& iteration, const Cost& body, serving::IterationTime& time);
  /// Books a block that runs in halves, where `attention` is that of one half. Returns its seconds.
  double add_half_layer(const HalfBlock& block, const HalfBlock& previous, PlaceInRun place, double attention,
                        serving::IterationTime& time) const;
  [[nodiscard]] HalfBlock half_block(const PartCost& layer);
  [[nodiscard]] static HalfBlock mixed(const HalfBlock& low, const HalfBlock& high, double share);
  [[nodiscard]] static Amounts mixed(const Amounts& low, const Amounts& high, double share);
  /// Seconds of the busiest stage for one iteration, with stages_ for the blocks.
  [[nodiscard]] double longest_stage(double embedding, double head, const Cost& hops) const;
  [[nodiscard]] serving::IterationTime bytes(const Cost& body, const Cost& head) const;

  const Inputs in_;
  model::StageLayers all_;  ///< all blocks of the model
  TokenCosts& costs_;
  network::CollectiveModel& collectives_;
  network::PlanLayout layout_;
  Unit unit_;
  std::array<Samples, 3> tables_;
  std::vector<double> stages_;  ///< seconds of each stage's blocks in one iteration, where they are asked for
  struct TokensHash {
    std::size_t operator()(double tokens) const { return hash_word(0, std::bit_cast<std::uint64_t>(tokens)); }
  };
  std::array<std::unordered_map<double, Cost, TokensHash>, 3> costs_at_;  ///< index: table; key: tokens
};

}  // namespace shardscape::step
