// Finds recipes by what rows print.
#include "sweep/validate/pool_recipes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <sstream>
#include <tuple>
#include <utility>

namespace shardscape::validate {

namespace {

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
  const std::pair said(of.prefill_ranks, of.decode_ranks);
  return said == std::pair(prefill.ranks(), decode.ranks()) ||
         said == std::pair(prefill.tensor, decode.tensor) || said == std::pair(all, all);
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

}  // namespace

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
    const bool release = of.software.starts_with(software) || software.starts_with(of.software);
    if (!release || !is("model", of.model) || !is("device", of.device) || !is("precision", of.precision) ||
        cells.integer("prompt_tokens") != of.prompt || cells.integer("output_tokens") != of.output)
      continue;
    const std::int64_t drafts = cells.integer("draft_tokens", 0).value_or(0);
    const std::pair workers(read_worker(cells, "prefill_"), read_worker(cells, "decode_"));
    const double far = distance(cells.text("concurrency").value_or(""), of.clients);
    const bool speculates = drafts > 0;
    if (of.drafts.value_or(speculates) == speculates && prints(of, workers.first, workers.second))
      candidates.push_back({far,
                            workers,
                            {&row, drafts, cells.integer("max_batch"),
                             cells.text("source").value_or("").starts_with("assumed")}});
  }
  // A row that says nothing of speculation is taken to have none, where there is a recipe without.
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
