// Remembers values under so few keys that they are looked through one after the other.
#pragma once

#include <boost/container/small_vector.hpp>
#include <cstddef>
#include <type_traits>
#include <vector>

namespace shardscape {

/// Values by key, in the order in which keys came. References to values hold until the next new key. The first `kUsual`
/// keys need no memory from the heap.
template <class Key, class Value, std::size_t kUsual = 0>
class ShortMemo {
 public:
  struct Entry {
    Key key;
    Value value;
  };
  /// The value of a key. `fresh`: the key is new, and its value is empty.
  struct Place {
    Value& value;
    bool fresh = false;
  };
  Place at(const Key& key) {
    for (Entry& entry : entries_)
      if (entry.key == key) return {entry.value, false};
    entries_.push_back({key, Value()});
    return {entries_.back().value, true};
  }
  /// The value of a key; that of a new key is computed by `make()`.
  template <class Make>
  Value& get(const Key& key, const Make& make) {
    for (Entry& entry : entries_)
      if (entry.key == key) return entry.value;
    entries_.push_back({key, make()});
    return entries_.back().value;
  }
  void forget() { entries_.clear(); }

  [[nodiscard]] auto begin() const { return entries_.begin(); }
  [[nodiscard]] auto end() const { return entries_.end(); }

 private:
  /// A small_vector has room for one entry at least.
  std::conditional_t<kUsual == 0, std::vector<Entry>, boost::container::small_vector<Entry, kUsual>> entries_;
};

}  // namespace shardscape
