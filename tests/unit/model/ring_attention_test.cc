// What does attention over a context group do beside meeting the keys: the merge of what each step of a ring leaves?
#include <gtest/gtest.h>

#include <algorithm>

#include "engine/model/block_kinds.h"
#include "tests/unit/model/block_setting.h"

namespace shardscape::model {
namespace {

struct Merged {
  double forward = 0, backward = 0;
};

/// Elements for each token that the slowest rank of `ranks` moves, counted step by step. Rank r holds the chunks r and
/// 2 ranks - 1 - r of the sequence. In step i it meets the keys of rank r - i. Those of a rank before it hold an early
/// chunk that all its queries see and a late one that none sees; those of one behind it are seen by its late queries
/// alone, both chunks of them.
Merged merged_by_steps(int ranks, double queries, double output, double kv) {
  Merged slowest;
  for (int rank = 0; rank < ranks; ++rank) {
    Merged sum;
    for (int step = 0; step < ranks; ++step) {
      const int owner = (rank - step + ranks) % ranks;
      const double rows = owner <= rank ? 1 : 0.5, keys = owner >= rank ? 1 : 0.5;
      const double moved = step == 0 ? 2 : 3;  // read and written, or two read and their sum written
      sum.forward += moved * rows * output;
      sum.backward += moved * (rows * queries + keys * kv);
    }
    slowest.forward = std::max(slowest.forward, sum.forward);
    slowest.backward = std::max(slowest.backward, sum.backward);
  }
  return slowest;
}

void expect_merge(const Setting& setting, const LayerKey& key, double queries, double output, double kv) {
  SCOPED_TRACE(key.context);
  const auto operators = block_operators(setting, 0, key, kSequence, Mode::training);
  Setting whole = setting;
  whole.system.stack.communication.context_exchange = ContextExchange::gather;
  const Operator& merge = find(operators, "attention");
  const double tokens = static_cast<double>(kSequence) * key.microbatch / key.context;
  const Merged expected = merged_by_steps(key.context, queries, output, kv);
  EXPECT_DOUBLE_EQ(merge.forward.traffic.value(), 2 * tokens * expected.forward);
  EXPECT_DOUBLE_EQ(merge.backward.traffic.value(), 2 * tokens * expected.backward);
  EXPECT_EQ(merge.forward.kernels, 2 * key.context - 1);
  EXPECT_EQ(merge.backward.kernels, 2 * key.context);
  EXPECT_EQ(merge.saved, find(block_operators(whole, 0, key, kSequence, Mode::training), "attention").saved);
}

TEST(RingAttention, MergesWhatEachStepLeaves) {
  Setting latent = grouped_query();
  latent.model.latent =
      LatentAttention{.q_rank = 1536, .kv_rank = 512, .rope_dim = 64, .nope_dim = 128, .value_dim = 128};
  for (const std::int32_t ranks : {2, 4, 8}) {
    // On one of two tensor ranks: 16 heads of 128 with 4 of keys and of values; as many of these as of queries; 16
    // heads of 192 queries and keys and 128 values.
    expect_merge(grouped_query(), {2, ranks, 3, true}, 2048, 2048, 1024);
    expect_merge(korthikanti(), {2, ranks, 1, false}, 2048, 2048, 4096);
    expect_merge(latent, {2, ranks, 1, true}, 16 * 192, 16 * 128, 16 * 320);
  }
}

TEST(RingAttention, OneRankOrAGatherOrAServerMergesNothing) {
  const LayerKey ring{2, 4, 1, true};
  const auto expect_whole = [](const Setting& setting, const LayerKey& key, Mode mode) {
    for (const Operator& op : block_operators(setting, 0, key, kSequence, mode)) {
      if (op.kind == OperatorKind::attention) {
        EXPECT_EQ(op.forward.kernels + op.backward.kernels, 0);
      }
      EXPECT_EQ(op.attention.pieces, 1);
    }
  };
  expect_whole(grouped_query(), {2, 1, 1, true}, Mode::training);
  expect_whole(grouped_query(), ring, Mode::prefill);
  Setting gathers = grouped_query();
  gathers.system.stack.communication.context_exchange = ContextExchange::gather;
  expect_whole(gathers, ring, Mode::training);
  Setting local = grouped_query();
  local.model.sliding_window = 512;
  expect_whole(local, ring, Mode::training);
  // The gathered keys and values are those that would go round, and attention meets as many of them.
  const auto gathered = block_operators(gathers, 0, ring, kSequence, Mode::training);
  const auto rung = block_operators(grouped_query(), 0, ring, kSequence, Mode::training);
  EXPECT_EQ(find(gathered, "context_ring").forward_comm.bytes, find(rung, "context_ring").forward_comm.bytes);
  EXPECT_EQ(find(rung, "attention").attention.pieces, 4);
  EXPECT_EQ(find(gathered, "attention").attention.scores(), find(rung, "attention").attention.scores());
}

TEST(RingAttention, WorksInPiecesUnderWayAndPartialOutputs) {
  // Of h = 4096 columns in bf16, 2,048 / c tokens: four tensors of width h, and in the MLP two of 4 h. A ring has Q,
  // and five times K and V (2 h): two pieces and their gradients under way, the step's own gradient. With 16 ranks the
  // outputs of all steps take 16 h.
  Setting setting = korthikanti();
  const auto widths = [&](std::int32_t ranks) {
    const Bytes bytes = backward_working_bytes(setting, 0, {1, ranks, 1, false}, kSequence);
    return bytes.value() * ranks / (2 * 2048.0 * 4096.0);
  };
  EXPECT_DOUBLE_EQ(widths(1), 4 + 8);
  EXPECT_DOUBLE_EQ(widths(2), 4 + 11);
  EXPECT_DOUBLE_EQ(widths(16), 4 + 16);
  // Gathered: Q, and K and V (2 h) of 16 ranks with their gradients.
  setting.system.stack.communication.context_exchange = ContextExchange::gather;
  EXPECT_DOUBLE_EQ(widths(16), 4 + 1 + 2 * 16 * 2);
}

}  // namespace
}  // namespace shardscape::model
