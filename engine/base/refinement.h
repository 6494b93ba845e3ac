// Sorts objects into classes of those that fare alike, so that one of each class can stand for all.
//
// Objects (ranks, links, messages and so on, mixed at will) meet each other in ways that are told by numbers: an
// object may meet another as "the link that I cross third". Two objects are alike where they are so in themselves and
// where they meet, one for one and in the same ways, objects that are alike. refine() finds the coarsest such
// partition, an equitable one, by refinement of colours (Weisfeiler and Leman 1968; Berkholz, Bonsma and Grohe 2017,
// section 2): what is alike in itself is one class at first; a round splits the classes whose members meet different
// classes, and the next has only to look at what meets an object whose class has changed.
//
// What objects meet is compared by sums: each pair of a way and a class has a number of 128 bits, as good as random,
// and an object has the sum of those of its meetings. The sums of a million objects are equal only where the lists of
// their meetings are, but for one case in more than 10^17.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "engine/base/hash.h"
#include "engine/base/signature.h"

namespace shardscape {

/// Classes of like objects, numbered in the order of their first members.
struct Classes {
  std::vector<std::int32_t> of;     ///< by object: its class; -1: in none
  std::vector<std::int32_t> first;  ///< by class: its first object, which stands for the class

  [[nodiscard]] std::size_t representative(std::size_t object) const {
    return static_cast<std::size_t>(first[static_cast<std::size_t>(of[object])]);
  }
  [[nodiscard]] bool stands(std::size_t object) const { return representative(object) == object; }
};

/// Numbers classes anew; the classes of `of` may have any numbers, and objects with -1 are in none. O(objects + the
/// highest number).
inline Classes number_classes(std::span<const std::int32_t> of) {
  Classes classes;
  std::vector<std::int32_t> number;
  for (std::size_t i = 0; i < of.size(); ++i) {
    classes.of.push_back(of[i]);
    if (of[i] < 0) continue;
    const auto old = static_cast<std::size_t>(of[i]);
    if (number.size() <= old) number.resize(old + 1, -1);
    if (number[old] < 0) {
      number[old] = static_cast<std::int32_t>(classes.first.size());
      classes.first.push_back(static_cast<std::int32_t>(i));
    }
    classes.of.back() = number[old];
  }
  return classes;
}

/// A partition of objects into classes, which split() refines.
class Partition {
 public:
  struct Ignored {
    void operator()(std::int32_t /*object*/, std::int32_t /*before*/) const {}
  };

  /// All objects are in class 0.
  explicit Partition(std::size_t objects) : of_(objects, 0), common_(1), size_{objects} {}

  /// By object: the number of its class. Every number below count() is that of a class.
  [[nodiscard]] const std::vector<std::int32_t>& of() const { return of_; }
  [[nodiscard]] std::size_t count() const { return size_.size(); }

  /// Splits classes by signature: afterwards two objects are in one class only if they were before and have equal
  /// signatures. `by`: signature by object; objects that are not in `objects` keep the signatures that they had in the
  /// split before. Objects that leave no class keep their number. Where all objects leave a class, the largest group of
  /// them keeps its number. moved(object, number before) is called for every object whose class number changes.
  template <class Moved = Ignored>
  void split(std::vector<std::int32_t> objects, std::span<const Signature> by, Moved moved = {}) {
    std::erase_if(objects, [&](std::int32_t object) {
      const std::size_t of = number_of(object);
      if (common_[of] == by[static_cast<std::size_t>(object)]) return true;
      --size_[of];
      return false;
    });
    groups_.clear();
    known_.clear();
    group_of_.clear();
    std::uint32_t group = 0;
    for (const std::int32_t object : objects) {
      const Leaving leaving(of_[static_cast<std::size_t>(object)], by[static_cast<std::size_t>(object)]);
      if (groups_.empty() || groups_[group].leaving != leaving) {  // often as the object before
        const auto [entry, fresh] = known_.try_emplace(leaving, groups_.size());
        if (fresh) groups_.push_back({leaving, 0, 0});
        group = entry->second;
      }
      ++groups_[group].objects;
      group_of_.push_back(group);
    }
    number_groups();
    for (std::size_t i = 0; i < objects.size(); ++i) {
      const std::int32_t number = groups_[group_of_[i]].number;
      const std::int32_t before = std::exchange(of_[static_cast<std::size_t>(objects[i])], number);
      if (before != number) moved(objects[i], before);
    }
  }

 private:
  using Leaving = std::pair<std::int32_t, Signature>;  ///< the class that is left, and the signature
  struct HashOfLeaving {
    std::size_t operator()(const Leaving& l) const {
      return hash_word(l.second.half(), static_cast<std::uint64_t>(l.first));
    }
  };
  /// Objects that leave a class together.
  struct Group {
    Leaving leaving;
    std::size_t objects = 0;
    std::int32_t number = 0;  ///< number of their class after the split
    [[nodiscard]] std::size_t from() const { return static_cast<std::size_t>(leaving.first); }
  };

  [[nodiscard]] std::size_t number_of(std::int32_t object) const {
    return static_cast<std::size_t>(of_[static_cast<std::size_t>(object)]);
  }

  void number_groups() {
    heir_.resize(size_.size(), nullptr);
    for (const Group& g : groups_) {
      const Group*& heir = heir_[g.from()];
      if (size_[g.from()] == 0 && (heir == nullptr || heir->objects < g.objects)) heir = &g;
    }
    for (Group& g : groups_) {
      const bool keeps = heir_[g.from()] == &g;
      const std::size_t number = keeps ? g.from() : size_.size();
      if (!keeps) {
        size_.push_back(0);
        common_.emplace_back();
      }
      size_[number] = g.objects;
      common_[number] = g.leaving.second;
      g.number = static_cast<std::int32_t>(number);
    }
    for (const Group& g : groups_) heir_[g.from()] = nullptr;
  }

  std::vector<std::int32_t> of_;
  std::vector<Signature> common_;  ///< by class: the signature that its objects were told apart by
  std::vector<std::size_t> size_;  ///< by class: number of objects
  // Working memory of the current split().
  std::unordered_map<Leaving, std::uint32_t, HashOfLeaving> known_;
  std::vector<Group> groups_;
  std::vector<std::uint32_t> group_of_;  ///< by place in `objects`: the group that the object leaves with
  std::vector<const Group*> heir_;       ///< by class that nothing stays in: the group that keeps its number
};

/// For each object, the objects that it meets and the ways in which it does.
class Meetings {
 public:
  struct Meeting {
    std::int32_t other = 0;  ///< number of an object
    std::uint32_t how = 0;   ///< the way in which the other meets this one
  };

  /// `visit` must pass all meetings to its argument, as (an object, the way in which it meets the other, the other, the
  /// way in which that meets the first), and is called twice: it must pass the same, in the same order, each time.
  template <class Visit>
  Meetings(std::size_t objects, Visit visit) : begin_(objects + 1, 0) {
    visit([&](std::size_t a, std::uint32_t /*how*/, std::size_t b, std::uint32_t /*how*/) {
      ++begin_[a];
      ++begin_[b];
    });
    for (std::size_t object = 0; object < objects; ++object) begin_[object + 1] += begin_[object];
    meetings_.resize(begin_.back());
    visit([&](std::size_t a, std::uint32_t how_a, std::size_t b, std::uint32_t how_b) {
      meetings_[--begin_[a]] = {static_cast<std::int32_t>(b), how_b};
      meetings_[--begin_[b]] = {static_cast<std::int32_t>(a), how_a};
    });
  }

  [[nodiscard]] std::size_t objects() const { return begin_.size() - 1; }
  [[nodiscard]] std::span<const Meeting> of(std::size_t object) const {
    return std::span(meetings_).subspan(begin_[object], begin_[object + 1] - begin_[object]);
  }

 private:
  std::vector<std::uint32_t> begin_;  ///< by object: its first meeting
  std::vector<Meeting> meetings_;
};

/// Finds the coarsest partition in which like objects have like meetings. `are`: by object, a signature of its kind and
/// of all that it is by itself. `enough(partition)` is asked before each round; true ends the refinement early. Time in
/// proportion to all meetings at first, and in each further round to the objects and to the meetings of those whose
/// class number changes.
template <class Enough = bool (*)(const Partition&)>
Partition refine(
    const Meetings& meetings, std::vector<Signature> are,
    Enough enough = [](const Partition& /*partition*/) { return false; }) {
  Partition partition(are.size());
  std::vector<std::int32_t> objects(are.size());
  std::iota(objects.begin(), objects.end(), 0);
  partition.split(objects, are);
  std::vector<Signature> met = std::move(are);  // by object: the sum of its meetings
  met.assign(met.size(), {});
  std::vector<char> due(met.size(), 1);
  const auto meet = [&](std::size_t object, auto change) {
    for (const Meetings::Meeting& m : meetings.of(object)) {
      change(met[static_cast<std::size_t>(m.other)], std::uint64_t{m.how} << 32);
      due[static_cast<std::size_t>(m.other)] = 1;
    }
  };
  const auto number = [&](std::size_t object) { return static_cast<std::uint32_t>(partition.of()[object]); };
  for (std::size_t object = 0; object < met.size(); ++object)
    meet(object,
         [now = number(object)](Signature& sum, std::uint64_t how) { sum += Signature::of(how | now); });
  for (bool more = true; std::exchange(more, false) && !enough(partition);) {
    objects.clear();
    for (std::size_t object = 0; object < due.size(); ++object)
      if (std::exchange(due[object], char{0}) != 0) objects.push_back(static_cast<std::int32_t>(object));
    partition.split(std::move(objects), met, [&](std::int32_t object, std::int32_t before) {
      more = true;
      const auto i = static_cast<std::size_t>(object);
      meet(i, [now = number(i), old = static_cast<std::uint32_t>(before)](Signature& sum, std::uint64_t how) {
        sum += Signature::of(how | now);
        sum -= Signature::of(how | old);
      });
    });
  }
  return partition;
}

}  // namespace shardscape
