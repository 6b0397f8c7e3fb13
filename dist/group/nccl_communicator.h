// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/stream.h"
#include "dist/group/collective.h"
#include "dist/group/nccl_library.h"
#include "dist/rendezvous/store.h"

namespace weft::dist {

/// One communicator, never blocking: what NCCL cannot do at once is asked for again until the deadline.
class NcclCommunicator {
 public:
  using Deadline = std::chrono::steady_clock::time_point;

  explicit NcclCommunicator(Device device) : device_(device) {}
  /// All ranks call, once. `key` is a place in the store that nobody else uses. Several ranks help the others to find
  /// each other (ncclCommInitRankScalable), one for `ranks_per_root` ranks, where the library can. Errors: aborted;
  /// ranks that do not come.
  void connect(int rank, int size, Store& store, const std::string& key, Deadline deadline, int ranks_per_root);
  /// Ends the communicator in order unless aborted.
  ~NcclCommunicator();
  NcclCommunicator(const NcclCommunicator&) = delete;
  NcclCommunicator& operator=(const NcclCommunicator&) = delete;

  /// All ranks call; null for a negative color.
  std::unique_ptr<NcclCommunicator> split(int color, int key, Deadline deadline);

  struct Call {
    Collective collective;
    Tensor factor;  ///< in the tensor's dtype; undefined: 1
  };
  /// Hands the calls to NCCL, several as one group. A thread of NCCL's enqueues them on the stream, which nobody else
  /// uses before finish(); nor may another call come before that. Errors: NCCL's, aborted.
  void start(const std::vector<Call>& calls, void* stream, Deadline deadline);
  /// Waits until they are on the stream. Errors: NCCL's, aborted.
  void finish(Deadline deadline);
  /// finish() would not wait.
  bool is_ready();

  /// From any thread, any number of times: kernels that wait for other ranks end.
  void abort();
  /// An error that NCCL met on its own threads; empty: none.
  std::string asynchronous_error();

 private:
  NcclCommunicator(Device device, ncclComm_t comm) : device_(device), comm_(comm) {}
  void check(ncclResult_t result, const char* what, Deadline deadline);
  /// Returns the result of `call`. abort() frees the communicator under the call, so neither runs beside the other.
  /// Errors: aborted.
  template <class Do>
  ncclResult_t unless_aborted(Do&& call);
  ncclResult_t enqueue(const Collective& collective, ncclRedOp_t op, cudaStream_t stream);
  ncclResult_t enqueue_all(const std::vector<Call>& calls, void* stream);

  const Device device_;
  std::mutex mutex_;  // guards comm_: abort may come at any time
  ncclComm_t comm_ = nullptr;
  ncclComm_t part_ = nullptr;     // from a split that has not ended: NCCL's thread writes it until comm_ ends
  std::vector<ncclRedOp_t> ops_;  // the running calls' factors
  const char* at_ = "";           // the first of them
  std::atomic<bool> aborted_{false};
};

}  // namespace weft::dist
