// SPDX-License-Identifier: Apache-2.0
#include "kernels/contracts/sort.h"

#include <optional>

#include "kernels/contracts/sort_order.h"
#include "kernels/cuda/launch.cuh"
#include "kernels/runtime/allocator.h"
#include "kernels/with_bits.h"

// An element becomes an entry: its key (kernels/contracts/sort_order.h) and its original index. All entries differ, so
// that any sort is stable, and the result is the same in every run.
// 1. A block sorts a tile of up to 2,048 entries of a row in shared memory by a bitonic network (Batcher 1968): for
//    each width 2, 4, … it merges neighbouring ascending and descending runs, by comparing elements at
//    distances of half the width, a quarter, …, 1. 66 steps for a whole tile, a barrier after each; a thread owns up to
//    four pairs.
//      grid: tiles of all rows; block: 32 to 256 threads; shared: 2,048 keys and places, 16 to 24 KiB
// 2. Rows longer than a tile: launches that merge runs of 1, 2, 4, … tiles two by two between two buffers in global
//    memory. A thread owns kMerged neighbours of the result and finds their start in the two runs by bisection
//    (the merge path, Green et al. 2012). Bytes per entry and launch: 8 to 12 read and written, from L2 for rows up to
//    some millions.
// For the first k < n elements, each run keeps only its first k: then all launches but the first are short.

namespace weft::kernels::cuda {

namespace {

constexpr int kTile = 2048, kTileThreads = 256;
constexpr int kMerged = 8, kMergeThreads = 128, kSearchThreads = 256;

template <class Key>
struct Entry {
  Key key;
  int32_t place;
  __device__ __forceinline__ bool operator<(const Entry& other) const {
    return key < other.key || (key == other.key && place < other.place);
  }
};

template <class Key>
struct Entries {
  Key* keys = nullptr;
  int32_t* places = nullptr;
  __device__ __forceinline__ Entry<Key> at(int64_t i) const { return {keys[i], places[i]}; }
  __device__ __forceinline__ void put(int64_t i, const Entry<Key>& entry) const {
    keys[i] = entry.key;
    places[i] = entry.place;
  }
};

/// The type of keys: one-byte and two-byte keys are stored in four bytes.
template <class Bits>
using KeyOf = std::conditional_t<sizeof(Bits) == 8, uint64_t, uint32_t>;

/// Rows and their results; before the last launch, results go to the buffer of runs [rows, n].
template <class Bits>
struct Problem {
  const Bits* x;
  Bits* values;
  int64_t* indices;
  int64_t rows, n, k;

  __device__ __forceinline__ void put(const Entries<KeyOf<Bits>>& runs, int64_t row, int64_t i,
                                      const Entry<KeyOf<Bits>>& entry) const {
    if (runs.keys != nullptr) return runs.put(row * n + i, entry);
    indices[row * k + i] = entry.place;
    values[row * k + i] = x[row * n + entry.place];
  }
};

/// `size`: the least power of two that holds a tile; `runs` is empty if a tile is a whole row.
template <class Bits>
__global__ void tile_kernel(const Problem<Bits> p, const Entries<KeyOf<Bits>> runs, const SortOrder order, int size) {
  using Key = KeyOf<Bits>;
  __shared__ Key keys[kTile];
  __shared__ int32_t places[kTile];
  const Entries<Key> tile{keys, places};
  const int64_t tiles = (p.n + kTile - 1) / kTile, row = blockIdx.x / tiles, first = (blockIdx.x - row * tiles) * kTile;
  const int count = static_cast<int>(p.n - first < kTile ? p.n - first : kTile);
  // Padding entries sort after all others, also after the greatest key.
  for (int i = static_cast<int>(threadIdx.x); i < size; i += static_cast<int>(blockDim.x)) {
    const bool inside = i < count;
    tile.put(i, {inside ? static_cast<Key>(order.key(p.x[row * p.n + first + i])) : static_cast<Key>(~Key(0)),
                 inside ? static_cast<int32_t>(first + i) : INT32_MAX});
  }
  __syncthreads();
  for (int width = 2; width <= size; width *= 2)
    for (int distance = width / 2; distance > 0; distance /= 2) {
      for (int pair = static_cast<int>(threadIdx.x); pair < size / 2; pair += static_cast<int>(blockDim.x)) {
        const int low = 2 * pair - (pair & (distance - 1)), high = low + distance;
        const Entry<Key> a = tile.at(low), b = tile.at(high);
        const bool rising = (low & width) == 0;
        if ((b < a) == rising) {
          tile.put(low, b);
          tile.put(high, a);
        }
      }
      __syncthreads();
    }
  const int64_t kept = p.k < count ? p.k : count;
  for (int i = static_cast<int>(threadIdx.x); i < kept; i += static_cast<int>(blockDim.x))
    p.put(runs, row, first + i, tile.at(i));
}

/// Merges the runs of `length` elements of each row two by two; only the first k entries of each run and of the result
/// are used.
template <class Bits>
__global__ void merge_kernel(const Problem<Bits> p, const Entries<KeyOf<Bits>> to, const Entries<KeyOf<Bits>> from,
                             int64_t length) {
  const int64_t pairs = (p.n + 2 * length - 1) / (2 * length), most = 2 * length < p.k ? 2 * length : p.k;
  const int64_t shares = (most + kMerged - 1) / kMerged, jobs = p.rows * pairs * shares;
  const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t job = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; job < jobs; job += step) {
    const int64_t at_pair = job / shares, begin = (job - at_pair * shares) * kMerged;  // index in the result
    const int64_t row = at_pair / pairs, first = (at_pair - row * pairs) * 2 * length;
    const int64_t left = p.n - first, run = length < p.k ? length : p.k;
    const int64_t a_count = left < run ? left : run;
    const int64_t b_left = left > length ? left - length : 0, b_count = b_left < run ? b_left : run;
    const int64_t a = row * p.n + first, b = a + length;
    const int64_t count = a_count + b_count < p.k ? a_count + b_count : p.k;
    if (begin >= count) continue;
    // Finds the least i such that the first `begin` entries are i entries of a and begin - i of b.
    int64_t i = begin > b_count ? begin - b_count : 0, high = begin < a_count ? begin : a_count;
    while (i < high) {
      const int64_t middle = (i + high) / 2;
      if (from.at(a + middle) < from.at(b + begin - 1 - middle))
        i = middle + 1;
      else
        high = middle;
    }
    int64_t j = begin - i;
    const int64_t end = begin + kMerged < count ? begin + kMerged : count;
    for (int64_t out = begin; out < end; ++out) {
      const bool from_a = j >= b_count || (i < a_count && from.at(a + i) < from.at(b + j));
      p.put(to, row, first + out, from.at(from_a ? a + i++ : b + j++));
    }
  }
}

template <class Bits>
void sort_bits(const Queue& queue, const Problem<Bits>& p, const SortOrder& order) {
  using Key = KeyOf<Bits>;
  int size = 2;
  while (size < kTile && size < p.n) size *= 2;
  const dim3 tiles(static_cast<unsigned>(p.rows * ((p.n + kTile - 1) / kTile)));
  const dim3 block(static_cast<unsigned>(std::clamp(size / 2, 32, kTileThreads)));
  std::optional<Workspace> memory;
  Entries<Key> from, to;
  if (p.n > kTile) {
    const int64_t count = p.rows * p.n;
    memory.emplace(queue, static_cast<size_t>(2 * count) * (sizeof(Key) + sizeof(int32_t)), "sort");
    from.keys = memory->template as<Key>();
    to.keys = from.keys + count;
    from.places = reinterpret_cast<int32_t*>(to.keys + count);
    to.places = from.places + count;
  }
  launch(queue, "sort (tiles)", tiles, block, 0, &tile_kernel<Bits>, p, from, order, size);
  for (int64_t length = kTile; length < p.n; length *= 2) {
    const int64_t pairs = (p.n + 2 * length - 1) / (2 * length),
                  shares = (std::min(2 * length, p.k) + kMerged - 1) / kMerged;
    const bool last = pairs == 1;
    launch(queue, "sort (merge)", dim3(blocks_for(p.rows * pairs * shares, kMergeThreads)), dim3(kMergeThreads), 0,
           &merge_kernel<Bits>, p, last ? Entries<Key>{} : to, from, length);
    std::swap(from, to);
  }
}

/// A thread per value, by bisection: log2 n dependent reads, from the caches for all but the longest rows.
template <class Bits>
__global__ void search_sorted_kernel(int64_t* y, const Bits* sorted, const Bits* values, int64_t count, int64_t n,
                                     int64_t m, int64_t apart, const SortOrder order, const bool right) {
  const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step) {
    const Bits* const row = sorted + i / m * apart;
    const Bits value = order.key(values[i]);
    int64_t low = 0, high = n;
    while (low < high) {
      const int64_t middle = (low + high) / 2;
      const Bits key = order.key(row[middle]);
      const bool before = right ? key <= value : key < value;
      low = before ? middle + 1 : low;
      high = before ? high : middle;
    }
    y[i] = low;
  }
}

}  // namespace

void sort(const Queue& queue, const View& values, const View& indices, const View& x, bool descending) {
  WEFT_CHECK(x.rank >= 1 && values.rank == x.rank && indices.same_sizes(values) && values.dtype == x.dtype &&
                 indices.dtype == DType::i64 && x.is_contiguous() && values.is_contiguous() && indices.is_contiguous(),
             "sort: expected contiguous values like x and i64 indices, got ", values, ", ", indices, " and ", x);
  const int64_t n = x.sizes[x.rank - 1], k = values.sizes[x.rank - 1];
  WEFT_CHECK(k <= n && n < (int64_t{1} << 31), "sort: expected at most ", n, " (and 2^31) elements of a row, got ", k);
  if (k == 0 || x.numel() == 0) return;
  with_bits(x.dtype, [&]<class Bits>() {
    sort_bits<Bits>(queue,
                    {static_cast<const Bits*>(x.data), static_cast<Bits*>(values.data),
                     static_cast<int64_t*>(indices.data), x.numel() / n, n, k},
                    SortOrder(x.dtype, descending));
  });
}

void search_sorted(const Queue& queue, const View& y, const View& sorted, const View& values, bool right) {
  check_search_sorted(y, sorted, values);
  const int64_t n = sorted.sizes[1], m = values.sizes[1], count = values.numel();
  const SortOrder order(values.dtype, false);
  with_bits(values.dtype, [&]<class Bits>() {
    launch(queue, "search_sorted", dim3(blocks_for(count, kSearchThreads)), dim3(kSearchThreads), 0,
           &search_sorted_kernel<Bits>, y.as<int64_t>(), static_cast<const Bits*>(sorted.data),
           static_cast<const Bits*>(values.data), count, n, m, sorted.sizes[0] == 1 ? int64_t{0} : n, order, right);
  });
}

}  // namespace weft::kernels::cuda
