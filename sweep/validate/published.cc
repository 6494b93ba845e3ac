#include "sweep/validate/published.h"

#include <algorithm>
#include <optional>

#include "engine/base/suggest.h"
#include "sweep/validate/table_columns.h"
#include "sweep/yaml/loader.h"
#include "sweep/yaml/node.h"
#include "sweep/yaml/visitors.h"

namespace shardscape::validate {

namespace {

class SetReader {
 public:
  SetReader(const yaml::Node& root, const std::filesystem::path& file, yaml::Diagnostics& diagnostics)
      : root_(root), diagnostics_(diagnostics) {
    set_.table.file = file.string();
  }

  PublishedSet run() {
    yaml::ReadState state(root_.where, "", diagnostics_);
    yaml::Reader reader(root_, "", state);
    TableKind kind = TableKind::plans;
    reader.required("title", set_.title);
    if (const yaml::Node* node = reader.take_required("source")) read_source(*node);
    reader.optional("kind", kind);
    for (const Column& column : columns_of(kind)) set_.table.columns.emplace_back(column.name);
    if (const yaml::Node* node = reader.take("tolerances")) read_tolerances(*node);
    std::vector<std::string> common(set_.table.columns.size());
    if (const yaml::Node* node = reader.take("common")) read_cells(*node, "common", common);
    if (const yaml::Node* node = reader.take_required("rows")) read_rows(*node, common);
    reader.finish();
    return std::move(set_);
  }

 private:
  /// Reads the citation, which may be longer than a name.
  void read_source(const yaml::Node& node) {
    const auto text = yaml::scalar_text(node, "text");
    if (!text) return diagnostics_.add(node.where, "source", text.error());
    set_.source = *text;
  }

  void read_tolerances(const yaml::Node& node) {
    if (!node.is_map())
      return diagnostics_.add(node.where, "tolerances", "must be a map of statistic and limit");
    for (const yaml::Entry& entry : node.entries) {
      const auto bar = parse_bar(entry.key + "=" + entry.value.text);
      if (bar) {
        set_.bars.push_back(*bar);
      } else {
        diagnostics_.add(entry.key_where, "tolerances", bar.error());
      }
    }
  }

  void read_rows(const yaml::Node& node, const std::vector<std::string>& common) {
    if (!node.is_list()) return diagnostics_.add(node.where, "rows", "must be a list of maps");
    for (const yaml::Node& item : node.items) {
      TableRow row{item.where.line, common};
      read_cells(item, "rows", row.cells);
      set_.table.rows.push_back(std::move(row));
    }
  }

  void read_cells(const yaml::Node& node, const char* path, std::vector<std::string>& cells) {
    if (!node.is_map()) return diagnostics_.add(node.where, path, "must be a map of column and value");
    for (const yaml::Entry& entry : node.entries) {
      const auto column = set_.table.column(entry.key);
      if (!column) {
        diagnostics_.add(entry.key_where, path,
                         "unknown column '" + entry.key + "'" + did_you_mean(entry.key, set_.table.columns));
      } else if (!entry.value.is_scalar()) {
        diagnostics_.add(entry.value.where, path, "'" + entry.key + "' must be one value");
      } else {
        cells[*column] = entry.value.text;
      }
    }
  }

  const yaml::Node& root_;
  yaml::Diagnostics& diagnostics_;
  PublishedSet set_;
};

}  // namespace

tl::expected<PublishedSet, yaml::Diagnostics> load_published(const std::filesystem::path& file) {
  const auto text = yaml::read_text(file);
  if (!text) return yaml::refused_file(file, text.error());
  yaml::Diagnostics diagnostics;
  const std::optional<yaml::Node> root = yaml::parse(*text, file.string(), diagnostics);
  if (!root) return yaml::refused(std::move(diagnostics));
  PublishedSet set = SetReader(*root, file, diagnostics).run();
  if (!diagnostics.empty()) return yaml::refused(std::move(diagnostics));
  return set;
}

std::vector<std::filesystem::path> list_published(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    if (entry.path().extension() == ".yaml") files.push_back(entry.path());
  }
  std::ranges::sort(files);
  return files;
}

}  // namespace shardscape::validate
