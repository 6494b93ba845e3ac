// Ranks over MPI: a module of its own (see launch.h).
//
// The counters are numbers in a window of rank 0, advanced by MPI_Fetch_and_op; where the network between the
// machines has no windows, rank 0 counts and is asked by message. Reports and requests to stop are small
// messages; a thread of each rank, the pulse, sends and receives them while the others compute, and so drives
// what an MPI library does for others only inside calls of its own. Whoever waits, sleeps in
// between: MPI's own waiting takes a whole core. All calls are made under one mutex, as MPI_THREAD_SERIALIZED
// asks. Errors of MPI itself end the whole job, with MPI's message (MPI_ERRORS_ARE_FATAL).
#include <mpi.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <functional>
#include <mutex>
#include <optional>
#include <string_view>
#include <thread>
#include <type_traits>
#include <utility>

#include "sweep/ranks/mpi_entry.h"

namespace shardscape::ranks {

namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

/// How long a rank may be silent before it counts as lost. Its pulse needs neither the disk nor what it
/// computes, and beats 600 times in this while: only a machine or a process that stands still is silent.
constexpr std::chrono::milliseconds kSilence = 120s;
/// As kSilence, while all are stopping. Open MPI's mpirun tells the others of a rank that was killed by a request to
/// stop, after a second, and ends them a second later: rank 0 has to have named it by then.
constexpr std::chrono::milliseconds kSilenceInStop = 1500ms;
constexpr auto kBeat = 200ms;
/// The most bytes of texts under way at once: MPI counts them with an int. Buffers stay small compared with the texts.
constexpr std::uint64_t kMostAtOnce = std::uint64_t{1} << 28;

enum Kind : int { kReport = 1, kStop, kLast, kTake, kTaken };

/// A message between ranks, sent byte by byte.
struct Message {
  Report report;            ///< the last report of the sender
  std::uint64_t taken = 0;  ///< in kTake the counter asked for; in kTaken the number given
};
static_assert(std::is_trivially_copyable_v<Message>);

class MpiRanks final : public Ranks {
 public:
  MpiRanks() {
    int provided = MPI_THREAD_SINGLE;
    MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided);
    if (provided < MPI_THREAD_SERIALIZED) {
      throw std::runtime_error("MPI: the library gives no MPI_THREAD_SERIALIZED");
    }
    MPI_Comm_dup(MPI_COMM_WORLD, &together_);
    MPI_Comm_dup(MPI_COMM_WORLD, &messages_);
    MPI_Comm_rank(together_, &rank_);
    MPI_Comm_size(together_, &size_);
    count_neighbours();
    share_names();
    counted_.assign(static_cast<std::size_t>(size_), 0);
    open_counters();
    reports_.resize(static_cast<std::size_t>(size_));
    heard_.assign(static_cast<std::size_t>(size_), 0ms);
    last_.assign(static_cast<std::size_t>(size_), false);
    pulse_ = std::thread([this] { beat(); });
  }
  ~MpiRanks() override { end_pulse(); }
  MpiRanks(const MpiRanks&) = delete;
  MpiRanks& operator=(const MpiRanks&) = delete;

  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int size() const override { return size_; }
  [[nodiscard]] int on_this_machine() const override { return neighbours_; }
  [[nodiscard]] std::string name(int rank) const override {
    return "rank " + std::to_string(rank) + " of " + std::to_string(size_) + " (" +
           hosts_[static_cast<std::size_t>(rank)] + ")";
  }

  std::vector<std::string> gather(const std::string& text) override {
    std::uint64_t length = text.size(), longest = 0;
    std::vector<std::uint64_t> lengths(static_cast<std::size_t>(size_));
    wait([&](MPI_Request* request) {
      MPI_Igather(&length, 1, MPI_UINT64_T, lengths.data(), 1, MPI_UINT64_T, 0, together_, request);
    });
    wait([&](MPI_Request* request) {
      MPI_Iallreduce(&length, &longest, 1, MPI_UINT64_T, MPI_MAX, together_, request);
    });
    std::vector<std::string> texts(rank_ == 0 ? lengths.size() : 0);
    const std::uint64_t slice = std::max<std::uint64_t>(kMostAtOnce / lengths.size(), 1);
    for (std::uint64_t begin = 0; begin < longest; begin += slice)
      gather_slice(std::string_view(text).substr(std::min(begin, length), slice), begin, slice, lengths,
                   texts);
    return texts;
  }

  std::string broadcast(const std::string& text) override {
    std::string received = rank_ == 0 ? text : "";
    std::uint64_t length = received.size();
    wait([&](MPI_Request* request) { MPI_Ibcast(&length, 1, MPI_UINT64_T, 0, together_, request); });
    received.resize(length);
    for (std::uint64_t begin = 0; begin < length; begin += kMostAtOnce) {
      const auto bytes = static_cast<int>(std::min(kMostAtOnce, length - begin));
      wait([&](MPI_Request* request) {
        MPI_Ibcast(received.data() + begin, bytes, MPI_CHAR, 0, together_, request);
      });
    }
    return received;
  }

  std::uint64_t take(int counter) override {
    if (window_ == MPI_WIN_NULL) return take_by_message(static_cast<std::uint64_t>(counter));
    constexpr std::uint64_t kOne = 1;
    std::uint64_t taken = 0;
    const std::lock_guard lock(mutex_);
    MPI_Fetch_and_op(&kOne, &taken, MPI_UINT64_T, 0, counter, MPI_SUM, window_);
    MPI_Win_flush(0, window_);
    return taken;
  }

  void report(const Report& report) override {
    const std::lock_guard lock(mutex_);
    reports_[static_cast<std::size_t>(rank_)] = report;
  }

  std::vector<Report> reports() override {
    require_all();
    const std::lock_guard lock(mutex_);
    return reports_;
  }

  void ask_to_stop() override {
    if (stop_.exchange(true)) return;
    const std::lock_guard lock(mutex_);
    pass_on_stop();
  }
  [[nodiscard]] bool asked_to_stop() const override { return stop_; }

  void close() override {
    // Messages between two ranks keep their order: after the last one nothing is left to receive.
    const int last_of = rank_ == 0 ? size_ : 1;
    if (rank_ != 0) send(kLast, 0);
    const int first = rank_ == 0 ? 1 : 0;
    sleep_until([&] { return std::all_of(last_.begin() + first, last_.begin() + last_of, std::identity()); });
    for (int other = 1; rank_ == 0 && other < size_; ++other) send(kLast, other);
    end_pulse();
    if (window_ != MPI_WIN_NULL) {
      MPI_Win_unlock_all(window_);
      MPI_Win_free(&window_);
    }
    MPI_Comm_free(&messages_);
    MPI_Comm_free(&together_);
    MPI_Finalize();
  }

 private:
  void count_neighbours() {
    MPI_Comm machine = MPI_COMM_NULL;
    MPI_Comm_split_type(together_, MPI_COMM_TYPE_SHARED, rank_, MPI_INFO_NULL, &machine);
    MPI_Comm_size(machine, &neighbours_);
    MPI_Comm_free(&machine);
  }

  void share_names() {
    using Name = std::array<char, MPI_MAX_PROCESSOR_NAME>;
    Name own{};
    int length = 0;
    MPI_Get_processor_name(own.data(), &length);
    std::vector<Name> names(static_cast<std::size_t>(size_));
    constexpr int kLength = MPI_MAX_PROCESSOR_NAME;
    MPI_Gather(own.data(), kLength, MPI_CHAR, names.data(), kLength, MPI_CHAR, 0, together_);
    names[static_cast<std::size_t>(rank_)] = own;
    for (const Name& name : names) hosts_.emplace_back(name.data(), strnlen(name.data(), name.size()));
  }

  /// Opens the window of the counters. There is none where the network has none: Open MPI over TCP, as Debian
  /// configures it (`osc = ^ucx,pt2pt`).
  void open_counters() {
    const MPI_Aint bytes = rank_ == 0 ? size_ * static_cast<MPI_Aint>(sizeof(std::uint64_t)) : 0;
    std::uint64_t* counters = nullptr;
    MPI_Win window = MPI_WIN_NULL;
    MPI_Comm_set_errhandler(together_, MPI_ERRORS_RETURN);
    int opened = MPI_Win_allocate(bytes, sizeof(std::uint64_t), MPI_INFO_NULL, together_, &counters,
                                  &window) == MPI_SUCCESS;
    MPI_Comm_set_errhandler(together_, MPI_ERRORS_ARE_FATAL);
    MPI_Allreduce(MPI_IN_PLACE, &opened, 1, MPI_INT, MPI_MIN, together_);
    if (opened == 0) return;
    window_ = window;
    MPI_Win_lock_all(0, window_);
    if (rank_ == 0) {
      MPI_Put(counted_.data(), size_, MPI_UINT64_T, 0, 0, size_, MPI_UINT64_T, window_);
      MPI_Win_flush(0, window_);
    }
    MPI_Barrier(together_);
  }

  /// Takes a number without a window: asks rank 0, whose pulse answers.
  std::uint64_t take_by_message(std::uint64_t counter) {
    const std::lock_guard one_by_one(asking_);
    {
      const std::lock_guard lock(mutex_);
      if (rank_ == 0) return counted_[counter]++;
      send_locked(kTake, 0, counter);
    }
    std::uint64_t taken = 0;
    sleep_until([&] {
      if (!answer_) return false;
      taken = *std::exchange(answer_, std::nullopt);
      return true;
    });
    return taken;
  }

  /// Gathers bytes [begin, begin + slice) of every rank's text and, on rank 0, appends them to `texts`; `lengths` are
  /// those of the whole texts, and `own` is this rank's slice.
  void gather_slice(std::string_view own, std::uint64_t begin, std::uint64_t slice,
                    const std::vector<std::uint64_t>& lengths, std::vector<std::string>& texts) {
    std::vector<int> counts, starts;
    int total = 0;
    for (std::size_t i = 0; i < texts.size(); ++i) {
      starts.push_back(total);
      counts.push_back(static_cast<int>(std::min(slice, lengths[i] - std::min(begin, lengths[i]))));
      total += counts.back();
    }
    std::string all(static_cast<std::size_t>(total), '\0');
    wait([&](MPI_Request* request) {
      MPI_Igatherv(own.data(), static_cast<int>(own.size()), MPI_CHAR, all.data(), counts.data(),
                   starts.data(), MPI_CHAR, 0, together_, request);
    });
    for (std::size_t i = 0; i < texts.size(); ++i)
      texts[i].append(all, static_cast<std::size_t>(starts[i]), static_cast<std::size_t>(counts[i]));
  }

  /// Starts a collective operation and sleeps until it is done.
  template <class StartOperation>
  void wait(const StartOperation& start) {
    MPI_Request request = MPI_REQUEST_NULL;
    {
      const std::lock_guard lock(mutex_);
      start(&request);
    }
    sleep_until([&] {
      int done = 0;
      MPI_Test(&request, &done, MPI_STATUS_IGNORE);
      return done != 0;
    });
  }

  /// Sleeps, at most 5 ms at a time, until `done` returns true; `done` is called under the mutex.
  template <class Done>
  void sleep_until(const Done& done) {
    for (auto pause = 50us;; pause = std::min<std::chrono::microseconds>(2 * pause, 5ms)) {
      {
        const std::lock_guard lock(mutex_);
        if (done()) return;
      }
      require_all();
      std::this_thread::sleep_for(pause);
    }
  }

  /// Throws RankLost on rank 0 where a rank has been silent for too long.
  void require_all() {
    if (rank_ != 0) return;
    const std::chrono::milliseconds limit = stop_ ? kSilenceInStop : kSilence;
    const std::lock_guard lock(mutex_);
    for (int other = 1; other < size_; ++other) {
      const auto i = static_cast<std::size_t>(other);
      if (last_[i] || awake_ - heard_[i] < limit) continue;
      const auto silent = std::chrono::duration_cast<std::chrono::seconds>(awake_ - heard_[i]);
      throw RankLost(name(other) + ": nothing has been heard of it for " + std::to_string(silent.count()) +
                     " s; it was killed or hangs, or its machine is gone");
    }
  }

  // ---- messages ----

  void send(Kind kind, int to) {
    const std::lock_guard lock(mutex_);
    send_locked(kind, to);
  }
  void send_locked(Kind kind, int to, std::uint64_t taken = 0) {
    const Message message{reports_[static_cast<std::size_t>(rank_)], taken};
    MPI_Send(&message, sizeof(Message), MPI_BYTE, to, kind, messages_);
  }

  /// Passes a request to stop on: from the rank that was asked first to rank 0, and from there to all.
  void pass_on_stop() {
    if (rank_ != 0) return send_locked(kStop, 0);
    for (int other = 1; other < size_; ++other) send_locked(kStop, other);
  }

  void receive_all() {
    for (;;) {
      int there = 0;
      MPI_Status status;
      MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, messages_, &there, &status);
      if (there == 0) return;
      Message message;
      MPI_Recv(&message, sizeof(Message), MPI_BYTE, status.MPI_SOURCE, status.MPI_TAG, messages_,
               MPI_STATUS_IGNORE);
      const auto source = static_cast<std::size_t>(status.MPI_SOURCE);
      heard_[source] = awake_;
      if (rank_ == 0) reports_[source] = message.report;
      if (status.MPI_TAG == kTake) send_locked(kTaken, status.MPI_SOURCE, counted_[message.taken]++);
      if (status.MPI_TAG == kTaken) answer_ = message.taken;
      if (status.MPI_TAG == kLast) last_[source] = true;
      if (status.MPI_TAG == kStop && !stop_.exchange(true) && rank_ == 0) pass_on_stop();
    }
  }

  void beat() {
    // Rank 0 beats more often, because it also answers for the counters where the network has no window.
    const auto pause = rank_ == 0 ? 1ms : 5ms;
    Clock::time_point next = Clock::now(), before = next;
    bool told_finished = false;
    while (!end_) {
      {
        const std::lock_guard lock(mutex_);
        const Clock::time_point now = Clock::now();
        awake_ += std::min<Clock::duration>(now - before, kBeat);
        before = now;
        receive_all();
        const bool finished = reports_[static_cast<std::size_t>(rank_)].finished;
        const bool due = now >= next || finished != told_finished;
        if (rank_ != 0 && due) {
          send_locked(kReport, 0);
          next = now + kBeat;
          told_finished = finished;
        }
      }
      std::this_thread::sleep_for(pause);
    }
  }

  void end_pulse() {
    end_ = true;
    if (pulse_.joinable()) pulse_.join();
  }

  int rank_ = 0, size_ = 1, neighbours_ = 1;
  /// By rank: host name; rank 0 knows all of them, other ranks only their own.
  std::vector<std::string> hosts_;
  MPI_Comm together_ = MPI_COMM_NULL, messages_ = MPI_COMM_NULL;
  MPI_Win window_ = MPI_WIN_NULL;  ///< window of the counters; null where rank 0 counts by message
  std::mutex asking_;              ///< without a window: held while waiting for answer_; locked before mutex_
  std::mutex mutex_;               ///< guards calls of MPI and the members below
  std::vector<Report> reports_;    ///< latest report of each rank
  /// How long the pulse has been running, without the time in which the whole job was suspended.
  Clock::duration awake_{};
  std::vector<Clock::duration> heard_;   ///< by rank: value of awake_ when it was last heard of
  std::vector<bool> last_;               ///< by rank: whether its last message has come
  std::vector<std::uint64_t> counted_;   ///< without a window, on rank 0: the next number of each counter
  std::optional<std::uint64_t> answer_;  ///< without a window: the number that rank 0 has sent
  std::atomic<bool> stop_{false}, end_{false};
  std::thread pulse_;
};

}  // namespace

extern "C" __attribute__((visibility("default"))) Ranks* shardscape_join_ranks_2() { return new MpiRanks; }

}  // namespace shardscape::ranks
