// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/gemm/tile_moments.cuh"

#include "kernels/cuda/norm/batch_norm_moments.cuh"

// A block combines all chunks of 8 channels (32 bytes per chunk and statistic): 64 lanes per channel each read every
// 64th chunk, then a tree reduction in shared memory follows. It reads the statistics once, 3 to 6% of y's bytes. The
// kernel is bound by latency: a lane has at most some hundred chunks, with twelve loads in flight.

namespace weft::kernels::cuda {

namespace {

constexpr int kChannelsPerBlock = 8, kLanes = 64;

}  // namespace

template <class A>
__global__ void __launch_bounds__(kChannelsPerBlock* kLanes, 1)
    join_tiles_kernel(A* part, const A* moments, int64_t rows, int64_t channels, int64_t chunks, int64_t per_chunk) {
  __shared__ A shared_n[kLanes][kChannelsPerBlock], shared_mean[kLanes][kChannelsPerBlock],
      shared_m2[kLanes][kChannelsPerBlock];
  const int column = static_cast<int>(threadIdx.x) % kChannelsPerBlock;
  const int lane = static_cast<int>(threadIdx.x) / kChannelsPerBlock;
  const int64_t c = static_cast<int64_t>(blockIdx.x) * kChannelsPerBlock + column;
  const auto own = channelwise::join_strided<A>(lane, c < channels ? chunks : 0, kLanes, [&](int64_t chunk) {
    const int64_t left = rows - chunk * per_chunk;
    return channelwise::Moments<A>{static_cast<A>(left < per_chunk ? left : per_chunk),
                                   moments[2 * chunk * channels + c], moments[(2 * chunk + 1) * channels + c]};
  });
  shared_n[lane][column] = own.n;
  shared_mean[lane][column] = own.mean;
  shared_m2[lane][column] = own.m2;
  for (int half = kLanes / 2; half > 0; half /= 2) {
    __syncthreads();
    if (lane >= half) continue;
    channelwise::join(shared_n[lane][column], shared_mean[lane][column], shared_m2[lane][column],
                      shared_n[lane + half][column], shared_mean[lane + half][column], shared_m2[lane + half][column]);
  }
  if (lane == 0 && c < channels) {
    part[c] = shared_mean[0][column];
    part[channels + c] = shared_m2[0][column];
    if (c == 0) part[2 * channels] = static_cast<A>(rows);
  }
}

void TileMoments::join_into(const View& part) const {
  with_dtype<float, double>(part.dtype, "conv2d_statistics", [&]<class A>() {
    launch(queue_, "conv2d_statistics (join)",
           dim3(static_cast<unsigned>((channels_ + kChannelsPerBlock - 1) / kChannelsPerBlock)),
           dim3(kChannelsPerBlock * kLanes), 0, &join_tiles_kernel<A>, part.as<A>(), memory_->as<A>(), rows_, channels_,
           chunks(), per_chunk_);
  });
}

}  // namespace weft::kernels::cuda
