// SPDX-License-Identifier: Apache-2.0
constexpr int kTile = 1024, kThreads = 256;

/// How many of the first `count` outputs come from a (merge path: Green, McColl, Bader, ICS 2012). Equal numbers of a
/// come first.
__device__ int from_a(const int* a, int n, const int* b, int m, int count) {
  int low = max(0, count - m), high = min(count, n);
  while (low < high) {
    const int i = (low + high) / 2;
    if (a[i] <= b[count - 1 - i]) {
      low = i + 1;
    } else {
      high = i;
    }
  }
  return low;
}

/// A block writes 1024 outputs: it loads the numbers that they need, and each thread merges four of them.
__global__ void merge_kernel(const int* a, int n, const int* b, int m, int* out) {
  __shared__ int tile[kTile], merged[kTile], cut[2];
  const int first = blockIdx.x * kTile, last = min(first + kTile, n + m);
  if (threadIdx.x % 32 == 0 && threadIdx.x < 64)
    cut[threadIdx.x / 32] = from_a(a, n, b, m, threadIdx.x < 32 ? first : last);
  __syncthreads();
  const int a0 = cut[0], b0 = first - a0, own_a = cut[1] - a0, own_b = last - first - own_a;
  for (int i = threadIdx.x; i < own_a + own_b; i += kThreads) tile[i] = i < own_a ? a[a0 + i] : b[b0 + i - own_a];
  __syncthreads();
  const int* const tile_b = tile + own_a;
  const int begin = min(4 * static_cast<int>(threadIdx.x), own_a + own_b), end = min(begin + 4, own_a + own_b);
  for (int i = from_a(tile, own_a, tile_b, own_b, begin), k = begin; k < end; ++k) {
    const int j = k - i;
    merged[k] = j == own_b || (i < own_a && tile[i] <= tile_b[j]) ? tile[i++] : tile_b[j];
  }
  __syncthreads();
  for (int i = threadIdx.x; i < own_a + own_b; i += kThreads) out[first + i] = merged[i];
}

void merge(const int* a, int n, const int* b, int m, int* out) {
  merge_kernel<<<(n + m + kTile - 1) / kTile, kThreads>>>(a, n, b, m, out);
}
