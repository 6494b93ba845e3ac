// What starts a plan in a framework: one table per framework (frameworks/), whose rows are the options that say
// something of a plan, of its workload, its stack or its model. The command line and the files that are written, the
// list of what they do not say, and the tables of the README all come from these rows.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <utility>
#include <vector>

#include "engine/spec/phase.h"
#include "engine/spec/scenario.h"
#include "sweep/space/expression.h"
#include "sweep/yaml/diagnostics.h"

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
  /// Of a server with the plan's cache: all that it needs over the device's memory, and its weights and cache over that
  /// beside the reserve, on the stage where they are most. 0: not known.
  double memory_share = 0, static_share = 0;

  [[nodiscard]] const ModelSpec& shape() const { return setting.model; }
  [[nodiscard]] const StackProfile& stack() const { return setting.system.stack; }
  [[nodiscard]] const WorkloadSpec& workload() const { return setting.workload; }
  [[nodiscard]] bool experts() const { return setting.model.moe.has_value(); }
  /// Replicas of a server that share experts: 1 where none do.
  [[nodiscard]] std::int64_t coupled() const;
  /// Replicas that one program runs, and how many such programs there are.
  [[nodiscard]] std::int64_t replicas() const;
  [[nodiscard]] std::int64_t programs() const { return plan.data / replicas(); }
  /// GPUs of one program: all of a training job, or one server.
  [[nodiscard]] std::int64_t gpus() const;
  [[nodiscard]] std::int64_t nodes() const { return (gpus() + gpus_per_node - 1) / gpus_per_node; }
};

/// The facts of a case (facts.h), as numbers and as texts.
struct Facts {
  std::vector<double> numbers;
  std::vector<std::string> texts;
};

/// A text with values in it: "{tp}".
struct Piece {
  std::string before;
  std::optional<sweep::Expression> value;
  std::string form;  ///< how the value is written: plainly, as "json" or as ".2f"

  [[nodiscard]] std::string text(const Facts& facts) const;
};
using Template = std::vector<Piece>;

/// What a row makes of a case.
struct Said {
  enum class Kind : std::uint8_t {
    value,    ///< it is written, with `text` as its value; an empty one: as a flag
    unasked,  ///< nothing is written, as the framework does so unasked
    lacks,    ///< it cannot be said; `text` says why, and the plan runs otherwise
    refused   ///< the plan does not run; `text` says which option it would need
  };
  Kind kind = Kind::unasked;
  std::string text = {};
};

/// One answer of a row, and when it is that.
struct Reply {
  std::optional<sweep::Expression> when;
  Said::Kind kind = Said::Kind::value;
  Template text;
};
/// What the first reply says whose condition holds; where none does, nothing is asked for.
Said first_reply(const std::vector<Reply>& replies, const Facts& facts);

/// A row of a framework's table: README.md has the keys of its file.
struct Option {
  /// What it says, as keys of items (said_items.h); "model." stands for all that begin so. Empty: the program does not
  /// start without it.
  std::vector<std::string> keys;
  /// "--tensor-model-parallel-size" on the command line; else the path in the framework's file,
  /// "parallelism.tensor_parallel_degree". With "[]" behind it the value is a list of words.
  std::string name;
  std::string setting;  ///< the same as a path of settings, where others share the table or read a file alone
  bool deployed = true;  ///< Dynamo's workers take it, too
  std::optional<sweep::Expression> when;
  std::optional<std::size_t> each;  ///< the fact whose words are asked for one by one
  std::vector<Reply> replies;
  std::string source;  ///< the documentation that has it
  std::string since;   ///< the first version for which it is known; empty: the framework's `version`

  /// Only for those that share the table.
  [[nodiscard]] bool of_others() const { return name.empty() && !setting.empty(); }
  [[nodiscard]] Said say(const Facts& facts) const;
};

enum class FileKind : std::uint8_t { none, yaml, toml };

class Vocabulary;

struct Framework {
  std::string name;     ///< in --for
  std::string title;    ///< as its makers write it
  std::string version;  ///< whose documentation the rows follow
  Phase phase = Phase::training;
  FileKind kind = FileKind::none;
  std::string file;         ///< name of the file, where it reads one
  std::string file_option;  ///< of the command line, that takes the file; empty: the program's words name it
  bool dense_together = false;              ///< one program runs all replicas of a dense model
  std::shared_ptr<const Vocabulary> words;  ///< what its conditions and values may name
  std::vector<Option> options;
  /// What it has no option for, and why: words that say more than "no option".
  std::vector<std::pair<std::string, std::string>> missing;
  /// The words of the command before its options: program and script; of nodes, `$NODE_RANK` and the like included.
  std::vector<Reply> program;
  std::vector<Reply> before;  ///< environment and remarks, each a line of shell before the command
  /// Lines of shell of the router in front of two pools; $PREFILL and $DECODE are their servers, HOST:PORT each.
  std::vector<Reply> router;
};

/// A framework as its data file has it; `source` names the file in messages. `other(name)`: one whose rows it may
/// share, or null.
tl::expected<Framework, yaml::Diagnostics> read_framework(const std::string& text, const std::string& source,
                                                          const Framework* (*other)(std::string_view name));

/// The framework of that name, or null.
const Framework* find_framework(std::string_view name);
/// In the order of --for.
std::vector<std::string> framework_names();
/// The framework that the stack's name, its base or, for servers, its scheduler names; where none does, Megatron-LM and
/// vLLM. Never the one called `other`.
const Framework& nearest_framework(const StackProfile& stack, Phase phase, std::string_view other = {});

}  // namespace shardscape::launch
