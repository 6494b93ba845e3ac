#include "sweep/evidence/evidence_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <system_error>
#include <tuple>
#include <utility>

#include "sweep/yaml/loader.h"
#include "sweep/yaml/node.h"
#include "sweep/yaml/visitors.h"

namespace shardscape::evidence {

namespace {

constexpr const char* kHeader =
    "# How far predictions have been off measurements, by regime; made by `scripts/validate-all "
    "--evidence`.\n"
    "# gpus_low, gpus_high: of the rows; .._most: the largest degree of that axis among them;\n"
    "# rows, and distinct plans among them; bias: median of predicted / measured - 1; sigma: the absolute\n"
    "# relative error that 68 % of other plans of the regime should stay within.\n";

/// Lists the keys of a cell once, for reading as well as for writing.
template <class V, class C>
void describe(V& v, C& cell) {
  v.required("phase", cell.regime.phase);
  v.required("device", cell.regime.device);
  v.required("precision", cell.regime.precision);
  v.required("model_kind", cell.regime.model_kind);
  v.required("stack", cell.regime.stack);
  v.required("gpus_low", cell.gpus_low);
  v.required("gpus_high", cell.gpus_high);
  for (const PlanAxisRow& row : kPlanRows)
    if (has_evidence(row)) v.optional(most_key(row).c_str(), cell.most[row.key]);
  v.required("rows", cell.rows);
  v.required("plans", cell.plans);
  v.required("bias", cell.bias);
  v.required("sigma", cell.sigma);
}

/// Upper ends of the bands of GPUs: a node, a rack, a pod. Beyond each, communication crosses other links.
constexpr std::int64_t kBands[] = {8, 64, 512};

int band_of(std::int64_t gpus) {
  return static_cast<int>(std::ranges::lower_bound(kBands, gpus) - std::begin(kBands));
}

auto key_of(const Residual& residual) {
  const Regime& r = residual.regime;
  return std::tuple(r.phase, r.device, r.precision, r.model_kind, r.stack, band_of(r.gpus));
}

double rounded(double value) { return std::round(value * 1e4) / 1e4; }

Cell cell_of(const std::vector<const Residual*>& rows) {
  Cell cell;
  cell.regime = rows.front()->regime;
  cell.regime.gpus = 1;
  cell.most = rows.front()->degrees;
  cell.gpus_low = cell.gpus_high = rows.front()->regime.gpus;
  std::map<std::string, double> rows_of_plan;
  std::int64_t alone = 0;
  for (const Residual* row : rows) {
    cell.gpus_low = std::min(cell.gpus_low, row->regime.gpus);
    cell.gpus_high = std::max(cell.gpus_high, row->regime.gpus);
    cell.most = most_of(cell.most, row->degrees);
    if (row->plan.empty()) {
      ++alone;
    } else {
      ++rows_of_plan[row->plan];
    }
  }
  cell.rows = static_cast<std::int64_t>(rows.size());
  cell.plans = alone + static_cast<std::int64_t>(rows_of_plan.size());
  std::vector<std::pair<double, double>> signed_errors, errors;
  for (const Residual* row : rows) {
    const double weight = row->plan.empty() ? 1 : 1 / rows_of_plan[row->plan];
    signed_errors.emplace_back(row->error, weight);
    errors.emplace_back(std::abs(row->error), weight);
  }
  cell.bias = rounded(weighted_quantile(std::move(signed_errors), 0.5));
  constexpr double kLeast = 1e-4;  // a sigma that rounds to 0 would claim certainty
  cell.sigma = std::max(kLeast, rounded(weighted_quantile(std::move(errors), kOneSigma)));
  return cell;
}

}  // namespace

std::string model_kind(const ModelSpec& model) { return model.moe ? "mixture-of-experts" : "dense"; }

Degrees degrees_of(const ParallelPlan& plan) {
  Degrees degrees;
  for (const PlanAxisRow& row : kPlanRows)
    if (has_evidence(row)) degrees[row.key] = row.get(plan);
  return degrees;
}

std::string most_key(const PlanAxisRow& row) {
  const std::string axis = row.column;
  return axis.substr(0, axis.rfind("_parallel")) + "_most";
}

Degrees most_of(const Degrees& a, const Degrees& b) {
  Degrees most;
  std::ranges::transform(a, b, most.begin(), [](std::int32_t x, std::int32_t y) { return std::max(x, y); });
  return most;
}

Problems Table::validate() const {
  Problems problems;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const Cell& cell = cells[i];
    const std::string at = fmt::format("regimes[{}].", i);
    problems.require(cell.gpus_low >= 1, at + "gpus_low", "must be at least 1");
    problems.require(cell.gpus_high >= cell.gpus_low, at + "gpus_high", "must be at least gpus_low");
    for (const PlanAxisRow& row : kPlanRows)
      if (has_evidence(row))
        problems.require(cell.most[row.key] >= 1, at + most_key(row), "must be at least 1");
    problems.require(cell.rows >= 1, at + "rows", "must be at least 1");
    problems.require(cell.plans >= 1 && cell.plans <= cell.rows, at + "plans", "must be 1 to rows");
    problems.require(cell.bias > -1, at + "bias", "must be above -1");
    problems.require(cell.sigma > 0, at + "sigma", "must be above 0");
  }
  return problems;
}

std::optional<std::filesystem::path> find_evidence(const yaml::Catalog& catalog) {
  for (const std::filesystem::path& directory : catalog.directories()) {
    std::filesystem::path file = directory / kEvidenceFile;
    std::error_code ignored;
    if (std::filesystem::exists(file, ignored)) return file;
  }
  return std::nullopt;
}

tl::expected<Table, yaml::Diagnostics> parse_evidence(const std::string& text, const std::string& name) {
  yaml::Diagnostics diagnostics;
  const std::optional<yaml::Node> root = yaml::parse(text, name, diagnostics);
  if (!root) return yaml::refused(std::move(diagnostics));
  Table table;
  yaml::ReadState state(root->where, "", diagnostics);
  yaml::Reader reader(*root, "", state);
  if (root->is_map()) {
    if (root->find("regimes") == nullptr) state.bad("regimes", root->where, "missing: the list of regimes");
    reader.list("regimes", table.cells, [](yaml::Reader& item, Cell& cell) { describe(item, cell); });
    reader.finish();
    state.report(table.validate());
  }
  if (!diagnostics.empty()) return yaml::refused(std::move(diagnostics));
  return table;
}

tl::expected<Table, yaml::Diagnostics> read_evidence(const std::filesystem::path& file) {
  const auto text = yaml::read_text(file);
  if (!text) return yaml::refused_file(file, text.error());
  return parse_evidence(*text, file.string());
}

std::string evidence_yaml(const Table& table) {
  yaml::Node list = yaml::Node::list();
  for (const Cell& cell : table.cells) {
    yaml::Node item = yaml::Node::map();
    item.flow = true;
    yaml::Writer writer(item);
    describe(writer, cell);
    list.items.push_back(std::move(item));
  }
  if (list.items.empty()) list.flow = true;
  yaml::Node root = yaml::Node::map();
  root.set("regimes", std::move(list));
  return kHeader + yaml::emit(root);
}

double weighted_quantile(std::vector<std::pair<double, double>> values, double q) {
  std::ranges::sort(values);
  double whole = 0, sum = 0;
  for (const auto& [value, weight] : values) whole += weight;
  constexpr double kRounding = 1e-9;  // tolerance, since sums of weights are rounded
  for (const auto& [value, weight] : values) {
    sum += weight;
    if (sum >= (q - kRounding) * whole) return value;
  }
  return values.back().first;
}

Table summarise(std::span<const Residual> residuals) {
  std::map<decltype(key_of(residuals.front())), std::vector<const Residual*>> groups;
  for (const Residual& residual : residuals) groups[key_of(residual)].push_back(&residual);
  Table table;
  for (const auto& [key, rows] : groups) table.cells.push_back(cell_of(rows));
  return table;
}

}  // namespace shardscape::evidence
