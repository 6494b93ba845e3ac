// Reads a table of requests line by line. The first line decides on one of three formats by its column names; each
// further line becomes a request, whose arrival is counted from the first one. Of a line that is wrong the first
// problem is told, and the next line is read as if this one were as the line above.
#include "sweep/study/trace_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <optional>

#include "engine/spec/ranges.h"
#include "sweep/input/csv_line.h"
#include "sweep/yaml/number.h"

namespace shardscape::sweep {

namespace {

struct Format {
  std::string_view arrival, prompt, output;
  double seconds;  ///< seconds of a unit of the arrival column; 0: the column holds dates and times
};
constexpr std::array<Format, 3> kFormats = {{{"arrival_s", "prompt_tokens", "output_tokens", 1},
                                             {"timestamp", "input_length", "output_length", 1e-3},
                                             {"TIMESTAMP", "ContextTokens", "GeneratedTokens", 0}}};

/// Tokens of a block of Mooncake's traces (Qin et al. 2025, arXiv:2407.00079, section 4), of which these have hashes.
constexpr std::int64_t kHashedTokens = 512;
constexpr std::size_t kMostPieces = 1 << 24;
/// Of more problems than are shown of any file the reading ends.
constexpr std::size_t kMostProblems = 201;

/// Takes the next line of a text off it; nothing where the line is blank.
std::optional<std::string_view> take_line(std::string_view& text) {
  const std::size_t end = text.find('\n');
  const std::string_view row = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  if (row.find_first_not_of(" \r") == std::string_view::npos) return {};
  return row;
}

/// Seconds since 1970 of "2023-11-16 18:17:03.9799600", in universal time whether it says so ("+00:00", "Z") or not.
std::optional<double> moment_of(std::string_view text) {
  for (const std::string_view zone : {"+00:00", "Z"})
    if (text.ends_with(zone)) text.remove_suffix(zone.size());
  if (text.size() < 19 || text[4] != '-' || text[7] != '-' || text[13] != ':' || text[16] != ':') return {};
  const auto part = [&](std::size_t at, std::size_t size, std::int64_t high) {
    return yaml::parse_integer(text.substr(at, size), 0, high);
  };
  const auto year = part(0, 4, 9999), month = part(5, 2, 12), day = part(8, 2, 31), hour = part(11, 2, 23),
             minute = part(14, 2, 59);
  const auto second = yaml::parse_finite(text.substr(17));
  if (!year || !month || !day || !hour || !minute || !second || *second < 0 || *second >= 61) return {};
  const std::chrono::year_month_day date(std::chrono::year(static_cast<int>(*year)),
                                         std::chrono::month(static_cast<unsigned>(*month)),
                                         std::chrono::day(static_cast<unsigned>(*day)));
  if (!date.ok()) return {};
  const auto days = std::chrono::sys_days(date).time_since_epoch().count();
  return static_cast<double>(days) * 86400 + static_cast<double>(*hour * 3600 + *minute * 60) + *second;
}

class TraceReader {
 public:
  tl::expected<Trace, std::vector<std::string>> run(std::string_view text) {
    constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";  // spreadsheets write it
    if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
    for (std::size_t line = 1; !text.empty() && !ended(); ++line) {
      const auto row = take_line(text);
      if (!row) continue;
      problem_.clear();
      if (format_ == nullptr) {
        read_names(input::cells_of(*row));
      } else {
        read_row(input::cells_of(*row));
      }
      if (!problem_.empty()) problems_.push_back(fmt::format("line {}: {}", line, problem_));
    }
    if (problems_.empty() && trace_.requests.empty()) problems_.emplace_back("has no requests");
    if (!problems_.empty()) return tl::unexpected(std::move(problems_));
    const auto lengths = [&](std::int32_t TraceRequest::*tokens) {
      const auto [low, high] = std::ranges::minmax(trace_.requests, {}, tokens);
      double sum = 0;
      for (const TraceRequest& request : trace_.requests) sum += request.*tokens;
      return Lengths{LengthLaw::trace, sum / static_cast<double>(trace_.requests.size()), 1, 0, high.*tokens,
                     low.*tokens};
    };
    trace_.prompt = lengths(&TraceRequest::prompt);
    trace_.output = lengths(&TraceRequest::output);
    return std::move(trace_);
  }

 private:
  /// Whether no further line is read: without names none can be, and of too many problems nobody reads the next.
  [[nodiscard]] bool ended() const {
    return (format_ == nullptr && !problems_.empty()) || problems_.size() >= kMostProblems ||
           trace_.pieces.size() > kMostPieces;
  }

  void read_names(const std::vector<std::string_view>& names) {
    width_ = names.size();
    const auto find = [&](std::string_view name) {
      return static_cast<std::size_t>(std::ranges::find(names, name) - names.begin());
    };
    for (const Format& format : kFormats) {
      columns_ = {find(format.arrival), find(format.prompt),          find(format.output),
                  find("priority"),     find("reused_prefix_blocks"), find("parent_request")};
      if (std::ranges::all_of(std::span(columns_).first(3),
                              [&](std::size_t c) { return c < names.size(); })) {
        format_ = &format;
        for (const std::size_t column : columns_) {
          if (column < width_ && std::ranges::count(names, names[column]) > 1)
            problem_ = fmt::format("has {} twice: which of them is it?", names[column]);
        }
        has_priority_ = columns_[3] < names.size();
        has_prefixes_ = columns_[4] < names.size() && columns_[5] < names.size();
        return;
      }
    }
    problem_ =
        "needs the columns arrival_s, prompt_tokens and output_tokens (or Azure's TIMESTAMP, ContextTokens "
        "and "
        "GeneratedTokens, or Mooncake's timestamp, input_length and output_length)";
  }

  void read_row(const std::vector<std::string_view>& cells) {
    if (cells.size() > width_) {
      problem_ = fmt::format("has {} fields, but the first line names {} (no commas in numbers)",
                             cells.size(), width_);
      return;
    }
    const auto cell = [&](std::size_t column) {
      return columns_[column] < cells.size() ? cells[columns_[column]] : std::string_view();
    };
    TraceRequest request;
    request.arrival = arrival_of(cell(0));
    const auto tokens = [&](std::size_t column, std::string_view name) {
      const auto value =
          yaml::parse_integer(cell(column), 1, static_cast<std::int64_t>(ranges::kTokens.high));
      if (!value && problem_.empty())
        problem_ = fmt::format("{} {}", name, cell(column).empty() ? "is missing" : value.error());
      return static_cast<std::int32_t>(value.value_or(1));
    };
    request.prompt = tokens(1, format_->prompt);
    request.output = tokens(2, format_->output);
    if (has_priority_) {
      const auto priority = yaml::parse_integer(cell(3), -1'000'000'000, 1'000'000'000);
      if (!priority && problem_.empty()) problem_ = "priority " + priority.error();
      request.priority = static_cast<std::int32_t>(priority.value_or(0));
    }
    if (has_prefixes_) read_prefix(cell(4), cell(5), request.prompt);
    trace_.requests.push_back(request);
  }

  /// Seconds since the first request; those of the line above where the cell has a problem.
  double arrival_of(std::string_view cell) {
    const double before = trace_.requests.empty() ? 0 : trace_.requests.back().arrival;
    const auto moment = format_->seconds > 0 ? yaml::parse_finite(cell) : moment_of(cell);
    const double arrival = moment ? *moment * (format_->seconds > 0 ? format_->seconds : 1) : 0;
    if (!moment) {
      problem_ = fmt::format("{} {}", format_->arrival, cell.empty() ? "is missing" : "is no time");
    } else if (format_->seconds > 0 && arrival < 0) {
      problem_ = fmt::format("{} is negative", format_->arrival);
    } else if (first_ && arrival - *first_ < before) {
      problem_ = fmt::format("{} lies before that of the line above", format_->arrival);
    } else if (first_ && arrival - *first_ > ranges::kTime.high) {
      problem_ = fmt::format("{} is too far from the first", format_->arrival);
    }
    if (!problem_.empty()) return before;
    if (!first_) first_ = arrival;
    return arrival - *first_;
  }

  /// The first blocks of a prompt are those of an earlier one, which had them from its own parents or by itself.
  void read_prefix(std::string_view blocks, std::string_view parent, std::int64_t prompt) {
    std::vector<std::size_t>& begin = trace_.piece_begin;
    const auto number = static_cast<std::int64_t>(trace_.requests.size());
    if (begin.empty()) begin.push_back(0);
    const auto reused = yaml::parse_integer(blocks, 0, static_cast<std::int64_t>(ranges::kTokens.high));
    if (!reused && problem_.empty()) problem_ = "reused_prefix_blocks " + reused.error();
    if (reused.value_or(0) > 0) {
      const auto of = yaml::parse_integer(parent, 0, std::max<std::int64_t>(0, number - 1));
      if ((!of || number == 0) && problem_.empty())
        problem_ = "parent_request must be the number of an earlier request, from 0 on";
      if (problem_.empty()) {
        const std::int64_t end = std::min(*reused * kHashedTokens, prompt);
        std::int64_t last = 0;
        const auto first = begin[static_cast<std::size_t>(*of)],
                   stop = begin[static_cast<std::size_t>(*of) + 1];
        for (std::size_t i = first; i < stop && last < end; ++i) {
          PrefixPiece piece = trace_.pieces[i];
          last = piece.end = std::min(piece.end, end);
          trace_.pieces.push_back(piece);
        }
        if (last < end) trace_.pieces.push_back({*of, end});
        if (trace_.pieces.size() > kMostPieces) problem_ = "has too many parents above it";
      }
    }
    begin.push_back(trace_.pieces.size());
  }

  Trace trace_;
  std::string problem_;  ///< of the line that is read
  std::vector<std::string> problems_;
  const Format* format_ = nullptr;
  std::array<std::size_t, 6> columns_{};
  std::size_t width_ = 0;  ///< fields of the first line
  bool has_priority_ = false, has_prefixes_ = false;
  std::optional<double> first_;  ///< arrival of the first request
};

}  // namespace

tl::expected<Trace, std::vector<std::string>> parse_trace(std::string_view text) {
  return TraceReader().run(text);
}

std::size_t line_of_request(std::string_view text, std::size_t request) {
  std::size_t rows = 0, line = 0;
  for (; !text.empty() && rows < request + 2; ++line) rows += take_line(text) ? 1 : 0;
  return line;
}

}  // namespace shardscape::sweep
