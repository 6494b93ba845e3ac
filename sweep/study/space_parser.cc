#include "sweep/study/space_parser.h"

#include <algorithm>
#include <array>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "sweep/study/axis_values.h"
#include "sweep/yaml/visitors.h"

namespace shardscape::sweep {

namespace {

constexpr std::array<const char*, 4> kDegreeKeys = {"tensor_parallel", "context_parallel",
                                                    "pipeline_parallel", "data_parallel"};
constexpr std::int64_t kMaxInt = std::numeric_limits<std::int32_t>::max();

std::array<DegreeAxis*, 4> degrees(SpaceSpec& space) {
  return {&space.tensor, &space.context, &space.pipeline, &space.data};
}
std::array<const DegreeAxis*, 4> degrees(const SpaceSpec& space) {
  return {&space.tensor, &space.context, &space.pipeline, &space.data};
}

/// Which degrees can exceed 1 in some plan that fills the GPUs.
struct Reach {
  bool any = false;
  std::array<bool, 4> beyond_one{};
};

/// Walks the products of degrees that divide the rest, the filling axis last.
void walk(const std::vector<std::pair<std::size_t, std::vector<std::int64_t>>>& axes, std::size_t depth,
          std::int64_t rest, std::array<std::int64_t, 4>& plan, Reach& reach) {
  if (depth == axes.size()) {
    if (rest != 1) return;
    reach.any = true;
    for (std::size_t i = 0; i < plan.size(); ++i) reach.beyond_one[i] = reach.beyond_one[i] || plan[i] > 1;
    return;
  }
  const auto& [axis, values] = axes[depth];
  if (values.empty()) {  // fills
    plan[axis] = rest;
    return walk(axes, depth + 1, 1, plan, reach);
  }
  for (const std::int64_t value : values) {
    if (rest % value != 0) continue;
    plan[axis] = value;
    walk(axes, depth + 1, rest / value, plan, reach);
  }
}

Reach reach_of(const SpaceSpec& space, std::int64_t gpus) {
  std::vector<std::pair<std::size_t, std::vector<std::int64_t>>> axes;
  const auto all = degrees(space);
  for (std::size_t i = 0; i < all.size(); ++i) {
    std::vector<std::int64_t> values;
    for (const std::int32_t value : all[i]->values) {
      if (gpus % value == 0) values.push_back(value);
    }
    if (!all[i]->fill && values.empty()) return {};  // no value divides the GPUs
    if (all[i]->fill) values.clear();
    axes.emplace_back(i, std::move(values));
  }
  std::ranges::stable_sort(axes, {}, [](const auto& axis) { return axis.second.empty(); });
  Reach reach;
  std::array<std::int64_t, 4> plan{1, 1, 1, 1};
  walk(axes, 0, gpus, plan, reach);
  return reach;
}

std::string value_text(const DegreeAxis& axis) {
  constexpr std::size_t kShown = 8;
  if (axis.fill) return "filling";
  std::string text;
  for (std::size_t i = 0; i < axis.values.size() && i <= kShown; ++i) {
    text += (i == 0 ? "" : ", ") + (i == kShown ? "..." : std::to_string(axis.values[i]));
  }
  return axis.values.size() == 1 ? text : '[' + text + ']';
}

std::string no_plan_text(const SpaceSpec& space, std::int64_t gpus) {
  std::string text = "no plan fills the " + std::to_string(gpus) + " GPUs: no product of degrees equals " +
                     std::to_string(gpus) + " (";
  const auto all = degrees(space);
  for (std::size_t i = 0; i < all.size(); ++i) {
    text += std::string(i == 0 ? "" : ", ") + kDegreeKeys[i] + ' ' + value_text(*all[i]);
  }
  return text + ')';
}

yaml::Parsed<RankOrder> parse_order(const yaml::Node& node) {
  return yaml::scalar_text(node, "an order of the axes such as tp-cp-dp-pp")
      .and_then([](const std::string& text) -> yaml::Parsed<RankOrder> {
        if (const auto order = parse_rank_order(text)) return *order;
        return tl::unexpected(
            "unknown order \"" + text +
            "\"; name each of tp, cp, dp and pp once, innermost first, such as tp-cp-dp-pp");
      });
}

class SpaceParser {
 public:
  SpaceParser(const yaml::Node& node, const SpaceContext& context, yaml::Diagnostics& diagnostics)
      : node_(node),
        context_(context),
        diagnostics_(diagnostics),
        state_(node.where, "", diagnostics),
        reader_(node, "space", state_) {}

  SpaceSpec run() {
    const std::size_t before = diagnostics_.size();
    if (!node_.is_map()) return space_;
    read_degrees();
    read_choices();
    read_training();
    read_prefill();
    reader_.finish();
    if (diagnostics_.size() == before && !state_.failed() && context_.gpus) check_reach(*context_.gpus);
    return space_;
  }

 private:
  AxisPlace place(const yaml::Node& node, const char* key) {
    return {node, std::string("space.") + key, diagnostics_};
  }

  void no_effect(const char* key, const std::string& reason) {
    const yaml::Node* node = node_.find(key);
    if (node != nullptr) state_.bad(std::string("space.") + key, node->where, "has no effect " + reason);
  }

  void read_degrees() {
    const std::int64_t high = context_.gpus.value_or(kMaxInt);
    const IntegerDomain domain{1, high, context_.gpus.value_or(1), true};
    const auto all = degrees(space_);
    const char* filling = nullptr;
    for (std::size_t i = 0; i < all.size(); ++i) {
      const yaml::Node* node = reader_.take(kDegreeKeys[i]);
      const bool default_fill = i + 1 == all.size() && filling == nullptr;
      if (node == nullptr) {
        *all[i] = default_fill ? DegreeAxis{true, {}} : DegreeAxis{false, {1}};
        continue;
      }
      IntegerAxis axis = parse_integer_axis(place(*node, kDegreeKeys[i]), domain);
      std::ranges::sort(axis.values);
      *all[i] = {axis.fill, std::move(axis.values)};
      if (!axis.fill) continue;
      if (filling != nullptr) {
        state_.bad(std::string("space.") + kDegreeKeys[i], node->where,
                   std::string("only one axis can fill, and ") + filling + " does already");
      }
      filling = kDegreeKeys[i];
    }
  }

  void read_choices() {
    if (const yaml::Node* node = reader_.take("rank_order")) {
      space_.rank_order = parse_axis<RankOrder>(place(*node, "rank_order"), parse_order);
    }
  }

  void read_training() {
    constexpr std::array<const char*, 6> kTrainingKeys = {
        "sequence_parallel", "zero_stage", "recompute", "microbatch_size", "schedule", "virtual_stages"};
    for (const char* key : kTrainingKeys) {
      const yaml::Node* node = reader_.take(key);
      if (node == nullptr) continue;
      if (context_.phase == Phase::inference) {
        no_effect(key, "in inference");
      } else {
        read_training_axis(key, *node);
      }
    }
  }

  void read_training_axis(const std::string& key, const yaml::Node& node) {
    const AxisPlace at = place(node, key.c_str());
    if (key == "sequence_parallel") {
      space_.sequence_parallel = parse_axis<bool>(at, yaml::parse_flag);
    } else if (key == "recompute") {
      space_.recompute = parse_axis<Recompute>(at, yaml::parse_value<Recompute>);
    } else if (key == "schedule") {
      space_.schedule = parse_axis<ScheduleKind>(at, yaml::parse_value<ScheduleKind>);
    } else if (key == "zero_stage") {
      space_.zero_stage = parse_integer_axis(at, {0, 3, std::nullopt, false}).values;
    } else if (key == "microbatch_size") {
      const std::int64_t batch = context_.largest_batch.value_or(1);
      space_.microbatch = parse_integer_axis(at, {1, kMaxInt, batch, false}).values;
    } else {
      const std::int64_t layers = std::max<std::int64_t>(2, context_.layers.value_or(2));
      space_.virtual_stages = parse_integer_axis(at, {2, kMaxInt, std::min(layers, kMaxInt), false}).values;
    }
  }

  /// The axes of the pool that prefills.
  void read_prefill() {
    constexpr std::array<const char*, 2> kDegrees = {"prefill_tensor_parallel", "prefill_pipeline_parallel"};
    const yaml::Node* gpus = reader_.take("prefill_gpus");
    const std::array<const yaml::Node*, 2> nodes = {reader_.take(kDegrees[0]), reader_.take(kDegrees[1])};
    if (context_.phase == Phase::training) {
      no_effect("prefill_gpus", "in training");
      for (const char* key : kDegrees) no_effect(key, "in training");
      return;
    }
    const std::int64_t most = context_.gpus.value_or(kMaxInt);
    if (gpus != nullptr) {
      const IntegerDomain domain{0, std::max<std::int64_t>(0, most - 1), most, false};
      space_.prefill_gpus = parse_integer_axis(place(*gpus, "prefill_gpus"), domain).values;
    }
    const bool pooled = std::ranges::any_of(space_.prefill_gpus, [](std::int32_t n) { return n > 0; });
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      if (nodes[i] == nullptr) continue;
      if (!pooled) no_effect(kDegrees[i], "without prefill_gpus");
      auto& values = i == 0 ? space_.prefill_tensor : space_.prefill_pipeline;
      values = parse_integer_axis(place(*nodes[i], kDegrees[i]), {1, most, most, false}).values;
    }
  }

  /// Every number of GPUs that prefill makes whole replicas, and leaves a plan for the others.
  void check_pools(std::int64_t gpus) {
    for (const std::int32_t pool : space_.prefill_gpus) {
      if (pool == 0) continue;
      const auto whole = [&](std::int32_t tensor) {
        return std::ranges::any_of(space_.prefill_pipeline, [&](std::int32_t pipeline) {
          return pool % (static_cast<std::int64_t>(tensor) * pipeline) == 0;
        });
      };
      const yaml::Location& where = node_.find("prefill_gpus")->where;
      if (!std::ranges::any_of(space_.prefill_tensor, whole)) {
        state_.bad("space.prefill_gpus", where,
                   std::to_string(pool) +
                       " GPUs make no whole replicas: no product of prefill_tensor_parallel and "
                       "prefill_pipeline_parallel divides them");
      }
      if (!reach_of(space_, gpus - pool).any) {
        state_.bad("space.prefill_gpus", where,
                   "with " + std::to_string(pool) + " of " + std::to_string(gpus) + " GPUs to prefill, " +
                       no_plan_text(space_, gpus - pool));
      }
    }
  }

  void check_reach(std::int64_t gpus) {
    check_pools(gpus);
    if (std::ranges::find(space_.prefill_gpus, 0) == space_.prefill_gpus.end()) return;
    const Reach reach = reach_of(space_, gpus);
    if (!reach.any) return state_.bad("space", node_.where, no_plan_text(space_, gpus));
    const auto [tensor, context, pipeline, data] = reach.beyond_one;
    const auto lists = [](const auto& values, auto value) {
      return std::ranges::find(values, value) != values.end();
    };
    if (!tensor && lists(space_.sequence_parallel, true)) {
      no_effect("sequence_parallel", "where tensor_parallel is only 1");
    }
    const bool sharded = std::ranges::any_of(space_.zero_stage, [](std::int32_t stage) { return stage > 0; });
    if (!context && !data && sharded) {
      no_effect("zero_stage", "beyond 0 where data_parallel and context_parallel are only 1");
    }
    if (!lists(space_.schedule, ScheduleKind::interleaved)) {
      no_effect("virtual_stages", "without interleaved in schedule");
    }
    if (!pipeline && space_.schedule != std::vector{ScheduleKind::one_f_one_b}) {
      no_effect("schedule", "where pipeline_parallel is only 1; leave it out or set 1f1b");
    }
  }

  const yaml::Node& node_;
  const SpaceContext& context_;
  yaml::Diagnostics& diagnostics_;
  yaml::ReadState state_;
  yaml::Reader reader_;
  SpaceSpec space_;
};

template <class Values, class Write>
yaml::Node flow_list(const Values& values, Write&& write) {
  yaml::Node list = yaml::Node::list();
  list.flow = true;
  for (const auto& value : values) list.items.push_back(write(value));
  return list;
}

const auto kScalar = [](const auto& value) { return yaml::make_scalar(value); };

}  // namespace

SpaceSpec parse_space(const yaml::Node* node, const yaml::Location& root, const SpaceContext& context,
                      yaml::Diagnostics& diagnostics) {
  yaml::Node empty = yaml::Node::map();
  empty.where = root;
  return SpaceParser(node != nullptr ? *node : empty, context, diagnostics).run();
}

yaml::Node write_space(const SpaceSpec& space, Phase phase) {
  yaml::Node node = yaml::Node::map();
  const auto all = degrees(space);
  for (std::size_t i = 0; i < all.size(); ++i) {
    node.set(kDegreeKeys[i], all[i]->fill ? yaml::Node::scalar("fill") : flow_list(all[i]->values, kScalar));
  }
  if (phase == Phase::training) {
    node.set("sequence_parallel",
             flow_list(space.sequence_parallel, [](bool value) { return yaml::make_scalar(value); }));
    node.set("zero_stage", flow_list(space.zero_stage, kScalar));
    node.set("recompute", flow_list(space.recompute, kScalar));
    node.set("microbatch_size", flow_list(space.microbatch, kScalar));
    node.set("schedule", flow_list(space.schedule, kScalar));
    const bool interleaved =
        std::ranges::find(space.schedule, ScheduleKind::interleaved) != space.schedule.end();
    if (interleaved) node.set("virtual_stages", flow_list(space.virtual_stages, kScalar));
  }
  const bool pooled = std::ranges::any_of(space.prefill_gpus, [](std::int32_t n) { return n > 0; });
  if (pooled) {
    node.set("prefill_gpus", flow_list(space.prefill_gpus, kScalar));
    node.set("prefill_tensor_parallel", flow_list(space.prefill_tensor, kScalar));
    node.set("prefill_pipeline_parallel", flow_list(space.prefill_pipeline, kScalar));
  }
  node.set("rank_order", flow_list(space.rank_order, [](const RankOrder& order) {
             return yaml::Node::scalar(to_string(order));
           }));
  return node;
}

}  // namespace shardscape::sweep
