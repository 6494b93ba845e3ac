// Makes the columns of a file from the tables of fixed columns (column_table.h), the plan axes and the hardware axes,
// in the order of the file. Packs a column's values by a function that is generated for it.
#include "results_schema/rows/columns.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>
#include <limits>
#include <type_traits>

#include "engine/base/check.h"
#include "engine/spec/plan_axes.h"
#include "results_schema/disk/sha256.h"
#include "results_schema/rows/column_table.h"

namespace shardscape::results {

using namespace table;

namespace {

/// Stores one value per row. An integer that does not fit its column means that the study was not validated well.
template <class T, class Get>
void pack(std::size_t rows, std::byte* out, const Get& get) {
  for (std::size_t i = 0; i < rows; ++i) {
    const auto value = get(i);
    if constexpr (std::is_integral_v<T> && std::is_floating_point_v<decltype(value)>) {
      SHARDSCAPE_CHECK(value >= static_cast<double>(std::numeric_limits<T>::min()) &&
                           value <= static_cast<double>(std::numeric_limits<T>::max()),
                       value);
    }
    const T stored = static_cast<T>(value);
    std::memcpy(out + i * sizeof(T), &stored, sizeof(T));
  }
}

template <class Get>
void pack_as(ColumnType type, std::size_t rows, std::byte* out, const Get& get) {
  with_stored_type(type, [&](auto zero) { pack<decltype(zero)>(rows, out, get); });
}

using Packer = void (*)(ColumnType, std::span<const PointRecord>, std::byte*);

/// Packs a column; there is one function per column, so that its value is read inline and not by a call per row.
template <const auto& kTable, std::size_t kAt>
void pack_values(ColumnType type, std::span<const PointRecord> rows, std::byte* out) {
  pack_as(type, rows.size(), out, [&](std::size_t i) {
    constexpr Source kSource = kTable[kAt].source;
    constexpr bool kBetween = is_between_tokens(kTable[kAt].name);
    const bool known = has_value(kSource.rows, rows[i]) && (!kBetween || has_second_token(rows[i].workload));
    return known ? kSource.value(rows[i]) : kSource.otherwise;
  });
}

/// The packers of a table's columns, in its order; null where a column has no value of its own.
template <const auto& kTable>
constexpr auto packers_of() {
  return []<std::size_t... kIndex>(std::index_sequence<kIndex...>) {
    const auto packer = []<std::size_t kAt>(std::integral_constant<std::size_t, kAt>) -> Packer {
      if constexpr (kTable[kAt].source.value == nullptr) {
        return nullptr;
      } else {
        return pack_values<kTable, kAt>;
      }
    };
    return std::array<Packer, sizeof...(kIndex)>{packer(std::integral_constant<std::size_t, kIndex>())...};
  }
  (std::make_index_sequence<std::size(kTable)>());
}

template <PlanKey kKey>
void pack_plan_codes(ColumnType type, std::span<const PointRecord> rows, std::byte* out) {
  pack_as(type, rows.size(), out, [&](std::size_t i) { return plan_code<kKey>(rows[i]); });
}

/// The packers of the plan axes, in the order of kPlanRows.
constexpr auto kPlanPackers = []<std::size_t... kIndex>(std::index_sequence<kIndex...>) {
  return std::array<Packer, sizeof...(kIndex)>{pack_plan_codes<kPlanRows[kIndex].key>...};
}
(std::make_index_sequence<kPlanRows.size()>());

ColumnInfo info_of(const FixedColumn& c) {
  return {c.name,
          c.unit,
          c.long_name,
          c.type,
          c.group,
          c.better,
          c.meanings ? c.meanings() : std::vector<std::string>{},
          c.fill,
          c.ordered,
          c.levels};
}

/// The narrowest type that holds so many codes.
ColumnType type_of_codes(std::size_t codes) { return codes <= 256 ? ColumnType::u8 : ColumnType::i32; }

ColumnInfo info_of(const PlanAxisRow& row) {
  ColumnInfo info;
  info.name = row.column;
  info.unit = "1";
  info.long_name = row.meaning;
  info.type = ColumnType::i32;
  info.group = ColumnGroup::plan;
  info.ordered = row.ordered;
  if (row.kind == AxisKind::flag) info.type = ColumnType::boolean;
  if (row.kind == AxisKind::choice) info.meanings.assign(row.names.begin(), row.names.end());
  if (row.kind == AxisKind::order) info.meanings = rank_order_names();
  if (!info.meanings.empty()) info.type = type_of_codes(info.meanings.size());
  if (row.kind == AxisKind::integer && row.ordered) {
    info.levels = row.high + 1;
    info.type = type_of_codes(static_cast<std::size_t>(info.levels));
  }
  return info;
}

ColumnInfo info_of(const HardwareColumn& axis) {
  ColumnInfo info;
  info.name = axis.name;
  info.unit = axis.unit;
  info.long_name = axis.long_name;
  if (!axis.choices.empty()) info.type = type_of_codes(axis.choices.size());
  info.group = ColumnGroup::hardware;
  info.meanings = axis.choices;
  // Blanks separate CF's flag_meanings, so that names may contain none.
  for (std::string& meaning : info.meanings) std::ranges::replace(meaning, ' ', '_');
  return info;
}

using Sample = const FaultSampleRecord&;

struct SampleColumn {
  const char* name;
  const char* unit;
  ColumnType type;
  Meanings meanings;
  const char* long_name;
  double (*value)(Sample);  ///< null: the point id
  std::optional<double> fill = {};
};

// clang-format off
constexpr SampleColumn kSampleColumns[] = {
    {"point_id", "1", u64, nullptr, "the point that was sampled", nullptr},
    {"sample", "1", i32, nullptr, "number of the sample: the same number is the same faults for every point",
     [](Sample s) { return static_cast<double>(s.sample); }},
    {"fault", "1", u8, nullptr, "number of the fault within the sample; time and slowdown are those of the whole sample",
     [](Sample s) { return static_cast<double>(s.fault); }},
    {"status", "1", u8, codes<Status>, "ok, unreachable where the sample cuts the fabric, or out_of_range",
     [](Sample s) { return static_cast<double>(s.status); }},
    {"kind", "1", u8, codes<FaultKind>, "what is sick",
     [](Sample s) { return static_cast<double>(s.kind); }},
    {"link_id", "1", i32, nullptr, "the sick link (the lower one of both directions), as in /links; else missing",
     [](Sample s) { return static_cast<double>(s.link); }, -1.0},
    {"device", "1", i32, nullptr, "rank of a sick device, lowest rank on a dead adapter, vertex of a dead switch; else missing",
     [](Sample s) { return static_cast<double>(s.device); }, -1.0},
    {"derate", "1", f8, nullptr, "share that remains of the link's bandwidth, the memory bandwidth or the clock; 0 where it is gone",
     [](Sample s) { return s.derate; }},
    {"step_time_s", "s", f8, nullptr, "time of one training step (inference: of one whole request) under the sample",
     [](Sample s) { return s.step_time_s; }},
    {"slowdown", "1", f8, nullptr, "that time over the one without faults, less 1",
     [](Sample s) { return s.slowdown; }},
};
// clang-format on

}  // namespace

ColumnTable::ColumnTable(Phase phase, std::span<const HardwareColumn> hardware, const StudyExtras& extras) {
  const auto take = [&](std::span<const FixedColumn> table, std::span<const Packer> packers) {
    for (std::size_t c = 0; c < table.size(); ++c) {
      if (!applies(table[c].phases, phase)) continue;
      columns_.push_back(info_of(table[c]));
      packings_.push_back({packers[c], table[c].source.rows});
    }
  };
  take(kVerdicts, packers_of<kVerdicts>());
  columns_.back().meanings.insert(columns_.back().meanings.end(), extras.limits.begin(), extras.limits.end());
  if (!extras.limits.empty()) take(kMisses, packers_of<kMisses>());
  for (const PlanAxisRow& row : kPlanRows) {
    if (!applies(row.phases, phase)) continue;
    columns_.push_back(info_of(row));
    packings_.push_back({kPlanPackers[static_cast<std::size_t>(row.key)]});
    if (row.key == PlanKey::microbatch) take(kMicrobatches, packers_of<kMicrobatches>());
  }
  take(kWorkloads, packers_of<kWorkloads>());
  if (extras.load) take(kLoadWorkloads, packers_of<kLoadWorkloads>());
  for (std::size_t axis = 0; axis < hardware.size(); ++axis) {
    columns_.push_back(info_of(hardware[axis]));
    packings_.push_back({nullptr, ValuedRows::all, axis});
  }
  take(kOutputs, packers_of<kOutputs>());
  if (extras.load) take(kLoadOutputs, packers_of<kLoadOutputs>());
  if (extras.promises) take(kPromiseOutputs, packers_of<kPromiseOutputs>());
  take(kBreakdownColumns, packers_of<kBreakdownColumns>());
  if (extras.faults) take(kFaults, packers_of<kFaults>());
  if (extras.reliability) take(kReliability, packers_of<kReliability>());
  for (const ColumnInfo& column : columns_) {
    SHARDSCAPE_CHECK(find(column.name) == &column, "column named twice:", column.name);
  }
}

void ColumnTable::keep_only(std::span<const std::string> names, std::span<const std::string> objectives) {
  constexpr std::string_view kAlways[] = {
      "step_time_s", "e2e_s",         "memory_peak_bytes", "prefill_memory_peak_bytes",
      "peak_stage",  "fault_samples", "slowdown_mean"};
  std::size_t kept = 0;
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    const ColumnInfo& column = columns_[c];
    const auto names_it = [&](const auto& list) {
      return std::ranges::find(list, column.name) != std::end(list);
    };
    if (column.group != ColumnGroup::id && !names_it(kAlways) && !names_it(names) && !names_it(objectives))
      continue;
    if (kept != c) {
      columns_[kept] = std::move(columns_[c]);
      packings_[kept] = packings_[c];
    }
    ++kept;
  }
  columns_.resize(kept);
  packings_.resize(kept);
}

const ColumnInfo* ColumnTable::find(std::string_view name) const {
  const auto found = std::ranges::find(columns_, name, &ColumnInfo::name);
  return found == columns_.end() ? nullptr : &*found;
}

void ColumnTable::put(std::size_t column, std::span<const PointRecord> rows, std::byte* out) const {
  const ColumnType type = columns_[column].type;
  if (const Packer packer = packings_[column].packer) {
    packer(type, rows, out);
  } else if (columns_[column].group == ColumnGroup::hardware) {
    const std::size_t axis = packings_[column].axis;
    pack_as(type, rows.size(), out, [&](std::size_t i) { return rows[i].hardware[axis]; });
  } else {
    pack<std::uint64_t>(rows.size(), out, [&](std::size_t i) { return rows[i].point_id; });
  }
}

double ColumnTable::number(std::size_t column, const PointRecord& row) const {
  std::array<std::byte, sizeof(double)> packed{};
  put(column, {&row, 1}, packed.data());
  std::vector<double> value;
  append_numbers(columns_[column].type, packed, 1, value);
  return value.front();
}

std::vector<std::pair<std::string_view, double>> load_outputs(const PointRecord& row) {
  std::vector<std::pair<std::string_view, double>> values;
  for (const FixedColumn& column : kLoadOutputs)
    values.emplace_back(column.name, is_between_tokens(column.name) && !has_second_token(row.workload)
                                         ? kNaN
                                         : column.source.value(row));
  if (row.workload.load->promised == LatencyBounds()) return values;
  for (const FixedColumn& column : kPromiseOutputs)
    values.emplace_back(column.name, column.source.value(row));
  return values;
}

RowsInCommon in_common(std::span<const PointRecord> rows) {
  RowsInCommon common;
  for (const PointRecord& row : rows) {
    common.none_counted &= !has_value(ValuedRows::counted, row);
    common.none_timed &= !has_value(ValuedRows::timed, row);
    common.none_sampled &= !has_value(ValuedRows::sampled, row);
    common.one_workload &= &row.workload == &rows.front().workload;
    common.one_hardware &= row.hardware.data() == rows.front().hardware.data();
  }
  return common;
}

bool ColumnTable::is_same_in_all(std::size_t column, const RowsInCommon& common) const {
  switch (packings_[column].rows) {
    case ValuedRows::counted:
      return common.none_counted;
    case ValuedRows::timed:
      return common.none_timed;
    case ValuedRows::sampled:
      return common.none_sampled;
    case ValuedRows::all:
      break;
  }
  const ColumnGroup group = columns_[column].group;
  return (group == ColumnGroup::workload && common.one_workload) ||
         (group == ColumnGroup::hardware && common.one_hardware);
}

void append_numbers(ColumnType type, std::span<const std::byte> packed, std::size_t count,
                    std::vector<double>& numbers) {
  SHARDSCAPE_CHECK(packed.size() >= count * size_of(type), packed.size(), count);
  with_stored_type(type, [&](auto zero) {
    for (std::size_t i = 0; i < count; ++i) {
      std::memcpy(&zero, packed.data() + i * sizeof(zero), sizeof(zero));
      numbers.push_back(static_cast<double>(zero));
    }
  });
}

std::span<const ColumnInfo> fault_sample_columns() {
  static const std::vector<ColumnInfo> kColumns = [] {
    std::vector<ColumnInfo> columns;
    for (const SampleColumn& c : kSampleColumns) {
      columns.push_back({c.name, c.unit, c.long_name, c.type, ColumnGroup::faults, Better::neither,
                         c.meanings ? c.meanings() : std::vector<std::string>{}, c.fill});
    }
    return columns;
  }();
  return kColumns;
}

void put_fault_samples(std::size_t column, std::span<const FaultSampleRecord> rows, std::byte* out) {
  const SampleColumn& c = kSampleColumns[column];
  if (c.value == nullptr) {
    pack<std::uint64_t>(rows.size(), out, [&](std::size_t i) { return rows[i].point_id; });
  } else {
    pack_as(c.type, rows.size(), out, [&](std::size_t i) { return c.value(rows[i]); });
  }
}

std::optional<int> percent_digits(const ColumnInfo& column) {
  if (column.unit != "1" || (column.group != ColumnGroup::output && column.group != ColumnGroup::faults))
    return std::nullopt;
  if (column.name == "mfu" || column.name == "attainment" || column.name == "expected_error") return 1;
  // One digit more than above, since faults slow most plans by far less than a percent.
  if (column.name.starts_with("slowdown") || column.name.ends_with("_share")) return 2;
  return std::nullopt;
}

bool is_slowdown(const ColumnInfo& column) {
  return column.name.starts_with("slowdown") && !column.name.ends_with("_share") &&
         !column.name.ends_with("_error");
}

std::vector<std::string> rank_order_names() {
  std::vector<std::string> names;
  for (std::int32_t code = 0; code < kRankOrders; ++code) names.push_back(to_string(rank_order_of(code)));
  return names;
}

std::string columns_sha256(std::span<const ColumnInfo> columns) {
  std::string text;
  for (const ColumnInfo& column : columns) {
    text += fmt::format("{}\t{}\t{}", column.name, column.unit, static_cast<int>(column.type));
    for (const std::string& meaning : column.meanings) text += '\t' + meaning;
    text += '\n';
  }
  return sha256_hex(text);
}

}  // namespace shardscape::results
