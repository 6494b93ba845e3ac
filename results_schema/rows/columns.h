// THE table of columns of /points: names, units, types, meanings, and where each value comes from. The
// writer, the reader, the documentation (SCHEMA.md) and the command line all take their knowledge of columns
// from here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/base/enum_names.h"
#include "engine/spec/workload.h"
#include "results_schema/rows/records.h"

namespace shardscape::results {

enum class ColumnType : std::uint8_t { u8, i32, u64, f4, f8, boolean };
SHARDSCAPE_ENUM_NAMES(ColumnType, "u8", "i32", "u64", "f4", "f8", "bool");
enum class ColumnGroup : std::uint8_t { id, plan, workload, hardware, output, memory, breakdown, faults };
/// The direction in which a column improves. Only columns with a direction can be objectives.
enum class Better : std::uint8_t { neither, smaller, larger };

/// Calls `visit` with a zero of the C++ type in which values of the column are stored.
template <class Visit>
void with_stored_type(ColumnType type, const Visit& visit) {
  switch (type) {
    case ColumnType::u8:
    case ColumnType::boolean:
      return visit(std::uint8_t{});
    case ColumnType::i32:
      return visit(std::int32_t{});
    case ColumnType::u64:
      return visit(std::uint64_t{});
    case ColumnType::f4:
      return visit(float{});
    case ColumnType::f8:
      return visit(double{});
  }
}

/// Appends `count` packed values of a column of that type to `numbers`.
void append_numbers(ColumnType type, std::span<const std::byte> packed, std::size_t count,
                    std::vector<double>& numbers);

/// Bytes per stored value.
constexpr std::size_t size_of(ColumnType type) {
  constexpr std::size_t kSizes[] = {1, 4, 8, 4, 8, 1};
  return kSizes[static_cast<std::size_t>(type)];
}

/// All that a reader of a file knows about a column; its HDF5 attributes hold exactly this.
struct ColumnInfo {
  std::string name;  ///< a Python identifier, which ends in the unit
  std::string unit;  ///< UDUNITS: "s", "byte", "byte s-1", "s-1"; "1" where there is none
  std::string long_name;
  ColumnType type = ColumnType::f8;
  ColumnGroup group = ColumnGroup::output;
  Better better = Better::neither;
  std::vector<std::string> meanings;  ///< names of the codes 0, 1, ...; empty for plain numbers
  std::optional<double> fill = {};    ///< the value that means "not computed"; NaN needs none
  bool ordered = false;               ///< the codes, or the numbers 0 .. levels - 1, are steps of one scale
  int levels = 0;                     ///< number of steps of an ordered column without meanings
  friend bool operator==(const ColumnInfo&, const ColumnInfo&) = default;
};

/// Whether a column is an axis that the study chose; microbatches follow from other axes.
inline bool is_axis(const ColumnInfo& column) {
  const bool input = column.group == ColumnGroup::plan || column.group == ColumnGroup::workload ||
                     column.group == ColumnGroup::hardware;
  return input && column.name != "microbatches";
}

/// Whether a request of the workload may have a second output token; where none has, nothing lies between tokens, and
/// columns of times between tokens have no value.
inline bool has_second_token(const WorkloadSpec& workload) { return workload.longest_output() > 1; }
/// Whether a column of that name is a time between the output tokens of a request.
constexpr bool is_between_tokens(std::string_view column) {
  return column.starts_with("itl_") || column.starts_with("tpot_");
}

/// Number of decimals with which people read a result that is a share, in percent; nothing for other columns. Files
/// always hold the fraction.
std::optional<int> percent_digits(const ColumnInfo& column);

/// Whether a column has times under faults over times without, less 1.
bool is_slowdown(const ColumnInfo& column);

/// A hardware axis of the study as a column: f8 for a number, a code for a choice.
struct HardwareColumn {
  std::string name;
  std::string unit = "1";
  std::string long_name;
  std::vector<std::string>
      choices;  ///< names of the codes 0, 1, ... (blanks become underscores); empty for a number
};

/// The rows for which a column has values: all; those whose memory was counted; those whose time was computed; those
/// with fault samples. In all other rows it has one fixed value.
enum class ValuedRows : std::uint8_t { all, counted, timed, sampled };

/// Properties that all rows of a block share and from which it follows that many columns are constant in it.
struct RowsInCommon {
  bool none_counted = true, none_timed = true, none_sampled = true;
  bool one_workload = true, one_hardware = true;  ///< all rows refer to the same object
};
RowsInCommon in_common(std::span<const PointRecord> rows);

/// The parts of a study that need columns of their own.
struct StudyExtras {
  bool faults = false, reliability = false;
  bool load = false;      ///< whether the load is simulated request by request
  bool promises = false;  ///< whether the study promises latencies to requests
  /// Names of the bounds on results (limits.h): the codes of `reason` behind those that every study has.
  std::vector<std::string> limits = {};
};
inline const StudyExtras kAllExtras{.faults = true, .reliability = true, .load = true, .promises = true};

/// The columns of one study, in file order. Immutable after construction; any number of threads may use one
/// object.
class ColumnTable {
 public:
  /// Leaves out columns that mean nothing in `phase`. Those of the group `faults` are there if the study has faults,
  /// those about goodput if it has reliability, those of simulated loads if it has one. Names of hardware columns are
  /// distinct and differ from the fixed names.
  explicit ColumnTable(Phase phase, std::span<const HardwareColumn> hardware = {},
                       const StudyExtras& extras = {});

  [[nodiscard]] std::span<const ColumnInfo> columns() const& { return columns_; }
  std::span<const ColumnInfo> columns() && = delete;  // would return a dangling span
  /// The column of that name; null where there is none.
  [[nodiscard]] const ColumnInfo* find(std::string_view name) const;

  /// Writes one column of `rows` as densely packed native values: rows.size() * size_of(type) bytes at `out`.
  /// Outputs that mean nothing for a row are NaN: times, rates and breakdown unless the status is ok; memory
  /// where the plan was rejected before memory was counted. Integers that mean nothing hold the column's
  /// `fill`.
  void put(std::size_t column, std::span<const PointRecord> rows, std::byte* out) const;

  /// The value of one column in a row, as it is stored.
  [[nodiscard]] double number(std::size_t column, const PointRecord& row) const;

  /// Keeps only the named columns and those that every file has: point_id and verdicts, the columns that readers rank
  /// and check by (time, peak memory and its stage, `objectives`), and with faults those that samples are checked
  /// against.
  void keep_only(std::span<const std::string> names, std::span<const std::string> objectives);

  /// Whether rows with these common properties hold one value in a column, as far as that is known without looking;
  /// true is always right.
  [[nodiscard]] bool is_same_in_all(std::size_t column, const RowsInCommon& common) const;

 private:
  using Packer = void (*)(ColumnType, std::span<const PointRecord>, std::byte*);
  struct Packing {
    Packer packer = nullptr;  ///< null for a hardware axis or the point id
    ValuedRows rows = ValuedRows::all;
    std::size_t axis = 0;  ///< index of the hardware axis
  };

  std::vector<ColumnInfo> columns_;
  std::vector<Packing> packings_;  ///< how each column is packed
};

/// Names and values of the outputs that a simulated load has beside the others.
std::vector<std::pair<std::string_view, double>> load_outputs(const PointRecord& row);

/// The columns of /fault_samples, in file order.
std::span<const ColumnInfo> fault_sample_columns();
/// Writes one column of fault_sample_columns(), as ColumnTable::put() does.
void put_fault_samples(std::size_t column, std::span<const FaultSampleRecord> rows, std::byte* out);

/// Names of the codes of `rank_order` (rank_order_code() in engine/spec/plan.h) as flag_meanings hold them. Readers of
/// a file use those of the file.
std::vector<std::string> rank_order_names();

/// A fingerprint of names, units, types and codes (hexadecimal SHA-256): files with equal fingerprints have
/// equal columns.
std::string columns_sha256(std::span<const ColumnInfo> columns);

}  // namespace shardscape::results
