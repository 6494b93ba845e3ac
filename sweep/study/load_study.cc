// Reads a study in the order in which its keys depend on each other: model, cluster, stack, workload, space, hardware,
// faults, and the rest; then writes it out in full.
#include "sweep/study/load_study.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <numeric>
#include <optional>
#include <utility>

#include "engine/base/safe_text.h"
#include "sweep/space/constraint.h"
#include "sweep/study/axis_values.h"
#include "sweep/study/column_names.h"
#include "sweep/study/evidence_of.h"
#include "sweep/study/faults_parser.h"
#include "sweep/study/hardware_axes.h"
#include "sweep/study/idle_links.h"
#include "sweep/study/limits_parser.h"
#include "sweep/study/overrides.h"
#include "sweep/study/placement_axis.h"
#include "sweep/study/stack_policies.h"
#include "sweep/study/starter.h"
#include "sweep/study/study_parts.h"
#include "sweep/yaml/closest_names.h"
#include "sweep/yaml/loader.h"
#include "sweep/yaml/specs.h"
#include "sweep/yaml/value.h"
#include "sweep/yaml/visitors.h"

namespace shardscape::sweep {

namespace fs = std::filesystem;

namespace {

/// Keys of `workload:`, `space:` and `hardware:`, for who sets one without naming its part.
std::vector<std::string> inner_paths() {
  std::vector<std::string> paths = {"workload.phase", "workload.expert_load", "hardware.device",
                                    std::string("space.") + kPrefillGpus};
  for (const StarterKey& key : kStarterKeys)
    if (key.name != "promises") paths.push_back("workload." + std::string(key.name));
  for (const PlanAxisRow& row : kPlanRows) {
    paths.push_back(std::string("space.") + row.column);
    if (row.name != std::string_view(row.column)) paths.push_back(std::string("space.").append(row.name));
  }
  return paths;
}

/// Reads the keys of a study in the order in which they depend on each other; every step goes as far as earlier
/// problems allow.
class StudyParser {
 public:
  StudyParser(const yaml::Node& root, std::string name, fs::path folder, const yaml::Catalog& catalog,
              const StudyOptions& options, yaml::Diagnostics& diagnostics)
      : root_(root),
        name_(std::move(name)),
        folder_(std::move(folder)),
        options_(options),
        diagnostics_(diagnostics),
        state_(root.where, "", diagnostics),
        reader_(root, "", state_),
        catalog_(catalog),
        loader_(catalog, diagnostics) {
    state_.set_paths(inner_paths);
  }

  std::optional<Study> run() {
    if (!root_.is_map()) return std::nullopt;
    read_title();
    read_references();
    read_workload();
    read_space();
    read_layout_key();
    read_hardware();
    read_placement();
    read_promises();
    read_faults();
    read_reliability();
    read_constraints();
    read_objectives();
    read_mode();
    read_store();
    reader_.finish();
    check_fault_wiring();
    check_links();
    check_layouts();
    if (!diagnostics_.empty()) return std::nullopt;
    check_lengths(study_, root_, state_);
    for (const Problem& idle : without_value(study_))
      state_.bad(idle.field, root_.find(idle.field.substr(0, idle.field.find('.')))->where, idle.message);
    check_expert_loads(study_, root_, state_);
    if (phase_) check_served_experts(study_, *phase_, root_, state_);
    if (!diagnostics_.empty()) return std::nullopt;
    study_.places[""] = *root_.where.source;
    note_places(root_, ".");
    study_.resolved_yaml = resolved();
    note_assumed_shares();
    note(long_sequences(study_.model, study_.workloads));
    for (std::string& line : idle_links(study_.systems, loader_.linked_devices())) note(std::move(line));
    study_.warned_of = study_.assumptions.size();
    note(stack_policies(study_));
    note(lockstep_clients(study_));
    attach_evidence(catalog_, study_, diagnostics_);
    if (!diagnostics_.empty()) return std::nullopt;
    return std::move(study_);
  }

  [[nodiscard]] const std::vector<yaml::InputFile>& files() const { return loader_.files(); }

 private:
  void note(std::string assumption) {
    if (!assumption.empty()) study_.assumptions.push_back(std::move(assumption));
  }

  void note_places(const yaml::Node& node, const std::string& path) {
    for (const yaml::Node& item : node.items) study_.places[path + item.text] = yaml::to_string(item.where);
    for (const yaml::Entry& entry : node.entries) {
      study_.places[path + entry.key] = yaml::to_string(entry.key_where);
      note_places(entry.value, path + entry.key + '.');
    }
  }

  void read_title() {
    study_.title = fs::path(name_).stem().string();
    reader_.optional("study", study_.title);
    const std::string problem = name_problem_of_file();
    if (!problem.empty() && root_.find("study") == nullptr)
      state_.bad("study", root_.where, "the name of the file " + problem + "; give the study a title");
  }

  [[nodiscard]] std::string name_problem_of_file() const {
    return yaml::name_problem(fs::path(name_).filename().string());
  }

  void read_references() {
    const yaml::Node* gpus = reader_.take("gpus");
    const yaml::Node* domain = reader_.take("gpus_per_domain");
    if (const yaml::Node* node = reader_.take_required("model")) read_model(*node);
    if (const yaml::Node* node = reader_.take_required("cluster")) {
      cluster_ = loader_.cluster({*node, "cluster", folder_});
      if (cluster_ && (domain == nullptr || read_domain(*domain))) read_fabric(*node, gpus);
    }
    if (const yaml::Node* node = reader_.take_required("stack"))
      stack_ = loader_.stack({*node, "stack", folder_});
    if (const yaml::Node* node = reader_.take(kPrefillDevice.data()))
      prefill_device_ = loader_.device({*node, std::string(kPrefillDevice), folder_});
    if (model_) study_.model = *model_, study_.model_name = model_->name;
    if (cluster_) study_.cluster_name = cluster_->name;
    if (stack_) study_.stack_name = stack_->name;
  }

  void read_model(const yaml::Node& node) {
    model_ = loader_.model({node, "model", folder_});
    const yaml::Node* const own = node.is_map() ? node.find("also") : nullptr;
    const yaml::Node* const base = node.is_map() ? node.find("base") : &node;
    if (own != nullptr && own->is_scalar()) {
      study_.checkpoint = own->text;
    } else if (model_ && base != nullptr && base->is_scalar()) {
      if (auto found = catalog_.find_model(base->text, folder_)) study_.checkpoint = std::move(found->also);
    }
  }

  /// Reads how many GPUs of each NVLink domain a job of the cluster takes.
  bool read_domain(const yaml::Node& node) {
    std::int64_t domain = 0;
    if (!reader_.integer("gpus_per_domain", 1, kMostGpus, domain)) return false;
    Problems problems;
    cluster_->fabric = cluster_->fabric.with_domain(domain, problems);
    for (const Problem& problem : problems.list()) state_.bad(problem.field, node.where, problem.message);
    return problems.empty();
  }

  /// Reads the numbers of GPUs, and makes the fabric of each.
  void read_fabric(const yaml::Node& cluster, const yaml::Node* gpus) {
    std::vector<std::int64_t> counts;
    const yaml::Node& where = gpus != nullptr ? *gpus : cluster;
    if (where.where.line == 0) counts_set_by_ = echo(yaml::to_string(where.where));
    if (gpus != nullptr && !gpus->is_scalar()) {
      const AxisList list = parse_integer_axis({*gpus, "gpus", diagnostics_},
                                               {.low = 1, .high = kMostGpus, .whole = std::nullopt});
      counts.assign(list.values.begin(), list.values.end());
      std::ranges::sort(counts);
    } else if (gpus != nullptr) {
      const auto parsed = yaml::parse_integer_node(*gpus, 1, kMostGpus);
      if (!parsed) return state_.bad("gpus", gpus->where, parsed.error());
      counts = {*parsed};
    } else if (cluster_->fabric.open()) {
      return state_.bad("gpus", cluster.where,
                        "missing: cluster " + cluster_->name + " comes in any size; say how many GPUs");
    } else {
      counts = {cluster_->fabric.fabric.size()};
    }
    const bool listed = gpus != nullptr && !gpus->is_scalar();
    const bool up_to = options_.all_counts && !listed && cluster_->fabric.open();
    if (up_to && counts.front() > static_cast<std::int64_t>(kMaxSettings))
      return state_.bad(
          "gpus", where.where,
          fmt::format("all numbers up to it are tried, so that it may be {} at most; or give a list",
                      kMaxSettings));
    if (up_to) counts.resize(static_cast<std::size_t>(counts.front()));
    if (up_to) std::iota(counts.begin(), counts.end(), std::int64_t{1});
    for (const std::int64_t count : counts) {
      Problems problems;
      FabricSpec fabric = cluster_->fabric.instantiate(count, problems);
      if (up_to && !problems.empty() && count < counts.back()) continue;
      for (const Problem& problem : problems.list()) state_.bad(problem.field, where.where, problem.message);
      if (!problems.empty()) return;
      study_.gpu_counts.push_back(count);
      fabrics_.push_back(std::move(fabric));
    }
    if (!fabrics_.empty()) study_.gpus = study_.gpu_counts.front();
  }

  void read_workload() {
    const yaml::Node* node = reader_.take_required("workload");
    if (node == nullptr) return;
    ParsedWorkload parsed = parse_workload(*node, diagnostics_, folder_, model_ ? &*model_ : nullptr);
    if (parsed.phase_known) phase_ = parsed.phase;
    study_.workloads = std::move(parsed.workloads);
    study_.timed_requests = parsed.timed_requests;
    study_.length_laws = std::move(parsed.length_laws);
    workload_resolved_ = std::move(parsed.resolved);
    study_.tables = std::move(parsed.tables);
    study_.assumptions = std::move(parsed.assumptions);
    const yaml::Node* const speculation = node->is_map() ? node->find("speculation") : nullptr;
    if (!study_.workloads.empty() && speculation != nullptr) read_drafting_model(*speculation);
  }

  /// Finds who drafts: a model that shares the vocabulary, or a module that this one has.
  void read_drafting_model(const yaml::Node& node) {
    const std::string path = "workload.speculation";
    if (const yaml::Node* const name = node.find("draft_model")) {
      const std::optional<ModelSpec> model = loader_.model({*name, path + ".draft_model", folder_});
      if (!model) return;
      if (model_ && model->vocabulary != model_->vocabulary)
        state_.bad(path + ".draft_model", name->where,
                   fmt::format("has a vocabulary of {}, but {} of {}: a model that drafts must have the same",
                               model->vocabulary, model_->name, model_->vocabulary));
      yaml::Node written = node;
      written.set("draft_model", yaml::write(*model));
      workload_resolved_.set("speculation", std::move(written));
      const auto shared = std::make_shared<const ModelSpec>(*model);
      for (WorkloadSpec& workload : study_.workloads) workload.load->speculation.draft_model = shared;
    } else if (model_ && (!model_->moe || model_->moe->mtp_layers == 0)) {
      const yaml::Node* const method = node.find("method");
      state_.bad(path + ".method", method != nullptr ? method->where : node.where,
                 fmt::format("mtp needs a module that predicts a further token, and {} has none "
                             "(moe.mtp_layers); name a draft_model",
                             model_->name));
    }
  }

  void read_space() {
    SpaceContext context;
    context.gpus = study_.gpu_counts;
    context.phase = phase_;
    if (model_) context.layers = model_->layers;
    if (model_) context.experts = model_->moe ? model_->moe->experts : 0;
    for (const WorkloadSpec& workload : study_.workloads) {
      context.largest_batch = std::max(context.largest_batch.value_or(1), workload.global_batch);
    }
    context.set_by = counts_set_by_;
    ParsedSpace parsed = parse_space(reader_.take("space"), root_.where, context, diagnostics_);
    study_.space = std::move(parsed.space);
    if (!options_.one_plan) note(std::move(parsed.assumption));
  }

  void read_layout_key() {
    const yaml::Node* node = reader_.take(kPipelineLayout);
    if (node == nullptr) return;
    if (phase_ == Phase::inference)
      return state_.bad(kPipelineLayout, node->where, "has no effect in inference");
    if (stack_) read_pipeline_layout(*node, *stack_, diagnostics_);
  }

  /// Checks that pipeline layouts fit this model, and numbers of stages that plans have.
  void check_layouts() {
    if (!diagnostics_.empty() || phase_ != Phase::training) return;
    for (const System& system : study_.systems) {
      const std::string problem = layout_problem(system.stack, study_.model, study_.space);
      if (problem.empty()) continue;
      const char* const key = root_.find(kPipelineLayout) != nullptr ? kPipelineLayout : "stack";
      const std::string path = key == kPipelineLayout ? key : std::string("stack.") + kPipelineLayout;
      return state_.bad(path, root_.find(key)->where, problem);
    }
  }

  void read_hardware() {
    const yaml::Node* node = reader_.take("hardware");
    if (!cluster_ || !stack_) return;
    // Without a valid number of GPUs the axes can still be checked, on the fabric as its file describes it.
    std::vector<FabricSpec> fabrics = fabrics_;
    if (fabrics.empty()) fabrics.push_back(cluster_->fabric.fabric);
    HardwareLimits limits{max_systems() / fabrics.size(), options_.fixed_columns};
    limits.taken_columns.insert(limits.taken_columns.end(), {"placement", "gpus"});
    const std::size_t before = diagnostics_.size();
    for (std::size_t i = 0; i < fabrics.size() && diagnostics_.size() == before; ++i) {
      const auto count = fabrics_.empty() ? std::nullopt : std::optional(study_.gpu_counts[i]);
      const BaseSystem base{
          {cluster_->device, fabrics[i], *stack_, prefill_device_}, cluster_->fabric, count, phase_, folder_};
      ParsedHardware parsed = parse_hardware(node, base, limits, loader_, diagnostics_);
      study_.hardware = std::move(parsed.axes);
      std::ranges::move(parsed.systems, std::back_inserter(study_.systems));
      hardware_resolved_ = std::move(parsed.resolved);
    }
    if (fabrics.size() > 1) study_.hardware.insert(study_.hardware.begin(), gpus_axis(study_.gpu_counts));
    if (phase_) check_pools(study_, *phase_, root_, state_);
  }

  [[nodiscard]] std::size_t max_systems() const {
    return kMaxSettings / std::max<std::size_t>(1, study_.workloads.size());
  }

  void read_placement() {
    const yaml::Node* node = reader_.take("placement");
    if (node == nullptr) return;
    const std::size_t before = diagnostics_.size();
    add_placement_axis(*node, max_systems(), study_, diagnostics_);
    if (diagnostics_.size() > before || !has_pools(study_.space)) return;
    for (std::size_t i = 0; i < study_.systems.size(); ++i) {
      if (placement_of(study_, i) != PlacementChoice::optimised) continue;
      return diagnostics_.add(
          node->where, "placement",
          "optimised places one kind of replica, but space.prefill_gpus has plans with a pool "
          "that prefills; leave one of them out");
    }
  }

  /// The nodes of a text or a list of texts; none where the key is absent.
  std::vector<const yaml::Node*> texts(const char* key) {
    const yaml::Node* node = reader_.take(key);
    if (node == nullptr || (node->is_list() && node->items.empty())) return {};
    std::vector<const yaml::Node*> result;
    for (const yaml::Node* item : axis_items({*node, key, diagnostics_})) {
      const auto text = yaml::scalar_text(*item, "text");
      if (text) {
        result.push_back(item);
      } else {
        diagnostics_.add(item->where, key, text.error());
      }
    }
    return result;
  }

  void read_mode() {
    reader_.optional("mode", study_.mode);
    if (study_.mode == ExecutionMode::checked && phase_ == Phase::inference)
      state_.bad("mode", root_.find("mode")->where,
                 "checked is of training; servers are hierarchical or flattened");
  }

  void read_promises() {
    const yaml::Node* node = reader_.take("promises");
    if (node == nullptr) return;
    study_.limits = parse_promises(*node, diagnostics_);
    for (WorkloadSpec& workload : study_.workloads) {
      if (!workload.load)
        return state_.bad("promises", node->where,
                          "need a load that is simulated request by request: give the workload client, "
                          "request_rate, sessions or trace");
      workload.load->promised = bounds_of(study_.limits);
    }
  }

  void read_constraints() {
    const std::vector<const yaml::Node*> items = texts("constraints");
    if (items.empty() || !phase_) return;
    const results::StudyExtras every{.faults = true, .reliability = true, .load = true, .promises = true};
    const results::ColumnTable all(*phase_, {}, every);
    const results::ColumnTable columns(*phase_, {}, study_.workloads.empty() ? every : study_.extras());
    const LimitReader limits(columns, all);
    for (const yaml::Node* item : items) read_constraint(*item, limits);
    if (study_.limits.size() > results::kMostLimits)
      state_.bad("constraints", items.front()->where,
                 fmt::format("there are {} on results with the promises, at most {}", study_.limits.size(),
                             results::kMostLimits));
  }

  /// Reads a constraint on a result, or on the plan.
  void read_constraint(const yaml::Node& item, const LimitReader& limits) {
    const auto bad = [&](ConstraintError error) {
      yaml::Location where = item.where;
      if (where.line > 0) where.column += static_cast<int>(error.offset) + (item.quoted ? 1 : 0);
      diagnostics_.add(where, "constraints", '"' + item.text + "\": " + error.message);
    };
    const auto limit = limits.read(item.text);
    if (!limit) return bad(limit.error());
    if (*limit) {
      const bool known = std::ranges::find(study_.limits, **limit) != study_.limits.end();
      if (!known) study_.limits.push_back(**limit);
      return;
    }
    study_.space.constraints.push_back(item.text);
  }

  void read_faults() {
    const yaml::Node* node = reader_.take("faults");
    if (node == nullptr) return;
    study_.faults =
        parse_faults_key(*node, fabrics_.empty() ? nullptr : &fabrics_.back(), phase_, diagnostics_);
    if (!node->is_map()) state_.bad("faults", node->where, "must be a map");
  }

  void read_reliability() {
    const yaml::Node* node = reader_.take("reliability");
    if (node == nullptr) return;
    study_.reliability = parse_reliability(*node, root_.find("faults") != nullptr, phase_, diagnostics_);
  }

  /// All points meet the same faults, so that every setting must have the same links.
  void check_fault_wiring() {
    // With all counts whoever asks has no use for faults, and says so.
    if (!study_.faults || fabrics_.empty() || options_.all_counts) return;
    for (const System& system : study_.systems) {
      if (same_wiring(system.fabric, fabrics_.back())) continue;
      return state_.bad(
          "faults", root_.find("faults")->where,
          std::string("need the same links in every setting, but ") +
              (fabrics_.size() > 1 ? "`gpus` is a list (" : "`hardware` rewires the cluster (") +
              system.fabric.name + "); leave one of them out");
    }
  }

  void check_links() {
    const std::string problem = links_left_behind(study_.systems);
    if (!problem.empty()) state_.bad("hardware", root_.find("hardware")->where, problem);
  }

  void read_objectives() {
    if (const yaml::Node* node = root_.find("objectives");
        node != nullptr && node->is_list() && node->items.empty())
      diagnostics_.add(node->where, "objectives", "an empty list; name a column, such as step_time_s");
    for (const yaml::Node* item : texts("objectives")) {
      const std::vector<std::string>& known = options_.objective_columns;
      const std::string name = column_meant(item->text, known);
      const bool listed = std::ranges::find(study_.objectives, name) != study_.objectives.end();
      if (!known.empty() && std::ranges::find(known, name) == known.end()) {
        diagnostics_.add(item->where, "objectives",
                         "unknown column \"" + name + '"' + yaml::suggestion(name, known, "columns"));
      } else if (listed) {
        diagnostics_.add(item->where, "objectives", item->text + " is in the list twice");
      } else {
        study_.objectives.push_back(name);
      }
    }
    if (!study_.objectives.empty()) return;
    study_.objectives = {phase_ == Phase::inference ? "e2e_s" : "step_time_s", "memory_peak_bytes"};
  }

  void read_store() {
    const yaml::Node* node = reader_.take("store");
    if (node != nullptr) parse_store(*node, options_, study_, diagnostics_);
  }

  /// Notes the shares of peaks that device files leave out, as far as some setting uses their default.
  void note_assumed_shares() {
    for (const yaml::AssumedShares& assumed : loader_.assumed_shares()) {
      if (assumed.sheet) study_.sheet_devices.insert(assumed.device);
      auto shares = assumed.shares;
      std::erase_if(shares, [&](const DeviceNumber* share) {
        if (assumed.sheet) return false;
        const auto states_it = [&](const System& system) { return share->get(system.device) != 1; };
        return std::ranges::all_of(study_.systems, states_it);
      });
      if (!shares.empty()) study_.assumptions.push_back(yaml::describe_assumption(assumed, shares, catalog_));
    }
  }

  /// The complete study as YAML, every part in full. Its fabric has exactly `gpus` ranks.
  std::string resolved() const {
    yaml::Node node = yaml::Node::map();
    node.set("study", yaml::make_scalar(study_.title));
    yaml::Node model = yaml::write(study_.model);
    if (!study_.checkpoint.empty()) model.set("also", yaml::make_scalar(study_.checkpoint));
    node.set("model", std::move(model));
    node.set("cluster", resolved_cluster());
    const bool several = study_.gpu_counts.size() > 1;
    node.set("gpus",
             several ? yaml::flow_list(study_.hardware.front().labels) : yaml::make_scalar(study_.gpus));
    node.set("stack", yaml::write(*stack_));
    if (prefill_device_) node.set(kPrefillDevice, yaml::write(*prefill_device_));
    node.set("workload", workload_resolved_);
    node.set("space", write_space(study_.space, study_.phase()));
    if (hardware_resolved_.is_map()) node.set("hardware", hardware_resolved_);
    if (auto placement = write_placement(study_)) node.set("placement", *std::move(placement));
    if (yaml::Node promises = write_promises(study_.limits); !promises.entries.empty())
      node.set("promises", std::move(promises));
    std::vector<std::string> constraints = study_.space.constraints;
    for (const results::Limit& limit : study_.limits)
      if (!limit.promise) constraints.push_back(limit_text(limit));
    if (!constraints.empty()) node.set("constraints", yaml::flow_list(constraints));
    if (study_.faults) node.set("faults", write_faults(*study_.faults));
    if (study_.reliability)
      node.set("reliability", write_reliability(*study_.reliability, study_.faults.has_value()));
    node.set("objectives", yaml::flow_list(study_.objectives));
    node.set("mode", yaml::make_scalar(study_.mode));
    if (auto store = write_store(study_)) node.set("store", *std::move(store));
    return yaml::emit(node);
  }

  yaml::Node resolved_cluster() const {
    FabricSpec fabric = fabrics_.back();
    // One GPU: a dimension of size 1 stays, so that the text is a valid cluster.
    if (fabric.dimensions.empty()) {
      const DimensionSpec& first = cluster_->fabric.fabric.dimensions.front();
      DimensionSpec only;
      only.name = first.name;
      only.shape = {1};
      only.bandwidth = first.bandwidth;
      only.latency = first.latency;
      only.scope = first.scope;
      fabric.dimensions.push_back(std::move(only));
    }
    // With several numbers of GPUs the cluster stays open, as they are not its size.
    yaml::Node node = yaml::write(study_.gpu_counts.size() > 1 ? cluster_->fabric.fabric : fabric);
    node.set("device", yaml::write(cluster_->device));
    return node;
  }

  const yaml::Node& root_;
  std::string name_;
  fs::path folder_;
  const StudyOptions& options_;
  yaml::Diagnostics& diagnostics_;
  yaml::ReadState state_;
  yaml::Reader reader_;
  const yaml::Catalog& catalog_;
  yaml::Loader loader_;
  Study study_;
  yaml::Node workload_resolved_, hardware_resolved_;
  std::optional<ModelSpec> model_;
  std::optional<yaml::Cluster> cluster_;
  std::optional<StackProfile> stack_;
  std::optional<DeviceSpec> prefill_device_;
  std::vector<FabricSpec> fabrics_;  ///< for each number of GPUs
  std::string counts_set_by_;        ///< the override that gave these numbers; empty: the file did
  std::optional<Phase> phase_;
};

}  // namespace

tl::expected<Study, yaml::Diagnostics> parse_study(const std::string& text, const std::string& name,
                                                   const fs::path& folder, const yaml::Catalog& catalog,
                                                   const StudyOptions& options) {
  yaml::Diagnostics diagnostics;
  std::optional<yaml::Node> root = yaml::parse(text, name, diagnostics);
  if (!root) return yaml::refused(std::move(diagnostics));
  name_axes(*root, diagnostics);
  if (root->is_map())
    for (const std::string& setting : options.overrides) apply_override(*root, setting, diagnostics);
  if (options.rates_instead && root->is_map())
    if (yaml::Node* const workload = root->find("workload"))
      std::erase_if(workload->entries, [](const yaml::Entry& entry) { return entry.key == "concurrency"; });
  StudyParser parser(*root, name, folder, catalog, options, diagnostics);
  std::optional<Study> study = parser.run();
  if (!study) return yaml::refused(std::move(diagnostics));
  study->sources.push_back({fs::path(name).filename().string(), text, name});
  for (const yaml::InputFile& file : parser.files())
    study->sources.push_back({file.name, file.text, file.path});
  return std::move(*study);
}

tl::expected<Study, yaml::Diagnostics> load_study(const fs::path& file, const yaml::Catalog& catalog,
                                                  const StudyOptions& options) {
  const tl::expected<std::string, std::string> text = yaml::read_text(file);
  if (text) return parse_study(*text, file.string(), file.parent_path(), catalog, options);
  return yaml::refused_file(file, text.error());
}

}  // namespace shardscape::sweep
