// SPDX-License-Identifier: Apache-2.0
// Programs with one planted fault of order or lifetime each, named by the argument; stream_faults.cmake has what
// `weft-emulate --check streams` must report. With `_right` after the name it is the repaired twin, which must pass in
// silence. Most of them usually compute the right numbers: hence the check.
#include "tests/emulator/stream_faults.h"

#include "tests/emulator/hopper.cuh"

namespace {

using namespace stream_faults;

__global__ void count(int* counter, int n) {
  for (int i = static_cast<int>(threadIdx.x); i < n; i += static_cast<int>(blockDim.x)) atomicAdd(counter, 1);
}
/// Each thread writes one byte of a word shared with other threads.
__global__ void write_bytes(unsigned char* data, int first, int n) {
  for (int i = static_cast<int>(threadIdx.x); i < n; i += static_cast<int>(blockDim.x)) data[4 * i + first] = 7;
}

/// As copy() for 256 floats, by copies that are under way while the kernel goes on.
__global__ void copy_later(const float* from, float* to) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  __shared__ alignas(128) float tile[256];
  const unsigned place = static_cast<unsigned>(__cvta_generic_to_shared(tile));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(place + threadIdx.x * 16), "l"(from + threadIdx.x * 4)
               : "memory");
  asm volatile("cp.async.wait_all;" ::: "memory");
  asm volatile("fence.proxy.async;" ::: "memory");
  __syncthreads();
  if (threadIdx.x == 0) {
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 1024;" ::"l"(to), "r"(place) : "memory");
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
  }
#else
  for (int i = 0; i < 4; ++i) to[threadIdx.x * 4 + i] = from[threadIdx.x * 4 + i];
#endif
}

float last_of(const float* data) {
  MUST(cudaDeviceSynchronize());
  float last = 0;
  MUST(cudaMemcpy(&last, data + kN - 1, sizeof(last), cudaMemcpyDeviceToHost));
  return last;
}

void two_kernels(bool right) {
  float *a = zeros(), *b = zeros();
  Stream producer, consumer;
  Event ready;
  add<<<1, 64, 0, producer>>>(a, 1, kN);
  ready.record(producer);
  if (right) ready.block(consumer);
  copy<<<1, 64, 0, consumer>>>(a, b, kN);
  MUST(cudaDeviceSynchronize());
}

void asynchronous_read(bool right) {
  float *a = zeros(), *b = zeros();
  Stream producer, consumer;
  Event ready;
  add<<<1, 64, 0, producer>>>(a, 1, kN);
  ready.record(producer);
  if (right) ready.block(consumer);
  copy_later<<<1, 64, 0, consumer>>>(a, b);
  MUST(cudaDeviceSynchronize());
}
void asynchronous_write(bool right) {
  float *a = zeros(), *b = zeros(), *c = zeros();
  Stream producer, consumer;
  Event ready;
  copy_later<<<1, 64, 0, producer>>>(a, b);
  ready.record(producer);
  if (right) ready.block(consumer);
  copy<<<1, 64, 0, consumer>>>(b, c, kN);
  MUST(cudaDeviceSynchronize());
}

/// Readers of a tensor, atomic operations on a counter, and neighbours in a word need no order.
void no_conflict_right() {
  float *a = zeros(), *b = zeros(), *c = zeros();
  int* const counter = reinterpret_cast<int*>(zeros());
  unsigned char* const bytes = reinterpret_cast<unsigned char*>(zeros());
  Stream one, two;
  copy<<<1, 64, 0, one>>>(a, b, kN);
  copy<<<1, 64, 0, two>>>(a, c, kN);
  count<<<1, 64, 0, one>>>(counter, kN);
  count<<<1, 64, 0, two>>>(counter, kN);
  write_bytes<<<1, 64, 0, one>>>(bytes, 0, kN);
  write_bytes<<<1, 64, 0, two>>>(bytes, 1, kN);
  MUST(cudaDeviceSynchronize());
}

/// A counter that one stream clears while the other counts.
void atomic_and_fill(bool right) {
  int* const counter = reinterpret_cast<int*>(zeros());
  Stream one, two;
  Event counted;
  count<<<1, 64, 0, one>>>(counter, kN);
  counted.record(one);
  if (right) counted.block(two);
  MUST(cudaMemsetAsync(counter, 0, sizeof(int), two));
  MUST(cudaDeviceSynchronize());
}

void copy_and_kernel(bool right) {
  float *a = zeros(), *host = pinned(3);
  Stream upload, compute;
  Event arrived;
  MUST(cudaMemcpyAsync(a, host, kBytes, cudaMemcpyHostToDevice, upload));
  arrived.record(upload);
  if (right) arrived.block(compute);
  add<<<1, 64, 0, compute>>>(a, 1, kN);
  MUST(cudaDeviceSynchronize());
}

/// A loader with two device buffers: batch 2 goes where batch 0 was, which a slow step may still read.
void ring_reuse(bool right) {
  float *ring[2] = {zeros(), zeros()}, *sum = zeros(), *host[4];
  Stream upload, compute;
  Event arrived[2], used[2];
  for (int step = 0; step < 4; ++step) {
    const int slot = step % 2;
    host[step] = pinned(static_cast<float>(step));
    if (right && step >= 2) used[slot].block(upload);
    MUST(cudaMemcpyAsync(ring[slot], host[step], kBytes, cudaMemcpyHostToDevice, upload));
    arrived[slot].record(upload);
    arrived[slot].block(compute);
    copy<<<1, 64, 0, compute>>>(ring[slot], sum, kN);
    used[slot].record(compute);
  }
  MUST(cudaDeviceSynchronize());
}

/// The event is recorded before the work that it should follow.
void recorded_too_early(bool right) {
  float *a = zeros(), *b = zeros();
  Stream producer, consumer;
  Event ready;
  if (!right) ready.record(producer);
  add<<<1, 64, 0, producer>>>(a, 1, kN);
  if (right) ready.record(producer);
  ready.block(consumer);
  copy<<<1, 64, 0, consumer>>>(a, b, kN);
  MUST(cudaDeviceSynchronize());
}

void wrong_stream_waits(bool right) {
  float *a = zeros(), *b = zeros();
  Stream producer, consumer, other;
  Event ready;
  add<<<1, 64, 0, producer>>>(a, 1, kN);
  ready.record(producer);
  ready.block(right ? consumer : other);
  copy<<<1, 64, 0, consumer>>>(a, b, kN);
  MUST(cudaDeviceSynchronize());
}

/// One event for two producers: a wait covers the last recording only.
void recorded_again(bool right) {
  float *a = zeros(), *b = zeros(), *c = zeros();
  Stream one, two, consumer;
  Event ready, ready_too;
  add<<<1, 64, 0, one>>>(a, 1, kN);
  ready.record(one);
  add<<<1, 64, 0, two>>>(b, 1, kN);
  (right ? ready_too : ready).record(two);
  ready.block(consumer);
  if (right) ready_too.block(consumer);
  copy<<<1, 64, 0, consumer>>>(a, c, kN);
  copy<<<1, 64, 0, consumer>>>(b, c, kN);
  MUST(cudaDeviceSynchronize());
}

/// The default stream waits for blocking streams, and for no others.
void default_stream(bool right) {
  float *a = zeros(), *b = zeros();
  Stream own(right ? cudaStreamDefault : cudaStreamNonBlocking);
  add<<<1, 64, 0, own>>>(a, 1, kN);
  copy<<<1, 64>>>(a, b, kN);
  MUST(cudaDeviceSynchronize());
}

/// cudaMemset returns before the memory is set, and only the default stream waits for it.
void fill_and_stream(bool right) {
  float* a = nullptr;
  MUST(cudaMalloc(&a, kBytes));
  Stream own;
  MUST(cudaMemset(a, 0, kBytes));
  if (right) MUST(cudaDeviceSynchronize());
  add<<<1, 64, 0, own>>>(a, 1, kN);
  MUST(cudaDeviceSynchronize());
}

void freed_on_another_stream(bool right) {
  Stream own, other;
  Event done;
  float* a = nullptr;
  MUST(cudaMallocAsync(&a, kBytes, own));
  MUST(cudaMemsetAsync(a, 0, kBytes, own));
  add<<<1, 64, 0, own>>>(a, 1, kN);
  done.record(own);
  if (right) done.block(other);
  MUST(cudaFreeAsync(a, other));
  MUST(cudaDeviceSynchronize());
}

void allocated_on_another_stream(bool right) {
  Stream own, other;
  Event there;
  float* a = nullptr;
  MUST(cudaMallocAsync(&a, kBytes, own));
  there.record(own);
  if (right) there.block(other);
  MUST(cudaMemsetAsync(a, 0, kBytes, other));
  MUST(cudaDeviceSynchronize());
  MUST(cudaFree(a));
}

/// The memory is freed in its stream, and the next kernel of this very stream uses it.
void used_after_free(bool right) {
  Stream own;
  float *a = nullptr, *b = zeros();
  MUST(cudaMallocAsync(&a, kBytes, own));
  MUST(cudaMemsetAsync(a, 0, kBytes, own));
  if (!right) MUST(cudaFreeAsync(a, own));
  copy<<<1, 64, 0, own>>>(a, b, kN);
  if (right) MUST(cudaFreeAsync(a, own));
  MUST(cudaStreamSynchronize(own));
}

/// Pinned memory goes while a copy may still read it.
void pinned_freed(bool right) {
  float *a = zeros(), *host = pinned(1);
  Stream own;
  MUST(cudaMemcpyAsync(a, host, kBytes, cudaMemcpyHostToDevice, own));
  if (right) own.wait();
  MUST(cudaFreeHost(host));
  MUST(cudaDeviceSynchronize());
}

/// A graph that can run; both go at the end.
struct Replay {
  explicit Replay(cudaGraph_t g) : graph(g) { MUST(cudaGraphInstantiate(&exec, graph, 0)); }
  ~Replay() {
    cudaGraphExecDestroy(exec);
    cudaGraphDestroy(graph);
  }
  Replay(const Replay&) = delete;
  cudaGraph_t graph;
  cudaGraphExec_t exec = nullptr;
};

/// Two branches of a captured graph write one tensor.
void graph_branches(bool right) {
  float *a = zeros(), *b = zeros();
  Stream main, fork;
  Event begin, middle, end;
  MUST(cudaStreamBeginCapture(main, cudaStreamCaptureModeThreadLocal));
  add<<<1, 64, 0, main>>>(b, 1, kN);
  begin.record(main);
  begin.block(fork);
  add<<<1, 64, 0, main>>>(a, 1, kN);
  middle.record(main);
  if (right) middle.block(fork);
  add<<<1, 64, 0, fork>>>(a, 2, kN);
  end.record(fork);
  end.block(main);
  cudaGraph_t graph;
  MUST(cudaStreamEndCapture(main, &graph));
  const Replay replay(graph);
  for (int i = 0; i < 3; ++i) MUST(cudaGraphLaunch(replay.exec, main));
  MUST(cudaDeviceSynchronize());
}

/// A kernel of another stream reads what a graph writes.
void graph_and_kernel(bool right) {
  float *a = zeros(), *b = zeros();
  Stream main, eager;
  Event done;
  MUST(cudaStreamBeginCapture(main, cudaStreamCaptureModeThreadLocal));
  add<<<1, 64, 0, main>>>(a, 1, kN);
  cudaGraph_t graph;
  MUST(cudaStreamEndCapture(main, &graph));
  const Replay replay(graph);
  MUST(cudaGraphLaunch(replay.exec, main));
  done.record(main);
  if (right) done.block(eager);
  copy<<<1, 64, 0, eager>>>(a, b, kN);
  MUST(cudaDeviceSynchronize());
}

__global__ void set_condition(cudaGraphConditionalHandle handle, const float* from) {
  cudaGraphSetConditional(handle, from[0] == 0);
}

/// A kernel of another stream reads what the graph of a conditional node writes; the node is launched before its body
/// is known.
void conditional_and_kernel(bool right) {
  float *a = zeros(), *b = zeros();
  Stream main, eager;
  Event done;
  cudaGraph_t graph;
  MUST(cudaGraphCreate(&graph, 0));
  cudaGraphNodeParams p{};
  p.type = cudaGraphNodeTypeConditional;
  MUST(cudaGraphConditionalHandleCreate(&p.conditional.handle, graph, 1, cudaGraphCondAssignDefault));
  p.conditional.type = cudaGraphCondTypeWhile;
  p.conditional.size = 1;
  cudaGraphNode_t node;
  MUST(cudaGraphAddNode(&node, graph, nullptr, nullptr, 0, &p));
  MUST(cudaStreamBeginCaptureToGraph(main, p.conditional.phGraph_out[0], nullptr, nullptr, 0,
                                     cudaStreamCaptureModeThreadLocal));
  add<<<1, 64, 0, main>>>(a, 1, kN);
  set_condition<<<1, 1, 0, main>>>(p.conditional.handle, a);
  MUST(cudaStreamEndCapture(main, nullptr));
  const Replay replay(graph);
  MUST(cudaGraphLaunch(replay.exec, main));
  done.record(main);
  if (right) done.block(eager);
  copy<<<1, 64, 0, eager>>>(a, b, kN);
  MUST(cudaDeviceSynchronize());
}

/// A conditional node asks a value that nobody has set in this launch.
void condition_of_nobody(bool right) {
  float* const a = zeros();
  Stream main;
  cudaGraph_t graph;
  MUST(cudaGraphCreate(&graph, 0));
  cudaGraphNodeParams p{};
  p.type = cudaGraphNodeTypeConditional;
  MUST(cudaGraphConditionalHandleCreate(&p.conditional.handle, graph, 1, right ? cudaGraphCondAssignDefault : 0));
  p.conditional.type = cudaGraphCondTypeIf;
  p.conditional.size = 1;
  cudaGraphNode_t node;
  MUST(cudaGraphAddNode(&node, graph, nullptr, nullptr, 0, &p));
  MUST(cudaStreamBeginCaptureToGraph(main, p.conditional.phGraph_out[0], nullptr, nullptr, 0,
                                     cudaStreamCaptureModeThreadLocal));
  add<<<1, 64, 0, main>>>(a, 1, kN);
  MUST(cudaStreamEndCapture(main, nullptr));
  const Replay replay(graph);
  MUST(cudaGraphLaunch(replay.exec, main));
  MUST(cudaDeviceSynchronize());
}

/// A host function is a part of its stream: other streams do not wait, and the kernel before is as unordered as without
/// it.
void host_function(bool right) {
  float *a = zeros(), *b = zeros();
  Stream producer, consumer;
  Event ready;
  static int called = 0;
  add<<<1, 64, 0, producer>>>(a, 1, kN);
  MUST(cudaLaunchHostFunc(
      producer, [](void*) { ++called; }, nullptr));
  ready.record(producer);
  if (right) ready.block(consumer);
  copy<<<1, 64, 0, consumer>>>(a, b, kN);
  MUST(cudaDeviceSynchronize());
}

/// The host overwrites what an upload has not read yet.
void source_written(bool right) {
  float *a = zeros(), *host = pinned(1);
  Stream own;
  MUST(cudaMemcpyAsync(a, host, kBytes, cudaMemcpyHostToDevice, own));
  if (right) own.wait();
  host[17] = 2;
  MUST(cudaDeviceSynchronize());
}

/// The host reads a download that has not arrived: nothing can see it, but the value is NaN.
void read_too_early(bool right) {
  float *a = zeros(), *host = pinned(1);
  Stream own;
  add<<<1, 64, 0, own>>>(a, 5, kN);
  MUST(cudaMemcpyAsync(host, a, kBytes, cudaMemcpyDeviceToHost, own));
  if (right) own.wait();
  const float read = host[kN - 1];
  MUST(cudaDeviceSynchronize());
  std::printf("read %g\n", read);
}

void cached_memory(bool right) {
  Stream upload, compute;
  Event arrived;
  Cache cache(right);
  float *sum = zeros(), *host = pinned(1);
  for (int step = 0; step < 2; ++step) {
    float* const batch = cache.take(upload);
    MUST(cudaMemcpyAsync(batch, host, kBytes, cudaMemcpyHostToDevice, upload));
    arrived.record(upload);
    arrived.block(compute);
    cache.record_stream(compute);
    copy<<<1, 64, 0, compute>>>(batch, sum, kN);
    cache.give(batch);
  }
  MUST(cudaDeviceSynchronize());
}

/// The host polls an event: a query that says yes is as good as a wait, one that says no is none.
void query(bool right) {
  float *a = zeros(), *b = zeros();
  Stream producer, consumer;
  Event ready, never;
  add<<<1, 64, 0, producer>>>(a, 1, kN);
  ready.record(producer);
  while (right && cudaEventQuery(ready.handle) == cudaErrorNotReady) {
  }
  if (!right) (void)cudaEventQuery(never.handle);
  copy<<<1, 64, 0, consumer>>>(a, b, kN);
  MUST(cudaDeviceSynchronize());
}

/// The order goes through a third stream that is destroyed before it has run.
void order_through_others_right() {
  float *a = zeros(), *b = zeros();
  Stream producer, consumer;
  for (int i = 0; i < 50; ++i) {
    Stream between;
    Event ready, passed;
    add<<<1, 64, 0, producer>>>(a, 1, kN);
    ready.record(producer);
    ready.block(between);
    passed.record(between);
    passed.block(consumer);
    copy<<<1, 64, 0, consumer>>>(a, b, kN);
    Event used;
    used.record(consumer);
    used.block(producer);
  }
  if (last_of(b) != 50) std::exit(1);
}

/// The default stream still waits for a blocking stream that was destroyed with work in flight.
void destroyed_stream_right() {
  float *a = zeros(), *b = zeros();
  {
    Stream own(cudaStreamDefault);
    add<<<1, 64, 0, own>>>(a, 1, kN);
  }
  copy<<<1, 64>>>(a, b, kN);
  if (last_of(b) != 1) std::exit(1);
}

/// Adds 256 floats of two loads. The wait for the previous kernel is before all accesses, or after the named one; by
/// all threads, or by one before a barrier. The next kernel may begin at once.
enum class Wait { first, by_one, after_load, after_bulk_load, after_store, never };
__global__ void copy_early(const float* from, float* to, Wait wait) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  __shared__ alignas(128) int tile[256];
  __shared__ alignas(8) unsigned long long arrived;
  const int t = static_cast<int>(threadIdx.x);
  const unsigned barrier = hopper::shared_address(&arrived);
  if (t == 0) hopper::init(barrier, 1);
  const auto wait_here = [&](Wait here) {
    if (wait == here) cudaGridDependencySynchronize();
  };
  cudaTriggerProgrammaticLaunchCompletion();
  wait_here(Wait::first);
  if (t == 0) wait_here(Wait::by_one);
  __syncthreads();
  if (t == 0) hopper::load(tile, reinterpret_cast<const int*>(from), sizeof(tile), barrier);
  wait_here(Wait::after_bulk_load);
  const float own = from[t];
  wait_here(Wait::after_load);
  hopper::wait(barrier, 0);
  to[t] = own + __int_as_float(tile[t]);
  wait_here(Wait::after_store);
#endif
}
void launch_early(cudaStream_t stream, const float* from, float* to, Wait wait) {
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = 2;
  config.blockDim = 256;
  config.stream = stream;
  config.attrs = &attribute;
  config.numAttrs = 1;
  MUST(cudaLaunchKernelEx(&config, copy_early, from, to, wait));
}

/// A kernel that may begin before its predecessor's end reads the results of the predecessor.
void early_read(bool right) {
  float *a = zeros(), *b = zeros();
  Stream own;
  add<<<1, 64, 0, own>>>(a, 1, kN);
  launch_early(own, a, b, right ? Wait::first : Wait::after_load);
  own.wait();
}
/// As early_read, by a bulk copy alone; in the twin one thread waits for all.
void early_bulk_read(bool right) {
  float *a = zeros(), *b = zeros();
  Stream own;
  add<<<1, 64, 0, own>>>(a, 1, kN);
  launch_early(own, a, b, right ? Wait::by_one : Wait::after_bulk_load);
  own.wait();
}
/// The kernel overwrites the input of its predecessor.
void early_write(bool right) {
  float *a = zeros(), *b = zeros(), *c = zeros();
  Stream own;
  copy<<<1, 64, 0, own>>>(b, c, kN);
  launch_early(own, a, b, right ? Wait::first : Wait::after_store);
  own.wait();
}
/// Its predecessor began early itself and lets it begin before the end of the kernel before that.
void early_chain(bool right) {
  float *a = zeros(), *b = zeros(), *c = zeros();
  Stream own;
  add<<<1, 64, 0, own>>>(a, 1, kN);
  launch_early(own, b, c, Wait::first);
  launch_early(own, a, b, right ? Wait::first : Wait::after_load);
  own.wait();
}
/// No thread waits: a later kernel that waits for this one alone may begin before its predecessor ends.
void early_without_wait(bool right) {
  float *a = zeros(), *b = zeros(), *c = zeros();
  Stream own;
  add<<<1, 64, 0, own>>>(a, 1, kN);
  launch_early(own, b, c, right ? Wait::after_store : Wait::never);
  own.wait();
}
/// A captured launch has the same freedom. Between launches of the graph there is an order.
void early_in_graph(bool right) {
  float *a = zeros(), *b = zeros();
  Stream own;
  MUST(cudaStreamBeginCapture(own, cudaStreamCaptureModeThreadLocal));
  add<<<1, 64, 0, own>>>(a, 1, kN);
  launch_early(own, a, b, right ? Wait::first : Wait::after_load);
  cudaGraph_t graph;
  MUST(cudaStreamEndCapture(own, &graph));
  const Replay replay(graph);
  for (int i = 0; i < 2; ++i) MUST(cudaGraphLaunch(replay.exec, own));
  own.wait();
}
/// After a fill, an event of another stream or a wait of the host the kernel begins after its predecessor's end.
void early_after_others_right() {
  float *a = zeros(), *b = zeros();
  Stream own, other;
  Event used, ready;
  MUST(cudaMemsetAsync(a, 0, kBytes, own));
  launch_early(own, a, b, Wait::after_load);
  used.record(own);
  used.block(other);
  add<<<1, 64, 0, other>>>(a, 1, kN);
  ready.record(other);
  ready.block(own);
  launch_early(own, a, b, Wait::after_load);
  add<<<1, 64, 0, own>>>(a, 1, kN);
  own.wait();
  launch_early(own, a, b, Wait::after_load);
  own.wait();
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<Fault> faults = {
      {"two_kernels", two_kernels},
      {"asynchronous_read", asynchronous_read},
      {"asynchronous_write", asynchronous_write},
      {"atomic_and_fill", atomic_and_fill},
      {"copy_and_kernel", copy_and_kernel},
      {"ring_reuse", ring_reuse},
      {"recorded_too_early", recorded_too_early},
      {"wrong_stream_waits", wrong_stream_waits},
      {"recorded_again", recorded_again},
      {"default_stream", default_stream},
      {"fill_and_stream", fill_and_stream},
      {"freed_on_another_stream", freed_on_another_stream},
      {"allocated_on_another_stream", allocated_on_another_stream},
      {"used_after_free", used_after_free},
      {"pinned_freed", pinned_freed},
      {"graph_branches", graph_branches},
      {"graph_and_kernel", graph_and_kernel},
      {"conditional_and_kernel", conditional_and_kernel},
      {"condition_of_nobody", condition_of_nobody},
      {"host_function", host_function},
      {"source_written", source_written},
      {"read_too_early", read_too_early},
      {"cached_memory", cached_memory},
      {"query", query},
      {"early_read", early_read},
      {"early_bulk_read", early_bulk_read},
      {"early_write", early_write},
      {"early_chain", early_chain},
      {"early_without_wait", early_without_wait},
      {"early_in_graph", early_in_graph},
  };
  const std::string asked = argc > 1 ? argv[1] : "";
  if (asked == "no_conflict_right") return no_conflict_right(), 0;
  if (asked == "order_through_others_right") return order_through_others_right(), 0;
  if (asked == "early_after_others_right") return early_after_others_right(), 0;
  if (asked == "destroyed_stream_right") return destroyed_stream_right(), 0;
  return run_fault(asked, faults);
}
