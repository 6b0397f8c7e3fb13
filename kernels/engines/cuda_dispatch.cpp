// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime_api.h>

#include <cstdio>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "kernels/contracts/batch_norm.h"
#include "kernels/contracts/linear.h"
#include "kernels/engines/cublaslt.h"
#include "kernels/engines/cuda_stream.h"
#include "kernels/engines/cudnn.h"
#include "kernels/engines/dispatch.h"
#include "kernels/engines/own_version.h"  // written by CMake: WEFT_OWN_VERSION
#include "kernels/engines/recurrent.h"
#include "kernels/engines/tuner.h"
#include "kernels/runtime/allocator.h"
#include "kernels/runtime/runtime.h"

namespace weft::kernels::vendor {
namespace {

/// `580.95.05`, else the CUDA version that the driver offers.
std::string driver_version() {
  std::ifstream file("/proc/driver/nvidia/version");
  for (std::string word; file >> word;)
    if (word.find('.') != std::string::npos && word.find_first_not_of("0123456789.") == std::string::npos) return word;
  int version = 0;
  if (cudaDriverGetVersion(&version) != cudaSuccess) cudaGetLastError();
  return "CUDA " + std::to_string(version);
}

/// All dependencies of a timing other than the problem.
std::string machine(int device) {
  return str(runtime(DeviceKind::cuda).describe(device), "; driver ", driver_version(), "; ", cublaslt::version(), "; ",
             cudnn::version(), "; own ", WEFT_OWN_VERSION);
}

Tuner& tuner(int device) {
  static TuneCache& cache = *new TuneCache(TuneCache::default_path());
  static std::mutex mutex;
  static auto& tuners = *new std::map<int, std::unique_ptr<Tuner>>;
  const std::lock_guard lock(mutex);
  auto& one = tuners[device];
  if (!one) one = std::make_unique<Tuner>(machine(device), cache);
  return *one;
}

/// Two events around the runs, on the queue's stream.
class EventStopwatch {
 public:
  explicit EventStopwatch(const Queue& queue)
      : queue_(queue),
        start_(gpu().create_event(queue.device.index, true)),
        stop_(gpu().create_event(queue.device.index, true)) {}
  ~EventStopwatch() {
    gpu().destroy_event(start_);
    gpu().destroy_event(stop_);
  }
  EventStopwatch(const EventStopwatch&) = delete;
  EventStopwatch& operator=(const EventStopwatch&) = delete;

  double seconds(const std::function<void()>& run, int repeats) {
    gpu().record_event(start_, queue_.device.index, queue_.stream);
    for (int i = 0; i < repeats; ++i) run();
    gpu().record_event(stop_, queue_.device.index, queue_.stream);
    gpu().synchronize_event(stop_);
    return gpu().elapsed_ms(start_, stop_) * 1e-3;
  }

 private:
  static Runtime& gpu() { return runtime(DeviceKind::cuda); }
  Queue queue_;
  void *start_, *stop_;
};

/// Once per library and process: auto goes on with our own kernels.
void warn_once(const char* library, const std::string& missing) {
  static std::mutex mutex;
  static std::map<std::string, bool> warned;
  const std::lock_guard lock(mutex);
  if (!std::exchange(warned[library], true))
    std::fprintf(stderr, "weft: WEFT_ENGINE=auto goes without %s: %s\n", library, missing.c_str());
}

/// Adds what a library offers. `offer` returns the number of variants; an error of the library means none.
template <class Offer, class Run>
void add_variants(std::vector<Candidate>& candidates, Maker maker, const Offer& offer, const Run& run) {
  int count = 0;
  try {
    count = offer();
  } catch (const Error&) {
    return;  // the engine `vendor` would show it
  }
  for (int variant = 0; variant < count; ++variant)
    candidates.push_back({{maker, variant}, [run, variant] { run(variant); }});
}

/// The answer for a new problem. `candidates` are timed on the queue; our own is the first.
Choice choose(const Queue& queue, const Problem& problem, const std::vector<Candidate>& candidates) {
  if (is_capturing(queue.stream)) return tuner(queue.device.index).choose(problem, candidates, nullptr);
  EventStopwatch stopwatch(queue);
  return tuner(queue.device.index).choose(problem, candidates, [&](const auto& run, int repeats) {
    return stopwatch.seconds(run, repeats);
  });
}

/// `view` over scratch memory of the same alignment, where timing must not touch its values: a sum would be added many
/// times.
struct Scratch {
  Scratch(const Queue& queue, const View& view)
      : memory(queue, static_cast<size_t>(view.span()) * size_of(view.dtype) + 16, "engine_timing"), copy(view) {
    copy.data = memory.as<char>() + reinterpret_cast<uintptr_t>(view.data) % 16;
  }
  Workspace memory;
  View copy;
};

void own_matmul(const MatmulCall& call) {
  const EngineGuard own(Engine::own);
  if (call.row_sums) {
    const auto matrix = [](View view, bool transposed) {
      const int rows = transposed ? 2 : 1, columns = 3 - rows;
      view.rank = 2;
      view.strides = {view.strides[rows], view.strides[columns]};
      view.sizes = {view.sizes[rows], view.sizes[columns]};
      return view;
    };
    return cuda::linear_backward_weight(call.queue, matrix(call.y, false), call.row_sums, matrix(call.a, true),
                                        matrix(call.b, false));
  }
  if (call.activation == Activation::none && !call.residual)
    return cuda::matmul(call.queue, call.y, call.a, call.b, call.bias, call.arguments);
  cuda::matmul_fused(call.queue, call.y, View::none(), call.a, call.b, call.bias, call.residual,
                     {call.arguments.alpha, call.activation});
}

void own_conv2d(const Conv2dCall& call) {
  const EngineGuard own(Engine::own);
  if (const Conv2dNorm* const n = call.norm)
    return cuda::conv2d_norm(call.queue, call.y, call.x, call.w, call.bias, n->mean, n->var, n->weight, n->norm_bias,
                             n->residual, {call.arguments, n->eps, n->relu});
  if (call.part)
    return cuda::conv2d_statistics(call.queue, call.y, *call.part, call.x, call.w, call.bias, call.arguments);
  switch (call.direction) {
    case Direction::forward:
      return cuda::conv2d_forward(call.queue, call.y, call.x, call.w, call.bias, call.arguments);
    case Direction::backward_input:
      return cuda::conv2d_backward_input(call.queue, call.x, call.y, call.w, View::none(), call.arguments);
    case Direction::backward_weight:
      return cuda::conv2d_backward_weight(call.queue, call.w, call.y, call.x, call.arguments);
  }
}

void own_attention(const AttentionCall& call) {
  const EngineGuard own(Engine::own);
  const View none;  // the state: dropout is ours alone
  if (call.backward)
    cuda::attention_backward(call.queue, call.dq, call.dk, call.dv, call.dy, call.q, call.k, call.v, call.y, call.lse,
                             call.key_lengths, call.key_mask, none, call.arguments);
  else
    cuda::attention_forward(call.queue, call.y, call.lse, call.q, call.k, call.v, call.key_lengths, call.key_mask, none,
                            call.arguments);
}

/// The norm or the statistics after a library's convolution, in place on y.
void finish(const Conv2dCall& call) {
  if (!call.norm && !call.part) return;
  const View rows = View::dense(call.y.data, call.y.dtype, {call.y.numel() / call.y.sizes[3], call.y.sizes[3]});
  if (call.part) return cuda::batch_norm_statistics(call.queue, *call.part, rows);
  const auto& [mean, var, weight, norm_bias, residual, eps, relu] = *call.norm;
  View residual_rows = rows;
  residual_rows.data = residual.data;
  cuda::batch_norm_inference(call.queue, rows, rows, mean, var, weight, norm_bias,
                             residual ? residual_rows : View::none(), {.eps = eps, .relu = relu});
}

void by_cudnn(const Conv2dCall& call, int variant) {
  cudnn::conv2d(convolution_of(call), variant);
  finish(call);
}

/// A 1x1 convolution as the matmul that it is, by cuBLASLt.
class PointwiseConv2d {
 public:
  explicit PointwiseConv2d(const Conv2dCall& call) : queue_(call.queue) {
    const View x = matrix(call.x), y = matrix(call.y), w = matrix(call.w);
    is_matmul_ = call.w.sizes[1] == 1 && call.w.sizes[2] == 1 && call.arguments.groups == 1 &&
                 call.arguments.stride == Size2d{1, 1} && call.arguments.padding == Size2d{0, 0};
    if (call.direction == Direction::forward) {
      y_ = y, a_ = x, b_ = transposed(w);
      if (call.bias) bias_ = View::dense(call.bias.data, call.bias.dtype, {w.sizes[1]});
    } else if (call.direction == Direction::backward_input) {
      y_ = x, a_ = y, b_ = w;
    } else {
      y_ = w, a_ = transposed(y), b_ = x;
    }
  }
  MatmulCall call() const { return {queue_, y_, a_, b_, bias_, arguments_}; }
  bool is_supported() const { return is_matmul_ && cublaslt::missing().empty() && cublaslt::supports(call()); }

 private:
  static View matrix(const View& v) {
    const int64_t columns = v.sizes[3];
    return View::dense(v.data, v.dtype, {1, v.sizes[0] * v.sizes[1] * v.sizes[2], columns});
  }
  static View transposed(View v) {
    std::swap(v.sizes[1], v.sizes[2]);
    std::swap(v.strides[1], v.strides[2]);
    return v;
  }
  const Queue& queue_;
  bool is_matmul_;
  View y_, a_, b_, bias_;
  MatmulArguments arguments_;
};

Choice choose(const MatmulCall& call, const Problem& problem) {
  const UnsafeCallsAllowed guard;
  std::unique_ptr<Scratch> scratch;
  const bool adds_to_y = call.arguments.grad == Grad::accumulate || call.residual.data == call.y.data;
  if (adds_to_y) scratch = std::make_unique<Scratch>(call.queue, call.y);
  const MatmulCall timed{call.queue,      scratch ? scratch->copy : call.y,
                         call.a,          call.b,
                         call.bias,       call.arguments,
                         call.activation, call.residual,
                         call.row_sums};
  std::vector<Candidate> candidates{{{Maker::own, 0}, [&] { own_matmul(timed); }}};
  add_variants(
      candidates, Maker::cublaslt, [&] { return cublaslt::variants(timed); },
      [&](int variant) { cublaslt::matmul(timed, variant); });
  return choose(call.queue, problem, candidates);
}

Choice choose(const Conv2dCall& call, const Problem& problem) {
  const UnsafeCallsAllowed guard;
  std::vector<Candidate> candidates{{{Maker::own, 0}, [&] { own_conv2d(call); }}};
  if (cudnn::missing().empty() && cudnn::supports(call))
    add_variants(
        candidates, Maker::cudnn, [&] { return cudnn::variants(convolution_of(call)); },
        [&](int variant) { by_cudnn(call, variant); });
  const PointwiseConv2d pointwise(call);
  if (pointwise.is_supported())
    add_variants(
        candidates, Maker::cublaslt, [&] { return cublaslt::variants(pointwise.call()); },
        [&](int variant) {
          cublaslt::matmul(pointwise.call(), variant);
          finish(call);
        });
  return choose(call.queue, problem, candidates);
}

Choice choose(const AttentionCall& call, const Problem& problem) {
  const UnsafeCallsAllowed guard;
  std::vector<Candidate> candidates{{{Maker::own, 0}, [&] { own_attention(call); }}};
  add_variants(
      candidates, Maker::cudnn, [&] { return cudnn::variants(call); },
      [&](int variant) { cudnn::attention(call, variant); });
  return choose(call.queue, problem, candidates);
}

Choice choose(const RecurrentCall& call, const Problem& problem, const std::function<void()>& own) {
  const UnsafeCallsAllowed guard;
  std::optional<Workspace> reserve;
  RecurrentCall timed = call;
  std::vector<Candidate> candidates{{{Maker::own, 0}, own}};
  add_variants(
      candidates, Maker::cudnn,
      [&] {
        const int64_t bytes = recurrent_reserve(call);
        if (bytes > 0) reserve.emplace(call.queue, static_cast<size_t>(bytes), "engine_timing");
        if (reserve) timed.reserve = View::dense(reserve->data(), DType::u8, {bytes});
        return cudnn::variants(timed);
      },
      [&](int) { cudnn::recurrent(timed); });
  return choose(call.queue, problem, candidates);
}

bool is_supported(const MatmulCall& call) { return cublaslt::supports(call); }
bool is_supported(const Conv2dCall& call) { return cudnn::supports(call); }
bool is_supported(const AttentionCall& call) { return cudnn::refusal(call).empty(); }
bool is_supported(const RecurrentCall& call) { return cudnn::refusal(call).empty(); }

/// Who computes `call`: as WEFT_ENGINE says; under auto the fastest of those that were timed.
template <class Call, class... Own>
Choice decide(const Call& call, const char* op, const Own&... own) {
  constexpr bool kIsProduct = std::is_same_v<Call, MatmulCall>;
  constexpr bool kMayBeAProduct = std::is_same_v<Call, Conv2dCall>;  // cuBLASLt's, where cuDNN is missing
  const std::string& missing = kIsProduct ? cublaslt::missing() : cudnn::missing();
  if (engine() == Engine::vendor) {
    WEFT_CHECK(missing.empty(), op, ": WEFT_ENGINE=vendor: ", missing);
    return {!is_supported(call) ? Maker::own : kIsProduct ? Maker::cublaslt : Maker::cudnn, 0};
  }
  if (!missing.empty()) warn_once(kIsProduct ? "cuBLASLt" : "cuDNN", missing);
  if (!kMayBeAProduct && (!missing.empty() || !is_supported(call))) return {};
  const Problem problem = problem_of(call);
  const auto answer = tuner(call.queue.device.index).known(problem);
  return answer ? *answer : choose(call, problem, own...);
}

}  // namespace

bool run(const MatmulCall& call) {
  const Choice choice = decide(call, "matmul");
  if (choice.maker == Maker::own) return false;
  cublaslt::matmul(call, choice.variant);
  return true;
}

bool run(const Conv2dCall& call) {
  const Choice choice = decide(call, op_of(call));
  if (choice.maker == Maker::own) {
    if (engine() == Engine::vendor) return false;
    own_conv2d(call);  // not the caller's engine, which would choose again for the matmul of a 1x1 convolution
  } else if (choice.maker == Maker::cudnn) {
    by_cudnn(call, choice.variant);
  } else {
    cublaslt::matmul(PointwiseConv2d(call).call(), choice.variant);
    finish(call);
  }
  return true;
}

bool run(const AttentionCall& call) {
  const Choice choice = decide(call, call.op());
  if (choice.maker == Maker::own) return false;
  cudnn::attention(call, choice.variant);
  return true;
}

bool chooses_cudnn(const RecurrentCall& call, const std::function<void()>& own) {
  return decide(call, call.op(), own).maker == Maker::cudnn;
}
int64_t recurrent_reserve(const RecurrentCall& call) { return cudnn::reserve(call); }
void recurrent(const RecurrentCall& call) { cudnn::recurrent(call); }

}  // namespace weft::kernels::vendor
