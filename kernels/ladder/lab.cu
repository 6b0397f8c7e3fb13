// SPDX-License-Identifier: Apache-2.0
// A step of matmul_f32 (1 to 9) or matmul_bf16 (1 to 6) as a program with one launch, for tools/weft-lab:
//
//   tools/weft-lab profile --nvcc-flag=-DSTEP=matmul_f32/5_register_tile kernels/ladder/lab.cu
#include <cstdio>
#include <cstring>
#include <vector>

// clang-format off
#define WEFT_TEXT(x) #x
#define WEFT_FILE(step) WEFT_TEXT(kernels/ladder/step.cu)
// clang-format on
#include WEFT_FILE(STEP)

// The library's launch has hooks and errors; this program has one kernel.
namespace weft::kernels {

namespace cuda {
void begin_launch(const Queue&, const Geometry& geometry, const void* kernel) {
  cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(geometry.dynamic_shared));
}
void end_launch(const Geometry& geometry, cudaError_t status) {
  WEFT_CHECK(status == cudaSuccess, geometry.name, ": ", cudaGetErrorString(status));
}
}  // namespace cuda

namespace ladder {
static Step& the_step() {
  static Step step;
  return step;
}
void add(const Step& step) { the_step() = step; }
}  // namespace ladder

}  // namespace weft::kernels

template <class T>
int run() {
  using namespace weft;
  using namespace kernels;
  constexpr int M = 256, N = 256, K = 64;  // whole tiles of each step
  std::vector<T> a(M * K), b(K * N), y(M * N);
  for (int i = 0; i < M * K; ++i) a[i] = T(static_cast<float>(i % 7 - 3));
  for (int i = 0; i < K * N; ++i) b[i] = T(static_cast<float>(i % 5 - 2));
  T* memory = nullptr;
  cudaMalloc(&memory, (a.size() + b.size() + y.size()) * sizeof(T));
  T *const on_b = memory + a.size(), *const on_y = on_b + b.size();
  cudaMemcpy(memory, a.data(), a.size() * sizeof(T), cudaMemcpyHostToDevice);
  cudaMemcpy(on_b, b.data(), b.size() * sizeof(T), cudaMemcpyHostToDevice);
  const std::vector<View> inputs{View::dense(memory, dtype_of<T>, {M, K}), View::dense(on_b, dtype_of<T>, {K, N})};
  ladder::the_step().run(Queue{}, View::dense(on_y, dtype_of<T>, {M, N}), inputs);
  cudaMemcpy(y.data(), on_y, y.size() * sizeof(T), cudaMemcpyDeviceToHost);
  int wrong = 0;
  for (int i = 0; i < M * N; ++i) {
    float sum = 0;
    for (int k = 0; k < K; ++k) sum += static_cast<float>(a[i / N * K + k]) * static_cast<float>(b[k * N + i % N]);
    wrong += static_cast<float>(y[i]) != static_cast<float>(T(sum));
  }
  std::printf("%s: %d of %d elements wrong\n", ladder::the_step().name, wrong, M * N);
  return wrong != 0;
}

int main() { return std::strstr(weft::kernels::ladder::the_step().name, "_f32/") ? run<float>() : run<weft::bf16>(); }
