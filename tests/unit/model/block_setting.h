// The blocks of the operators' tests, and how the tests look into them.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string_view>

#include "engine/model/block_kinds.h"
#include "tests/support/engine_fixture.h"

namespace shardscape::model {

inline constexpr std::int64_t kSequence = 2048;

/// h = 4096, a = 32, s = 2048, naive attention and dropout: the block of Korthikanti et al. 2022, table 2.
inline Setting korthikanti() {
  Setting s;
  s.model = test::gpt(4, 4096, 32, 51200, kSequence);
  s.system.device = test::round_device();
  s.system.stack = test::plain_stack();
  s.system.stack.attention = AttentionKernel::naive;
  s.workload = test::training(kSequence, 8);
  return s;
}

inline Setting grouped_query() {
  Setting s = korthikanti();
  s.model = test::llama(4, 4096, 32, 8, 14336, 128256);
  s.system.stack.attention = AttentionKernel::flash;
  return s;
}

inline double saved(const Setting& setting, const LayerKey& key, Recompute recompute) {
  return saved_bytes(block_operators(setting, 0, key, kSequence, Mode::training), recompute, setting, key,
                     kSequence)
      .value();
}

inline const Operator& find(const std::vector<Operator>& operators, std::string_view name) {
  const auto at = std::ranges::find(operators, name, &Operator::name);
  EXPECT_NE(at, operators.end()) << name;
  return at == operators.end() ? operators.front() : *at;
}

// s b h and the ratio a s / h of korthikanti(), for microbatch b.
inline double sbh(double b) { return 2048.0 * b * 4096.0; }
inline constexpr double kScores = 32.0 * 2048.0 / 4096.0;

struct Traffic {
  double count = 0;
  double bytes = 0;
};

/// Calls of one operation along one axis, and their bytes.
inline Traffic traffic(const std::vector<Operator>& operators, network::CollectiveOp op, PlanAxis axis,
                       bool backward) {
  Traffic sum;
  for (const Operator& o : operators) {
    const CollectiveCall& call = backward ? o.backward_comm : o.forward_comm;
    if (call.repeats <= 0 || call.op != op || call.axis != axis) continue;
    sum.count += call.repeats;
    sum.bytes += call.repeats * call.bytes.value();
  }
  return sum;
}

inline void expect_traffic(const Traffic& actual, double count, double bytes) {
  EXPECT_EQ(actual.count, count);
  EXPECT_DOUBLE_EQ(actual.bytes, bytes);
}

}  // namespace shardscape::model
