// The parts of a study that are read in a file each (workload_parser.cc, space_parser.cc, ...). load_study.cc puts them
// together. Private to this folder.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

#include "engine/serving/load/longest_drawn.h"
#include "engine/spec/model.h"
#include "engine/spec/request_load.h"
#include "engine/spec/scenario.h"
#include "engine/spec/speculation.h"
#include "engine/spec/workload.h"
#include "sweep/faults/reliability.h"
#include "sweep/space/space_spec.h"
#include "sweep/study/load_study.h"
#include "sweep/study/study.h"
#include "sweep/yaml/diagnostics.h"
#include "sweep/yaml/node.h"
#include "sweep/yaml/visitors.h"

namespace shardscape::sweep {

/// `workload:` of a study: one phase, and lists of its numbers, multiplied out; a load that is simulated request by
/// request, where there is one (load_parser.h).
struct ParsedWorkload {
  Phase phase = Phase::training;
  bool phase_known = false;
  std::vector<WorkloadSpec> workloads;  ///< the file's first key is slowest; empty where there are problems
  TimedRequests timed_requests;
  std::vector<serving::LengthLaws> length_laws;
  yaml::Node resolved;                        ///< the same map with every default filled in
  std::vector<std::filesystem::path> tables;  ///< those that were read
  std::vector<std::string> assumptions;       ///< as in Study
};

/// Reads the workload. Paths in it are relative to `folder`. `model`: whose positions end sessions; null: none do.
ParsedWorkload parse_workload(const yaml::Node& node, yaml::Diagnostics& diagnostics,
                              const std::filesystem::path& folder = {}, const ModelSpec* model = nullptr);

/// Lengths that are written as a number, uniform from `ratio` of it where that is below 1, or as a map (load_parser.h).
/// Problems go to `state`.
std::optional<Lengths> parse_number_or_lengths(const yaml::Node& node, const std::string& path, double ratio,
                                               yaml::ReadState& state);

/// The sessions, without their first prompt. `length_ratio`: the client's, for new tokens that are written as a number.
/// They end where positions of `model` do, where that is given and learned. Problems go to `state`.
Sessions parse_sessions(const yaml::Node& node, const std::string& path, double length_ratio,
                        const ModelSpec* model, yaml::ReadState& state);

/// Lines of a table of how many drafted tokens models accept; empty: any. It is CSV with a line of names: model,
/// draft_tokens (1, 2, ..) and acceptance_length, the mean number of tokens that a verification gives, itself included;
/// perhaps method and mode.
struct AcceptanceSeries {
  std::string model, method, mode;
};

/// Shares of iterations in which the i-th draft is accepted (Speculation::acceptance): the length with i drafts less
/// that with i - 1. Each length is a measurement of its own, of several the mean: a share is no more than the one
/// before it and at least 0. Or what is wrong, with the line. `means`, where given, gets what to say of lengths that
/// are means of several lines; it stays empty where none is.
tl::expected<std::vector<double>, std::string> parse_acceptance(std::string_view text,
                                                                const AcceptanceSeries& series,
                                                                std::string* means = nullptr);

/// `speculation:` of a workload.
struct ParsedSpeculation {
  Speculation speculation;  ///< without draft_tokens, and without the draft model (load_study.cc)
  std::vector<std::int64_t> draft_tokens;     ///< an axis; empty where it could not be read
  yaml::Node resolved;                        ///< the block in full
  std::vector<std::filesystem::path> tables;  ///< those that were read
  std::string assumption;                     ///< as in Study::assumptions; empty where there is none
};

/// `acceptance`: a rate at which each draft is accepted where those before it are, or the share of iterations in which
/// each position is, or the table of lengths that has them, from `folder` on. Problems go to
/// `state` and `diagnostics`.
ParsedSpeculation parse_speculation(const yaml::Node& node, const std::string& path,
                                    const std::filesystem::path& folder, yaml::ReadState& state,
                                    yaml::Diagnostics& diagnostics);

/// The facts that values of the axes of `space:` depend on; unknown where earlier problems prevent it.
struct SpaceContext {
  std::vector<std::int64_t> gpus;  ///< all numbers of them, ascending; empty: unknown
  std::string set_by = {};  ///< what set them in place of the file ("--set gpus=4"); empty: the file has them
  std::optional<Phase> phase;
  std::optional<std::int64_t> layers;
  std::optional<std::int64_t> experts;        ///< experts per layer; 0: the model is dense
  std::optional<std::int64_t> largest_batch;  ///< largest global batch of the training workloads
};

/// `space:` of a study.
struct ParsedSpace {
  SpaceSpec space;
  std::string assumption;  ///< as in Study::assumptions: what was left out; empty where nothing was
};

/// Reads the axes; `node` may be null (no `space:`), and `root` then locates problems of the defaults. Reports axes
/// without effect and degrees that no number of GPUs matches; where these numbers were set in place of the file's,
/// leaves out what the file has of either, and reports keys of which nothing is left. The result is complete if nothing
/// was reported.
ParsedSpace parse_space(const yaml::Node* node, const yaml::Location& root, const SpaceContext& context,
                        yaml::Diagnostics& diagnostics);

/// The map from which parse_space() reads the same space.
yaml::Node write_space(const SpaceSpec& space, Phase phase);

/// `pipeline_layout:` replaces the stack's way to lay layers over pipeline stages: a rule by its name
/// (model/partition.h), or a layout written out (spec/pipeline_layout.h).
inline constexpr const char* kPipelineLayout = "pipeline_layout";

/// Reads the key into the stack.
void read_pipeline_layout(const yaml::Node& node, StackProfile& stack, yaml::Diagnostics& diagnostics);

/// What is wrong with a layout for this model and these plans, and what would be right; empty where nothing is. An axis
/// with `fill` may have any value.
std::string layout_problem(const StackProfile& stack, const ModelSpec& model, const SpaceSpec& space);

/// Reads `reliability:`, all times with a unit; nothing where there is a problem, all of which are reported.
///
///   device_mtbf          mean time between failures of one device with its share of the machine
///   checkpoint_write     time of writing a checkpoint, during which nothing else happens
///   restart              from a failure to the run going on from its last checkpoint
///   checkpoint_interval  work between checkpoints, or `optimal` (default): Daly's
///   fault_share          share of the time in which the study's faults are there (1); only with `faults:`
std::optional<Reliability> parse_reliability(const yaml::Node& node, bool faults, std::optional<Phase> phase,
                                             yaml::Diagnostics& diagnostics);

/// The part with every default filled in; parses back to an equal study.
yaml::Node write_reliability(const Reliability& reliability, bool faults);

/// The most rows that `top` of `store:` may ask for, as their ids and values are in memory when the file is put
/// together.
inline constexpr std::int64_t kMostTopRows = 10'000'000;

/// Reads `store:`, which of its results the file holds, once hardware axes and objectives are known. All problems are
/// reported.
///
///   columns  names of columns beside those that every file has; default: all
///   rows     all (default), feasible, pareto (the front of the objectives) or {pareto: [columns]}, top N or {top: N}
void parse_store(const yaml::Node& node, const StudyOptions& options, Study& study,
                 yaml::Diagnostics& diagnostics);

/// The part as YAML, which parses back to an equal study; nothing where all is stored.
std::optional<yaml::Node> write_store(const Study& study);

/// Settings of a study that have no value or no effect, under its keys: the order of requests where all are alike,
/// bounds on times between tokens where requests have one output token, costs and energies where no device says its
/// price or power.
std::vector<Problem> without_value(const Study& study);
/// That sequences are longer than those which the model is published for; empty where none is.
std::string long_sequences(const ModelSpec& model, std::span<const WorkloadSpec> workloads);

/// Reports sequences and requests that the model has no positions for.
void check_lengths(const Study& study, const yaml::Node& root, yaml::ReadState& state);
/// Reports loads of experts that the model cannot have.
void check_expert_loads(const Study& study, const yaml::Node& root, yaml::ReadState& state);

/// Reports settings of a stack or of hardware axes for servers of experts that no plan of the study's space has a use
/// for: they need a model with experts, and plans that deal these over ranks. `root`: the study.
void check_served_experts(const Study& study, Phase phase, const yaml::Node& root, yaml::ReadState& state);

/// Whether some plans of a space have a pool that prefills.
bool has_pools(const SpaceSpec& space);
/// Reports what a study says of such a pool where it has none, and pools that do not keep their caches in one type.
void check_pools(const Study& study, Phase phase, const yaml::Node& root, yaml::ReadState& state);

}  // namespace shardscape::sweep
