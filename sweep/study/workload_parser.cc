// Reads `workload:`: keys of one phase with a value or a list each, expert loads and precisions; multiplies the lists
// out into workloads.
#include "sweep/study/study_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <iterator>
#include <utility>

#include "engine/serving/load/drawn_requests.h"
#include "engine/serving/load/longest_drawn.h"
#include "engine/spec/ranges.h"
#include "sweep/study/axis_values.h"
#include "sweep/study/expert_load_parser.h"
#include "sweep/study/load_parser.h"

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
  WorkloadParser(const yaml::Node& node, yaml::Diagnostics& diagnostics, const std::filesystem::path& folder,
                 const ModelSpec* model)
      : node_(node),
        folder_(folder),
        model_(model),
        diagnostics_(diagnostics),
        state_(node.where, "", diagnostics),
        reader_(node, "workload", state_) {}

  ParsedWorkload run() {
    const std::size_t before = diagnostics_.size();
    result_.resolved = yaml::Node::map();
    if (!node_.is_map()) return std::move(result_);
    read_phase();
    read_load();
    for (const yaml::Entry& entry : node_.entries) read_entry(entry);
    take_defaults();
    reader_.finish();
    if (diagnostics_.size() == before && !state_.failed()) multiply();
    return std::move(result_);
  }

 private:
  static std::string path(const std::string& key) { return "workload." + key; }

  void read_phase() {
    result_.phase_known = reader_.required("phase", result_.phase);
    if (result_.phase_known) result_.resolved.set("phase", yaml::make_scalar(result_.phase));
  }

  void read_load() {
    if (result_.phase == Phase::training || !describes_load(node_)) {
      for (const char* key : kLoadKeys) reader_.unused(key, "has no effect in training");
      return;
    }
    load_ = parse_load(node_, folder_, reader_, state_);
    result_.tables = load_->tables;
    result_.timed_requests = load_->timed;
    if (const yaml::Node* rates = reader_.take("request_rate")) {
      if (const yaml::Node* clients = node_.find("concurrency"))
        state_.bad(path("concurrency"), clients->where, "excludes request_rate: a loop is closed or open");
      const AxisPlace place{*rates, path("request_rate"), diagnostics_};
      const std::vector<double> listed = parse_axis<double>(place, parse_rate);
      add_axis(listed, [](WorkloadSpec& workload, double rate) { workload.load->request_rate = rate; });
      load_->resolved.set("request_rate", yaml::flow_list(listed, [](double rate) {
                            return yaml::Node::scalar(rate_text(rate));
                          }));
    }
    if (const yaml::Node* node = reader_.take("sessions")) {
      load_->load.sessions = parse_sessions(*node, path("sessions"), load_->length_ratio, model_, state_);
      load_->resolved.set("sessions", *node);
    }
    if (const yaml::Node* node = reader_.take("speculation")) read_speculation(*node);
  }

  void read_speculation(const yaml::Node& node) {
    ParsedSpeculation parsed = parse_speculation(node, path("speculation"), folder_, state_, diagnostics_);
    load_->load.speculation = std::move(parsed.speculation);
    std::ranges::move(parsed.tables, std::back_inserter(result_.tables));
    if (!parsed.assumption.empty()) result_.assumptions.push_back(std::move(parsed.assumption));
    add_axis(parsed.draft_tokens, [](WorkloadSpec& workload, std::int64_t tokens) {
      workload.load->speculation.draft_tokens = tokens;
    });
    load_->resolved.set("speculation", std::move(parsed.resolved));
  }

  /// Reads lengths of a simulated load: numbers, which the client's ratio makes random, or maps.
  void read_lengths(const yaml::Entry& entry, std::int64_t WorkloadSpec::*member,
                    Lengths LoadSpec::*lengths) {
    const AxisPlace place{entry.value, path(entry.key), diagnostics_};
    ListedKey axis;
    const auto add = [&](std::int64_t tokens, const Lengths& of) {
      axis.values.emplace_back([=](WorkloadSpec& workload) {
        workload.*member = tokens;
        (*workload.load).*lengths = of;
      });
    };
    for (const yaml::Node* item : axis_items(place)) {
      const auto parsed = parse_number_or_lengths(*item, path(entry.key), load_->length_ratio, state_);
      if (parsed) add(item->is_map() ? std::llround(parsed->mean) : parsed->longest, *parsed);
    }
    axes_.push_back(std::move(axis));
    result_.resolved.set(entry.key, entry.value);
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
    if (load_ && field->member == &WorkloadSpec::prompt_tokens)
      return read_lengths(entry, field->member, &LoadSpec::prompt);
    if (load_ && field->member == &WorkloadSpec::output_tokens)
      return read_lengths(entry, field->member, &LoadSpec::output);
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
    const auto loads = parse_expert_loads(node, path("expert_load"), state_);
    add_axis(loads, [](WorkloadSpec& workload, const ExpertLoad& load) { workload.expert_load = load; });
    yaml::Node list = yaml::Node::list();
    for (const ExpertLoad& load : loads) list.items.push_back(write_expert_load(load));
    result_.resolved.set("expert_load", std::move(list));
  }

  /// Adds an axis on which `set` puts each of the values into a workload.
  template <class T, class Set>
  void add_axis(const std::vector<T>& values, const Set& set) {
    ListedKey axis;
    for (const T& value : values)
      axis.values.emplace_back([set, value](WorkloadSpec& workload) { set(workload, value); });
    axes_.push_back(std::move(axis));
  }
  template <class T>
  void add_axis(const std::string& key, const std::vector<T>& values, T WorkloadSpec::*member) {
    add_axis(values, [member](WorkloadSpec& workload, const T& value) { workload.*member = value; });
    result_.resolved.set(key, yaml::flow_list(values));
  }

  void take_defaults() {
    for (const Field& field : kFields) {
      const bool traced = load_ && node_.find("trace") != nullptr;
      const bool rated =
          load_ && field.member == &WorkloadSpec::concurrency && node_.find("request_rate") != nullptr;
      if (result_.phase_known && field.phase == result_.phase && !traced && !rated) {
        const yaml::Node* const node = reader_.take(field.key);
        const bool loop = field.member == &WorkloadSpec::concurrency;
        if (node == nullptr && node_.is_map())
          reader_.bad(field.key, node_,
                      loop ? "missing; say how many requests are in flight, or give request_rate or trace"
                           : "missing; this key is required");
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
      if (load_) {
        workload.load = load_->load;
        workload.prompt_tokens = std::llround(load_->load.prompt.mean);
        workload.output_tokens = std::llround(load_->load.output.mean);
      }
      std::size_t rest = index;
      for (auto axis = axes_.rbegin(); axis != axes_.rend(); ++axis) {
        axis->values[rest % axis->values.size()](workload);
        rest /= axis->values.size();
      }
      if (load_) load_->timed.count(*workload.load);
      if (load_ && workload.load->sessions) {
        serving::begin_sessions(*workload.load);
        workload.prompt_tokens = std::llround(workload.load->prompt.mean);
      }
      check(workload);
      if (load_) result_.length_laws.emplace_back(*workload.load);
      if (load_ && !state_.failed()) serving::keep_to_drawn(*workload.load, workload.concurrency);
      result_.workloads.push_back(workload);
    }
    if (state_.failed()) result_.workloads.clear();
    if (!load_) return;
    for (yaml::Entry& entry : load_->resolved.entries)
      result_.resolved.set(entry.key, std::move(entry.value));
  }

  void check(const WorkloadSpec& workload) {
    const Problems problems = workload.validate();
    for (const Problem& problem : problems.list()) {
      const std::size_t dot = problem.field.find('.');
      const yaml::Node* field = node_.find(problem.field.substr(0, dot));
      if (field != nullptr && field->is_map() && dot != std::string::npos)
        if (const yaml::Node* part = field->find(problem.field.substr(dot + 1))) field = part;
      state_.bad(path(problem.field), field != nullptr ? field->where : node_.where, problem.message);
    }
  }

  const yaml::Node& node_;
  const std::filesystem::path folder_;
  const ModelSpec* const model_;
  yaml::Diagnostics& diagnostics_;
  yaml::ReadState state_;
  yaml::Reader reader_;
  std::vector<ListedKey> axes_;
  std::optional<ParsedLoad> load_;
  ParsedWorkload result_;
};

}  // namespace

ParsedWorkload parse_workload(const yaml::Node& node, yaml::Diagnostics& diagnostics,
                              const std::filesystem::path& folder, const ModelSpec* model) {
  return WorkloadParser(node, diagnostics, folder, model).run();
}

}  // namespace shardscape::sweep
