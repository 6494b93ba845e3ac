// Remembers the results of pure functions, each under a key that holds everything that the function reads.
//
// The key is a plain struct that stands beside the function and lists what it reads, with a defaulted ==; its hash is
// made from all of its fields (fields.h), so that none can be left out of one and not of the other.
#pragma once

#include <boost/container/small_vector.hpp>

#include <array>
#include <cstddef>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "engine/base/fields.h"

namespace shardscape {

/// Values by key. References to values stay valid until they are forgotten.
template <class Key, class Value>
class Memo {
 public:
  using Entry = std::pair<const Key, Value>;
  /// Returns the value of a key. The value of a new key is computed by `make()`, which may itself ask this memo for
  /// other keys.
  template <class Make>
  Value& get(const Key& key, const Make& make) {
    return entry(key, make).second;
  }
  /// As get(), but returns the stored pair of key and value.
  template <class Make>
  Entry& entry(const Key& key, const Make& make) {
    const auto known = values_.find(key);
    return known != values_.end() ? *known : *values_.emplace(key, make()).first;
  }
  /// The value of a key; null where it has none.
  [[nodiscard]] Value* find(const Key& key) {
    const auto known = values_.find(key);
    return known != values_.end() ? &known->second : nullptr;
  }
  void forget() { values_.clear(); }

 private:
  std::unordered_map<Key, Value, FieldsHash> values_;
};

/// A memo for a handful of keys that are asked for over and over.
template <class Key, class Value>
class HandyMemo {
 public:
  HandyMemo() = default;
  HandyMemo(HandyMemo&&) noexcept = default;
  HandyMemo& operator=(HandyMemo&&) noexcept = default;
  /// Looks first at the key last asked for with this `hint`, a number that tells keys of the handful apart.
  template <class Make>
  Value& get(const Key& key, std::size_t hint, const Make& make) {
    typename Memo<Key, Value>::Entry*& last = last_[hint % last_.size()];
    if (last == nullptr || !(last->first == key)) last = &memo_.entry(key, make);
    return last->second;
  }
  void forget() {
    memo_.forget();
    last_ = {};
  }

 private:
  Memo<Key, Value> memo_;
  std::array<typename Memo<Key, Value>::Entry*, 16> last_{};
};

/// A memo of bounded size, as large as `kSlots` says from the first key on: each pair of slots keeps the two keys that
/// were asked for last of those that fall on it, so that few of a handful of keys drive each other out.
template <class Key, class Value, std::size_t kSlots>
class SlotMemo {
 public:
  /// The slot of a key. `fresh`: it holds what was made for another key, or nothing, and is the key's from now on.
  /// Valid until the next call.
  struct Place {
    Value& value;
    bool fresh = false;
  };
  Place at(const Key& key) {
    static_assert(kSlots % 2 == 0);
    slots_.resize(kSlots);
    Slot* const pair = &slots_[FieldsHash()(key) % (kSlots / 2) * 2];
    std::size_t& latest = pair->latest;
    for (const std::size_t at : {latest, 1 - latest}) {
      if (!pair[at].used || !(pair[at].key == key)) continue;
      latest = at;
      return {pair[at].value, false};
    }
    latest = 1 - latest;
    Slot& slot = pair[latest];
    slot.key = key;
    slot.used = true;
    return {slot.value, true};
  }

 private:
  struct Slot {
    Key key;
    bool used = false;
    std::size_t latest = 0;  ///< of a pair, in its first slot: which was asked for last
    Value value;
  };
  std::vector<Slot> slots_;
};

/// Values by so few keys that they are looked through one after the other, in the order in which keys came. References
/// to values hold until the next new key. The first `kUsual` keys need no memory from the heap.
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
