// Asks every row of the framework's table what it says of the case, collects what no row says or a row refuses, and
// writes what was said as command lines, YAML or TOML: one program, two pools with a router, or a deployment of
// Dynamo.
#include "sweep/launch/write_launch.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <sstream>

#include "engine/base/shell_words.h"
#include "engine/simulate.h"
#include "engine/spec/plan_axes.h"
#include "sweep/launch/facts.h"
#include "sweep/launch/said_items.h"
#include "sweep/yaml/node.h"

namespace shardscape::launch {

namespace {

using Pool = Case::Pool;

std::vector<std::string> words_of(std::string_view text) {
  std::istringstream in{std::string(text)};
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

/// An option with its value, as a row gave it.
struct Written {
  const Option* row;
  std::string value;
};
/// What the rows make of a case.
struct Answer {
  std::vector<Written> written;
  std::vector<NotExpressed> not_expressed;
  std::vector<std::string> refused;
};

std::string shown_key(const Item& item, Pool pool) {
  return (item.axis && item.key != "pools" && pool == Pool::prefill ? "prefill_" : "") + item.key;
}

class Asking {
 public:
  /// `tables`: the framework, and what deploys it. What has no option is said in the words of the first.
  Asking(std::string title, std::vector<const Framework*> tables)
      : title_(std::move(title)), tables_(std::move(tables)) {}

  [[nodiscard]] Answer ask(const Case& of) const {
    Answer answer;
    const Facts facts = facts_of(of);
    const std::vector<Item> items = said_items(of, facts);
    std::vector<bool> covered(items.size()), lacking(items.size());
    const auto ask_row = [&](const Option& row, const Said& said) {
      if (said.kind == Said::Kind::value) answer.written.push_back({&row, said.text});
      const Item* refused = nullptr;  // an item that has an effect, where one has
      for (std::size_t i = 0; i < items.size(); ++i) {
        const auto covers = [&](const std::string& key) { return covers_key(key, items[i].key); };
        if (std::ranges::none_of(row.keys, covers)) continue;
        covered[i] = true;
        if (refused == nullptr || refused->idle) refused = &items[i];
        if (said.kind != Said::Kind::lacks || items[i].idle || lacking[i]) continue;
        lacking[i] = true;
        answer.not_expressed.push_back({shown_key(items[i], of.pool), items[i].value, said.text});
      }
      if (said.kind == Said::Kind::refused && refused != nullptr)
        answer.refused.push_back(refusal(*refused, of.pool, said.text));
    };
    for (const Framework* const table : tables_) {
      const Facts all = table->words->complete(facts);
      for (const Option& row : table->options)
        if (!row.of_others()) ask_row(row, row.say(all));
    }
    for (std::size_t i = 0; i < items.size(); ++i) {
      const Item& item = items[i];
      if (covered[i] || item.idle) continue;
      if (item.axis && item.key != "order") {
        answer.refused.push_back(
            refusal(item, of.pool, "an option that sets it would be needed, and there is none"));
      } else {
        answer.not_expressed.push_back({shown_key(item, of.pool), item.value, why_not(item)});
      }
    }
    if (of.gpus() > of.gpus_per_node && of.gpus() % of.gpus_per_node != 0)
      answer.refused.push_back(fmt::format("gpus={}: {} cannot run it: they make no whole nodes of {}",
                                           of.gpus(), title_, of.gpus_per_node));
    return answer;
  }

 private:
  [[nodiscard]] std::string refusal(const Item& item, Pool pool, const std::string& why) const {
    const std::string what = item.key == "pools" ? "two pools" : shown_key(item, pool) + '=' + item.value;
    return fmt::format("{}: {} cannot run it: {}", what, title_, why);
  }
  [[nodiscard]] std::string why_not(const Item& item) const {
    for (const auto& [key, why] : tables_.front()->missing)
      if (key == item.key) return why;
    return "no option of " + title_ + " is known for it";
  }

  std::string title_;
  std::vector<const Framework*> tables_;
};

/// A word as a shell reads it. Variables are the program's own words.
std::string shell_word(const std::string& word) {
  constexpr std::string_view kVariables[] = {"$NODE_RANK", "$HEAD_ADDR", "$HEAD_ADDR:5000", "$PORT",
                                             "$BOOTSTRAP_PORT"};
  const bool variable = std::ranges::find(kVariables, word) != std::end(kVariables);
  return variable || is_plain_word(word) ? word : single_quoted(word);
}

bool is_list(std::string_view name) { return name.ends_with("[]"); }
std::string_view bare(std::string_view name) {
  return is_list(name) ? name.substr(0, name.size() - 2) : name;
}
bool on_command_line(const Written& of) { return of.row->name.empty() || of.row->name.starts_with("--"); }

/// The words of the command line that the options make, an option a line.
std::vector<std::vector<std::string>> option_words(const std::vector<Written>& written) {
  std::vector<std::vector<std::string>> lines;
  for (const Written& of : written) {
    if (!on_command_line(of)) continue;
    std::vector<std::string> line;
    if (!of.row->name.empty()) line.emplace_back(bare(of.row->name));
    if (is_list(of.row->name)) {
      std::ranges::move(words_of(of.value), std::back_inserter(line));
    } else if (!of.value.empty()) {
      line.push_back(of.value);
    }
    lines.push_back(std::move(line));
  }
  return lines;
}
std::string command_of(std::string program, const std::vector<Written>& written) {
  for (const auto& line : option_words(written)) {
    program += " \\\n ";
    for (const std::string& word : line) program += ' ' + shell_word(word);
  }
  return program + '\n';
}

/// The node at a path of maps, made where it is not there.
void set_path(yaml::Node& node, std::string_view path, yaml::Node value) {
  const std::size_t dot = path.find('.');
  if (dot == std::string_view::npos) return node.set(path, std::move(value));
  const std::string_view key = path.substr(0, dot);
  if (node.find(key) == nullptr) node.set(key, yaml::Node::map());
  set_path(*node.find(key), path.substr(dot + 1), std::move(value));
}
yaml::Node node_of(const Written& of) {
  if (!is_list(of.row->name)) return yaml::Node::scalar(of.value.empty() ? "true" : of.value);
  yaml::Node list = yaml::Node::list();
  list.flow = true;
  for (const std::string& word : words_of(of.value)) list.items.push_back(yaml::Node::scalar(word));
  return list;
}
yaml::Node yaml_of(const std::vector<Written>& written) {
  yaml::Node root = yaml::Node::map();
  for (const Written& of : written)
    if (!on_command_line(of)) set_path(root, bare(of.row->name), node_of(of));
  return root;
}

/// Sections in the order in which rows first name them.
std::string toml_of(const std::vector<Written>& written) {
  std::vector<std::pair<std::string, std::string>> sections;
  for (const Written& of : written) {
    const std::size_t dot = of.row->name.rfind('.');
    const std::string section(of.row->name.substr(0, dot));
    auto at = std::ranges::find(sections, section, &std::pair<std::string, std::string>::first);
    if (at == sections.end()) at = sections.insert(at, {section, ""});
    at->second +=
        fmt::format("{} = {}\n", of.row->name.substr(dot + 1), of.value.empty() ? "true" : of.value);
  }
  std::string text;
  for (const auto& [section, lines] : sections)
    text += fmt::format("{}[{}]\n{}", text.empty() ? "" : "\n", section, lines);
  return text;
}

std::string pool_name(Pool pool) {
  return pool == Pool::whole ? "" : pool == Pool::prefill ? "prefill" : "decode";
}
/// "trtllm.yaml", of a pool "trtllm-prefill.yaml".
std::string file_name(const Framework& framework, Pool pool) {
  std::string name(framework.file);
  return pool == Pool::whole ? name : name.insert(name.rfind('.'), '-' + pool_name(pool));
}

void add_answer(const Answer& answer, Launch& launch) {
  for (const NotExpressed& one : answer.not_expressed)
    if (std::ranges::find(launch.not_expressed, one) == launch.not_expressed.end())
      launch.not_expressed.push_back(one);
  for (const std::string& one : answer.refused)
    if (std::ranges::find(launch.refused, one) == launch.refused.end()) launch.refused.push_back(one);
}

/// The lines that hold, each in turn.
std::string lines_of(const std::vector<Reply>& lines, const Facts& facts) {
  std::string text;
  for (const Reply& line : lines)
    if (const Said said = first_reply({line}, facts); said.kind == Said::Kind::value)
      text += said.text + '\n';
  return text;
}

void add_program(const Framework& framework, const Case& of, const Answer& answer, Launch& launch) {
  const Facts facts = framework.words->complete(facts_of(of));
  const std::string program = first_reply(framework.program, facts).text;
  if (framework.phase == Phase::inference && (of.programs() > 1 || of.pool != Pool::whole)) {
    const std::string what = of.pool == Pool::whole     ? ", behind a router"
                             : of.pool == Pool::prefill ? ", which read prompts"
                                                        : ", which decode, behind a router of both";
    launch.command += fmt::format("# {} of these on {} GPUs each{}\n", of.programs(), of.gpus(), what);
  }
  launch.command += lines_of(framework.before, facts);
  const bool has_file = framework.kind != FileKind::none;
  std::vector<Written> written = answer.written;
  Option takes_file;
  if (has_file) {
    const std::string name = file_name(framework, of.pool);
    const bool toml = framework.kind == FileKind::toml;
    const yaml::Node settings = toml ? yaml::Node() : yaml_of(written);
    launch.files.push_back({name, toml                       ? toml_of(written)
                                  : settings.entries.empty() ? ""
                                                             : yaml::emit(settings)});
    if (!framework.file_option.empty()) takes_file.name = framework.file_option;
    if (!framework.file_option.empty()) written.push_back({&takes_file, name});
  }
  // A pool's script becomes the server, so that whoever stops the one stops the other.
  launch.command += (of.pool == Pool::whole ? "" : "exec ") + command_of(program, written);
}

// ---- memory ----

/// Sets the shares of memory of a server whose stages use so much, with the caches of the requests in flight. The
/// plan's cache is kv_share of what the others leave, on every stage for as many tokens. Shares are rounded down, but
/// not below what the requests in flight need.
void set_memory(const std::vector<MemoryUse>& stages, Case& of) {
  constexpr double kDigits = 1e4, kRounding = 1e-6;
  const Bytes capacity = of.setting.system.device.memory_capacity();
  double caches = HUGE_VAL;  // the plan's over those of the requests in flight
  for (const MemoryUse& use : stages)
    if (use.kv_cache > Bytes(0))
      caches = std::min(caches, of.stack().serving.kv_share * ((capacity - use.total()) / use.kv_cache + 1));
  if (!std::isfinite(caches)) return;
  const auto most = [&](const auto& share_of) {
    double whole = 0, needed = 0;
    for (const MemoryUse& use : stages) {
      whole = std::max(whole, share_of(use, (caches - 1) * use.kv_cache));
      needed = std::max(needed, share_of(use, Bytes(0)));
    }
    whole = std::max(std::floor(whole * kDigits + kRounding), std::ceil(needed * kDigits - kRounding));
    return std::min(1.0, whole / kDigits);
  };
  of.memory_share = most([&](const MemoryUse& use, Bytes more) { return (use.total() + more) / capacity; });
  of.static_share = most([&](const MemoryUse& use, Bytes more) {
    return (use.weights + use.kv_cache + more) / (capacity - use.reserve);
  });
}

// ---- two pools ----

/// Ports of servers are so far apart that none takes another's further ones: channels of caches from 50 on, one for
/// each rank (`before` and `router` of the data files), and those that SGLang's data-parallel attention takes near 240.
constexpr std::int64_t kPortStep = 500;
constexpr std::int64_t first_port(Pool pool) { return pool == Pool::prefill ? 10000 : 20000; }

/// The server of a pool as a script of its own: a server does not end, so that no other command can follow.
void add_pool(const Framework& framework, const Case& of, const Answer& answer, Launch& launch) {
  Launch own;
  add_program(framework, of, answer, own);
  std::ranges::move(own.files, std::back_inserter(launch.files));
  const std::string name = pool_name(of.pool) + ".sh";
  launch.files.push_back({name, fmt::format("#!/bin/sh\n{}PORT=${{PORT:-{}}}\n{}", to_own_folder(name),
                                            first_port(of.pool), own.command)});
}

/// Starts the servers and the router where one machine has all GPUs; elsewhere says what each machine starts, and
/// starts the router.
std::string start_pools(const std::vector<Case>& cases, std::int64_t gpus_per_node) {
  std::int64_t next = 0;  // GPU
  for (const Case& of : cases) next += of.programs() * of.gpus();
  const bool together = next <= gpus_per_node;
  std::string text = together ? "trap 'kill $servers' INT TERM\n" : "", servers;
  next = 0;
  for (const Case& of : cases) {
    const std::string name = pool_name(of.pool);
    std::string addresses, variable = of.pool == Pool::prefill ? "PREFILL" : "DECODE";
    for (std::int64_t i = 0; i < of.programs() && together; ++i, next += of.gpus()) {
      const std::int64_t port = first_port(of.pool) + kPortStep * i;
      std::string devices;
      for (std::int64_t gpu = next; gpu < next + of.gpus(); ++gpu)
        devices += fmt::format("{}{}", gpu == next ? "" : ",", gpu);
      text += fmt::format("CUDA_VISIBLE_DEVICES={} PORT={} sh {}.sh &\nservers=\"$servers $!\"\n", devices,
                          port, name);
      addresses += fmt::format("{}localhost:{}", i == 0 ? "" : " ", port);
    }
    if (together) {
      servers += fmt::format("{}='{}' ", variable, addresses);
    } else {
      text += fmt::format(
          "# start {} server{} of this pool with: sh {}.sh, each on {} GPU{} of its own "
          "(CUDA_VISIBLE_DEVICES);\n"
          "# servers on one machine need a PORT each, {} apart\n",
          of.programs(), of.programs() == 1 ? "" : "s", name, of.gpus(), of.gpus() == 1 ? "" : "s",
          kPortStep);
      servers +=
          fmt::format("{0}=${{{0}:?their addresses, HOST:PORT of each, with spaces between}} ", variable);
    }
  }
  return text + servers + "sh router.sh" + (together ? " &\nservers=\"$servers $!\"\nwait\n" : "\n");
}

// ---- Dynamo ----

/// The arguments of a worker; those that TensorRT-LLM reads from a file go into it.
std::vector<std::string> worker_arguments(const Framework& engine, const Case& of,
                                          const std::vector<Written>& written, Launch& launch) {
  std::vector<std::string> arguments;
  if (engine.name == "trtllm") {
    yaml::Node settings = yaml_of(written);
    for (const Written& option : written)
      if (!option.row->setting.empty()) set_path(settings, option.row->setting, node_of(option));
    const std::string name = file_name(engine, of.pool);
    launch.files.push_back({name, yaml::emit(settings)});
    arguments = {"--model-path", of.model, "--extra-engine-args", "/config/" + name};
    if (of.pool != Pool::whole)
      arguments.insert(arguments.end(), {"--disaggregation-mode", pool_name(of.pool)});
    return arguments;
  }
  std::vector<Written> own = written;
  std::erase_if(own, [](const Written& option) {  // a deployment places processes itself
    return option.row->keys.empty() || !option.row->deployed || !on_command_line(option);
  });
  for (const auto& line : option_words(own)) {
    const bool positional = !line.front().starts_with("--");
    if (positional) arguments.emplace_back("--model");
    std::ranges::copy(line, std::back_inserter(arguments));
  }
  if (engine.name == "vllm" && of.pool == Pool::prefill) arguments.emplace_back("--is-prefill-worker");
  return arguments;
}

yaml::Node flow_list(const std::vector<std::string>& words) {
  yaml::Node list = yaml::Node::list();
  for (const std::string& word : words) {
    list.items.push_back(yaml::Node::scalar(word));
    list.items.back().quoted = true;
  }
  return list;
}

yaml::Node worker(const Framework& engine, const Case& of, std::vector<std::string> arguments) {
  yaml::Node node = yaml::Node::map();
  node.set("componentType", yaml::Node::scalar("worker"));
  if (of.pool != Pool::whole) node.set("subComponentType", yaml::Node::scalar(pool_name(of.pool)));
  node.set("replicas", yaml::Node::scalar(std::to_string(of.programs())));
  yaml::Node gpus = yaml::Node::scalar(std::to_string(std::min(of.gpus(), of.gpus_per_node)));
  gpus.quoted = true;
  set_path(node, "resources.limits.gpu", std::move(gpus));
  if (of.nodes() > 1) set_path(node, "multinode.nodeCount", yaml::Node::scalar(std::to_string(of.nodes())));
  set_path(node, "extraPodSpec.mainContainer.command",
           flow_list({"python3", "-m", fmt::format("dynamo.{}", engine.name)}));
  set_path(node, "extraPodSpec.mainContainer.args", flow_list(arguments));
  return node;
}

Launch deployment(const Framework& dynamo, const LaunchWish& wish, const std::vector<Case>& cases) {
  Launch launch;
  const Framework& engine = nearest_framework(wish.setting.system.stack, Phase::inference, dynamo.name);
  const Asking asking(fmt::format("{} with {}", dynamo.title, engine.title), {&engine, &dynamo});
  yaml::Node services = yaml::Node::map();
  for (const Case& of : cases) {
    const Answer answer = asking.ask(of);
    add_answer(answer, launch);
    std::vector<Written> of_engine;
    std::string router;
    for (const Written& option : answer.written) {
      const bool own =
          std::ranges::any_of(dynamo.options, [&](const Option& row) { return &row == option.row; });
      if (!own) of_engine.push_back(option);
      if (own && option.row->keys == std::vector<std::string>{"stack.serving.routing"}) router = option.value;
    }
    if (services.entries.empty()) {
      yaml::Node front = yaml::Node::map();
      front.set("componentType", yaml::Node::scalar("frontend"));
      front.set("replicas", yaml::Node::scalar("1"));
      set_path(front, "extraPodSpec.mainContainer.command", flow_list({"python3", "-m", "dynamo.frontend"}));
      if (!router.empty())
        set_path(front, "extraPodSpec.mainContainer.args", flow_list({"--router-mode", router}));
      services.set("Frontend", std::move(front));
    }
    const std::string name = of.pool == Pool::whole     ? "Worker"
                             : of.pool == Pool::prefill ? "PrefillWorker"
                                                        : "DecodeWorker";
    services.set(name, worker(engine, of, worker_arguments(engine, of, of_engine, launch)));
  }
  yaml::Node root = yaml::Node::map();
  root.set("apiVersion", yaml::Node::scalar("nvidia.com/v1alpha1"));
  root.set("kind", yaml::Node::scalar("DynamoGraphDeployment"));
  set_path(root, "metadata.name", yaml::Node::scalar("shardscape-plan"));
  set_path(root, "spec.services", std::move(services));
  launch.files.push_back({std::string(dynamo.file), yaml::emit(root)});
  launch.command = "# give each extraPodSpec.mainContainer the image of your version of Dynamo\n";
  if (launch.files.size() > 1)
    launch.command += "# mount the other files as /config in the workers, from a ConfigMap\n";
  launch.command += first_reply(dynamo.program, dynamo.words->complete(facts_of(cases.front()))).text + '\n';
  return launch;
}

}  // namespace

std::string to_own_folder(const std::string& file) {
  return fmt::format(
      "here=$(dirname -- \"$0\")\n"
      "[ ! -e \"$here\"/{} ] || CDPATH= cd -- \"$here\" || exit\n",
      shell_word(file));
}

Launch write_launch(const Framework& framework, const LaunchWish& wish) {
  std::vector<Case> cases;
  const Setting prefill = prefill_setting(wish.setting);
  const auto add = [&](const Setting& setting, const ParallelPlan& plan, Pool pool) {
    cases.push_back({setting, plan, pool, wish.gpus_per_node, wish.model, framework.dense_together});
  };
  if (wish.plan.disaggregated()) {
    add(prefill, prefill_plan(wish.plan), Pool::prefill);
    add(wish.setting, decode_plan(wish.plan), Pool::decode);
  } else {
    add(wish.setting, wish.plan, Pool::whole);
  }
  if (framework.phase == Phase::inference) {
    Details details;
    Simulator(wish.setting, {.load_floors = true}).run(wish.plan, {}, &details);
    for (Case& of : cases)
      set_memory(of.pool == Pool::prefill ? details.prefill.stage_memory : details.stage_memory, of);
  }
  if (framework.name == "dynamo") return deployment(framework, wish, cases);
  Launch launch;
  const Asking asking(framework.title, {&framework});
  for (const Case& of : cases) {
    const Answer answer = asking.ask(of);
    add_answer(answer, launch);
    if (answer.refused.empty())
      (of.pool == Pool::whole ? add_program : add_pool)(framework, of, answer, launch);
  }
  if (cases.size() == 1 || !launch.refused.empty()) return launch;
  const Facts facts = framework.words->complete(facts_of(cases.front()));
  launch.files.push_back(
      {"router.sh", "#!/bin/sh\n" + to_own_folder("router.sh") + lines_of(framework.router, facts)});
  launch.command = start_pools(cases, wish.gpus_per_node);
  return launch;
}

std::int64_t usual_gpus_per_node(const System& system) {
  constexpr std::int64_t kMost = 8, kOfSuperchips = 4;
  std::int64_t domain = 1;
  for (const DimensionSpec& dimension : system.fabric.dimensions) {
    if (dimension.scope != LinkScope::scale_up) break;
    domain *= dimension.size();
  }
  if (domain <= kMost) return domain;
  // Larger domains are racks: hosts of Grace and Blackwell have two superchips, others eight devices.
  return std::gcd(domain, system.device.architecture == Architecture::blackwell ? kOfSuperchips : kMost);
}

}  // namespace shardscape::launch
