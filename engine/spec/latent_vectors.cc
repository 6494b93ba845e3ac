#include "engine/spec/latent_vectors.h"

#include "engine/spec/ranges.h"

namespace shardscape {

void LatentAttention::check(Problems& problems) const {
  require_range(problems, q_rank, "attention.q_rank", ranges::kRankOrNone);
  require_range(problems, kv_rank, "attention.kv_rank", ranges::kHidden);
  require_range(problems, rope_dim, "attention.rope_dim", ranges::kHeadDim);
  require_range(problems, nope_dim, "attention.nope_dim", ranges::kHeadDim);
  require_range(problems, value_dim, "attention.value_dim", ranges::kHeadDim);
}

}  // namespace shardscape
