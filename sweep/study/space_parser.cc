// Reads the axes of `space:` by the table of plan axes, and reports axes that have no effect in any plan, and degrees
// of which no product gives the number of GPUs. Where that number is not the file's own but set from outside, what no
// plan on so many GPUs has is left out instead, as long as something is left.
#include "sweep/study/study_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "sweep/study/axis_values.h"

namespace shardscape::sweep {

namespace {

constexpr std::int64_t kMaxInt = std::numeric_limits<std::int32_t>::max();
/// The degrees of pools, beside the number of GPUs that prefill.
constexpr std::array kPoolDegrees = {PlanKey::prefill_tensor, PlanKey::prefill_pipeline, PlanKey::ffn};

/// Which degrees exceed 1 in some plan that uses all GPUs, and whether there is any plan.
struct Reach {
  bool any = false;
  EnumArray<PlanKey, bool> beyond_one{};
};

/// Goes through all products of degrees that give the number of GPUs; an axis that fills comes last.
void walk(const std::vector<std::pair<PlanKey, std::vector<std::int64_t>>>& axes, std::size_t depth,
          std::int64_t rest, EnumArray<PlanKey, std::int64_t>& plan, Reach& reach) {
  if (depth == axes.size()) {
    if (rest != 1) return;
    reach.any = true;
    for (const auto& [key, values] : axes) reach.beyond_one[key] = reach.beyond_one[key] || plan[key] > 1;
    return;
  }
  const auto& [axis, values] = axes[depth];
  if (values.empty()) {  // this axis fills
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
  std::vector<std::pair<PlanKey, std::vector<std::int64_t>>> axes;
  for (const PlanAxisRow& row : kPlanRows) {
    if (row.kind != AxisKind::degree) continue;
    const AxisList& axis = space[row.key];
    std::vector<std::int64_t> values;
    for (const std::int32_t value : axis.values) {
      if (gpus % value == 0) values.push_back(value);
    }
    if (!axis.fill && values.empty()) return {};  // no value of the axis divides the GPUs
    if (axis.fill) values.clear();
    axes.emplace_back(row.key, std::move(values));
  }
  std::ranges::stable_sort(axes, {}, [](const auto& axis) { return axis.second.empty(); });
  Reach reach;
  EnumArray<PlanKey, std::int64_t> plan{};
  walk(axes, 0, gpus, plan, reach);
  return reach;
}

std::string value_text(const AxisList& axis) {
  constexpr std::size_t kShown = 8;
  if (axis.fill) return "filling";
  std::string text;
  for (std::size_t i = 0; i < axis.values.size() && i <= kShown; ++i) {
    text += (i == 0 ? "" : ", ") + (i == kShown ? "..." : std::to_string(axis.values[i]));
  }
  return axis.values.size() == 1 ? text : '[' + text + ']';
}

std::string no_plan_text(const SpaceSpec& space, std::int64_t gpus) {
  std::string text = fmt::format("no plan fills the {} GPUs: no product of degrees equals {} (", gpus, gpus);
  const char* between = "";
  for (const PlanAxisRow& row : kPlanRows) {
    if (row.kind != AxisKind::degree) continue;
    text.append(std::exchange(between, ", ")).append(row.column).append(" " + value_text(space[row.key]));
  }
  return text + ')';
}

yaml::Parsed<std::int32_t> parse_order(const yaml::Node& node) {
  const std::string such = "such as " + to_string(kDefaultRankOrder);
  return yaml::scalar_text(node, "an order of the axes " + such)
      .and_then([&](const std::string& text) -> yaml::Parsed<std::int32_t> {
        if (const auto code = parse_code(row_of(PlanKey::order), text)) return *code;
        return tl::unexpected("unknown order \"" + text + "\"; name each of " + order_names() +
                              " once, innermost first, " + such);
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

  ParsedSpace run() {
    const std::size_t before = diagnostics_.size();
    const auto good = [&] { return diagnostics_.size() == before && !state_.failed() && most_gpus(); };
    if (!node_.is_map()) return {space_, ""};
    read_degrees();
    read_settings();
    read_prefill();
    reader_.finish();
    if (good() && !context_.set_by.empty()) leave_out(*most_gpus());
    if (good()) check_reach(*most_gpus());
    return {space_, left_out_.empty()
                        ? ""
                        : fmt::format("{}: no plan on so many GPUs has these values of space, which "
                                      "are left out: {}",
                                      context_.set_by, fmt::join(left_out_, ", "))};
  }

 private:
  [[nodiscard]] std::optional<std::int64_t> most_gpus() const {
    return context_.gpus.empty() ? std::nullopt : std::optional(context_.gpus.back());
  }
  static std::string path_of(const char* key) { return std::string("space.") + key; }
  AxisPlace place(const yaml::Node& node, const char* key) { return {node, path_of(key), diagnostics_}; }

  void no_effect(const char* key, const std::string& reason) {
    const yaml::Node* node = node_.find(key);
    if (node != nullptr) state_.bad(path_of(key), node->where, "has no effect " + reason);
  }

  /// Whether the node is the file's own while the number of GPUs is not: it was written for another number.
  [[nodiscard]] bool of_another_number(const yaml::Node& node) const {
    return !context_.set_by.empty() && node.where.line > 0;
  }
  /// The greatest value that an axis with degrees may name.
  [[nodiscard]] std::int64_t highest(const yaml::Node& node, std::int64_t most) const {
    return of_another_number(node) ? kMaxInt : most;
  }

  void read_degrees() {
    const std::int64_t most = most_gpus().value_or(kMaxInt);
    const PlanAxisRow* filling = nullptr;
    for (const PlanAxisRow& row : kPlanRows) {
      if (row.kind != AxisKind::degree) continue;
      AxisList& axis = space_[row.key];
      const yaml::Node* node = reader_.take(row.column);
      if (node == nullptr) {
        // The data degree fills unless another axis does.
        const bool fills = row.key == PlanKey::data && filling == nullptr;
        axis = fills ? AxisList{.fill = true, .values = {}} : AxisList{.values = {1}};
        continue;
      }
      axis = parse_integer_axis(
          place(*node, row.column),
          {.high = highest(*node, most), .whole = most_gpus().value_or(1), .may_fill = true});
      std::ranges::sort(axis.values);
      if (!axis.fill) continue;
      if (filling != nullptr) {
        state_.bad(path_of(row.column), node->where,
                   fmt::format("only one axis can fill, and {} does already", filling->column));
      }
      filling = &row;
    }
  }

  /// Reads the axes that are not degrees.
  void read_settings() {
    for (const PlanAxisRow& row : kPlanRows) {
      if (!is_setting(row) && row.kind != AxisKind::order) continue;
      const yaml::Node* node = reader_.take(row.column);
      if (node == nullptr) continue;
      if (context_.phase && !applies(row.phases, *context_.phase)) {
        no_effect(row.column, fmt::format("in {}", name_of(*context_.phase)));
      } else {
        space_[row.key].values = read_setting(row, place(*node, row.column));
        check_experts(row);
      }
    }
  }

  void check_experts(const PlanAxisRow& row) {
    const auto does = [&](std::int32_t code) { return code != row.idle; };
    if (is_of_experts(row) && context_.experts == 0 && std::ranges::any_of(space_[row.key].values, does))
      no_effect(row.column, "in a dense model: it has no experts; leave it out");
  }

  [[nodiscard]] std::vector<std::int32_t> read_setting(const PlanAxisRow& row, const AxisPlace& at) const {
    const auto code = [](auto value) { return static_cast<std::int32_t>(value); };
    if (row.kind == AxisKind::integer) return parse_integer_axis(at, domain_of(row, at.node)).values;
    return parse_axis<std::int32_t>(at, [&](const yaml::Node& item) -> yaml::Parsed<std::int32_t> {
      if (row.kind == AxisKind::order) return parse_order(item);
      if (row.kind == AxisKind::flag) return yaml::parse_flag(item).map(code);
      return yaml::parse_choice(item, row.names).map(code);
    });
  }

  [[nodiscard]] IntegerDomain domain_of(const PlanAxisRow& row, const yaml::Node& node) const {
    IntegerDomain domain{.low = row.low, .high = row.high, .whole = std::nullopt};
    if (row.key == PlanKey::microbatch) domain.whole = context_.largest_batch.value_or(1);
    if (is_of_experts(row)) {
      const std::int64_t most = most_gpus().value_or(kMaxInt);
      domain.high = highest(node, most);
      domain.whole = most;
      if (row.key == PlanKey::expert && context_.experts.value_or(0) > 0)
        domain.whole = std::min(most, *context_.experts);
    }
    if (row.key == PlanKey::virtual_stages) {  // a single stage has nothing to interleave
      domain.low = 2;
      domain.whole = std::clamp<std::int64_t>(context_.layers.value_or(2), 2, kMaxInt);
    }
    return domain;
  }

  /// Reads the axes of the pool that prefills.
  void read_prefill() {
    const yaml::Node* gpus = reader_.take(kPrefillGpus);
    std::array<const yaml::Node*, kPoolDegrees.size()> nodes{};
    std::ranges::transform(kPoolDegrees, nodes.begin(),
                           [&](PlanKey key) { return reader_.take(row_of(key).column); });
    if (context_.phase == Phase::training) {
      no_effect(kPrefillGpus, "in training");
      for (const PlanKey key : kPoolDegrees) no_effect(row_of(key).column, "in training");
      return;
    }
    const std::int64_t most = most_gpus().value_or(kMaxInt);
    if (gpus != nullptr) {
      const IntegerDomain domain{
          .low = 0, .high = highest(*gpus, std::max<std::int64_t>(0, most - 1)), .whole = most};
      space_.prefill_gpus = parse_integer_axis(place(*gpus, kPrefillGpus), domain).values;
    }
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      const PlanAxisRow& row = row_of(kPoolDegrees[i]);
      if (nodes[i] == nullptr) continue;
      if (!pooled()) no_effect(row.column, std::string("without ") + kPrefillGpus);
      space_[row.key] = parse_integer_axis(place(*nodes[i], row.column),
                                           {.low = row.low, .high = highest(*nodes[i], most), .whole = most});
    }
  }
  [[nodiscard]] bool pooled() const {
    return std::ranges::any_of(space_.prefill_gpus, [](std::int32_t n) { return n > 0; });
  }

  /// Leaves out what no plan on at most `most` GPUs has.
  void leave_out(std::int64_t most) {
    const std::vector<std::int32_t> ffn = space_[PlanKey::ffn].values;
    keep(kPrefillGpus, space_.prefill_gpus, [&](std::int32_t pool) {
      return pool == 0 || std::ranges::any_of(ffn, [&](std::int32_t n) { return has_plans(pool, n); });
    });
    for (const PlanKey key : kPoolDegrees) {
      if (!pooled()) {
        idle(row_of(key));
        continue;
      }
      keep(row_of(key).column, space_[key].values, [&](std::int32_t n) {
        return (key == PlanKey::ffn && n == 0) ||
               std::ranges::any_of(space_.prefill_gpus, [&](std::int32_t pool) {
                 return pool > 0 && (key == PlanKey::ffn ? has_plans(pool, n) : pool % n == 0);
               });
      });
    }
    // The numbers of GPUs over which plans have their degrees.
    std::vector<std::int64_t> left;
    for (const std::int64_t gpus : context_.gpus)
      for (const std::int64_t pool : space_.prefill_gpus)
        for (const std::int64_t experts : space_[PlanKey::ffn].values)
          left.push_back(gpus - pool - (pool > 0 ? experts : 0));
    for (const PlanAxisRow& row : kPlanRows) {
      if (row.kind == AxisKind::degree)
        keep(row.column, space_[row.key].values, [&](std::int32_t n) {
          return std::ranges::any_of(left, [&](std::int64_t gpus) { return gpus > 0 && gpus % n == 0; });
        });
      if (is_of_experts(row))
        keep(row.column, space_[row.key].values, [&](std::int32_t n) { return n <= most; });
    }
  }

  /// Leaves out the values of a key that are not good; a problem where none is.
  template <class Good>
  void keep(const char* key, std::vector<std::int32_t>& values, const Good& good) {
    const yaml::Node* const node = node_.find(key);
    if (node == nullptr || !of_another_number(*node)) return;
    AxisList out, in;
    for (const std::int32_t value : values) (good(value) ? in : out).values.push_back(value);
    if (out.values.empty()) return;
    if (in.values.empty())
      return state_.bad(path_of(key), node->where,
                        fmt::format("{} leaves none of its values: no plan on so many GPUs has {}",
                                    context_.set_by, value_text(out)));
    values = std::move(in.values);
    left_out_.push_back(fmt::format("{} {}", key, value_text(out)));
  }

  /// Reports an axis that has no effect in any plan, or leaves it out.
  void idle(const PlanAxisRow& row) {
    const yaml::Node* const node = node_.find(row.column);
    if (node == nullptr) return;
    if (!of_another_number(*node)) return no_effect(row.column, row.fixed_where);
    space_[row.key] = SpaceSpec()[row.key];
    left_out_.emplace_back(row.column);
  }

  /// Whether plans on some number of GPUs have such a pool and so many GPUs with experts alone.
  [[nodiscard]] bool has_plans(std::int64_t pool, std::int64_t ffn) const {
    return std::ranges::any_of(context_.gpus, [&](std::int64_t gpus) {
      return gpus - pool - ffn > 0 && reach_of(space_, gpus - pool - ffn).any;
    });
  }

  /// Reports numbers of GPUs for the pool that make no whole replicas, and numbers for it or for experts that no plan
  /// has.
  void check_pools(std::int64_t gpus) {
    const std::vector<std::int32_t>& all_ffn = space_[PlanKey::ffn].values;
    std::vector<std::int32_t> pools = space_.prefill_gpus;
    std::erase(pools, 0);
    const yaml::Node* const node = node_.find(kPrefillGpus);
    for (const std::int32_t pool : pools) {
      const auto whole = [&](std::int32_t tensor) {
        return std::ranges::any_of(space_[PlanKey::prefill_pipeline].values, [&](std::int32_t pipeline) {
          return pool % (static_cast<std::int64_t>(tensor) * pipeline) == 0;
        });
      };
      if (!std::ranges::any_of(space_[PlanKey::prefill_tensor].values, whole)) {
        state_.bad(
            path_of(kPrefillGpus), node->where,
            fmt::format("{} GPUs make no whole replicas: no product of {} and {} divides them", pool,
                        row_of(PlanKey::prefill_tensor).column, row_of(PlanKey::prefill_pipeline).column));
      }
      if (std::ranges::none_of(all_ffn, [&](std::int32_t ffn) { return has_plans(pool, ffn); }))
        state_.bad(path_of(kPrefillGpus), node->where, no_pools_text(gpus, pool, std::ranges::min(all_ffn)));
    }
    for (const std::int32_t ffn : all_ffn) {
      const auto works = [&](std::int32_t pool) { return has_plans(pool, ffn); };
      if (!pools.empty() && ffn > 0 && std::ranges::none_of(pools, works))
        state_.bad(path_of(row_of(PlanKey::ffn).column), node_.find(row_of(PlanKey::ffn).column)->where,
                   no_pools_text(gpus, std::ranges::min(pools), ffn));
    }
  }

  [[nodiscard]] std::string no_pools_text(std::int64_t gpus, std::int64_t pool, std::int64_t ffn) const {
    const std::int64_t left = gpus - pool - ffn;
    const std::string others =
        ffn > 0 ? fmt::format(" and {} for experts alone ({})", ffn, row_of(PlanKey::ffn).column) : "";
    return fmt::format("with {} of {} GPUs to prefill{}, {}", pool, gpus, others,
                       left > 0 ? no_plan_text(space_, left) : "none is left to decode");
  }

  void check_reach(std::int64_t gpus) {
    check_pools(gpus);
    if (std::ranges::find(space_.prefill_gpus, 0) == space_.prefill_gpus.end()) return;
    Reach reach;
    for (const std::int64_t count : context_.gpus) {
      const Reach one = reach_of(space_, count);
      reach.any = reach.any || one.any;
      for (const PlanAxisRow& row : kPlanRows)
        reach.beyond_one[row.key] = reach.beyond_one[row.key] || one.beyond_one[row.key];
    }
    if (reach.any) return check_effects(reach);
    if (!pooled()) state_.bad("space", node_.where, no_plan_text(space_, gpus));
  }

  /// Reports or leaves out axes without effect: time and again, as those that are left out may take others with them.
  void check_effects(const Reach& reach) {
    EnumArray<PlanKey, bool> told{};
    for (bool again = true; again;) {
      again = false;
      const ParallelPlan widest = widest_plan(reach);
      for (const PlanAxisRow& row : kPlanRows) {
        const auto does = [&](std::int32_t code) { return code != row.idle; };
        if (!is_setting(row) || row.fixed == nullptr || told[row.key] || !row.fixed(widest) ||
            std::ranges::none_of(space_[row.key].values, does))
          continue;
        idle(row);
        told[row.key] = again = true;
      }
    }
  }

  /// A plan made as general as the space allows: an axis that has no effect in it has none in any plan.
  [[nodiscard]] ParallelPlan widest_plan(const Reach& reach) const {
    ParallelPlan widest;
    if (pooled()) widest.prefill.data = 1;
    if (const ScheduleRow* const row = space_.chunked_schedule()) widest.schedule = row->kind;
    for (const PlanAxisRow& row : kPlanRows) {
      if (reach.beyond_one[row.key]) row.set(widest, 2);
    }
    return widest;
  }

  const yaml::Node& node_;
  const SpaceContext& context_;
  yaml::Diagnostics& diagnostics_;
  yaml::ReadState state_;
  yaml::Reader reader_;
  SpaceSpec space_;
  std::vector<std::string> left_out_;  ///< keys, with those of their values that are left out
};

}  // namespace

ParsedSpace parse_space(const yaml::Node* node, const yaml::Location& root, const SpaceContext& context,
                        yaml::Diagnostics& diagnostics) {
  yaml::Node empty = yaml::Node::map();
  empty.where = root;
  return SpaceParser(node != nullptr ? *node : empty, context, diagnostics).run();
}

yaml::Node write_space(const SpaceSpec& space, Phase phase) {
  yaml::Node node = yaml::Node::map();
  for (const NamedAxis& axis : named_axes(space, phase)) {
    node.set(axis.key, axis.list.fill ? yaml::Node::scalar("fill")
                                      : yaml::flow_list(axis.list.values, [&](std::int32_t code) {
                                          return yaml::Node::scalar(study_text(axis.row, code));
                                        }));
  }
  return node;
}

}  // namespace shardscape::sweep
