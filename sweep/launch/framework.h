// What starts a plan in a framework: one table per framework, whose rows are the options that say something of a plan,
// of its workload, its stack or its model. The command line and the files that are written, the list of what they do
// not say, and the tables of the README all come from these rows.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/spec/phase.h"
#include "engine/spec/scenario.h"

namespace shardscape::launch {

/// Replicas of one kind that are started: all of a plan, or those of one of its two pools.
struct Case {
  enum class Pool : std::uint8_t { whole, prefill, decode };

  const Setting& setting;
  ParallelPlan plan;  ///< of a pool as if it were alone
  Pool pool = Pool::whole;
  std::int64_t gpus_per_node = 8;
  std::string
      model;  ///< for programs that read a checkpoint: its name where the model has one, else the model's
  bool dense_together = false;  ///< as Framework::dense_together

  [[nodiscard]] const ModelSpec& shape() const { return setting.model; }
  [[nodiscard]] const StackProfile& stack() const { return setting.system.stack; }
  [[nodiscard]] const WorkloadSpec& workload() const { return setting.workload; }
  [[nodiscard]] bool experts() const { return setting.model.moe.has_value(); }
  /// Ranks over which experts are dealt or split, where that is not as the tensor group splits all else.
  [[nodiscard]] std::int64_t expert_ranks() const {
    return static_cast<std::int64_t>(plan.expert) * plan.expert_tensor;
  }
  /// Replicas of a server that share experts: 1 where none do.
  [[nodiscard]] std::int64_t coupled() const;
  /// Replicas that one program runs, and how many such programs there are.
  [[nodiscard]] std::int64_t replicas() const;
  [[nodiscard]] std::int64_t programs() const { return plan.data / replicas(); }
  /// GPUs of one program: all of a training job, or one server.
  [[nodiscard]] std::int64_t gpus() const;
  [[nodiscard]] std::int64_t nodes() const { return (gpus() + gpus_per_node - 1) / gpus_per_node; }
};

/// What a row makes of a case.
struct Said {
  enum class Kind : std::uint8_t {
    option,   ///< it is written, with `text` as its value; an empty one: as a flag
    unasked,  ///< nothing is written, as the framework does so unasked
    lacks,    ///< it cannot be said; `text` says why, and the plan runs otherwise
    refused   ///< the plan does not run; `text` says which option it would need
  };
  Kind kind = Kind::unasked;
  std::string text = {};
};
Said value(std::string text);
Said value(std::int64_t number);
inline Said flag() { return {Said::Kind::option, {}}; }
inline Said unasked() { return {}; }
inline Said flag_if(bool set) { return set ? flag() : unasked(); }
inline Said lacks(std::string why) { return {Said::Kind::lacks, std::move(why)}; }
inline Said refused(std::string why) { return {Said::Kind::refused, std::move(why)}; }

/// A row of a framework's table.
struct Option {
  /// What it says, as keys of items (said_items.h), with blanks between; "model." stands for all that begin so. Empty:
  /// the program does not start without it.
  std::string_view keys;
  /// "--tensor-model-parallel-size" on the command line; else the path in the framework's file,
  /// "parallelism.tensor_parallel_degree". With "[]" behind it the value is a list of words.
  std::string_view name;
  Said (*say)(const Case& of);
  std::string_view source;   ///< the documentation that has it
  std::string_view since{};  ///< the first version for which it is known; empty: the framework's `version`
};

/// What a framework has no option for, and why: words that say more than "no option".
struct Missing {
  std::string_view key, why;
};

enum class FileKind : std::uint8_t { none, yaml, toml };

struct Framework {
  std::string_view name;     ///< in --for
  std::string_view title;    ///< as its makers write it
  std::string_view version;  ///< whose documentation the rows follow
  Phase phase;
  FileKind kind = FileKind::none;
  std::string_view file{};      ///< name of the file, where it reads one
  bool dense_together = false;  ///< one program runs all replicas of a dense model
  std::vector<Option> options;
  std::vector<Missing> missing;
  /// The words of the command before its options: program and script; of nodes, `$NODE_RANK` and the like included.
  std::string (*program)(const Case& of);
  /// Environment and remarks, as lines of shell before the command.
  std::string (*before)(const Case& of);
};

/// The frameworks by name, and all of them in the order of --for.
const std::vector<Framework>& frameworks();
const Framework* find_framework(std::string_view name);
std::vector<std::string> framework_names();
/// The framework that the stack's name, its base or, for servers, its scheduler names; where none does, Megatron-LM and
/// vLLM. Never the one called `other`.
const Framework& nearest_framework(const StackProfile& stack, Phase phase, std::string_view other = {});

// Each framework's table.
Framework megatron_lm();
Framework nemo();
Framework torchtitan();
Framework vllm();
Framework sglang();
Framework trtllm();
/// Deployments of Dynamo run the servers above, the one that the stack is nearest to: its rows are what it adds.
Framework dynamo();

}  // namespace shardscape::launch
