// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <driver_types.h>

#include <functional>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "emulator/cuda/library.h"
#include "emulator/cuda/stream.h"
#include "emulator/ptx/run/warp.h"

namespace emulator::cuda {

struct Condition;
struct Function;
struct Graph;
struct Kernel;

/// The work of a stream or a graph's node. It copies all parameters; of the caller it later reads memory only.

struct KernelWork {
  Function* function = nullptr;
  ptx::Launch launch;
  const void* handle = nullptr;           ///< the program's handle of the kernel
  std::vector<void*> parameter_pointers;  ///< into launch.parameters: for those who ask a node
};

/// A box of bytes: `depth` slices of `height` rows of `width` bytes.
struct CopyWork {
  char* to = nullptr;
  size_t to_pitch = 0, to_slice = 0;
  const char* from = nullptr;
  size_t from_pitch = 0, from_slice = 0;
  size_t width = 0, height = 1, depth = 1;
  cudaMemcpy3DParms said{};             ///< for those who ask a node
  std::shared_ptr<std::string> staged;  ///< the pageable source, as it was at the call

  /// Bytes from the first to one past the last.
  static size_t span(size_t width, size_t height, size_t depth, size_t pitch, size_t slice);
  size_t to_span() const { return span(width, height, depth, to_pitch, to_slice); }
  size_t from_span() const { return span(width, height, depth, from_pitch, from_slice); }
};

struct FillWork {
  char* to = nullptr;
  size_t pitch = 0, slice = 0;
  unsigned value = 0, element = 1;          ///< bytes of an element
  size_t width = 0, height = 1, depth = 1;  ///< width in elements
};

struct HostWork {
  cudaHostFn_t function = nullptr;
  void* data = nullptr;
  std::function<void()> call;  ///< instead: cudaStreamAddCallback
};

struct EmptyWork {};
struct RecordWork {
  cudaEvent_t event;
};
struct WaitWork {
  cudaEvent_t event;
};
struct ChildWork {
  std::shared_ptr<Graph> graph;
};
/// A node that runs one of its graphs, once, repeatedly or never, by a value that kernels set (condition.h).
struct ConditionalWork {
  std::shared_ptr<Condition> condition;
  cudaGraphConditionalNodeType type{};
  std::vector<std::shared_ptr<Graph>> bodies;
  std::vector<cudaGraph_t> handles;  ///< handles of the bodies, for the program

  /// The graph that the value wants, or nullptr.
  const std::shared_ptr<Graph>* chosen() const;
};
/// The memory exists from the node's creation on; running it makes its content undefined.
struct AllocWork {
  cudaMemAllocNodeParams said{};
};
struct FreeWork {
  void* memory = nullptr;
};
/// Anything else that a device does in a stream.
struct CallWork {
  std::function<void()> call;
};

struct Work {
  std::variant<KernelWork, CopyWork, FillWork, HostWork, EmptyWork, RecordWork, WaitWork, ChildWork, AllocWork,
               FreeWork, CallWork, LibraryWork, ConditionalWork>
      what;
  int device = 0;

  Operation::Kind kind() const;
  /// Without the state's lock. Errors: Fault.
  void perform() const;
};

template <class T>
std::shared_ptr<const Work> make_work(T what, int device) {
  return std::make_shared<const Work>(Work{std::move(what), device});
}

/// Hands work to the scheduler for a stream that does not capture. `unchecked`: Scheduler::issue().
Op enqueue(Lock& lock, Stream& stream, std::shared_ptr<const Work> work, const Op& unchecked = nullptr);

/// Kernels that have begun so far in this process.
int64_t kernels_run();
void perform_copy(const CopyWork& copy);
void perform_fill(const FillWork& fill);

}  // namespace emulator::cuda
