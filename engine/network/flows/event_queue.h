// The future of a simulation: events in the order of their time, simultaneous ones together.
//
// Symmetric traffic makes many events at exactly the same instant. They share one bucket, so that the heap
// holds instants rather than events: an event costs an append, an instant a heap operation.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/base/hash.h"

namespace shardscape::network {

class EventQueue {
 public:
  enum class Kind : std::uint8_t { drain, receipt, gate };
  void clear();
  [[nodiscard]] bool empty() const { return heap_.empty(); }
  [[nodiscard]] double next_time() const { return heap_.front().time; }

  void push(Kind kind, double time, std::int32_t id, std::uint32_t stamp = 0) {
    const Recent& recent = recent_of(kind, time);
    if (recent.bucket >= 0 && recent.time == time) {
      append(recent.bucket, id, stamp);
    } else {
      push_bucket(kind, time, id, stamp);
    }
  }

  /// Removes the earliest bucket, and calls visit(kind, id, stamp) for each of its events in the order in which they
  /// were pushed. The visitor may push.
  template <class Visit>
  void pop(Visit visit) {
    const HeapEntry top = pop_heap();
    forget(top);
    std::int32_t chunk = buckets_[static_cast<std::size_t>(top.bucket)].first;
    while (chunk >= 0) {
      const std::size_t at = static_cast<std::size_t>(chunk);
      const std::size_t events = chunks_[at].size;
      for (std::size_t i = 0; i < events; ++i) {
        const Event event = chunks_[at].events[i];  // a copy: pushes may move the chunks
        visit(top.kind, event.id, event.stamp);
      }
      const std::int32_t next = chunks_[at].next;
      chunks_[at].next = free_chunk_;
      free_chunk_ = chunk;
      chunk = next;
    }
    free_buckets_.push_back(top.bucket);
  }

 private:
  struct Event {
    std::int32_t id = 0;      ///< number of a connection, message or gate
    std::uint32_t stamp = 0;  ///< for drains: the event is stale unless it is the latest of its connection
  };
  /// Events of one bucket that fill one cache line.
  static constexpr std::size_t kChunk = 7;
  struct alignas(64) Chunk {
    std::array<Event, kChunk> events;
    std::uint32_t size = 0;
    std::int32_t next = -1;
  };
  struct Bucket {  ///< numbers of its first and last chunk
    std::int32_t first = -1, last = -1;
  };
  struct HeapEntry {
    double time = 0;
    std::uint32_t sequence = 0;  ///< breaks ties in the order of creation
    std::int32_t bucket = -1;
    Kind kind = Kind::drain;
    [[nodiscard]] bool before(const HeapEntry& o) const {
      return time < o.time || (time == o.time && sequence < o.sequence);
    }
  };
  /// The bucket by which simultaneous events of a kind find each other: the latest among all whose times have the same
  /// hash.
  struct Recent {
    double time = 0;
    std::int32_t bucket = -1;
  };
  static constexpr int kRecentBits = 6;

  Recent& recent_of(Kind kind, double time) {
    const std::uint64_t hash = std::bit_cast<std::uint64_t>(time) * kGoldenHash >> (64 - kRecentBits);
    return recent_[static_cast<std::size_t>(kind) << kRecentBits | static_cast<std::size_t>(hash)];
  }

  void append(std::int32_t bucket, std::int32_t id, std::uint32_t stamp) {
    Bucket& b = buckets_[static_cast<std::size_t>(bucket)];
    if (chunks_[static_cast<std::size_t>(b.last)].size == kChunk) {
      const std::int32_t more = new_chunk();
      chunks_[static_cast<std::size_t>(b.last)].next = more;
      b.last = more;
    }
    Chunk& chunk = chunks_[static_cast<std::size_t>(b.last)];
    chunk.events[chunk.size++] = {id, stamp};
  }
  std::int32_t new_chunk() {
    if (free_chunk_ < 0) {
      chunks_.emplace_back();
      return static_cast<std::int32_t>(chunks_.size()) - 1;
    }
    const std::int32_t id = free_chunk_;
    Chunk& chunk = chunks_[static_cast<std::size_t>(id)];
    free_chunk_ = chunk.next;
    chunk.size = 0;
    chunk.next = -1;
    return id;
  }
  void push_bucket(Kind kind, double time, std::int32_t id, std::uint32_t stamp);
  HeapEntry pop_heap();
  void forget(const HeapEntry& entry) {
    Recent& recent = recent_of(entry.kind, entry.time);
    if (recent.bucket == entry.bucket) recent.bucket = -1;
  }

  std::vector<HeapEntry> heap_;
  std::vector<Bucket> buckets_;
  std::vector<std::int32_t> free_buckets_;
  std::vector<Chunk> chunks_;
  std::int32_t free_chunk_ = -1;
  std::array<Recent, std::size_t{3} << kRecentBits> recent_;
  std::uint32_t sequence_ = 0;
};

}  // namespace shardscape::network
