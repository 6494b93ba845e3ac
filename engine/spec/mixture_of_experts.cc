#include "engine/spec/mixture_of_experts.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/spec/spec_numbers.h"

namespace shardscape {

void MixtureOfExperts::check(Problems& problems, std::int64_t layers) const {
  require_ranges(problems, *this, expert_numbers(), "moe.");
  if (experts >= 1 && top_k >= 1) {
    problems.require(
        top_k <= experts, "moe.top_k",
        fmt::format("must be at most experts ({}): a token goes through different ones", experts));
  }
  if (experts >= 1 && top_k >= 1) {
    problems.require(expert_groups >= 1 && experts % std::max<std::int64_t>(1, expert_groups) == 0,
                     "moe.expert_groups", fmt::format("must divide the experts ({})", experts));
    problems.require(top_groups >= 1 && top_groups <= std::max<std::int64_t>(1, expert_groups),
                     "moe.top_groups", fmt::format("must be from 1 to expert_groups ({})", expert_groups));
    if (expert_groups >= 1 && top_groups >= 1) {
      problems.require(top_k <= experts / expert_groups * top_groups, "moe.top_groups",
                       fmt::format("{} groups of {} experts have fewer than top_k ({})", top_groups,
                                   experts / expert_groups, top_k));
    }
  }
  problems.require(shared_experts <= 0 || shared_ffn_hidden != 0, "moe.shared_ffn_hidden",
                   "shared experts need a width");
  problems.require(shared_experts > 0 || shared_ffn_hidden == 0, "moe.shared_ffn_hidden",
                   "has no effect without shared_experts; leave it out");
  problems.require(shared_experts > 0 || !shared_gate, "moe.shared_gate",
                   "has no effect without shared_experts; leave it out");
  problems.require(routes() || !router_bias, "moe.router_bias",
                   "has no effect with one expert, which nothing chooses; leave it out");
  if (layers < 1 || every < 1) return;
  problems.require(first_dense_layers >= 0 && first_dense_layers < layers, "moe.first_dense_layers",
                   fmt::format("must be from 0 to less than layers ({}): some have experts", layers));
  if (first_dense_layers >= 0 && first_dense_layers < layers) {
    problems.require(
        in_layers(layers) > 0, "moe.every",
        fmt::format("leaves none of {} layers with experts: the last of every so many has them", layers));
  }
}

}  // namespace shardscape
