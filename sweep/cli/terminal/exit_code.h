// What the program tells the shell when it ends.
#pragma once

namespace shardscape::cli {

/// kEnvironment: disk, files. kInaccurate: accuracy, or a difference, outside its tolerance. kInterrupted: by a signal.
enum ExitCode : int { kDone = 0, kEnvironment = 1, kBadInput = 2, kInaccurate = 3, kInterrupted = 130 };

}  // namespace shardscape::cli
