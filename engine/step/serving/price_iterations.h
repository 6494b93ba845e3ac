// What one iteration of a server costs on a plan: the engine's own operators and collectives, at the number
// of tokens that the iteration works on.
//
//   time = layers x (max(operators + attention + exposed communication, host launch) + gap)
//          + embedding + LM head of the sequences that get a token + stage hops
//          + fixed host cost of a step + host cost per such sequence
//
// which is the trip through all stages (iteration_stream.h). Groups that take turns on them (inference.h) wait where
// their number times the busiest stage's share is longer than the trip; a stage is busy until what it sends has arrived
// unless sends are asynchronous.
//
// Everything but attention (token_costs.h) depends on the number of tokens m alone (weights are read once whatever m).
// It is priced where m is a power of two, and at those m that a load meets most (all sequences decoding, a whole
// prompt, a full budget), and runs linearly between: exact at those, elsewhere off by no more than the tiles
// of a product jump in one octave. Blocks that run as two half batches are priced at half of m, at the same samples.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "engine/base/hash.h"
#include "engine/network/prices/collective_prices.h"
#include "engine/step/serving/iteration_stream.h"

namespace shardscape::step {

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

  IterationCosts(const InferenceInputs& inputs, TokenCosts& costs,
                 const network::CollectivePrices& collectives, Unit unit = Unit::seconds);

  serving::IterationTime operator()(const serving::Iteration& iteration);

  /// A number of tokens where a table is priced, and its weight: `tokens` is one sample, or lies between two of them.
  struct Share {
    std::int64_t tokens = 0;
    double share = 0;
  };
  [[nodiscard]] std::array<Share, 2> shares(TokenTable table, double tokens) const;
  [[nodiscard]] const IterationStream& stream() const { return stream_; }
  /// Seconds that experts take less where other ranks read fewer prompts (Iteration::spare).
  [[nodiscard]] double spared(const serving::Iteration& iteration);

 private:
  /// A layer at some number of tokens, or one of its batches: seconds on the device; communication in the unit. `half`,
  /// in seconds and without the attention core, where it runs as two half batches.
  struct Amounts {
    double device = 0, calls = 0;
    EnumArray<ParallelGroup, double> comm;
    HalfLayer<double, double> half;
  };
  struct Layers {
    std::array<Amounts, model::kMostBlockKinds> block;  ///< index: kind of block
    Amounts end;                                        ///< of the embedding, or of the head in its table
  };
  struct Price {
    Layers layers;
    std::vector<double> hops;  ///< index: boundary between stages
    double trip = 0;           ///< sum of all hops
  };
  struct StageReader;

  [[nodiscard]] const Price& at(TokenTable table, double tokens);
  [[nodiscard]] Price price_sample(TokenTable table, std::int64_t tokens);
  [[nodiscard]] static Price between(const Price& low, const Price& high, double share);
  [[nodiscard]] Amounts amounts(const PartCost& layer);
  [[nodiscard]] Amounts half_amounts(const PartCost& half);
  /// Books `blocks` equal blocks. Returns the seconds of one, including exposed calls, launch and gap.
  double add_blocks(const Amounts& block, const AttentionSeconds& attention, double blocks,
                    serving::IterationTime& time) const;
  /// Books a block that runs in halves, where `attention` is that of one half. Returns its seconds.
  double add_half_layer(const Amounts& block, const Amounts& previous, PlaceInRun place,
                        const AttentionSeconds& attention, serving::IterationTime& time) const;
  /// Books what the host adds to each of `blocks` blocks that are busy for `busy` seconds. Returns the seconds of one.
  double add_host(const Amounts& block, std::int64_t batches, double busy, double blocks,
                  serving::IterationTime& time) const;
  /// Books all blocks. Sets stages_ to the seconds of each stage's blocks.
  void add_all_blocks(const serving::Iteration& iteration, const Layers& priced,
                      serving::IterationTime& time);
  [[nodiscard]] serving::IterationTime bytes(const Price& body, const Amounts& head) const;

  const InferenceInputs in_;
  TokenCosts& costs_;
  const network::CollectivePrices& collectives_;
  network::PlanLayout layout_;
  IterationStream stream_;
  Unit unit_;
  std::array<std::vector<std::int64_t>, kTokenTables> samples_;  ///< index: table; ascending
  std::vector<double> stages_;
  struct TokensHash {
    std::size_t operator()(double tokens) const { return hash_word(0, std::bit_cast<std::uint64_t>(tokens)); }
  };
  std::array<std::unordered_map<double, Price, TokensHash>, kTokenTables>
      known_;  ///< index: table; key: tokens
};

}  // namespace shardscape::step
