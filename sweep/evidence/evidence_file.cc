#include "sweep/evidence/evidence_file.h"

#include <system_error>
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

}  // namespace

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

}  // namespace shardscape::evidence
