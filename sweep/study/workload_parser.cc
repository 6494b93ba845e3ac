// Reads `workload:`: keys of one phase with a value or a list each, expert loads and precisions; multiplies the lists
// out into workloads.
#include "sweep/study/workload_parser.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <optional>

#include "engine/spec/ranges.h"
#include "sweep/study/axis_values.h"
#include "sweep/study/expert_load_parser.h"
#include "sweep/study/load_study.h"
#include "sweep/yaml/closest_names.h"
#include "sweep/yaml/visitors.h"

namespace shardscape::sweep {

namespace {

struct Field {
  const char* key;
  Phase phase;
  std::int64_t WorkloadSpec::*member;
};

constexpr std::array<Field, 5> kFields = {{
    {"sequence_length", Phase::training, &WorkloadSpec::sequence_length},
    {"global_batch", Phase::training, &WorkloadSpec::global_batch},
    {"prompt_tokens", Phase::inference, &WorkloadSpec::prompt_tokens},
    {"output_tokens", Phase::inference, &WorkloadSpec::output_tokens},
    {"concurrency", Phase::inference, &WorkloadSpec::concurrency},
}};

/// One key with a list: a function for each value, which changes a workload.
struct ListedKey {
  std::vector<std::function<void(WorkloadSpec&)>> values;
};

class WorkloadParser {
 public:
  WorkloadParser(const yaml::Node& node, yaml::Diagnostics& diagnostics)
      : node_(node),
        diagnostics_(diagnostics),
        state_(node.where, "", diagnostics),
        reader_(node, "workload", state_) {}

  ParsedWorkload run() {
    const std::size_t before = diagnostics_.size();
    result_.resolved = yaml::Node::map();
    if (!node_.is_map()) return std::move(result_);
    read_phase();
    for (const yaml::Entry& entry : node_.entries) read_entry(entry);
    take_defaults();
    reader_.finish();
    if (diagnostics_.size() == before && !state_.failed()) multiply();
    return std::move(result_);
  }

 private:
  static std::string path(const std::string& key) { return "workload." + key; }

  void read_phase() {
    const yaml::Node* node = reader_.take_required("phase");
    if (node == nullptr) return;
    const yaml::Parsed<Phase> phase = yaml::parse_value<Phase>(*node);
    if (!phase) return state_.bad(path("phase"), node->where, phase.error());
    result_.phase = *phase;
    result_.phase_known = true;
    result_.resolved.set("phase", yaml::make_scalar(*phase));
  }

  void read_entry(const yaml::Entry& entry) {
    const auto field =
        std::ranges::find(kFields, entry.key, [](const Field& f) { return std::string_view(f.key); });
    const bool precision = entry.key == "precision", loads = entry.key == "expert_load";
    if (field == kFields.end() && !precision && !loads) return;
    if (&entry.value != node_.find(entry.key)) return;  // a duplicate key, which has been reported already
    if (loads) return read_expert_loads(entry.value);
    if (precision) return read_precision(entry.value);
    reader_.take(field->key);
    if (result_.phase_known && field->phase != result_.phase) {
      state_.bad(path(entry.key), entry.key_where,
                 fmt::format("has no effect in {}", name_of(result_.phase)));
      return;
    }
    constexpr auto kMax = static_cast<std::int64_t>(ranges::kTokens.high);
    const AxisPlace place{entry.value, path(entry.key), diagnostics_};
    const auto values = parse_axis<std::int64_t>(
        place, [](const yaml::Node& item) { return yaml::parse_integer_node(item, 1, kMax); });
    add_axis<std::int64_t>(entry.key, values, field->member);
  }

  void read_precision(const yaml::Node& node) {
    reader_.take("precision");
    const AxisPlace place{node, path("precision"), diagnostics_};
    add_axis<PolicyName>("precision", parse_axis<PolicyName>(place, yaml::parse_value<PolicyName>),
                         &WorkloadSpec::precision);
  }

  void read_expert_loads(const yaml::Node& node) {
    reader_.take("expert_load");
    ListedKey axis;
    yaml::Node list = yaml::Node::list();
    for (const ExpertLoad& load : parse_expert_loads(node, path("expert_load"), state_)) {
      axis.values.emplace_back([load](WorkloadSpec& workload) { workload.expert_load = load; });
      list.items.push_back(write_expert_load(load));
    }
    axes_.push_back(std::move(axis));
    result_.resolved.set("expert_load", std::move(list));
  }

  template <class T>
  void add_axis(const std::string& key, const std::vector<T>& values, T WorkloadSpec::*member) {
    ListedKey axis;
    yaml::Node list = yaml::Node::list();
    list.flow = true;
    for (const T& value : values) {
      axis.values.emplace_back([member, value](WorkloadSpec& workload) { workload.*member = value; });
      list.items.push_back(yaml::make_scalar(value));
    }
    axes_.push_back(std::move(axis));
    result_.resolved.set(key, std::move(list));
  }

  void take_defaults() {
    for (const Field& field : kFields) {
      if (result_.phase_known && field.phase == result_.phase) {
        reader_.take_required(field.key);
      } else {
        reader_.take(field.key);
      }
    }
    if (reader_.take("precision") == nullptr)
      add_axis<PolicyName>("precision", {PolicyName::bf16}, &WorkloadSpec::precision);
  }

  /// Builds the product of the lists, the last one fastest.
  void multiply() {
    std::size_t count = 1;
    for (const ListedKey& axis : axes_) {
      count *= axis.values.size();
      if (count > kMaxSettings) {
        return state_.bad("workload", node_.where,
                          fmt::format("its lists multiply to more than {}", kMaxSettings));
      }
    }
    for (std::size_t index = 0; index < count; ++index) {
      WorkloadSpec workload;
      workload.phase = result_.phase;
      std::size_t rest = index;
      for (auto axis = axes_.rbegin(); axis != axes_.rend(); ++axis) {
        axis->values[rest % axis->values.size()](workload);
        rest /= axis->values.size();
      }
      check(workload);
      result_.workloads.push_back(workload);
    }
    if (state_.failed()) result_.workloads.clear();
  }

  void check(const WorkloadSpec& workload) {
    const Problems problems = workload.validate();
    for (const Problem& problem : problems.list()) {
      const yaml::Node* field = node_.find(problem.field.substr(0, problem.field.find('.')));
      state_.bad(path(problem.field), field != nullptr ? field->where : node_.where, problem.message);
    }
  }

  const yaml::Node& node_;
  yaml::Diagnostics& diagnostics_;
  yaml::ReadState state_;
  yaml::Reader reader_;
  std::vector<ListedKey> axes_;
  ParsedWorkload result_;
};

}  // namespace

ParsedWorkload parse_workload(const yaml::Node& node, yaml::Diagnostics& diagnostics) {
  return WorkloadParser(node, diagnostics).run();
}

}  // namespace shardscape::sweep
