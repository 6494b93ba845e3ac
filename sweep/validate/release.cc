#include "sweep/validate/release.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <limits>
#include <string>

namespace shardscape::validate {

namespace {

bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

/// The first word of a text; spaces before it are skipped.
std::string_view first_word(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  return text.substr(0, text.find_first_of(" ,;"));
}

/// The last word of a text; spaces behind it are skipped.
std::string_view last_word(std::string_view text) {
  const std::size_t end = text.find_last_not_of(' ');
  if (end == std::string_view::npos) return {};
  text = text.substr(0, end + 1);
  const std::size_t space = text.find_last_of(" ,;");
  return space == std::string_view::npos ? text : text.substr(space + 1);
}

/// Numbers of a release; behind those of a final one stands more than any candidate has.
std::vector<int> numbers_of(std::string_view text) {
  constexpr std::size_t kParts = 3;  // major, minor, patch
  std::vector<int> numbers;
  bool candidate = false;
  while (!text.empty()) {
    int value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error == std::errc()) numbers.push_back(value);
    text.remove_prefix(error == std::errc() ? static_cast<std::size_t>(end - text.data()) : 1);
    if (!text.starts_with("rc")) continue;
    candidate = true;
    numbers.resize(kParts);
    text.remove_prefix(2);
  }
  if (candidate || numbers.empty()) return numbers;
  if (numbers.size() < kParts) numbers.resize(kParts);
  numbers.insert(numbers.begin() + kParts, std::numeric_limits<int>::max());
  return numbers;
}

}  // namespace

std::optional<double> release_number(std::string_view text) {
  constexpr std::size_t kMonth = 5, kPatch = 8;  // lengths of the forms YY.MM and YY.MM.PP
  constexpr int kMonths = 12;
  if (text.size() < kMonth || text.size() > kPatch) return std::nullopt;
  const bool patched = text.size() > kMonth;
  if (text[2] != '.' || (patched && (text[kMonth] != '.' || text.size() == kMonth + 1))) return std::nullopt;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (i != 2 && i != kMonth && !is_digit(text[i])) return std::nullopt;
  }
  const auto number = [&](std::size_t begin, std::size_t count) {
    return std::stoi(std::string(text.substr(begin, count)));
  };
  const int month = number(3, 2);
  if (month < 1 || month > kMonths) return std::nullopt;
  const int patch = patched ? number(kMonth + 1, text.size() - kMonth - 1) : 0;
  return (10000 * number(0, 2) + 100 * month + patch) / 10000.0;
}

std::optional<double> stated_release(std::string_view software, std::string_view source) {
  const std::size_t space = software.find(' ');
  if (space != std::string_view::npos) {
    if (const auto version = release_number(first_word(software.substr(space)))) return version;
  }
  constexpr std::string_view kContainer = " NeMo Container", kRecipes = "dgxc-benchmarking v";
  if (const std::size_t at = source.find(kContainer); at != std::string_view::npos)
    return release_number(last_word(source.substr(0, at)));
  if (const std::size_t at = source.find(kRecipes); at != std::string_view::npos)
    return release_number(first_word(source.substr(at + kRecipes.size())));
  return std::nullopt;
}

ReleaseOrder::ReleaseOrder(std::string_view software) {
  if (const std::size_t space = software.find(' '); space != std::string_view::npos)
    numbers_ = numbers_of(first_word(software.substr(space)));
}

bool ReleaseOrder::before(std::string_view release) const {
  return stated() && numbers_ < numbers_of(release);
}

}  // namespace shardscape::validate
