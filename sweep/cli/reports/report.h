// What a command reports, said once: the text for people and the JSON for programs come from the same rows.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sweep/cli/terminal/text_table.h"

namespace shardscape::cli {

using Json = nlohmann::ordered_json;

/// A value as people read it, and as programs do: in SI units, null where it is unknown, and Json::value_t::discarded
/// where the object of its row is to lack it.
struct Cell {
  std::string text;
  Json value;
};
namespace cell {
/// The same words for both.
Cell words(std::string_view text);
/// A count, with separators for people.
Cell count(std::uint64_t number);
/// An integer without separators, such as an id.
Cell number(std::int64_t number);
Cell seconds(double value);
Cell bytes(double value);
/// A share, in percent for people.
Cell share(double value, int digits = 1);
/// A number with an SI prefix for people: "312.0 TFLOP/s".
Cell si(double value, std::string_view unit);
}  // namespace cell

/// Names with values: lines of text, and one JSON object.
class Facts {
 public:
  void add(std::string name, const char* key, Cell cell);
  /// Adds a line for people alone.
  void add_text(std::string name, std::string text) { lines_.push_back({std::move(name), std::move(text)}); }
  /// Adds a value for programs alone.
  void add_value(const char* key, Json value) { values_[key] = std::move(value); }
  void print(std::ostream& out, bool json) const;

 private:
  std::vector<std::vector<std::string>> lines_;
  Json values_ = Json::object();
};

/// Rows with the same columns: a table of text, CSV, and a JSON array of objects.
class Rows {
 public:
  struct Column {
    TextTable::Heading heading;
    const char* key = nullptr;  ///< in JSON and CSV; null: for people alone
    bool hidden = false;        ///< for programs alone
  };
  static Column hidden(const char* key) { return {"", key, true}; }

  Rows(std::initializer_list<Column> columns) : columns_(columns) {}
  explicit Rows(std::vector<Column> columns) : columns_(std::move(columns)) {}
  /// Adds one cell per column.
  void add(std::vector<Cell> cells);
  [[nodiscard]] std::size_t size() const { return rows_.size(); }

  /// Prints the first `most` rows as text.
  void print(std::ostream& out, std::size_t indent, std::size_t most = SIZE_MAX) const;
  void print_csv(std::ostream& out) const;
  [[nodiscard]] Json json() const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<Cell>> rows_;
};

}  // namespace shardscape::cli
