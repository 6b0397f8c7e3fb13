// SPDX-License-Identifier: Apache-2.0
#include "core/graph.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "core/autograd.h"
#include "core/capture.h"
#include "core/random.h"
#include "core/trace.h"
#include "kernels/runtime/allocator.h"
#include "kernels/runtime/kernel_trace.h"
#include "kernels/runtime/runtime.h"
#include "kernels/runtime/wrong_index.h"

namespace weft {
namespace {

kernels::CachingAllocator& allocator_of(Device device) { return kernels::CachingAllocator::of(device); }

/// Memory of the graph's own; in use while it is open.
class Pool {
 public:
  explicit Pool(Device device) : device_(device), pool_(allocator_of(device).open_pool()) {}
  ~Pool() {
    close();
    allocator_of(device_).release_pool(pool_);
  }
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;
  void close() { allocator_of(device_).close_pool(pool_); }

 private:
  Device device_;
  kernels::MemoryPool* pool_;
};

}  // namespace

struct Graph::State {
  Device device;
  Stream stream;
  RandomCapture random;
  Pool pool;
  void* executable = nullptr;
  capture_detail::Capture capture;

  explicit State(Device d) : device(d), stream(d), random(d), pool(d), capture{d, {}, 0, {}} {}
  ~State() {
    if (!executable) return;
    kernels::Runtime& runtime = kernels::runtime(device.kind);
    try {
      runtime.synchronize_device(device.index);
    } catch (const Error&) {
    }
    runtime.destroy_graph(executable);
  }
};

Graph::Graph() = default;
Graph::~Graph() = default;
void Graph::clear() { state_.reset(); }

void Graph::capture(Device device, const std::function<void()>& step) {
  WEFT_CHECK(device.kind != DeviceKind::cpu,
             "graph: expected a cuda device, got cpu, which runs each op at once: there is nothing to capture");
  WEFT_CHECK(!state_, "graph: it holds a captured step already. Make another Graph");
  const kernels::KernelChecks checks = kernels::kernel_checks();
  WEFT_CHECK(!checks.synchronize && !checks.not_finite,
             "graph: WEFT_SYNC=1 and WEFT_CHECK_NAN=1 look at each kernel when it runs, and a capture runs none. Unset "
             "them or go without a graph");
  WEFT_CHECK(!is_capturing(device), "graph: capture inside the capture of another graph");
  const TraceScope scope("graph capture");
  kernels::Runtime& runtime = kernels::runtime(device.kind);
  runtime.synchronize_device(device.index);
  allocator_of(device).empty_cache();
  kernels::wrong_index_record(device);

  auto state = std::make_unique<State>(device);
  void* const stream = state->stream.handle();
  const capture_detail::CaptureGuard capturing(state->capture);
  const StreamGuard on_stream(state->stream);
  runtime.begin_capture(device.index, stream);
  try {
    step();
  } catch (...) {
    runtime.abandon_capture(device.index, stream);
    throw;
  }
  state->random.finish();
  try {
    state->executable = runtime.end_capture(device.index, stream);
  } catch (const Error& e) {
    fail("graph: the step cannot be captured: ", e.what());
  }
  state->pool.close();
  state_ = std::move(state);
}

void Graph::replay() {
  WEFT_CHECK(state_, "graph: replay before capture");
  const Device device = state_->device;
  refuse_while_capturing("graph: replay", device);
  const TraceScope scope("graph replay");
  for (const auto& check : state_->capture.checks) check();
  state_->random.advance();
  const kernels::Queue queue = current_queue(device);
  kernels::run_as_kernel(queue, "graph", {}, [&] {
    kernels::runtime(device.kind).launch_graph(device.index, state_->executable, queue.stream);
  });
  for (const auto& work : state_->capture.each_run) work();
}

GraphedFunction::GraphedFunction(Device device, Function f, GraphedFunctionOptions options)
    : device_(device), function_(std::move(f)), options_(std::move(options)) {
  WEFT_CHECK(device.kind != DeviceKind::cpu,
             "graph: expected a cuda device, got cpu, which runs each op at once: there is nothing to capture");
  WEFT_CHECK(options_.most == 1 || (options_.most > 1 && !options_.all_agree),
             "graph: expected one graph, or several on one rank, got ", options_.most,
             options_.all_agree ? " on several ranks" : "");
}

/// nullptr: these inputs stay without a graph.
GraphedFunction::Kind* GraphedFunction::kind_of(const std::vector<Tensor>& inputs) {
  const auto fits = [&](const auto& kind) {
    return std::ranges::equal(kind->inputs, inputs, [](const Tensor& a, const Tensor& b) {
      return a.sizes() == b.sizes() && a.dtype() == b.dtype();
    });
  };
  const auto found = std::ranges::find_if(kinds_, fits);
  if (found != kinds_.end()) return found->get();
  if (!failure_.empty()) return nullptr;
  if (std::ssize(kinds_) < options_.most)
    kinds_.push_back(std::make_unique<Kind>());
  else if (options_.most > 1 || is_captured())
    return nullptr;
  Kind& kind = *kinds_.back();  // a single one takes the sizes of the call that captures, as all ranks do
  kind.inputs.clear();
  for (const Tensor& input : inputs) kind.inputs.push_back(empty_like(input));
  return &kind;
}

/// Whether the memory of the graphs so far leaves room for another.
bool GraphedFunction::may_capture() {
  if (!failure_.empty() || graphs_ == 0) return failure_.empty();
  const size_t bytes = allocator_of(device_).stats().in_graphs;
  if (bytes <= options_.most_bytes) return true;
  failure_ = str("the graphs take ", bytes >> 20, " MiB, at most ", options_.most_bytes >> 20, " are for them");
  return false;
}

void GraphedFunction::capture(Kind& kind) {
  std::exception_ptr own;
  try {
    kind.graph.capture(device_, [&] { function_(kind.inputs); });
  } catch (const Error& e) {
    own = std::current_exception();
    failure_ = e.what();
  }
  if (agreed(!own)) {
    ++graphs_;
    return;
  }
  kind.graph.clear();
  if (!own) failure_ = "another rank could not capture the step";
  if (options_.may_run_eagerly) return;
  if (own) std::rethrow_exception(own);
  fail("graph: ", failure_);
}

void GraphedFunction::operator()(const std::vector<Tensor>& inputs) {
  Kind* const kind = kind_of(inputs);
  if (kind && !kind->graph.is_captured() && kind->runs++ >= options_.warm_up && may_capture()) capture(*kind);
  if (!is_captured() || !agreed(kind && kind->graph.is_captured())) return function_(inputs);
  const NoGrad no_grad;
  for (size_t i = 0; i < inputs.size(); ++i) kind->inputs[i].copy_(inputs[i]);
  kind->graph.replay();
  ++replays_;
}

}  // namespace weft
