// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <driver_types.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "emulator/machine/scheduler.h"

namespace emulator::cuda {

struct Capture;
struct Node;
struct SharedEvent;
struct Work;

/// A queue of operations. A cudaStream_t or CUstream points at it.
struct Stream {
  enum class Role : uint8_t { legacy, per_thread, own };
  uint64_t number = 0;  ///< 0: a legacy default stream; else in order of creation over the process
  int device = 0;
  unsigned flags = 0;
  int priority = 0;
  Role role = Role::own;
  Op last;  ///< all that was issued has ended when this one has
  std::shared_ptr<Capture> capture;
  std::vector<Node*> tail;  ///< while capturing: what the next node depends on
  std::vector<Op> orphans;  ///< on a legacy stream: the last operations of blocking streams that were destroyed
  std::vector<Op> unordered_orphans;  ///< as above, of other streams: only the whole device waits for them
  cudaStreamAttrValue policy{}, window{}, domain{};

  bool blocking() const { return role != Role::legacy && !(flags & cudaStreamNonBlocking); }
  std::string name() const;
};

struct Event {
  unsigned flags = 0;
  int device = 0;
  Op recorded;                       ///< nullptr: never
  std::shared_ptr<Capture> capture;  ///< recorded into this capture
  std::vector<Node*> nodes;
  std::shared_ptr<SharedEvent> shared;  ///< for cudaEventInterprocess
  uint64_t own_recording = 0;           ///< the last one of this process
};

Stream* make_stream(int device, unsigned flags, int priority, Stream::Role role);
/// The stream of a handle: nullptr, cudaStreamLegacy and cudaStreamPerThread are default streams.
/// Errors: cudaErrorInvalidResourceHandle.
Stream& stream_of(cudaStream_t handle);
Event& event_of(cudaEvent_t handle);

/// While one lives, nullptr means the thread's own default stream: the `_ptsz` and `_ptds` entry points.
class PerThreadDefault {
 public:
  PerThreadDefault();
  ~PerThreadDefault();
  PerThreadDefault(const PerThreadDefault&) = delete;
  PerThreadDefault& operator=(const PerThreadDefault&) = delete;

 private:
  bool before_;
};

/// For all streams, by options().streams.
Scheduler& scheduler();

/// Puts work into a stream: into its capture, or to the scheduler.
void submit(Lock& lock, Stream& stream, std::shared_ptr<const Work> work);
/// The operation that follows everything issued to the stream so far and, for a legacy stream, to all blocking streams.
std::vector<Op> everything_before(Stream& stream);
/// Adds an operation to a stream that is not capturing. `unchecked`: Scheduler::issue().
Op issue(Lock& lock, Stream& stream, Operation::Kind kind, std::function<void()> work, std::vector<Op> after = {},
         const Op& unchecked = nullptr);

// The calls. All take the state's lock themselves. Errors: Error.
cudaStream_t stream_create(unsigned flags, int priority);
void stream_destroy(cudaStream_t stream);
void stream_synchronize(cudaStream_t stream);
void stream_query(cudaStream_t stream);
void stream_wait_event(cudaStream_t stream, cudaEvent_t event, unsigned flags);
void device_synchronize(Lock& lock, int device);
void device_synchronize();

cudaEvent_t event_create(unsigned flags);
/// An event that another process has made.
cudaEvent_t event_open(std::shared_ptr<SharedEvent> shared, int device);
void event_destroy(cudaEvent_t event);
/// The work by which a stream waits for the last recording when another process has made it; nullptr: nothing. Under the lock.
std::function<void()> wait_for_others(const Event& event);
void event_record(cudaEvent_t event, cudaStream_t stream, unsigned flags);
void event_query(cudaEvent_t event);
void event_synchronize(cudaEvent_t event);
float event_elapsed(cudaEvent_t start, cudaEvent_t end);

}  // namespace emulator::cuda
