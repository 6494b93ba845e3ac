// Prints chosen rows: a table for people with the columns that vary, groups of rows that tie, and values in human
// units; CSV, JSON and YAML with exact values.
#include "sweep/cli/reports/top_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>
#include <sstream>
#include <unordered_map>
#include <utility>

#include "engine/base/hash.h"
#include "engine/base/safe_text.h"
#include "engine/spec/plan_axes.h"
#include "results_schema/reading/row_scan.h"
#include "results_schema/rows/limits.h"
#include "sweep/cli/command.h"
#include "sweep/cli/terminal/format.h"
#include "sweep/cli/terminal/text_table.h"

namespace shardscape::cli {

namespace {

/// Whether the value of a column says that there are no experts to deal and no drafts, or that requests come otherwise
/// (a loop is closed or open).
bool says_nothing(const results::ColumnInfo& column, const std::string& value) {
  if (column.name == "concurrency") return value == "0";
  if (column.name == "request_rate_per_s") return value == format_fixed(0, 3);
  if (column.name == "draft_tokens") return value == "0";
  if (column.name == "expert_load") return value == name_of(LoadDistribution::balanced);
  if (column.name == "expert_load_exponent") return value == "0";
  const PlanAxisRow* const row = find_plan_column(column.name);
  return row != nullptr && is_of_experts(*row) && value == code_text(*row, row->idle);
}

using results::ColumnGroup;
using results::ColumnInfo;
using results::ColumnType;
using results::ResultReader;
using Align = TextTable::Align;

/// Short headings of columns other than plan axes; columns that are not listed only lose their unit.
constexpr std::array<std::pair<std::string_view, std::string_view>, 22> kHeadings = {{
    {"point_id", "point"},
    {"prefill_memory_peak_bytes", "prefill memory"},
    {"sequence_length", "seq"},
    {"global_batch", "batch"},
    {"request_rate_per_s", "requests/s sent"},
    {"tokens_per_s_per_gpu", "tokens/s/GPU"},
    {"output_tokens_per_s_per_gpu", "output tokens/s/GPU"},
    {"requests_per_s", "requests/s"},
    {"sustained_requests_per_s", "requests/s sustained"},
    {"memory_peak_bytes", "memory"},
    {"energy_per_token_j", "energy/token"},
    {"cost_per_million_tokens", "cost/M tokens"},
    {"mfu", "MFU"},
    {"outside_domain", "outside domain"},
    {"expected_error", "expected error"},
    {"evidence_gap", "nearest differ in"},
    {"kv_transfer_bytes", "KV cache sent"},
    {"slowdown_above_1pct_share", "slowed above 1 %"},
    {"unreachable_share", "unreachable"},
    {"goodput_share", "goodput"},
    {"goodput_requests_per_s_per_gpu", "goodput/s/GPU"},
    {"missed_by", "missed by"},
}};

bool has_names(const ColumnInfo& column) { return !column.meanings.empty(); }

/// The name of a code; nothing where the column is a number, or where the code is unknown.
std::optional<std::string> code_name(const ColumnInfo& column, double value) {
  const auto code = static_cast<std::size_t>(value);
  if (!has_names(column) || !(value >= 0) || code >= column.meanings.size()) return std::nullopt;
  return column.meanings[code];
}

/// The shortest text that reads back as the stored value.
std::string exact(const ColumnInfo& column, double value) {
  std::array<char, kLongestNumber> text;
  return {text.data(), write_exact(column.type, value, text)};
}

bool is_whole(ColumnType type) {
  return type == ColumnType::u8 || type == ColumnType::i32 || type == ColumnType::u64;
}

/// Servers are measured by their time between tokens.
constexpr const char* kOfItl =
    "expected errors are those of itl; of ttft, end to end and percentiles none is known";

/// A column of the printed table.
struct Shown {
  std::size_t column = 0;
  bool share = false;  ///< a share of the row's sum over the breakdown
};

class TableBuilder {
 public:
  TableBuilder(const ResultReader& reader, const ChosenRows& chosen, const TableOptions& options)
      : reader_(reader), chosen_(chosen), groups_(options.groups), remarks_(options.remarks) {
    for (std::size_t row = 0; row < chosen.rows.size() && options.groups.empty(); ++row)
      groups_.push_back({row});
    show("point_id");
    for (const std::string& name : options.only) show(name);
    if (!options.only.empty()) return;
    if (options.verdicts) show("status"), show("reason");
    show_inputs(options.breakdown);
    for (const std::string& name : options.first_columns) show(name);
    for (const std::string& name : reader.objectives()) show(name);
    for (const std::string& name : reader.find("reason")->meanings) {
      if (const auto limit = results::limit_of_name(name)) show(limit->column);
    }
    for (const char* name : {"attainment", "missed_by"}) show_where_set(name);
    for (const char* name : {"tokens_per_s_per_gpu", "mfu", "memory_peak_bytes"}) show(name);
    for (const char* name : {"cost_per_million_tokens", "outside_domain"}) show_where_set(name);
    show_evidence();
    if (options.breakdown) show_breakdown();
  }

  void print(std::ostream& out) const {
    if (!constants_.empty()) out << "the same everywhere: " << printable(constants_) << "\n";
    if (!alike_.empty()) out << "the same in these rows: " << printable(alike_) << "\n";
    TextTable table;
    for (const Shown& shown : shown_) {
      const ColumnInfo& column = info(shown.column);
      table.add_column(shown.share ? share_heading(column) : short_heading(column),
                       has_names(column) ? Align::left : Align::right);
      for (const FurtherColumn* further : behind(shown)) table.add_column(further->heading);
    }
    for (const std::vector<std::size_t>& group : groups_) {
      std::vector<std::string> cells;
      for (const Shown& shown : shown_) {
        cells.push_back(shown.share ? share(shown.column, group.front()) : alternatives(shown.column, group));
        for (const FurtherColumn* further : behind(shown))
          cells.push_back(shown_value(further->info, further->values[group.front()]));
      }
      table.add_row(std::move(cells));
    }
    table.print(out);
    TextTable below({left("")});
    if (!evidence_.empty()) below.add_row({evidence_});
    std::istringstream assumptions(assumptions_of(reader_).value_or(""));
    for (std::string line; std::getline(assumptions, line);) below.add_row({"assumed: " + line});
    for (const std::string& remark : remarks_) below.add_row({remark});
    below.print(out);
  }

 private:
  /// Whether some row has a time, which an error may be expected of.
  [[nodiscard]] bool any_timed() const {
    const ColumnInfo* const status = reader_.find("status");
    return status == nullptr || std::ranges::any_of(chosen_.values[place_of(*status)], [](double code) {
             return code == static_cast<double>(Status::ok) || code == static_cast<double>(Status::missed);
           });
  }

  /// Shows the evidence below the table if all rows have the same, else as columns; nothing in files of older programs.
  void show_evidence() {
    std::vector<std::size_t> found;
    bool same = true;
    for (const char* name : {"expected_error", "evidence", "evidence_gap"}) {
      const ColumnInfo* const column = reader_.find(name);
      if (column == nullptr || chosen_.rows.empty()) return;
      found.push_back(place_of(*column));
      const std::vector<double>& values = chosen_.values[found.back()];
      same = same && std::ranges::all_of(values, [&](double value) {
               return value == values.front() || (std::isnan(value) && std::isnan(values.front()));
             });
    }
    if (!any_timed()) {
      evidence_ = "no error is expected of these rows, as none of them has a time";
      return;
    }
    const bool serves = reader_.find("itl_s") != nullptr;
    if (!same) {
      for (const char* name : {"expected_error", "evidence", "evidence_gap"}) show(name);
      if (serves) evidence_ = kOfItl;
      return;
    }
    const bool known = std::isfinite(value(found[0], 0));
    evidence_ = "expected error " + (known ? "+-" + plain(found[0], 0) + " (one sigma)" : "unknown") +
                ", evidence: " + plain(found[1], 0);
    if (value(found[2], 0) > 0) evidence_ += ", the nearest differ in " + plain(found[2], 0);
    if (known && serves) evidence_ += std::string("; ") + kOfItl;
  }

  [[nodiscard]] const ColumnInfo& info(std::size_t column) const { return reader_.columns()[column]; }
  [[nodiscard]] double value(std::size_t column, std::size_t row) const {
    return chosen_.values[column][row];
  }
  [[nodiscard]] std::string plain(std::size_t column, std::size_t row) const {
    return shown_value(info(column), value(column, row));
  }

  /// The values of a plan axis in a group of tied rows; for other columns the first row's value.
  [[nodiscard]] std::string alternatives(std::size_t column, const std::vector<std::size_t>& group) const {
    std::vector<std::string> values = {plain(column, group.front())};
    if (find_plan_column(info(column).name) == nullptr) return values.front();
    std::string all = values.front();
    for (const std::size_t row : group) {
      std::string text = plain(column, row);
      if (std::ranges::find(values, text) != values.end()) continue;
      all += ", " + text;
      values.push_back(std::move(text));
    }
    return all;
  }

  [[nodiscard]] std::vector<const FurtherColumn*> behind(const Shown& shown) const {
    std::vector<const FurtherColumn*> found;
    for (const FurtherColumn& further : chosen_.further) {
      if (!shown.share && further.behind == info(shown.column).name) found.push_back(&further);
    }
    return found;
  }

  [[nodiscard]] std::size_t place_of(const ColumnInfo& column) const {
    return static_cast<std::size_t>(&column - reader_.columns().data());
  }

  /// Shows a column, once. Files of loads have their rate of tokens under two names, of which the table shows one.
  void show(std::string_view name) {
    if (name == "tokens_per_s_per_gpu" && reader_.find("output_tokens_per_s_per_gpu") != nullptr)
      name = "output_tokens_per_s_per_gpu";
    const ColumnInfo* const column = reader_.find(name);
    if (column == nullptr) return;
    const std::size_t place = place_of(*column);
    if (std::ranges::find(shown_, place, &Shown::column) == shown_.end()) shown_.push_back({place, false});
  }

  /// Shows the axes that vary; `wide`: in these rows, as the table has much beside them.
  void show_inputs(bool wide) {
    for (std::size_t i = 0; i < reader_.columns().size(); ++i) {
      const ColumnInfo& column = info(i);
      if (!is_axis(column)) continue;
      const bool differ =  // what differs in the rows need not be looked for in the file
          std::ranges::adjacent_find(chosen_.values[i], std::ranges::not_equal_to()) !=
          chosen_.values[i].end();
      const bool varies = differ || results::varies(reader_, column.name);
      if (differ || (varies && !wide)) {
        show(column.name);
      } else if (!chosen_.rows.empty() && !says_nothing(column, plain(i, 0)) && !of_no_pool(column)) {
        std::string& list = varies ? alike_ : constants_;
        if (!list.empty()) list += ", ";
        list += short_heading(column) + " " + plain(i, 0);
      }
    }
  }

  /// Whether a column is of the pool that prefills, which none of the rows has.
  [[nodiscard]] bool of_no_pool(const ColumnInfo& column) const {
    const PlanAxisRow* const row = find_plan_column(column.name);
    const ColumnInfo* const pool = reader_.find(row_of(PlanKey::prefill_data).column);
    const bool of_pools = row != nullptr && (is_of_prefill(*row) || row->key == PlanKey::ffn);
    return of_pools && pool != nullptr && !any_positive(place_of(*pool));
  }

  void show_where_set(std::string_view name) {
    const ColumnInfo* const column = reader_.find(name);
    if (column != nullptr && any_positive(place_of(*column))) show(name);
  }
  [[nodiscard]] bool any_positive(std::size_t column) const {
    return std::ranges::any_of(chosen_.values[column], [](double v) { return v > 0; });
  }

  /// Shows the classes of time that occur in at least one of the rows.
  void show_breakdown() {
    for (std::size_t i = 0; i < reader_.columns().size(); ++i) {
      if (info(i).group == ColumnGroup::breakdown && any_positive(i)) shown_.push_back({i, true});
    }
  }

  static std::string share_heading(const ColumnInfo& column) {
    return column.name.substr(0, column.name.size() - std::string_view("_s").size()) + " %";
  }

  [[nodiscard]] std::string share(std::size_t column, std::size_t row) const {
    double whole = 0;
    for (std::size_t i = 0; i < reader_.columns().size(); ++i) {
      if (info(i).group == ColumnGroup::breakdown) whole += value(i, row);
    }
    const double part = 100 * value(column, row) / whole;
    return std::isfinite(part) ? format_fixed(part, 1) : "-";
  }

  const ResultReader& reader_;
  const ChosenRows& chosen_;
  std::vector<Shown> shown_;
  RowGroups groups_;
  std::vector<std::string> remarks_;
  std::string constants_, alike_;  ///< axes that do not vary in the file, or in these rows of a wide table
  std::string evidence_;           ///< evidence that all rows share
};

nlohmann::ordered_json json_value(const ColumnInfo& column, double value) {
  if (const auto name = code_name(column, value)) return *name;
  if (!std::isfinite(value)) return nullptr;
  if (is_whole(column.type)) return static_cast<std::int64_t>(value);
  // F4 values: do not print digits that they do not have.
  return nlohmann::ordered_json::parse(exact(column, value));
}

/// A column for scripts: those of the file come first, then further ones.
struct Field {
  const ColumnInfo& column;
  const std::vector<double>& values;  ///< by row
};

std::vector<Field> fields_of(const ResultReader& reader, const ChosenRows& chosen,
                             const std::vector<std::string>& only) {
  std::vector<Field> fields;
  for (std::size_t i = 0; i < reader.columns().size() && only.empty(); ++i)
    fields.push_back({reader.columns()[i], chosen.values[i]});
  for (const std::string& name : only) {
    const ColumnInfo& column = *reader.find(name);
    fields.push_back({column, chosen.values[static_cast<std::size_t>(&column - reader.columns().data())]});
  }
  for (const FurtherColumn& further : chosen.further) fields.push_back({further.info, further.values});
  return fields;
}

void print_csv(std::ostream& out, const std::vector<Field>& fields, std::size_t rows) {
  const char* separator = "";
  for (const Field& field : fields) out << std::exchange(separator, ",") << csv_cell(field.column.name);
  out << "\n";
  for (std::size_t row = 0; row < rows; ++row) {
    separator = "";
    for (const Field& field : fields)
      out << std::exchange(separator, ",") << csv_cell(plain_value(field.column, field.values[row]));
    out << "\n";
  }
}

void print_json(std::ostream& out, const std::vector<Field>& fields, std::size_t rows) {
  auto document = nlohmann::ordered_json::array();
  for (std::size_t row = 0; row < rows; ++row) {
    auto& object = document.emplace_back(nlohmann::ordered_json::object());
    for (const Field& field : fields) object[field.column.name] = json_value(field.column, field.values[row]);
  }
  out << json_text(document, 2) << "\n";
}

/// JSON scalars are valid YAML scalars.
void print_yaml(std::ostream& out, const std::vector<Field>& fields, std::size_t rows) {
  if (rows == 0) out << "[]\n";
  for (std::size_t row = 0; row < rows; ++row) {
    const char* lead = "- ";
    for (const Field& field : fields) {
      out << std::exchange(lead, "  ") << field.column.name << ": "
          << json_text(json_value(field.column, field.values[row])) << "\n";
    }
  }
}

}  // namespace

std::string shown_value(const ColumnInfo& column, double value) {
  if (const auto name = code_name(column, value)) return *name;
  if (column.group == ColumnGroup::id) return fmt::format("{:.0f}", value);  // as commands take it
  if (const std::optional<int> digits = results::percent_digits(column))
    return results::is_slowdown(column) ? format_slowdown(value, *digits) : format_percent(value, *digits);
  if (column.name == "outside_domain") return value > 0 ? "yes" : "no";
  if (column.name == "missed_by") return std::isfinite(value) ? format_percent(value) : "-";
  // Requests of a replica are few a second, tokens many.
  if (column.unit == "s-1" && std::isfinite(value))
    return value < 10 ? format_rate(value) : format_fixed(value, 1);
  return format_value(value, column.unit);
}

char* write_exact(ColumnType type, double value, std::span<char, kLongestNumber> text) {
  char* const end = text.data() + text.size();
  if (is_whole(type)) return std::to_chars(text.data(), end, static_cast<std::int64_t>(value)).ptr;
  if (type == ColumnType::f4) return std::to_chars(text.data(), end, static_cast<float>(value)).ptr;
  return std::to_chars(text.data(), end, value).ptr;
}

std::string short_heading(const ColumnInfo& column) {
  if (const PlanAxisRow* const row = find_plan_column(column.name)) {
    std::string words(row->name);
    std::ranges::replace(words, '_', ' ');
    return words;
  }
  const auto known =
      std::ranges::find(kHeadings, column.name, &std::pair<std::string_view, std::string_view>::first);
  if (known != kHeadings.end()) return std::string(known->second);
  for (const std::string_view suffix : {"_bytes_per_s", "_bytes", "_s"}) {
    if (column.unit != "1" && column.name.ends_with(suffix)) {
      return column.name.substr(0, column.name.size() - suffix.size());
    }
  }
  return column.name;
}

std::string plain_value(const ColumnInfo& column, double value) {
  if (const auto name = code_name(column, value)) return *name;
  return std::isfinite(value) ? exact(column, value) : "";
}

ChosenRows read_rows(const ResultReader& reader, std::vector<std::uint64_t> rows) {
  ChosenRows chosen{std::move(rows), {}};
  std::vector<std::uint64_t> ascending = chosen.rows;  // so that no chunk is unpacked twice
  std::ranges::sort(ascending);
  for (const ColumnInfo& column : reader.columns()) {
    const std::vector<double> found = results::values_of(reader, column.name, ascending);
    std::vector<double>& values = chosen.values.emplace_back();
    for (const std::uint64_t row : chosen.rows)
      values.push_back(
          found[static_cast<std::size_t>(std::ranges::lower_bound(ascending, row) - ascending.begin())]);
  }
  return chosen;
}

ChosenRows in_order(const ChosenRows& chosen, const RowGroups& groups) {
  const auto sorted = [&](const auto& values) {
    std::remove_cvref_t<decltype(values)> in_order;
    for (const std::vector<std::size_t>& group : groups) in_order.push_back(values[group.front()]);
    return in_order;
  };
  ChosenRows result{sorted(chosen.rows), {}, chosen.further};
  for (const std::vector<double>& values : chosen.values) result.values.push_back(sorted(values));
  for (FurtherColumn& further : result.further) further.values = sorted(further.values);
  return result;
}

RowGroups tied_rows(const ResultReader& reader, const ChosenRows& chosen) {
  std::vector<std::size_t> axes, others;
  for (std::size_t i = 0; i < reader.columns().size(); ++i) {
    const ColumnInfo& column = reader.columns()[i];
    if (column.group != ColumnGroup::id)
      (find_plan_column(column.name) != nullptr ? axes : others).push_back(i);
  }
  const auto same = [&](std::size_t column, std::size_t a, std::size_t b) {
    const std::vector<double>& values = chosen.values[column];
    return std::bit_cast<std::uint64_t>(values[a]) == std::bit_cast<std::uint64_t>(values[b]);
  };
  const auto hash_of = [&](std::size_t row, std::size_t but_for_axis) {
    std::uint64_t hash = 0;
    const auto add = [&](std::size_t i) {
      hash = hash_word(hash, std::bit_cast<std::uint64_t>(chosen.values[i][row]));
    };
    for (const std::size_t i : others) add(i);
    for (const std::size_t i : axes) {
      if (i != but_for_axis) add(i);
    }
    return hash;
  };
  RowGroups groups;
  for (std::size_t row = 0; row < chosen.rows.size(); ++row) groups.push_back({row});
  for (const std::size_t axis : axes) {
    const auto alike_but_for_axis = [&](std::size_t a, std::size_t b) {
      return std::ranges::all_of(others, [&](std::size_t i) { return same(i, a, b); }) &&
             std::ranges::all_of(axes, [&](std::size_t i) { return i == axis || same(i, a, b); });
    };
    RowGroups merged;
    // Number of members of each group before this axis.
    std::vector<std::size_t> before;
    std::unordered_map<std::uint64_t, std::vector<std::size_t>> like;  // indices in `merged`, by hash
    for (std::vector<std::size_t>& group : groups) {
      std::vector<std::size_t>& candidates = like[hash_of(group.front(), axis)];
      const auto takes = [&](const std::vector<std::size_t>& known, std::size_t members) {
        return members == group.size() &&
               std::equal(group.begin(), group.end(), known.begin(), alike_but_for_axis);
      };
      const auto into = std::ranges::find_if(
          candidates, [&](std::size_t known) { return takes(merged[known], before[known]); });
      if (into != candidates.end()) {
        merged[*into].insert(merged[*into].end(), group.begin(), group.end());
      } else {
        candidates.push_back(merged.size());
        before.push_back(group.size());
        merged.push_back(std::move(group));
      }
    }
    groups = std::move(merged);
  }
  return groups;
}

void print_table(std::ostream& out, const ResultReader& reader, const ChosenRows& chosen,
                 const TableOptions& options) {
  TableBuilder(reader, chosen, options).print(out);
}

void print_machine(std::ostream& out, const ResultReader& reader, const ChosenRows& chosen, RowFormat format,
                   const std::vector<std::string>& only) {
  const std::vector<Field> fields = fields_of(reader, chosen, only);
  const std::size_t rows = chosen.rows.size();
  if (format == RowFormat::csv) print_csv(out, fields, rows);
  if (format == RowFormat::json) print_json(out, fields, rows);
  if (format == RowFormat::yaml) print_yaml(out, fields, rows);
}

}  // namespace shardscape::cli
