// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <nccl.h>

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "emulator/cuda/library.h"
#include "emulator/machine/collective_time.h"
#include "emulator/nccl/operation.h"
#include "emulator/nccl/segment.h"

namespace emulator::nccl {

/// Ends a call of the API early, with this code.
struct Failure {
  ncclResult_t code;
  std::string text;
  bool told = false;  ///< stderr has it already
};
/// Thrown in an operation that cannot go on: the communicator has an error or was aborted.
struct Stopped {};

/// One line on stderr: `weft-emulate: NCCL: …`; ncclGetLastError says it too.
void report(const std::string& text);
void remember(const std::string& text);
std::string last_error();
/// WEFT_EMULATE_NCCL_TIMEOUT, 0: wait for ever.
double timeout_seconds();

struct ReductionOperator {
  ncclDataType_t type;
  const void* device_factor;  ///< or nullptr:
  uint64_t factor;
};

/// The work at one point of a stream: the collectives of a group in order, then its sends and receives at once.
struct Batch {
  std::vector<Collective> collectives;
  std::vector<Transfer> transfers;
  bool captured = false;
  std::atomic<uint64_t> runs{0};  ///< for a captured collective: how often its graph has come here

  /// `all_reduce of 1024 f32 (sum)`, `a group of 6 calls, the first: send of 4 f32 to rank 1`
  std::string text() const;
  /// The memory that a rank of `ranks` reads and writes.
  std::vector<cuda::LibraryWork::Access> accesses(int rank, int ranks) const;
};

/// A rank of a communicator. The segment is its memory shared with the others.
class Communicator : public std::enable_shared_from_this<Communicator> {
 public:
  Communicator(int device, const ncclConfig_t& config);
  /// Known at once but for a split's.
  void place(int rank, int size);

  int rank() const { return rank_; }
  int size() const { return size_; }
  int device() const { return device_; }
  bool blocking() const { return config_.blocking != 0; }
  const ncclConfig_t& config() const { return config_; }
  /// The ranks' places in nodes of timeline::cluster(), once all have joined. GPU K is in node K / GPUs per node of its host.
  const collective_time::Places& places() const { return places_; }
  /// A rank's node: the host's name, and the node's number there.
  using Node = std::pair<std::string, int>;
  static Node node_of(const Segment& s, int rank);

  /// Meets the others; returns when all are here. `parent`: also ends when that one is aborted.
  ncclResult_t join(const ncclUniqueId& id, const Communicator* parent);
  /// The result of ncclCommGetAsyncError, and the text of an error.
  ncclResult_t state();
  std::string error_text() const;
  /// Ends the communicator, for all its ranks. The first rank that finds an error prints it.
  void fail(ncclResult_t code, const std::string& text);
  /// Throws unless operations may be called now.
  void require_ready();

  /// Work of a call that must not block, on a thread: until it has ended the state is ncclInProgress.
  void start(std::function<ncclResult_t()> work);
  /// Counts another communicator's work as its own, too: a new communicator's parent does so.
  void begin_work() { ++working_; }
  void end_work(ncclResult_t result);

  void finalize();
  void destroy();
  void abort();
  bool aborted() const { return aborted_; }
  bool finalizing() const { return finalizing_; }
  /// Ends operations under way in this rank, and lets no more begin (ncclCommShrink with NCCL_SHRINK_ABORT).
  void stop_operations();

  /// Numbers a call that all ranks make, and compares it with the others' calls of this number.
  uint64_t record_call(const Descriptor& what);
  uint64_t number_transfer(const Transfer& transfer);

  /// Puts a batch on a stream; `others` are further streams that its calls named.
  void enqueue(std::shared_ptr<Batch> batch, cudaStream_t stream, const std::vector<cudaStream_t>& others);

  /// A meeting of the hosts of `members` (sorted, this rank among them). `mark` differs from that of the meeting
  /// before. The first of each colour makes an id for its new communicator; without a colour there is none. Throws
  /// Stopped.
  struct Place {
    int rank, size;
    ncclUniqueId id;
  };
  std::optional<Place> meet(const std::vector<int>& members, uint64_t mark, int color, int key, bool despite_errors);
  /// A mark for a meeting of these members alone, the same on each.
  uint64_t next_mark(const std::vector<int>& members);

  ncclRedOp_t add_operator(const ReductionOperator& op);
  ReductionOperator find_operator(ncclRedOp_t op) const;
  void remove_operator(ncclRedOp_t op);

  /// Handles of registered buffers and windows.
  void* add_registration();
  void remove_registration(void* handle);

  std::shared_ptr<Segment> segment() const;

  /// A wait for another rank, in an operation or a meeting. Throws Stopped.
  struct Wait {
    std::function<bool()> done;
    std::function<int()> peer;          ///< a peer that this rank waits for
    std::function<std::string()> what;  ///< `collective #3 (all_reduce of 8 f32 (sum))`
    bool in_order = false;              ///< published: the deadlock check follows it
    bool despite_errors = false;
    const Communicator* parent = nullptr;
  };
  template <class Done, class Peer, class What>
  void wait(Segment& s, const Done& done, const Peer& peer, const What& what, bool in_order) {
    for (int spin = 0; spin < 100; ++spin) {
      if (done()) return;
#if defined(__x86_64__)
      __builtin_ia32_pause();
#endif
    }
    wait(s, Wait{std::cref(done), std::cref(peer), std::cref(what), in_order});
  }
  void wait(Segment& s, const Wait& wait);

  void ring_all(Segment& s) const;

 private:
  friend class Watch;
  void mark_end(cudaStream_t stream);
  void forget_ends();
  void run(Batch& batch);
  void run_in_segment(Segment& s, Batch& batch);
  void leave(Presence presence);
  void check_duplicates(Segment& s);
  void log_connections(Segment& s) const;
  void find_places(const Segment& s);
  void set_result(ncclResult_t code, const std::string& text);
  bool stopped(const Segment& s, const Wait& wait) const;

  int rank_ = 0, size_ = 0;
  const int device_;
  ncclConfig_t config_;
  std::string name_;
  collective_time::Places places_;

  mutable std::mutex mutex_;
  std::shared_ptr<Segment> segment_;
  ncclResult_t result_ = ncclSuccess;  ///< an error of this rank alone
  std::string text_;
  std::vector<std::thread> threads_;
  std::vector<std::pair<bool, ReductionOperator>> operators_;
  std::set<void*> registrations_;
  std::vector<uint64_t> transfers_;           ///< counts, by captured, direction and peer
  std::shared_ptr<Operation> last_;           ///< the last batch that was not captured
  std::map<cudaStream_t, cudaEvent_t> ends_;  ///< after the last of each stream

  std::atomic<int> working_{0}, pending_{0}, running_{0};
  std::atomic<bool> aborted_{false}, stopped_{false}, finalizing_{false}, closed_{false};
  std::atomic<bool> late_{false};          ///< a graph that runs after the end has been reported
  std::map<uint64_t, uint64_t> meetings_;  ///< how many of which members
  std::mutex order_, captured_transfers_;
};

using CommunicatorPtr = std::shared_ptr<Communicator>;

/// The collective and the transfers of a batch; they throw Stopped.
void run_collective(Communicator& c, Segment& s, const Collective& call, int lane, bool in_order);
void run_transfers(Communicator& c, Segment& s, const std::vector<Transfer>& transfers, uint64_t run, bool captured);
/// The lane of a captured collective's run: the same on all ranks, whatever else runs.
int claim_lane(Communicator& c, Segment& s, uint64_t key, const Collective& call);
void leave_lane(Communicator& c, Segment& s, int lane);

}  // namespace emulator::nccl
