#include "sweep/yaml/diagnostics.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "engine/base/safe_text.h"

namespace shardscape::yaml {

namespace {

const std::string& source_name(const Location& where) {
  static const std::string kNone;
  return where.source ? *where.source : kNone;
}

bool same_place(const Location& a, const Location& b) {
  return a.line == b.line && a.column == b.column && source_name(a) == source_name(b);
}

}  // namespace

std::string to_string(const Location& where) {
  std::string text = source_name(where);
  if (where.line > 0) text += fmt::format(":{}:{}", where.line, where.column);
  return text;
}

std::string to_string(const Diagnostic& diagnostic) {
  std::string text = to_string(diagnostic.where);
  if (!text.empty()) text += ": ";
  if (!diagnostic.path.empty()) text += diagnostic.path + ": ";
  return text + diagnostic.message;
}

void Diagnostics::add(Location where, std::string path, std::string message) {
  const bool known = std::ranges::any_of(list_, [&](const Diagnostic& d) {
    return d.path == path && d.message == message && same_place(d.where, where);
  });
  if (known) return;
  if (full()) {
    ++further_;
  } else {
    list_.push_back({std::move(where), std::move(path), std::move(message)});
  }
}

void Diagnostics::add(const Diagnostic& diagnostic) {
  add(diagnostic.where, diagnostic.path, diagnostic.message);
}

void Diagnostics::append(const Diagnostics& other) {
  for (const Diagnostic& diagnostic : other.list_) add(diagnostic);
  further_ += other.further_;
}

void Diagnostics::sort() {
  std::map<std::string, std::size_t> order;
  for (const Diagnostic& d : list_) order.emplace(source_name(d.where), order.size());
  const auto rank = [&](const Diagnostic& d) {
    return std::tuple(order.at(source_name(d.where)), d.where.line, d.where.column);
  };
  std::ranges::stable_sort(list_, [&](const auto& a, const auto& b) { return rank(a) < rank(b); });
}

std::string Diagnostics::to_string() const {
  std::string text;
  for (const Diagnostic& diagnostic : list_) text += message_line(yaml::to_string(diagnostic)) + '\n';
  if (further_ > 0) text += "and further problems\n";
  return text;
}

}  // namespace shardscape::yaml
