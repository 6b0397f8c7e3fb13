// SPDX-License-Identifier: Apache-2.0
// The functions of cufft.h, and of cufftXt.h for one GPU.
#pragma GCC visibility push(default)
#include <cufft.h>
#include <cufftXt.h>
#pragma GCC visibility pop

#include <cuda_runtime_api.h>

#include <cstdio>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <set>
#include <utility>

#include "emulator/cuda/library_stream.h"
#include "emulator/cufft/plan.h"
#include "emulator/machine/findings.h"

using namespace emulator;
using emulator::fft::Lattice;
using emulator::fft::Plan;

namespace {

struct Failure {
  cufftResult status;
  std::string text;
};
void require(bool right, cufftResult status, const std::string& text) {
  if (!right) throw Failure{status, text};
}

struct Handle {
  int device = 0;
  cudaStream_t stream = nullptr;
  bool made = false;
  cufftType type{};
  Plan plan;
  void* work_area = nullptr;  ///< the program's
};

std::mutex mutex;
std::map<cufftHandle, Handle>& handles() {
  static auto& all = *new std::map<cufftHandle, Handle>;
  return all;
}
Handle& handle_of(cufftHandle handle) {
  const std::lock_guard lock(mutex);
  const auto found = handles().find(handle);
  if (found == handles().end())
    throw Failure{CUFFT_INVALID_PLAN, cat("plan ", handle, ": there is none, or it was destroyed")};
  return found->second;
}
Plan plan_of(cufftHandle handle) {
  const Handle& h = handle_of(handle);
  require(h.made, CUFFT_INVALID_PLAN, cat("plan ", handle, " has not been made"));
  return h.plan;
}

/// One line on stderr, once.
void say(const std::string& text) {
  static auto& said = *new std::set<std::string>;
  const std::lock_guard lock(mutex);
  if (said.insert(text).second) std::fprintf(stderr, "weft-emulate: %s\n", text.c_str());
}

template <class F>
cufftResult call(const char* name, F&& body) noexcept {
  try {
    body();
    return CUFFT_SUCCESS;
  } catch (const Failure& failure) {
    say(cat(name, ": ", failure.text, " (result ", failure.status, " of cuFFT)"));
    return failure.status;
  } catch (const cuda::LibraryMisuse&) {
    return CUFFT_EXEC_FAILED;
  } catch (const std::bad_alloc&) {
    return CUFFT_ALLOC_FAILED;
  } catch (const std::exception& error) {
    say(cat(name, ": ", error.what()));
    return CUFFT_INTERNAL_ERROR;
  }
}

/// For calls that the emulator lacks: the exit code changes.
[[noreturn]] void refuse(const std::string& text) {
  count_fault();
  throw Failure{CUFFT_NOT_SUPPORTED, text};
}

cufftHandle create() {
  Handle made;
  if (const cudaError_t code = cudaGetDevice(&made.device); code != cudaSuccess)
    throw Failure{CUFFT_SETUP_FAILED, cat("cudaGetDevice: ", cudaGetErrorString(code))};
  static cufftHandle next = 1;
  const std::lock_guard lock(mutex);
  handles()[next] = made;
  return next++;
}

template <class Int>
struct Layout {
  const Int* embed = nullptr;
  Int stride = 0, distance = 0;
};

template <class Int>
Plan plan_from(cufftType type, int rank, const Int* n, const Layout<Int>& in, const Layout<Int>& out, int64_t batches) {
  require(type == CUFFT_R2C || type == CUFFT_C2R || type == CUFFT_C2C || type == CUFFT_D2Z || type == CUFFT_Z2D ||
              type == CUFFT_Z2Z,
          CUFFT_INVALID_TYPE, cat("type ", type, ": no such value"));
  require(rank >= 1 && rank <= 3 && n, CUFFT_INVALID_VALUE, cat("rank ", rank));
  require(batches >= 1, CUFFT_INVALID_SIZE, cat("a batch of ", batches));
  Plan plan;
  plan.batches = batches;
  plan.n.assign(n, n + rank);
  for (const int64_t size : plan.n) require(size >= 1, CUFFT_INVALID_SIZE, cat("a size of ", size));
  plan.real_in = type == CUFFT_R2C || type == CUFFT_D2Z, plan.real_out = type == CUFFT_C2R || type == CUFFT_Z2D;
  plan.f64 = type == CUFFT_D2Z || type == CUFFT_Z2D || type == CUFFT_Z2Z;
  plan.standard = !in.embed || !out.embed;
  const auto lattice = [&](const Layout<Int>& layout) {
    return plan.standard ? Lattice{} : Lattice{{layout.embed, layout.embed + rank}, layout.stride, layout.distance};
  };
  plan.in = lattice(in), plan.out = lattice(out);
  return plan;
}

/// Makes a plan that was created.
void make(cufftHandle handle, cufftType type, Plan plan, size_t* work_bytes) {
  Handle& h = handle_of(handle);
  require(!h.made, CUFFT_INVALID_PLAN, "the plan has been made before");
  if (work_bytes) *work_bytes = plan.bytes_of_work();
  h.type = type, h.plan = std::move(plan), h.made = true;
}

template <class Int = int>
cufftResult make(const char* name, cufftHandle handle, cufftType type, std::vector<Int> n, int64_t batches,
                 size_t* work_bytes) {
  return call(name, [&] {
    make(handle, type, plan_from<Int>(type, static_cast<int>(n.size()), n.data(), {}, {}, batches), work_bytes);
  });
}
/// Creates and makes.
cufftResult plan(const char* name, cufftHandle* handle, cufftType type, std::vector<int> n, int64_t batches) {
  return call(name, [&] {
    require(handle, CUFFT_INVALID_VALUE, "the plan is NULL");
    Plan made = plan_from<int>(type, static_cast<int>(n.size()), n.data(), {}, {}, batches);
    make(*handle = create(), type, std::move(made), nullptr);
  });
}
cufftResult estimate(const char* name, cufftType type, std::vector<int> n, int64_t batches, size_t* bytes) {
  return call(name, [&] {
    require(bytes, CUFFT_INVALID_VALUE, "the result is NULL");
    *bytes = plan_from<int>(type, static_cast<int>(n.size()), n.data(), {}, {}, batches).bytes_of_work();
  });
}
template <class Int>
cufftResult estimate(const char* name, cufftType type, int rank, const Int* n, int64_t batches, size_t* bytes) {
  return call(name, [&] {
    require(bytes, CUFFT_INVALID_VALUE, "the result is NULL");
    *bytes = plan_from<Int>(type, rank, n, {}, {}, batches).bytes_of_work();
  });
}

const char* name_of(cufftType type) {
  switch (type) {
    case CUFFT_R2C:
      return "R2C";
    case CUFFT_C2R:
      return "C2R";
    case CUFFT_C2C:
      return "C2C";
    case CUFFT_D2Z:
      return "D2Z";
    case CUFFT_Z2D:
      return "Z2D";
    default:
      return "Z2Z";
  }
}

void execute(cufftHandle handle, const void* in, void* out, int direction) {
  const Plan plan = plan_of(handle).placed(in == out);
  const Handle& h = handle_of(handle);
  require(direction == CUFFT_FORWARD || direction == CUFFT_INVERSE, CUFFT_INVALID_VALUE, cat("direction ", direction));
  std::string text = cat("cufftExec", name_of(h.type), " of ");
  if (plan.batches != 1) text += cat(plan.batches, " of ");
  for (size_t d = 0; d < plan.n.size(); ++d) text += cat(d == 0 ? "" : "x", plan.n[d]);
  const cuda::LibraryCall call{"cuFFT", text};
  std::vector<cuda::LibraryOperand> operands{
      fft::operand("the input", in, false, plan.in, plan.shape_in(), plan.batches, plan.size_in()),
      fft::operand("the output", out, true, plan.out, plan.shape_out(), plan.batches, plan.size_out())};
  if (in == out) operands[1].may_be = {"the input"};
  if (h.work_area) operands.push_back(cuda::library_operand("the work area", h.work_area, true, plan.bytes_of_work()));
  cudaError_t code = cuda::require_stream(call, h.stream, h.device);
  if (code == cudaSuccess) {
    cuda::require_operands(call, operands, h.device);
    code = cuda::enqueue_library_call(
        h.stream, call, std::move(operands),
        [=, plan = std::make_shared<const Plan>(plan)] { fft::run(*plan, in, out, direction == CUFFT_INVERSE); });
  }
  require(code == cudaSuccess, CUFFT_EXEC_FAILED, cat("the stream: ", cudaGetErrorString(code)));
}
cufftResult execute(const char* name, cufftHandle handle, cufftType type, const void* in, void* out, int direction) {
  return call(name, [&] {
    plan_of(handle);
    require(handle_of(handle).type == type, CUFFT_INVALID_VALUE,
            cat("the plan is of type ", name_of(handle_of(handle).type)));
    execute(handle, in, out, direction);
  });
}

/// The type of transform between these types of numbers; half and bf16 are not offered.
cufftType type_of(cudaDataType in, cudaDataType out) {
  const std::pair types{in, out};
  const std::pair<std::pair<cudaDataType, cudaDataType>, cufftType> all[] = {
      {{CUDA_C_32F, CUDA_C_32F}, CUFFT_C2C}, {{CUDA_R_32F, CUDA_C_32F}, CUFFT_R2C},
      {{CUDA_C_32F, CUDA_R_32F}, CUFFT_C2R}, {{CUDA_C_64F, CUDA_C_64F}, CUFFT_Z2Z},
      {{CUDA_R_64F, CUDA_C_64F}, CUFFT_D2Z}, {{CUDA_C_64F, CUDA_R_64F}, CUFFT_Z2D}};
  for (const auto& [key, type] : all)
    if (key == types) return type;
  refuse(cat("data types ", in, " and ", out, " are not emulated"));
}

}  // namespace

extern "C" {

cufftResult cufftCreate(cufftHandle* handle) {
  return call("cufftCreate", [&] {
    require(handle, CUFFT_INVALID_VALUE, "the plan is NULL");
    *handle = create();
  });
}
cufftResult cufftDestroy(cufftHandle handle) {
  return call("cufftDestroy", [&] {
    handle_of(handle);
    const std::lock_guard lock(mutex);
    handles().erase(handle);
  });
}

cufftResult cufftPlan1d(cufftHandle* p, int x, cufftType type, int batch) {
  return plan("cufftPlan1d", p, type, {x}, batch);
}
cufftResult cufftPlan2d(cufftHandle* p, int x, int y, cufftType type) {
  return plan("cufftPlan2d", p, type, {x, y}, 1);
}
cufftResult cufftPlan3d(cufftHandle* p, int x, int y, int z, cufftType type) {
  return plan("cufftPlan3d", p, type, {x, y, z}, 1);
}
cufftResult cufftPlanMany(cufftHandle* handle, int rank, int* n, int* in, int in_stride, int in_distance, int* out,
                          int out_stride, int out_distance, cufftType type, int batch) {
  return call("cufftPlanMany", [&] {
    require(handle, CUFFT_INVALID_VALUE, "the plan is NULL");
    Plan made = plan_from<int>(type, rank, n, {in, in_stride, in_distance}, {out, out_stride, out_distance}, batch);
    make(*handle = create(), type, std::move(made), nullptr);
  });
}

cufftResult cufftMakePlan1d(cufftHandle p, int x, cufftType type, int batch, size_t* bytes) {
  return make("cufftMakePlan1d", p, type, std::vector{x}, batch, bytes);
}
cufftResult cufftMakePlan2d(cufftHandle p, int x, int y, cufftType type, size_t* bytes) {
  return make("cufftMakePlan2d", p, type, std::vector{x, y}, 1, bytes);
}
cufftResult cufftMakePlan3d(cufftHandle p, int x, int y, int z, cufftType type, size_t* bytes) {
  return make("cufftMakePlan3d", p, type, std::vector{x, y, z}, 1, bytes);
}
cufftResult cufftMakePlanMany(cufftHandle handle, int rank, int* n, int* in, int in_stride, int in_distance, int* out,
                              int out_stride, int out_distance, cufftType type, int batch, size_t* bytes) {
  return call("cufftMakePlanMany", [&] {
    make(handle, type,
         plan_from<int>(type, rank, n, {in, in_stride, in_distance}, {out, out_stride, out_distance}, batch), bytes);
  });
}
cufftResult cufftMakePlanMany64(cufftHandle handle, int rank, long long* n, long long* in, long long in_stride,
                                long long in_distance, long long* out, long long out_stride, long long out_distance,
                                cufftType type, long long batch, size_t* bytes) {
  return call("cufftMakePlanMany64", [&] {
    make(handle, type,
         plan_from<long long>(type, rank, n, {in, in_stride, in_distance}, {out, out_stride, out_distance}, batch),
         bytes);
  });
}
cufftResult cufftXtMakePlanMany(cufftHandle handle, int rank, long long* n, long long* in, long long in_stride,
                                long long in_distance, cudaDataType in_type, long long* out, long long out_stride,
                                long long out_distance, cudaDataType out_type, long long batch, size_t* bytes,
                                cudaDataType) {
  return call("cufftXtMakePlanMany", [&] {
    const cufftType type = type_of(in_type, out_type);
    make(handle, type,
         plan_from<long long>(type, rank, n, {in, in_stride, in_distance}, {out, out_stride, out_distance}, batch),
         bytes);
  });
}

// Sizes of work areas are this library's: NVIDIA's differ.
cufftResult cufftEstimate1d(int x, cufftType type, int batch, size_t* bytes) {
  return estimate("cufftEstimate1d", type, {x}, batch, bytes);
}
cufftResult cufftEstimate2d(int x, int y, cufftType type, size_t* bytes) {
  return estimate("cufftEstimate2d", type, {x, y}, 1, bytes);
}
cufftResult cufftEstimate3d(int x, int y, int z, cufftType type, size_t* bytes) {
  return estimate("cufftEstimate3d", type, {x, y, z}, 1, bytes);
}
cufftResult cufftEstimateMany(int rank, int* n, int*, int, int, int*, int, int, cufftType type, int batch,
                              size_t* bytes) {
  return estimate("cufftEstimateMany", type, rank, n, batch, bytes);
}
cufftResult cufftGetSize1d(cufftHandle, int x, cufftType type, int batch, size_t* bytes) {
  return estimate("cufftGetSize1d", type, {x}, batch, bytes);
}
cufftResult cufftGetSize2d(cufftHandle, int x, int y, cufftType type, size_t* bytes) {
  return estimate("cufftGetSize2d", type, {x, y}, 1, bytes);
}
cufftResult cufftGetSize3d(cufftHandle, int x, int y, int z, cufftType type, size_t* bytes) {
  return estimate("cufftGetSize3d", type, {x, y, z}, 1, bytes);
}
cufftResult cufftGetSizeMany(cufftHandle, int rank, int* n, int*, int, int, int*, int, int, cufftType type, int batch,
                             size_t* bytes) {
  return estimate("cufftGetSizeMany", type, rank, n, batch, bytes);
}
cufftResult cufftGetSizeMany64(cufftHandle, int rank, long long* n, long long*, long long, long long, long long*,
                               long long, long long, cufftType type, long long batch, size_t* bytes) {
  return estimate("cufftGetSizeMany64", type, rank, n, batch, bytes);
}
cufftResult cufftXtGetSizeMany(cufftHandle, int rank, long long* n, long long*, long long, long long,
                               cudaDataType in_type, long long*, long long, long long, cudaDataType out_type,
                               long long batch, size_t* bytes, cudaDataType) {
  return call("cufftXtGetSizeMany", [&] {
    require(bytes, CUFFT_INVALID_VALUE, "the result is NULL");
    *bytes = plan_from<long long>(type_of(in_type, out_type), rank, n, {}, {}, batch).bytes_of_work();
  });
}
cufftResult cufftGetSize(cufftHandle handle, size_t* bytes) {
  return call("cufftGetSize", [&] {
    require(bytes, CUFFT_INVALID_VALUE, "the result is NULL");
    *bytes = plan_of(handle).bytes_of_work();
  });
}
cufftResult cufftSetWorkArea(cufftHandle handle, void* area) {
  return call("cufftSetWorkArea", [&] { handle_of(handle).work_area = area; });
}
cufftResult cufftSetAutoAllocation(cufftHandle handle, int) {
  return call("cufftSetAutoAllocation", [&] { handle_of(handle); });
}
cufftResult cufftSetStream(cufftHandle handle, cudaStream_t stream) {
  return call("cufftSetStream", [&] { handle_of(handle).stream = stream; });
}

cufftResult cufftExecC2C(cufftHandle p, cufftComplex* in, cufftComplex* out, int direction) {
  return execute("cufftExecC2C", p, CUFFT_C2C, in, out, direction);
}
cufftResult cufftExecR2C(cufftHandle p, cufftReal* in, cufftComplex* out) {
  return execute("cufftExecR2C", p, CUFFT_R2C, in, out, CUFFT_FORWARD);
}
cufftResult cufftExecC2R(cufftHandle p, cufftComplex* in, cufftReal* out) {
  return execute("cufftExecC2R", p, CUFFT_C2R, in, out, CUFFT_INVERSE);
}
cufftResult cufftExecZ2Z(cufftHandle p, cufftDoubleComplex* in, cufftDoubleComplex* out, int direction) {
  return execute("cufftExecZ2Z", p, CUFFT_Z2Z, in, out, direction);
}
cufftResult cufftExecD2Z(cufftHandle p, cufftDoubleReal* in, cufftDoubleComplex* out) {
  return execute("cufftExecD2Z", p, CUFFT_D2Z, in, out, CUFFT_FORWARD);
}
cufftResult cufftExecZ2D(cufftHandle p, cufftDoubleComplex* in, cufftDoubleReal* out) {
  return execute("cufftExecZ2D", p, CUFFT_Z2D, in, out, CUFFT_INVERSE);
}
cufftResult cufftXtExec(cufftHandle p, void* in, void* out, int direction) {
  return call("cufftXtExec", [&] { execute(p, in, out, direction); });
}

cufftResult cufftGetVersion(int* version) {
  return call("cufftGetVersion", [&] {
    require(version, CUFFT_INVALID_VALUE, "the version is NULL");
    *version = CUFFT_VERSION;
  });
}
cufftResult cufftGetProperty(libraryPropertyType type, int* value) {
  return call("cufftGetProperty", [&] {
    require(value && type >= MAJOR_VERSION && type <= PATCH_LEVEL, CUFFT_INVALID_VALUE, "no such property");
    *value = type == MAJOR_VERSION ? CUFFT_VER_MAJOR : type == MINOR_VERSION ? CUFFT_VER_MINOR : CUFFT_VER_PATCH;
  });
}

}  // extern "C"

namespace emulator::fft {
int refuse_call(const char* name) noexcept {
  return call(name, [] { refuse("this call is not emulated"); });
}
}  // namespace emulator::fft
