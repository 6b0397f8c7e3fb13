// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "emulator/machine/scheduler.h"
#include "emulator/machine/call_site.h"
#include "emulator/machine/options.h"
#include "emulator/machine/touched.h"

// `--check streams`: are two operations that touch the same bytes ordered? Every operation has a vector
// clock: of all operations that it waits for, and of all that the host knew as ended at its issue. Its bytes are
// observed while the operation runs. So a missing order is found in every run, even when the result is right.

namespace emulator::cuda {

struct Node;
struct Stream;
struct Work;

/// An operation as the check sees it. A trace lives as long as something remembers its touched bytes.
struct Trace {
  std::vector<uint32_t> clock;  ///< indexed by timeline; its own time included
  uint32_t timeline = 0, time = 0;
  uint64_t number = 0;  ///< order of issue; 0: the host itself
  int device = 0;
  uint64_t stream = 0;  ///< Stream::number
  bool allocates = false;
  std::optional<std::vector<uint32_t>> early;  ///< the clock up to griddepcontrol.wait of a kernel that may begin early
  bool before_wait = false;                    ///< only the accesses up to there; `clock` is then the other's `early`
  std::string kernel;                     ///< the symbol of a kernel, or empty
  std::string what;                       ///< the rest: `copy of 64 bytes from pinned host memory to device memory`
  CallSite site;                          ///< the issuing call; of a graph's node the graph's launch
  std::shared_ptr<const CallSite> added;  ///< for a graph's node: the call that made it

  /// All that this one did comes before `later`; true also of itself.
  bool before(const std::vector<uint32_t>& later) const { return timeline < later.size() && later[timeline] >= time; }
  std::string text() const;
};

namespace stream_check {

inline bool on() {
  static const bool yes = options().check_streams;
  return yes;
}

// All of these are called only while on().

/// While it lives: the work of this thread's next operations. `node`: the graph's node that issues them.
class Issuing {
 public:
  explicit Issuing(const std::shared_ptr<const Work>* work, const Node* node = nullptr);
  ~Issuing();
  Issuing(const Issuing&) = delete;
  Issuing& operator=(const Issuing&) = delete;

 private:
  const std::shared_ptr<const Work>* work_before_;
  const Node* node_before_;
};

// Under the state's lock.
void issued(Operation& op, const std::vector<Op>& after);
void postponed(Operation& op, const Operation& before);
/// The host knows now that the operation has ended.
void known_to_host(const Operation& op);
bool host_knows(const Operation& op);
void ended(const Operation& op);
/// A host function begins: it may write memory that later copies read.
void host_function_begins(const Operation& op);
/// Memory that a stream-ordered allocation returned: the program may use it after `op`.
void allocated(const Operation& op, void* memory, size_t bytes);

// Where an operation runs, without the state's lock.

/// One operation of this thread, from its begin to its end.
class Running {
 public:
  explicit Running(const Operation& op);
  ~Running();
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;
  /// It has ended without error: compares its accesses with those of others.
  void finish();

 private:
  std::shared_ptr<Trace> trace_;
  Touched touched_, early_;
};
/// Where to note the accesses of this thread's operation. nullptr: nowhere.
Touched* touched();
/// Where to note the accesses of a kernel that need not follow its griddepcontrol.wait. nullptr: it begins after the
/// previous kernel's end.
Touched* early();
/// The operation of this thread gives memory back; the range may be a part of an allocation.
void freed(void* memory, size_t bytes);
/// The operation of this thread would release memory. The release happens when the host has waited for this operation
/// and all operations issued before its run have ended. So a use of the memory without an order, or too late, is
/// reported instead of crashing.
void release_later(std::function<void()> release);
/// Copies check their source again just before they read it.
void copy_runs(const void* from);

/// The host frees memory by a call that does not wait; under the state's lock, when all has run.
/// `knew`: the host's clock before the call.
std::vector<uint32_t> host_clock();
void host_frees(const char* call, void* memory, size_t bytes, const std::vector<uint32_t>& knew);

}  // namespace stream_check
}  // namespace emulator::cuda
