// The layers of a server by the number of tokens that they work on: their operators, what these cost on one device, and
// attention, which depends on what an iteration does besides. All of it depends on how layers are split, but on no
// fabric and nothing else of a plan; so plans share it.
//
// Where drafts are verified, a decoding sequence has several tokens in an iteration: the decode kernel works on them as
// on further heads that share its cache, or as on further sequences, whichever is faster.
//
// Attention is priced for what the iteration does: the decode kernel for the decoding sequences at their mean length,
// linearly between the shortest and the longest that the load meets; the prompt kernel for all pieces at once, with as
// many query-key pairs as they have.
//
// Where the loads of experts differ a block takes as long as that of the rank which is slowest with its own experts.
//
// Left out: merging the parts of a decoding sequence's attention over a context group; different lengths of the
// sequences of one batch (they only matter where a kernel waits for its longest).
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "engine/base/hash.h"
#include "engine/model/layer_key.h"
#include "engine/model/stage_layers.h"
#include "engine/serving/server.h"
#include "engine/step/layers/price_layers.h"

namespace shardscape::step {

/// What layers work on: tokens of an iteration that reads prompts, sequences of one that only decodes, or, in the head,
/// the sequences that get a token.
enum class TokenTable : std::uint8_t { prompt, decode, head };
inline constexpr std::size_t kTokenTables = 3;

/// The table of the embedding and the blocks of an iteration.
inline TokenTable table_of(const serving::Iteration& iteration) {
  return iteration.prompt_tokens > 0 ? TokenTable::prompt : TokenTable::decode;
}

/// Device time and calls of layers at one number of tokens, without the attention core.
struct TokenCost {
  std::vector<PartCost> blocks;  ///< index: kind of block; empty in the table of the head
  PartCost end;                  ///< the embedding, or the head
  Bytes boundary;                ///< what a stage passes on
};

/// Seconds of the attention cores of a block: of all pieces of prompts, and of all decoding sequences.
struct AttentionSeconds {
  double prompt = 0, decode = 0;
  friend auto operator<=>(const AttentionSeconds&, const AttentionSeconds&) = default;
};

using BlockAttention = std::array<AttentionSeconds, model::kMostBlockKinds>;  ///< index: kind of block

class TokenCosts {
 public:
  TokenCosts(const Setting& setting, const ParallelPlan& plan);

  /// The operators of a layer (a block, the embedding, or in its table the head). Attention has its place among them,
  /// but what it works on is an iteration's own (attention()). `member`: the member of the expert group whose block it
  /// is.
  [[nodiscard]] std::vector<model::Operator> operators(TokenTable table, LayerKind layer, std::int64_t tokens,
                                                       std::int32_t member = model::LayerKey::kBusiest) const;
  /// What they cost, blocks on their slowest member.
  const TokenCost& at(TokenTable table, std::int64_t tokens);

  /// The member of an expert group whose block takes longest; iterations wait for it. Decoding is bound by the weights
  /// of all experts that any token meets, so it need not be the member with most tokens. If a load takes less on every
  /// member than a balanced one (whose few tokens fall unevenly by chance), it still counts as balanced:
  /// model::kBalancedMember. kBusiest where all members get equally much.
  [[nodiscard]] std::int32_t slowest_member(TokenTable table, std::size_t kind, std::int64_t tokens);

  /// Attention in one block of a kind.
  [[nodiscard]] AttentionSeconds attention(std::size_t kind, const serving::Iteration& iteration);
  /// Its kernels: that of the prompts that an iteration reads, and that of decoding sequences, which meet `cached`
  /// tokens in all.
  [[nodiscard]] compute::OperatorCost price_prompts(std::size_t kind,
                                                    const serving::Iteration& iteration) const;
  [[nodiscard]] compute::OperatorCost price_decoding(std::size_t kind, double sequences, double cached) const;

  /// Whether blocks of a kind send their tokens to ranks that deal experts, and back.
  [[nodiscard]] bool deals(std::size_t kind) const { return cores_[kind].deals; }

 private:
  struct Chord {
    double at_shortest = -1;  ///< seconds; below 0: not priced yet
    double per_token = 0;
  };
  [[nodiscard]] double decode_seconds(std::size_t kind, double sequences, double cached);

  /// What attention depends on in the prompts that an iteration reads: tokens, query-key pairs, and visible ones of
  /// these.
  using Pieces = std::array<double, 3>;
  struct PiecesHash {
    std::size_t operator()(const Pieces& pieces) const { return hash_words(pieces); }
  };
  [[nodiscard]] Pieces pieces_of(std::size_t kind, const serving::Iteration& iteration) const;

  const Setting& setting_;
  const double verified_;  ///< tokens of a decoding sequence in an iteration
  model::LayerKey layout_;
  struct Core {
    model::Operator prompt, decode;
    std::vector<Chord> chords;  ///< index: sequences
    bool deals = false;
    std::unordered_map<Pieces, double, PiecesHash> prompts;  ///< attention time of these pieces of prompts
  };
  std::vector<Core> cores_;  ///< index: kind of block
  /// One member of an expert group for each distinct load; empty where all members get equally much.
  std::vector<std::int32_t> distinct_members_;
  std::map<std::tuple<TokenTable, std::size_t, std::int64_t>, std::int32_t> slowest_;
  std::array<std::unordered_map<std::int64_t, TokenCost>, kTokenTables>
      known_;  ///< index: table; key: tokens
};

}  // namespace shardscape::step
