// SPDX-License-Identifier: Apache-2.0
// Calls that no compiler inlines: through tables, pointers and virtual functions, of functions that call themselves,
// with memory on the stack. Without an argument it keeps its promises; an argument names a planted fault.
#include <cuda_runtime.h>

#include <cstring>
#include <string>
#include <vector>

#include "promises.h"

namespace {

constexpr int kThreads = 96;

using Binary = int (*)(int, int);

__device__ __noinline__ int add(int a, int b) { return a + b; }
__device__ __noinline__ int multiply(int a, int b) { return a * b; }
__device__ __noinline__ int shuffle(int a, int b) { return __shfl_xor_sync(__activemask(), a, 1) + b; }
__device__ Binary table[] = {add, multiply, shuffle};
__device__ Binary one = multiply;

__global__ void call_table(int* out, int kinds) {
  const int t = static_cast<int>(threadIdx.x);
  int sum = 0;
  for (int i = 0; i < 3; ++i) sum += (i + 1) * table[(t + i) % kinds](t + i, 3);
  out[t] = sum;
}

bool calls_a_table() {
  Array<int> out(kThreads);
  call_table<<<1, kThreads>>>(out.data, 2);
  const std::vector<int> found = out.get();
  for (int t = 0; t < kThreads; ++t) {
    int sum = 0;
    for (int i = 0; i < 3; ++i) sum += (i + 1) * ((t + i) % 2 ? (t + i) * 3 : t + i + 3);
    if (found[static_cast<size_t>(t)] != sum) return false;
  }
  return true;
}

__global__ void call_argument(int* out, Binary f) { out[threadIdx.x] = f(static_cast<int>(threadIdx.x), 5); }

/// A pointer that the host has read from a variable of the device.
bool calls_an_argument() {
  Array<int> out(kThreads);
  Binary f;
  MUST(cudaMemcpyFromSymbol(&f, one, sizeof(f)));
  call_argument<<<1, kThreads>>>(out.data, f);
  const std::vector<int> found = out.get();
  for (int t = 0; t < kThreads; ++t)
    if (found[static_cast<size_t>(t)] != t * 5) return false;
  return true;
}

/// Lanes that call the same function run together inside, also from both sides of a branch.
__global__ void meet_in_a_call(int* out) {
  const int lane = static_cast<int>(threadIdx.x);
  Binary f = table[lane % 4 < 2 ? 0 : 2];
  const int value = f(lane, 100);
  out[lane] = value + (__activemask() == 0xffffffffu ? 0 : 1 << 20);
}

bool meets_after_a_call() {
  Array<int> out(32);
  meet_in_a_call<<<1, 32>>>(out.data);
  const std::vector<int> found = out.get();
  for (int t = 0; t < 32; ++t)
    if (found[static_cast<size_t>(t)] != (t % 4 < 2 ? t : t ^ 1) + 100) return false;
  return true;
}

struct Weights {
  int v[5];
  char last;
};
struct Shape {
  __device__ virtual float area(Weights w) const = 0;
  __device__ virtual ~Shape() {}
};
struct Square : Shape {
  float side;
  __device__ explicit Square(float s) : side(s) {}
  __device__ float area(Weights w) const override { return side * side + static_cast<float>(w.v[3]); }
};
struct Circle : Shape {
  float radius;
  __device__ explicit Circle(float r) : radius(r) {}
  __device__ float area(Weights w) const override { return 3 * radius * radius + static_cast<float>(w.last); }
};

__global__ void measure(float* out) {
  const float t = static_cast<float>(threadIdx.x);
  Shape* shape;
  if (threadIdx.x % 2)
    shape = new Square(t);
  else
    shape = new Circle(t);
  Weights w{};
  w.v[3] = 7;
  w.last = -3;
  out[threadIdx.x] = shape->area(w);
  delete shape;
}

bool has_virtual_functions() {
  Array<float> out(kThreads);
  measure<<<1, kThreads>>>(out.data);
  const std::vector<float> found = out.get();
  for (int t = 0; t < kThreads; ++t) {
    const float f = static_cast<float>(t);
    if (found[static_cast<size_t>(t)] != (t % 2 ? f * f + 7 : 3 * f * f - 3)) return false;
  }
  return true;
}

/// Each call has an array of its own, which is read after the inner calls.
__host__ __device__ __noinline__ int tree(int n, int salt) {
  volatile int own[6];
  for (int i = 0; i < 6; ++i) own[i] = n * 10 + i + salt;
  int sum = 0;
  if (n > 0) sum = tree(n - 1, salt + 1) + tree(n - 2, salt * 2);
  return sum + own[(n + 9 + salt) % 6];
}

__host__ __device__ bool is_odd(unsigned n);
__host__ __device__ __noinline__ bool is_even(unsigned n) { return n == 0 || !is_odd(n); }
__host__ __device__ __noinline__ bool is_odd(unsigned n) { return n != 0 && is_even(n - 1); }

/// Not the tail of anything, so that it stays a recursion.
__host__ __device__ __noinline__ double horner(const double* c, int n, double x) {
  return n == 0 ? c[0] : c[n] + x * horner(c, n - 1, x) + (n & 1 ? horner(c, n / 4, x) : 0.0);
}

__global__ void recurse(int* trees, int* parity, double* sums, const double* c) {
  const int t = static_cast<int>(threadIdx.x);
  trees[t] = tree(t % 7, t);
  parity[t] = is_even(static_cast<unsigned>(t % 9)) ? 1 : 0;
  sums[t] = horner(c, t % 8, 0.5);
}

bool recurses() {
  std::vector<double> coefficients{1, -2, 3, 0.25, 5, -6, 7, 8};
  Array<double> c(coefficients), sums(kThreads);
  Array<int> trees(kThreads), parity(kThreads);
  MUST(cudaDeviceSetLimit(cudaLimitStackSize, 4096));
  recurse<<<1, kThreads>>>(trees.data, parity.data, sums.data, c.data);
  const std::vector<int> found = trees.get(), even = parity.get();
  const std::vector<double> values = sums.get();
  for (int t = 0; t < kThreads; ++t) {
    const auto k = static_cast<size_t>(t);
    if (found[k] != tree(t % 7, t) || even[k] != (is_even(static_cast<unsigned>(t % 9)) ? 1 : 0)) return false;
    if (values[k] != horner(coefficients.data(), t % 8, 0.5)) return false;
  }
  return true;
}

__device__ __noinline__ int reversed_sum(int n, Binary f) {
  int* const values = static_cast<int*>(alloca(sizeof(int) * static_cast<size_t>(n)));
  for (int i = 0; i < n; ++i) values[i] = f(i, n);
  int sum = 0;
  for (int i = n; i-- > 0;) sum = sum * 3 + values[i];
  return sum;
}

__global__ void take_stack(int* out) {
  int sum = 0;
  for (int i = 0; i < 50; ++i)
    sum += reversed_sum(static_cast<int>(threadIdx.x) % 20 + 1, table[i % 2]);  // freed each time
  out[threadIdx.x] = sum;
}

bool takes_memory_of_the_stack() {
  Array<int> out(kThreads);
  take_stack<<<1, kThreads>>>(out.data);
  const std::vector<int> found = out.get();
  for (int t = 0; t < kThreads; ++t) {
    unsigned expected = 0;
    for (int kind = 0; kind < 2; ++kind) {
      unsigned sum = 0;
      const int n = t % 20 + 1;
      for (int i = n; i-- > 0;) sum = sum * 3 + static_cast<unsigned>(kind ? i * n : i + n);
      expected += 25 * sum;
    }
    if (found[static_cast<size_t>(t)] != static_cast<int>(expected)) return false;
  }
  return true;
}

__global__ void fall(int* out, int n) { out[threadIdx.x] = tree(threadIdx.x == 5 ? n : 0, 0); }

__device__ __noinline__ float scale(float a) { return 2 * a; }
__device__ float (*other)(float) = scale;
__global__ void call_as_another(int* out) { *out = reinterpret_cast<Binary>(other)(1, 2) + table[0](1, 2); }

int fault(const std::string& name) {
  Array<int> out(32);
  MUST(cudaDeviceSetLimit(cudaLimitStackSize, 512));
  if (name == "stack") fall<<<1, 32>>>(out.data, 1000);
  if (name == "no_function") call_argument<<<1, 32>>>(out.data, nullptr);
  if (name == "parameters") call_as_another<<<1, 1>>>(out.data);
  const cudaError_t found = cudaDeviceSynchronize();
  std::printf("%s\n", cudaGetErrorName(found));
  return found == cudaSuccess ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1) return fault(argv[1]);
  return keep_promises({
      {"calls_a_table", calls_a_table},
      {"calls_an_argument", calls_an_argument},
      {"meets_after_a_call", meets_after_a_call},
      {"has_virtual_functions", has_virtual_functions},
      {"recurses", recurses},
      {"takes_memory_of_the_stack", takes_memory_of_the_stack},
  });
}
