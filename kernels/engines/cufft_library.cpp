// SPDX-License-Identifier: Apache-2.0
#include <cufft.h>

#include <algorithm>
#include <compare>
#include <iterator>
#include <map>
#include <mutex>
#include <optional>

#include "kernels/contracts/copy.h"
#include "kernels/contracts/fft_shape.h"
#include "kernels/contracts/fill.h"
#include "kernels/contracts/unary.h"
#include "kernels/engines/cuda_stream.h"
#include "kernels/engines/cufft.h"
#include "kernels/engines/vendor_library.h"
#include "kernels/runtime/allocator.h"
#include "kernels/runtime/kernel_variant.h"
#include "kernels/runtime/runtime.h"

namespace weft::kernels::vendor::cufft {
namespace {

/// The functions that Weft calls, found in libcufft.so when the first is needed.
struct Library {
#define WEFT_CUFFT_FUNCTIONS(X) \
  X(Create)                     \
  X(Destroy)                    \
  X(MakePlanMany64)             \
  X(SetAutoAllocation) X(SetWorkArea) X(SetStream) X(ExecC2C) X(ExecR2C) X(ExecC2R) X(ExecZ2Z) X(ExecD2Z) X(ExecZ2D)
#define WEFT_CUFFT_MEMBER(name) decltype(&cufft##name) name = nullptr;
  WEFT_CUFFT_FUNCTIONS(WEFT_CUFFT_MEMBER)
#undef WEFT_CUFFT_MEMBER
  std::string missing;
};

Library load() {
  const std::string file = str("libcufft.so.", CUFFT_VER_MAJOR);  // another major version has another ABI
  VendorLibrary found(file, WEFT_CUFFT_FOLDER, "that of the CUDA toolkit",
                      why_not_under_emulator(file, "The host computes there"));
  Library library;
#define WEFT_CUFFT_FIND(name) found.find(library.name, "cufft" #name);
  WEFT_CUFFT_FUNCTIONS(WEFT_CUFFT_FIND)
#undef WEFT_CUFFT_FIND
  library.missing = found.missing;
  return library;
}

const Library& library() {
  static const Library loaded = load();
  return loaded;
}

void check(const char* call, cufftResult status) {
  WEFT_CHECK(status == CUFFT_SUCCESS, "cufft", call, " gave status ", static_cast<int>(status),
             status == CUFFT_ALLOC_FAILED ? ", no memory" : "");
}

/// `batch` lines of n numbers. Their elements are `columns` apart, and their first ones neighbours, if columns > 1.
struct Problem {
  int device;
  cufftType type;
  int64_t n, columns, batch;
  auto operator<=>(const Problem&) const = default;
};

struct Plan {
  cufftHandle handle = 0;
  size_t work_bytes = 0;
  bool is_captured = false;  // a graph may read its tables: it stays
};

Plan make(const Problem& problem) {
  const UnsafeCallsAllowed guard;
  const bool real_in = problem.type == CUFFT_R2C || problem.type == CUFFT_D2Z;
  const bool real_out = problem.type == CUFFT_C2R || problem.type == CUFFT_Z2D;
  const bool apart = problem.columns > 1;
  long long n = problem.n, half = n / 2 + 1, in = real_out ? half : n, out = real_in ? half : n;
  Plan plan;
  check("Create", library().Create(&plan.handle));
  try {
    check("SetAutoAllocation", library().SetAutoAllocation(plan.handle, 0));
    const long long stride = apart ? problem.columns : 1;
    check("MakePlanMany64", library().MakePlanMany64(plan.handle, 1, &n, &in, stride, apart ? 1 : in, &out, stride,
                                                     apart ? 1 : out, problem.type, problem.batch, &plan.work_bytes));
  } catch (...) {
    library().Destroy(plan.handle);
    throw;
  }
  return plan;
}

void execute(cufftType type, cufftHandle plan, void* x, void* y, int direction) {
  const auto as = [](void* data, auto* of_type) { return static_cast<decltype(of_type)>(data); };
  constexpr cufftReal* f32 = nullptr;
  constexpr cufftComplex* c64 = nullptr;
  constexpr cufftDoubleReal* f64 = nullptr;
  constexpr cufftDoubleComplex* c128 = nullptr;
  switch (type) {
    case CUFFT_C2C:
      return check("ExecC2C", library().ExecC2C(plan, as(x, c64), as(y, c64), direction));
    case CUFFT_R2C:
      return check("ExecR2C", library().ExecR2C(plan, as(x, f32), as(y, c64)));
    case CUFFT_C2R:
      return check("ExecC2R", library().ExecC2R(plan, as(x, c64), as(y, f32)));
    case CUFFT_Z2Z:
      return check("ExecZ2Z", library().ExecZ2Z(plan, as(x, c128), as(y, c128), direction));
    case CUFFT_D2Z:
      return check("ExecD2Z", library().ExecD2Z(plan, as(x, f64), as(y, c128)));
    case CUFFT_Z2D:
      return check("ExecZ2D", library().ExecZ2D(plan, as(x, c128), as(y, f64)));
  }
}

using Plans = std::map<Problem, Plan>;
constexpr int kMostPlans = 256;  // captured graphs have more

/// Destroys all plans but those of captured graphs, and returns Weft's unused memory to the devices.
void forget(Plans& plans) {
  for (auto one = plans.begin(); one != plans.end();) {
    const auto& [problem, plan] = *one;
    runtime(DeviceKind::cuda).synchronize_device(problem.device);
    select_device(problem.device);
    CachingAllocator::of({DeviceKind::cuda, problem.device}).empty_cache();
    if (!plan.is_captured) library().Destroy(plan.handle);
    one = plan.is_captured ? std::next(one) : plans.erase(one);
  }
}

/// The problem's plan, made at the first call.
Plan& plan_of(Plans& plans, const Queue& queue, const Problem& problem) {
  if (const auto found = plans.find(problem); found != plans.end()) return found->second;
  const bool may_forget = !is_capturing(queue.stream);
  const auto idle = std::count_if(plans.begin(), plans.end(), [](const auto& one) { return !one.second.is_captured; });
  if (may_forget && idle >= kMostPlans) forget(plans);
  select_device(queue.device.index);
  try {
    return plans.emplace(problem, make(problem)).first->second;
  } catch (const Error&) {
    if (!may_forget) throw;
  }
  forget(plans);  // cuFFT allocates by itself what Weft's allocator may hold unused
  CachingAllocator::of(queue.device).empty_cache();
  select_device(queue.device.index);
  return plans.emplace(problem, make(problem)).first->second;
}

/// Enqueues the transform. A plan belongs to one stream at a time, and stays for the next call.
void run(const char* op, const Queue& queue, const Problem& problem, void* x, void* y, bool inverse) {
  static auto& mutex = *new std::mutex;  // both stay at the end, when the driver may have gone
  static auto& plans = *new Plans;
  const std::lock_guard lock(mutex);
  try {
    Plan& plan = plan_of(plans, queue, problem);
    plan.is_captured |= is_capturing(queue.stream);
    std::optional<Workspace> work;
    if (plan.work_bytes > 0)
      check("SetWorkArea", library().SetWorkArea(plan.handle, work.emplace(queue, plan.work_bytes, op).data()));
    check("SetStream", library().SetStream(plan.handle, static_cast<cudaStream_t>(queue.stream)));
    execute(problem.type, plan.handle, x, y, inverse ? CUFFT_INVERSE : CUFFT_FORWARD);
  } catch (const OutOfMemory&) {
    throw;  // reports the memory that it wanted
  } catch (const Error& error) {
    fail(op, ": ", error.what(), " for ", problem.batch, " lines of ", problem.n);
  }
}

/// The lines of a view [R, n, C] or [R, n, C, 2] in the order [R, C, n]. Complex f32 counts as f64 where the
/// address allows it: the copy moves whole numbers.
View lines_first(const View& view, void* data, bool moved) {
  const int64_t R = view.sizes[0], n = view.sizes[1], C = view.sizes[2];
  View lines{data, view.dtype, view.rank, {R, C, n, 2}, {}};
  const int64_t parts = view.rank == 4 ? 2 : 1;
  lines.strides = moved ? std::array<int64_t, kMaxRank>{C * n * parts, n * parts, parts, 1}
                        : std::array<int64_t, kMaxRank>{n * C * parts, parts, C * parts, 1};
  return lines;
}

void copy_lines(const Queue& queue, View to, View from) {
  const auto address = [](const View& view) { return reinterpret_cast<uintptr_t>(view.data); };
  if (to.rank == 4 && to.dtype == DType::f32 && (address(to) | address(from)) % sizeof(double) == 0)
    for (View* view : {&to, &from}) {
      view->dtype = DType::f64;
      view->rank = 3;
      for (size_t d = 0; d < 3; ++d) view->strides[d] /= 2;
    }
  cuda::copy(queue, to, from);
}

/// The bytes of a view's numbers.
size_t bytes_of(const View& view) { return static_cast<size_t>(view.numel()) * size_of(view.dtype); }

/// Transforms x into y. cuFFT takes contiguous or interleaved lines, and x at the address of a complex
/// number. It overwrites the x of a transform to real numbers. So it gets copies where these do not hold.
void transform(const char* op, const Queue& queue, const FftShape& shape, const View& y, const View& x, cufftType type,
               double scale, bool inverse) {
  if (y.numel() == 0) return;
  select_device(queue.device.index);
  const bool to_real = type == CUFFT_C2R || type == CUFFT_Z2D;
  const bool moved = shape.rows > 1 && shape.columns > 1;
  const bool misplaced = reinterpret_cast<uintptr_t>(x.data) % (2 * size_of(x.dtype)) != 0;
  std::optional<Workspace> given, result;
  void *in = x.data, *out = y.data;
  if (moved || misplaced || to_real) {
    in = given.emplace(queue, bytes_of(x), op).data();
    copy_lines(queue, lines_first(x, in, moved), lines_first(x, x.data, false));
  }
  if (moved) out = result.emplace(queue, bytes_of(y), op).data();
  const View lines = lines_first(x, in, moved);
  for (const int64_t k : {int64_t{0}, shape.n / 2})  // these imaginary parts count for nothing
    if (to_real && (k == 0 || 2 * k == shape.n)) {
      const auto at = static_cast<size_t>(k * lines.strides[2] + 1) * size_of(x.dtype);
      View imaginary{static_cast<std::byte*>(in) + at, x.dtype, 2, {shape.rows, shape.columns}, {}};
      imaginary.strides = {lines.strides[0], lines.strides[1]};
      cuda::fill(queue, imaginary, 0);
    }
  const bool side_by_side = shape.columns > 1 && !moved;
  run(op, queue, {queue.device.index, type, shape.n, side_by_side ? shape.columns : 1, shape.rows * shape.columns}, in,
      out, inverse);
  if (moved) copy_lines(queue, lines_first(y, y.data, false), lines_first(y, out, true));
  if (scale != 1) cuda::unary_forward(queue, Unary::affine, y, y, {scale, 0});
  note_kernel_variant("cufft");
}

}  // namespace

const std::string& missing() { return library().missing; }

void fft_lines(const Queue& queue, const View& y, const View& x, double scale, bool inverse) {
  const FftShape shape = fft_shape("fft", y, x, x, false, false);
  transform("fft", queue, shape, y, x, x.dtype == DType::f64 ? CUFFT_Z2Z : CUFFT_C2C, scale, inverse);
}

void rfft_lines(const Queue& queue, const View& y, const View& x, double scale) {
  const FftShape shape = fft_shape("rfft", y, x, x, true, false);
  transform("rfft", queue, shape, y, x, x.dtype == DType::f64 ? CUFFT_D2Z : CUFFT_R2C, scale, false);
}

void irfft_lines(const Queue& queue, const View& y, const View& x, double scale) {
  const FftShape shape = fft_shape("irfft", y, x, y, false, true);
  transform("irfft", queue, shape, y, x, x.dtype == DType::f64 ? CUFFT_Z2D : CUFFT_C2R, scale, true);
}

}  // namespace weft::kernels::vendor::cufft
