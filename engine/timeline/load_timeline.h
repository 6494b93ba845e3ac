// A simulated load of servers as a Chrome trace (chrome_trace.h), whose times are counted from the moment at which the
// first request may be sent.
//
// Process 0 has the requests, each on the first track that is free: a slice while it waits, one while its prompt is
// read (of two pools: and its cache sent), one while it gives tokens. Process 1 + s is server s: a track with its
// iterations (decode iterations in which nothing changes are one slice), and over time the requests that wait, those
// that run, and the cache's blocks in use.
#pragma once

#include <cstddef>
#include <string>

#include "engine/serving/live/load_record.h"

namespace shardscape::timeline {

/// The most slices of requests, and of servers, that are drawn: some 30 MB of text.
constexpr std::size_t kMostLoadSlices = 60'000;

/// The trace as text. Pure; the same record gives the same text. Where there are more slices than `most_slices` the
/// first ones are drawn; how many there are is in otherData.
std::string load_timeline_json(const serving::LoadRecord& record, std::size_t most_slices = kMostLoadSlices);

}  // namespace shardscape::timeline
