// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/tensor.h"
#include "dist/rendezvous/membership.h"
#include "dist/rendezvous/store.h"

namespace weft::dist {

struct Collective;  // dist/group/collective.h
class GroupRecord;  // dist/group/group_record.h

/// avg divides the sum by the number of ranks (floating dtypes).
enum class ReduceOp : uint8_t { sum, avg, max, min };

/// `sum`, `avg`, `max`, `min`.
constexpr std::string_view name(ReduceOp op) {
  constexpr std::string_view names[] = {"sum", "avg", "max", "min"};
  return names[static_cast<int>(op)];
}

/// The error of collectives after abort() ended the group, here or on a rank that failed: another rank's error has the
/// cause, and this error follows.
class GroupAborted : public Error {
 public:
  using Error::Error;
};

/// A collective under way. Dropping the object does not cancel the collective.
class Work {
 public:
  virtual ~Work() = default;
  /// CPU tensors: returns when the collective is done. GPU tensors: later work on this thread's current stream waits
  /// for it; with a backend that works on the host (mpi, gloo, threads) this call waits for the host's part too.
  /// Errors: the collective failed, the deadline passed, a rank died; the text names rank, host and collective.
  virtual void wait() = 0;
  /// True when wait() would not wait on the host.
  virtual bool done() = 0;
  /// True when the collective has ended, on the device too; then wait() does not hold the current stream back either.
  virtual bool has_ended() { return done(); }
};
using WorkPtr = std::shared_ptr<Work>;

/// A collective's name in logs and errors, and the weight of its input.
struct CollectiveOptions {
  std::string name{};  ///< content: `gradients layer4.1.conv2.weight…fc.bias`
  /// Multiplies each rank's input by its own factor first (all_reduce and reduce_scatter of floating dtypes; with
  /// sum). The factor has one element on the input's device, f32 (for f64 inputs also f64). A captured step can
  /// change the tensor; undefined: 1.
  Tensor scale{};
  /// The caller waits at once: mpi, gloo and threads run a collective of CPU tensors on the caller's thread then,
  /// without waking another one. It may not begin before wait().
  bool at_once = false;
  /// The collective begins when this one, of another group, has ended, too. With nccl the device waits for it and the
  /// caller's stream does not; with other backends the call does.
  WorkPtr after = {};
  /// all_gather, reduce_scatter, gather, scatter: the rows (sizes of dimension 0) of each rank's part, the same list on
  /// all ranks. Empty: all parts are equal.
  std::vector<int64_t> rows = {};
};

/// Whose collectives `mpi` runs: our own, which add in the order of the ranks and so give the same bits on all host
/// backends and from run to run; or MPI's, where it has them (docs/process_groups.md compares their times).
enum class Algorithms : uint8_t { own, library };

/// The protection of the backend gloo's messages, after both sides of a connection have proven that they belong to the
/// job: none, an authentication code on every message, or code and encryption. automatic: off between ranks of a
/// machine, where only root could change messages, and mac between machines.
enum class Secure : uint8_t { automatic, off, mac, encrypt };

/// `automatic`, `off`, `mac`, `encrypt`.
constexpr std::string_view name(Secure secure) {
  constexpr std::string_view names[] = {"automatic", "off", "mac", "encrypt"};
  return names[static_cast<int>(secure)];
}

struct GroupOptions {
  Milliseconds timeout{600'000};      ///< deadline of a collective, from its start on this rank
  Milliseconds stall_report{60'000};  ///< a collective that takes longer is reported once, with who is missing
  int gpu = 0;                        ///< index of this rank's GPU, on which the backend nccl runs
  Algorithms algorithms = Algorithms::own;
  Secure secure = Secure::automatic;
  Milliseconds start_timeout{300'000};  ///< for the ranks of nccl to connect; at most `timeout`
  int nccl_ranks_per_root = 128;        ///< that connect through one root, from NCCL 2.23 on
  bool check = false;                   ///< nccl: ranks compare their calls before they begin them
  bool times = false;                   ///< nccl: seconds_in_collectives() counts; others always do
  std::string records{};                ///< a folder for the flight log of each rank; empty: it goes to stderr
};

/// The ranks that compute together. Every rank calls the same collectives in the same order with the same names, sizes
/// and dtypes; a rank that differs is an error that names both. Collectives are enqueued and run in order, beside the
/// caller: results are there after wait(). Tensors must be contiguous, and must not be touched before wait(); on a GPU
/// the collective runs after what the caller's current stream holds now. Dtypes: f32, f64, bf16, f16, i64, i32, u8
/// (sums of bf16 and f16 are kept in f32 from addend to addend). A failure ends the group: every later call repeats its
/// text. Thread-safe in that one thread at a time may enqueue.
class ProcessGroup : public std::enable_shared_from_this<ProcessGroup> {
 public:
  virtual ~ProcessGroup() = default;
  ProcessGroup(const ProcessGroup&) = delete;
  ProcessGroup& operator=(const ProcessGroup&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  /// `world`, or what split() was told.
  const std::string& name() const { return name_; }
  /// The other ranks of this group, by their numbers in the job, in the group's order.
  std::vector<int> others() const;
  /// `nccl`, `mpi`, `gloo`, `threads`, `alone`.
  virtual std::string_view backend() const = 0;

  /// tensor = op over all ranks, in place.
  WorkPtr all_reduce(const Tensor& tensor, ReduceOp op = ReduceOp::sum, const CollectiveOptions& options = {});
  /// tensor = that of rank `root`.
  WorkPtr broadcast(const Tensor& tensor, int root, const CollectiveOptions& options = {});
  /// The tensor of rank `root` = op over all ranks; those of the others stay as they are.
  WorkPtr reduce(const Tensor& tensor, int root, ReduceOp op = ReduceOp::sum, const CollectiveOptions& options = {});
  /// output [size * n] = the inputs [n] of all ranks in their order. `input` may be this rank's part of `output`.
  WorkPtr all_gather(const Tensor& output, const Tensor& input, const CollectiveOptions& options = {});
  /// output [n] = part `rank` of op over the inputs [size * n]. `output` may be this rank's part of `input`.
  WorkPtr reduce_scatter(const Tensor& output, const Tensor& input, ReduceOp op = ReduceOp::sum,
                         const CollectiveOptions& options = {});
  /// all_gather() on rank `root` alone; the other ranks pass no output.
  WorkPtr gather(const Tensor& output, const Tensor& input, int root, const CollectiveOptions& options = {});
  /// output [n] = part `rank` of the input [size * n] of rank `root`; the other ranks pass no input. On the root
  /// `output` may be its part of `input`.
  WorkPtr scatter(const Tensor& output, const Tensor& input, int root, const CollectiveOptions& options = {});
  /// Part r of output [size * n] = part `rank` of rank r's input [size * n]. The two are different memory.
  WorkPtr all_to_all(const Tensor& output, const Tensor& input, const CollectiveOptions& options = {});
  /// As above, with output_rows[r] rows from rank r and input_rows[r] rows for rank r.
  WorkPtr all_to_all(const Tensor& output, const Tensor& input, const std::vector<int64_t>& output_rows,
                     const std::vector<int64_t>& input_rows, const CollectiveOptions& options = {});
  /// Returns when all ranks have come here; earlier collectives of this rank are done then.
  void barrier(const std::string& what = "barrier");
  /// A barrier with a deadline of its own, after which the error on all ranks names every rank that is missing.
  void monitored_barrier(Milliseconds timeout, const std::string& what = "barrier");
  WorkPtr send(const Tensor& tensor, int to, const CollectiveOptions& options = {});
  WorkPtr receive(const Tensor& tensor, int from, const CollectiveOptions& options = {});

  /// Holds the calls that `calls` makes until its end. NCCL then begins them as one launch: several tensors cost as
  /// much as one, and a send does not wait behind a receive. Other backends begin each at its call. No work may be
  /// waited for inside. All ranks make the same calls.
  void together(const std::function<void()>& calls);

  /// The texts of all ranks in their order, for set-up and reports. Any bytes will do: of a serialised object, say.
  std::vector<std::string> all_gather_text(const std::string& text, const std::string& what = "text");

  /// A group of those that say the same `color`, in the order of `key` (then of rank); all ranks must call. A negative
  /// color takes part in no group: null.
  virtual std::shared_ptr<ProcessGroup> split(int color, int key, const std::string& name) = 0;

  /// Ends the group at once: collectives under way and later ones fail with `reason`.
  virtual void abort(const std::string& reason) = 0;

  /// Bytes that this rank handed to the network for its collectives so far, by the algorithms' theory: for n ranks
  /// all_reduce 2 (n-1)/n of its tensor, all_gather and reduce_scatter (n-1)/n of the large tensor. send counts all;
  /// reduce and gather count the root's receipts.
  uint64_t bytes_sent() const;
  /// Numbers the models whose gradients this group reduces, from 1: models take their numbers in one order on all
  /// ranks.
  int next_model() { return ++models_; }
  /// How often this rank has begun something; what nccl begins together counts once.
  uint64_t launches() const { return launches_; }
  /// The time that collectives have taken on this rank, waits for other ranks included. The groups of a split count,
  /// too; replayed graphs do not.
  double seconds_in_collectives() const;
  /// The last collectives of this rank, oldest first, as text: number, name, dtype and size, state, times. SIGUSR2 and
  /// a failure print this text.
  std::string flight_log() const;

 protected:
  explicit ProcessGroup(std::shared_ptr<GroupRecord> record);

  /// Takes a checked collective; only a backend knows how it runs.
  virtual WorkPtr enqueue(std::shared_ptr<const Collective> collective) = 0;
  /// From here to release() collectives wait for each other; false: this backend begins each at its call.
  virtual bool hold() { return false; }
  virtual void release() {}
  /// Numbers one more collective.
  uint64_t next_number() { return ++collectives_; }
  /// Where all_gather_text's tensors lie: the backend's own kind of memory.
  virtual Device text_device() const { return {}; }
  /// The ranks that say the same color as this one, by key and then rank; none for a negative color. Collective.
  std::vector<int> members_of_split(int color, int key, const std::string& name);

  const std::shared_ptr<GroupRecord> record_;

 private:
  WorkPtr submit(Collective collective);
  WorkPtr submit_message(const Collective& collective);

  const int rank_, size_;
  const std::string name_;
  int models_ = 0;
  uint64_t collectives_ = 0, launches_ = 0;
  std::vector<uint64_t> sent_, received_;  // messages, by the other rank
};
using ProcessGroupPtr = std::shared_ptr<ProcessGroup>;

/// Backends: `nccl` (CUDA tensors), `mpi`, `gloo` (any tensors; those of a GPU go through pinned host memory).
/// `membership` may be null (then a dead rank shows as a deadline that passed). Collective: all ranks call it.
/// Errors: unknown backend, a backend that this build lacks (the text has the cure), ranks that do not connect.
ProcessGroupPtr make_process_group(const std::string& backend, int rank, int size, std::shared_ptr<Store> store,
                                   std::shared_ptr<Membership> membership, const GroupOptions& options = {});

/// A world of one: collectives copy or do nothing.
ProcessGroupPtr make_process_group_alone();

/// Runs `function` on `size` threads, each a rank of one group with the backend `threads`; for tests and for seeing how
/// data parallelism works. Each has random generators of its own, which begin where the process's stand. When a rank
/// throws, the group is aborted, and the exception of the rank that threw first is thrown here.
void run_ranks(int size, const std::function<void(const ProcessGroupPtr&)>& function, const GroupOptions& options = {});

/// Ranks in a grid of data x model ranks. The `model` ranks of a row hold one copy of the model together (tensor
/// parallelism) and see the same samples; they are neighbours, so that they share a host, as their traffic is the
/// larger. The ranks of a column hold the same part of it and see different samples:
///   8 ranks, model 4:  data rank 0 = { 0 1 2 3 }, data rank 1 = { 4 5 6 7 };  model rank 1 = { 1 5 }
///
/// With stages, each is such a grid of its own; the ranks of a pipe are those with the same place in all of them, and
/// the farthest apart, as they send least:
///   8 ranks, model 2, stages 2:  stage 0 = { 0 1 | 2 3 }, stage 1 = { 4 5 | 6 7 };  pipe of rank 1 = { 1 5 }
class Grid {
 public:
  /// Collective. Errors: `model` or `stages` is not positive, or their product does not divide the ranks.
  explicit Grid(ProcessGroupPtr world, int model, int stages = 1);
  /// Makes a grid of existing groups: a `data` of one rank leaves each row independent. No `pipe`: one stage. Errors:
  /// no group, groups that do not fit `world`, two that share another rank than this one.
  Grid(ProcessGroupPtr world, ProcessGroupPtr model, ProcessGroupPtr data, ProcessGroupPtr pipe = nullptr);

  const ProcessGroupPtr& world() const { return world_; }
  const ProcessGroupPtr& model() const { return model_; }  ///< who shares this rank's samples
  const ProcessGroupPtr& data() const { return data_; }    ///< who shares this rank's part of the model
  const ProcessGroupPtr& pipe() const { return pipe_; }    ///< who holds the other stages for this rank's samples
  /// Ranks that see the same samples: a row's, in all stages.
  int row_size() const { return model_->size() * pipe_->size(); }
  int model_rank() const { return model_->rank(); }
  int data_rank() const { return data_->rank(); }

 private:
  ProcessGroupPtr world_, model_, data_, pipe_;
};

}  // namespace weft::dist
