#include "sweep/validate/presets.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cctype>
#include <cmath>
#include <sstream>
#include <string_view>
#include <tuple>
#include <utility>

#include "engine/base/words.h"

namespace shardscape::validate {

namespace {

namespace fs = std::filesystem;

template <class Spec>
using Load = tl::expected<Spec, yaml::Diagnostics> (*)(const yaml::Catalog&, std::string_view,
                                                       const fs::path&);

/// All problems in one line.
std::string one_line(const yaml::Diagnostics& diagnostics) {
  return joined(diagnostics.list(), "; ",
                [](const yaml::Diagnostic& diagnostic) { return yaml::to_string(diagnostic); });
}

/// Loads a spec by name. Models also have names that are no files: those of their `also` lists, and NAME-lN.
template <class Spec>
tl::expected<Spec, std::string> load(const yaml::Catalog& catalog, yaml::PresetKind kind,
                                     const std::string& name, const fs::path& folder, Load<Spec> loader) {
  if (kind == yaml::PresetKind::model) {
    if (const auto model = catalog.find_model(name, folder); !model) return tl::unexpected(model.error());
    auto spec = loader(catalog, name, folder);
    if (!spec) return tl::unexpected(one_line(spec.error()));
    return *std::move(spec);
  }
  const auto file = catalog.find(kind, name, folder);
  if (!file) return tl::unexpected(file.error());
  auto spec = loader(catalog, file->string(), {});
  if (!spec) return tl::unexpected(one_line(spec.error()));
  return *std::move(spec);
}

template <class Spec>
Presets::Found<Spec> find(std::map<std::string, tl::expected<Spec, std::string>>& cache,
                          const yaml::Catalog& catalog, yaml::PresetKind kind, const std::string& name,
                          const fs::path& folder, Load<Spec> loader) {
  const std::string key = yaml::is_path(name) ? (folder / name).string() : name;
  auto found = cache.find(key);
  if (found == cache.end()) found = cache.emplace(key, load(catalog, kind, name, folder, loader)).first;
  if (!found->second) return tl::unexpected(found->second.error());
  return &*found->second;
}

/// A worker of a pool as a recipe has it.
struct Worker {
  std::int64_t number = 1, tensor = 1, attention = 1;
  [[nodiscard]] std::int64_t ranks() const { return tensor * attention; }
  friend bool operator==(const Worker&, const Worker&) = default;
};

Worker read_worker(RowReader& reader, const std::string& pool) {
  const auto number = [&](const char* column) { return reader.integer(pool + column, 0).value_or(1); };
  return {number("workers"), number("tensor_parallel"), number("attention_data_parallel")};
}

bool prints(const PoolsOfRow& of, const Worker& prefill, const Worker& decode) {
  if (of.prefill_workers.value_or(prefill.number) != prefill.number ||
      of.decode_workers.value_or(decode.number) != decode.number)
    return false;
  const std::int64_t all = prefill.number * prefill.ranks() + decode.number * decode.ranks();
  if (of.gpus.value_or(all) != all) return false;
  const auto says = [&](std::int64_t reads, std::int64_t decodes) {
    return of.prefill_ranks.value_or(reads) == reads && of.decode_ranks.value_or(decodes) == decodes;
  };
  return says(prefill.ranks(), decode.ranks()) || says(prefill.tensor, decode.tensor) || says(all, all);
}

/// Whether software is of that release: "sglang 0.5.1-rc0" is of "sglang 0.5.1" and of "sglang", "sglang 0.5.14" is
/// not.
bool is_of_release(std::string_view software, std::string_view release) {
  return software.starts_with(release) &&
         (software.size() == release.size() ||
          std::isdigit(static_cast<unsigned char>(software[release.size()])) == 0);
}

/// Numbers of clients between those of a recipe's list are nearly in it; of others it may be for up to four times as
/// many or as few. Logarithms.
constexpr double kBetween = 1e-2, kReach = 1.3863;

/// How far a number of clients is from the nearest of a recipe's list, as the logarithm of their ratio.
double distance(const std::string& clients, std::int64_t to) {
  double nearest = 1e9, least = 1e9, most = 0;
  std::istringstream list(clients);
  for (double c = 0; list >> c; least = std::min(least, c), most = std::max(most, c))
    nearest = std::min(nearest, std::abs(std::log(c / static_cast<double>(to))));
  const auto clients_of_row = static_cast<double>(to);
  return least < clients_of_row && clients_of_row < most ? std::min(nearest, kBetween) : nearest;
}

/// The most clients that the deployment of a number of clients had. Those of a recipe's list that are at most 2.25
/// times the one before them are steps of one series (as in the script of 2025), and those that are four times as
/// many, with a step between that the list does not show; others are deployments of their own.
std::int64_t most_clients(const std::string& clients, std::int64_t of) {
  std::istringstream list(clients);
  std::vector<std::int64_t> more;
  for (std::int64_t c = 0; list >> c;) more.push_back(c);
  std::ranges::sort(more);
  std::int64_t most = of;
  for (const std::int64_t c : more) {
    const double times = static_cast<double>(c) / static_cast<double>(most);
    if (times > 1 && (times <= 2.25 || times == 4)) most = c;
  }
  return most;
}

/// Recipes of TensorRT-LLM under Dynamo offer their largest number of clients to somewhat fewer places, a power of two
/// for each server or, where attention is data parallel, for each rank: in the script of 2025, which says both, 1,075
/// clients to 32 ranks with 32 places, 4,300 to 16 with 256, 2,252 to 8 with 256, and so in all of its lines. Where
/// ranks divide the clients each has a place.
std::int64_t places_of_rank(std::int64_t clients, const Worker& decode) {
  const std::int64_t ranks = decode.number * decode.attention;
  if (decode.attention > 1 && clients % ranks == 0) return clients / ranks;
  return static_cast<std::int64_t>(
      std::bit_floor(static_cast<std::uint64_t>(std::max<std::int64_t>(1, clients / ranks))));
}

}  // namespace

Presets::Found<ModelSpec> Presets::model(const std::string& name, const fs::path& folder) {
  return find(models_, catalog_, yaml::PresetKind::model, name, folder, &yaml::load_model);
}

Presets::Found<yaml::Cluster> Presets::cluster(const std::string& name, const fs::path& folder) {
  const std::size_t known = clusters_.size();
  auto found = find(clusters_, catalog_, yaml::PresetKind::cluster, name, folder, &yaml::load_cluster);
  if (clusters_.size() > known) replace_devices();
  return found;
}

Presets::Found<yaml::DevicePreset> Presets::device(const std::string& name, const fs::path& folder) {
  const std::size_t known = devices_.size();
  auto found = find(devices_, catalog_, yaml::PresetKind::device, name, folder, &yaml::load_device);
  if (devices_.size() > known) replace_devices();
  return found;
}

Presets::Found<yaml::StackPreset> Presets::stack(const std::string& name, const fs::path& folder) {
  return find(stacks_, catalog_, yaml::PresetKind::stack, name, folder, &yaml::load_stack);
}

PoolRecipes& Presets::pool_recipes() {
  for (const fs::path& folder : catalog_.directories()) {
    if (pool_recipes_) break;
    if (const auto text = read_table(folder / kPoolRecipes))
      pool_recipes_.emplace(parse_csv(*text, kPoolRecipes));
  }
  if (!pool_recipes_) pool_recipes_.emplace(Table{});
  return *pool_recipes_;
}

void Presets::replace_stack(const std::string& name, yaml::StackPreset stack) {
  const auto found = stacks_.find(name);
  if (found != stacks_.end() && found->second) {
    *found->second = std::move(stack);
  } else {
    stacks_.insert_or_assign(name, std::move(stack));
  }
}

void Presets::replace_device(const DeviceSpec& device) {
  replaced_devices_.insert_or_assign(device.name, device);
  replace_devices();
}

void Presets::replace_devices() {
  for (const auto& [name, device] : replaced_devices_) {
    for (auto& [key, known] : devices_) {
      if (known && known->name == name) static_cast<DeviceSpec&>(*known) = device;
    }
    for (auto& [key, cluster] : clusters_) {
      if (cluster && cluster->device.name == name) cluster->device = device;
    }
  }
}

PoolRecipes::PoolRecipes(Table table) : table_(std::move(table)), index_(table_) {
  if (table_.columns.empty()) return;  // there is none
  for (const char* column : {"model", "device", "software", "precision", "prompt_tokens", "output_tokens",
                             "prefill_workers", "prefill_tensor_parallel", "prefill_attention_data_parallel",
                             "decode_workers", "decode_tensor_parallel", "decode_attention_data_parallel",
                             "draft_tokens", "max_batch", "concurrency", "source"})
    if (!index_.find(column)) problems_.push_back({table_.file, 1, column, "there is no such column"});
}

tl::expected<PoolRecipe, std::string> PoolRecipes::find(const PoolsOfRow& of) {
  struct Candidate {
    double far;
    std::pair<Worker, Worker> workers;
    PoolRecipe recipe;
  };
  std::vector<Candidate> candidates;
  for (const TableRow& row : table_.rows) {
    RowReader cells = reader(row);
    const auto is = [&](const char* column, const std::string& text) {
      return cells.text(column).value_or("") == text;
    };
    const std::string software = cells.text("software").value_or("");
    const bool release = is_of_release(of.software, software) || is_of_release(software, of.software);
    if (!release || !is("model", of.model) || !is("device", of.device) || !is("precision", of.precision) ||
        cells.integer("prompt_tokens") != of.prompt || cells.integer("output_tokens") != of.output)
      continue;
    const std::int64_t drafts = cells.integer("draft_tokens", 0).value_or(0);
    const std::pair workers(read_worker(cells, "prefill_"), read_worker(cells, "decode_"));
    const std::string clients = cells.text("concurrency").value_or("");
    const double far = distance(clients, of.clients);
    std::optional<std::int64_t> places = cells.integer("max_batch");
    if (!places && of.software.starts_with("trtllm"))
      places = places_of_rank(most_clients(clients, of.clients), workers.second);
    const bool speculates = drafts > 0;
    if (of.drafts.value_or(speculates) == speculates && prints(of, workers.first, workers.second))
      candidates.push_back(
          {far, workers, {&row, drafts, places, cells.text("source").value_or("").starts_with("assumed")}});
  }
  if (!problems_.empty()) {
    const TableProblem& first = problems_.front();
    return tl::unexpected(fmt::format("{}:{}: {}: {}", first.file, first.line, first.column, first.message));
  }
  // A row that says nothing of speculation is taken to have none where a recipe that is as near has none.
  const auto rank = [](const Candidate& candidate) {
    const bool near = candidate.far <= kReach, listed = candidate.far == 0;
    return std::tuple(!near, !listed, candidate.recipe.draft_tokens > 0, candidate.far);
  };
  const auto best = std::ranges::min_element(candidates, {}, rank);
  if (best == candidates.end() || best->far > kReach) {
    return tl::unexpected(
        std::string("the row does not say how many servers prefill and how many decode, and no public recipe "
                    "is for such clients"));
  }
  // Lists of clients are those that results show: a recipe that differs in speculation may be for others, too.
  best->recipe.doubtful =
      best->recipe.doubtful || best->far > 0 || std::ranges::any_of(candidates, [&](const Candidate& other) {
        const bool both = (other.recipe.draft_tokens > 0) != (best->recipe.draft_tokens > 0);
        return both ? other.far <= kReach : other.workers != best->workers && other.far == 0;
      });
  return best->recipe;
}

}  // namespace shardscape::validate
