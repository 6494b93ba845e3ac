#include "engine/network/flows/event_queue.h"

namespace shardscape::network {

void EventQueue::clear() {
  heap_.clear();
  buckets_.clear();
  free_buckets_.clear();
  chunks_.clear();
  free_chunk_ = -1;
  recent_ = {};
  sequence_ = 0;
}

void EventQueue::push_bucket(Kind kind, double time, std::int32_t id, std::uint32_t stamp) {
  const std::int32_t chunk = new_chunk();
  chunks_[static_cast<std::size_t>(chunk)].size = 1;
  chunks_[static_cast<std::size_t>(chunk)].events[0] = {id, stamp};
  std::int32_t bucket;
  if (free_buckets_.empty()) {
    bucket = static_cast<std::int32_t>(buckets_.size());
    buckets_.emplace_back();
  } else {
    bucket = free_buckets_.back();
    free_buckets_.pop_back();
  }
  buckets_[static_cast<std::size_t>(bucket)] = {chunk, chunk};
  recent_of(kind, time) = {time, bucket};

  const HeapEntry entry{time, sequence_++, bucket, kind};
  std::size_t hole = heap_.size();
  heap_.push_back(entry);
  while (hole > 0) {
    const std::size_t parent = (hole - 1) / 2;
    if (!entry.before(heap_[parent])) break;
    heap_[hole] = heap_[parent];
    hole = parent;
  }
  heap_[hole] = entry;
}

EventQueue::HeapEntry EventQueue::pop_heap() {
  const HeapEntry top = heap_.front();
  const HeapEntry last = heap_.back();
  heap_.pop_back();
  if (heap_.empty()) return top;
  std::size_t hole = 0;
  for (;;) {
    std::size_t child = 2 * hole + 1;
    if (child >= heap_.size()) break;
    if (child + 1 < heap_.size() && heap_[child + 1].before(heap_[child])) ++child;
    if (!heap_[child].before(last)) break;
    heap_[hole] = heap_[child];
    hole = child;
  }
  heap_[hole] = last;
  return top;
}

}  // namespace shardscape::network
