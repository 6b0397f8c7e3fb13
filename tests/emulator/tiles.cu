// SPDX-License-Identifier: Apache-2.0
// Products of matrices of 4-bit and 1-bit integers, tiles of several warps, and cuda::pipeline. Prints `ok NAME` or
// `FAILED NAME`.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
#include <mma.h>

#include <cuda/pipeline>

#include <random>

#include "promises.h"

namespace cg = cooperative_groups;
namespace wmma = nvcuda::wmma;
namespace small = nvcuda::wmma::experimental;

namespace {

std::vector<unsigned> random_words(int n, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<unsigned> words(static_cast<size_t>(n));
  for (unsigned& word : words) word = random();
  return words;
}

/// d[i, j] = start + sum over words of product(a[i], b[j]): 8 x 8, rows of a and columns of b are `stride` words apart.
template <class Product>
bool right(const std::vector<int>& d, int rows, int words, int stride, const std::vector<unsigned>& a,
           const std::vector<unsigned>& b, int start, const Product& product) {
  for (int i = 0; i < rows; ++i)
    for (int j = 0; j < 8; ++j) {
      int sum = start;
      for (int k = 0; k < words; ++k) sum += product(a[i * stride + k], b[j * stride + k]);
      if (d[i * 8 + j] != sum) return false;
    }
  return true;
}

template <bool kExclusive>
int bits_of(unsigned x, unsigned y) {
  return __builtin_popcount(kExclusive ? x ^ y : x & y);
}

template <class Precision, int kDepth, bool kExclusive>
__global__ void multiply(const unsigned* a, const unsigned* b, int* d, unsigned stride) {
  wmma::fragment<wmma::matrix_a, 8, 8, kDepth, Precision, wmma::row_major> rows;
  wmma::fragment<wmma::matrix_b, 8, 8, kDepth, Precision, wmma::col_major> columns;
  wmma::fragment<wmma::accumulator, 8, 8, kDepth, int> sums;
  wmma::fill_fragment(sums, 3);
  wmma::store_matrix_sync(d, sums, 8, wmma::mem_row_major);
  wmma::load_matrix_sync(sums, d, 8, wmma::mem_row_major);
  wmma::load_matrix_sync(rows, a, stride);
  wmma::load_matrix_sync(columns, b, stride);
  if constexpr (kDepth == 32)
    wmma::mma_sync(sums, rows, columns, sums);
  else
    wmma::bmma_sync(sums, rows, columns, sums, kExclusive ? small::bmmaBitOpXOR : small::bmmaBitOpAND);
  wmma::store_matrix_sync(d, sums, 8, wmma::mem_row_major);
}

template <class Precision, int kDepth, bool kExclusive = false, class Product>
bool multiplies(const Product& product) {
  constexpr int kWords = kDepth == 32 ? 4 : kDepth / 32, kStride = 2 * kWords;
  const std::vector<unsigned> from = random_words(8 * kStride, 1), to = random_words(8 * kStride, 2);
  Array<unsigned> a(from), b(to);
  Array<int> d(64);
  multiply<Precision, kDepth, kExclusive><<<1, 32>>>(a.data, b.data, d.data, kDepth * 2);
  return right(d.get(), 8, kWords, kStride, from, to, 3, product);
}

template <bool kSigned>
int product_of_4(unsigned x, unsigned y) {
  int sum = 0;
  for (int e = 0; e < 32; e += 4) {
    const int p = x >> e & 15, q = y >> e & 15;
    sum += kSigned ? ((p ^ 8) - 8) * ((q ^ 8) - 8) : p * q;
  }
  return sum;
}

/// mma.m16n8k256: register r of a is rows 8 (r % 2) + lane / 4, words 4 (r / 2) + lane % 4; of b, words 4 r + lane % 4.
template <bool kExclusive>
__global__ void multiply_bits(const unsigned* a, const unsigned* b, int* d) {
  const int line = threadIdx.x / 4, word = threadIdx.x % 4;
  unsigned x[4], y[2];
  for (int r = 0; r < 4; ++r) x[r] = a[(line + r % 2 * 8) * 8 + r / 2 * 4 + word];
  for (int r = 0; r < 2; ++r) y[r] = b[line * 8 + r * 4 + word];
  int s[4] = {5, 5, 5, 5};
#define MULTIPLY(operation)                                                        \
  asm volatile("mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32." operation ".popc" \
               " {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"             \
               : "+r"(s[0]), "+r"(s[1]), "+r"(s[2]), "+r"(s[3])                    \
               : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1]))
  if constexpr (kExclusive)
    MULTIPLY("xor");
  else
    MULTIPLY("and");
#undef MULTIPLY
  for (int r = 0; r < 4; ++r) d[(line + r / 2 * 8) * 8 + word * 2 + r % 2] = s[r];
}

template <bool kExclusive>
bool multiplies_deep_bits() {
  const std::vector<unsigned> from = random_words(16 * 8, 3), to = random_words(8 * 8, 4);
  Array<unsigned> a(from), b(to);
  Array<int> d(128);
  multiply_bits<kExclusive><<<1, 32>>>(a.data, b.data, d.data);
  return right(d.get(), 16, 8, 8, from, to, 5, bits_of<kExclusive>);
}

/// Tiles of 128 threads synchronise, add and pass numbers in the scratch that cooperative groups have in shared memory.
__global__ void tiles(int* out) {
  __shared__ cg::block_tile_memory<256> memory;
  const auto block = cg::this_thread_block(memory);
  const auto tile = cg::tiled_partition<128>(block);
  const int i = static_cast<int>(threadIdx.x), at = 4 * static_cast<int>(tile.meta_group_rank());
  const int sum = cg::reduce(tile, i, cg::plus<int>()), scan = cg::inclusive_scan(tile, 1);
  const int any = tile.any(i == 130), passed = tile.shfl(i, 77);
  tile.sync();
  if (tile.thread_rank() == 99) {
    out[at] = sum;
    out[at + 1] = scan;
    out[at + 2] = any;
    out[at + 3] = passed;
  }
}

bool shares_tiles_of_warps() {
  Array<int> out(8);
  tiles<<<1, 256>>>(out.data);
  return out.get() == std::vector<int>{8128, 100, 0, 77, 24512, 100, 1, 205};
}

/// The scratch belongs to the system: it is no shared memory of the kernel, and takes no block's place.
bool does_not_count_the_scratch() {
  cudaFuncAttributes attributes{};
  int blocks = 0;
  const bool known = cudaFuncGetAttributes(&attributes, tiles) == cudaSuccess;
  const size_t dynamic = 112 * 1024 + 768;  // two blocks, with 1 KB of the system's each, fill an SM's 228 KB
  cudaFuncSetAttribute(tiles, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(dynamic));
  return known && attributes.sharedSizeBytes <= 16 &&
         cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, tiles, 256, dynamic) == cudaSuccess && blocks == 2;
}

/// Copies of one stage may land while the other stage still copies. A consumer waits for its own stage alone.
__global__ void pipeline(const int* in, int* sums) {
  constexpr int kStages = 2, kRounds = 6, kHalf = 64;
#pragma nv_diag_suppress static_var_with_dynamic_init  // as CUDA's own examples
  __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, kStages> state;
  __shared__ int data[kStages][kHalf];
  const int i = static_cast<int>(threadIdx.x);
  const bool produces = i < kHalf;
  auto pipe = cuda::make_pipeline(cg::this_thread_block(), &state,
                                  produces ? cuda::pipeline_role::producer : cuda::pipeline_role::consumer);
  for (int round = 0; round < kRounds; ++round)
    if (produces) {
      pipe.producer_acquire();
      cuda::memcpy_async(&data[round % kStages][i], in + kHalf * round + i, cuda::aligned_size_t<4>(4), pipe);
      pipe.producer_commit();
    } else {
      pipe.consumer_wait();
      atomicAdd(sums + round, data[round % kStages][127 - i]);
      pipe.consumer_release();
    }
}

bool passes_a_pipeline() {
  std::vector<int> from(6 * 64);
  for (size_t i = 0; i < from.size(); ++i) from[i] = static_cast<int>(i);
  Array<int> in(from), sums(6);
  pipeline<<<1, 128>>>(in.data, sums.data);
  return sums.get() == std::vector<int>{2016, 6112, 10208, 14304, 18400, 22496};
}

}  // namespace

int main() {
  return keep_promises({
      {"multiplies_s4", [] { return multiplies<small::precision::s4, 32>(product_of_4<true>); }},
      {"multiplies_u4", [] { return multiplies<small::precision::u4, 32>(product_of_4<false>); }},
      {"multiplies_bits_by_xor", [] { return multiplies<small::precision::b1, 128, true>(bits_of<true>); }},
      {"multiplies_bits_by_and", [] { return multiplies<small::precision::b1, 128, false>(bits_of<false>); }},
      {"multiplies_deep_bits_by_xor", multiplies_deep_bits<true>},
      {"multiplies_deep_bits_by_and", multiplies_deep_bits<false>},
      {"shares_tiles_of_warps", shares_tiles_of_warps},
      {"does_not_count_the_scratch", does_not_count_the_scratch},
      {"passes_a_pipeline", passes_a_pipeline},
  });
}
