// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/gemm/fp8_call.cuh"
#include "kernels/cuda/gemm/matmul_sm90.cuh"
#include "kernels/cuda/ptx/ptx_wgmma_fp8.cuh"

// gemm_wgmma.cuh for FP8. A line of 128 bytes is 128 k and a wgmma takes 32 of them, again 32 bytes: chunks, stages,
// descriptors and the time of a step are those of bf16, with twice the flops; so the plan counts steps, whatever the
// type. Both operands are laid out along K. Accumulators, divided by both scales, become bf16 or f32.

namespace weft::kernels::cuda {

/// The epilogue of bf16 results with scales: y = f(sum / (a b) + bias). The scales are loaded before a tile's epilogue.
template <Fp8 format>
struct WgmmaEpilogue<Fp8Product<format>, false, false> : WgmmaEpilogue<bf16> {
  using Base = WgmmaEpilogue<bf16>;
  const float *a_scale, *b_scale;

  struct Columns {
    Base::Columns of_result;
    float unit;
  };
  __device__ __forceinline__ Columns columns(int lane, int first_n) const {
    return {Base::columns(lane, first_n), 1.0f / (*a_scale * *b_scale)};
  }
  template <bool, int kBands, int kHalf>
  __device__ __forceinline__ void store(EpilogueWarp& warp, int first_m, int first_n, int z, const Columns& at,
                                        float (&sums)[kBands][kHalf]) const {
    WEFT_UNROLL
    for (auto& band : sums) {
      WEFT_UNROLL_BY(kHalf)
      for (float& sum : band) sum *= at.unit;
    }
    Base::template store<false>(warp, first_m, first_n, z, at.of_result, sums);
  }
};

template <Fp8 format>
struct Fp8Source : MatmulSource<Fp8Product<format>, ptx::Along::depth, ptx::Along::depth> {
  static constexpr bool kChannels = false, kPingPong = true;
};

namespace {

/// The matrix as a batch of size 1.
View lifted(const View& matrix) {
  View view = matrix;
  view.rank = 3;
  view.sizes = {1, matrix.sizes[0], matrix.sizes[1]};
  view.strides = {0, matrix.strides[0], 1};
  return view;
}

template <Fp8 format>
void product(const Queue& queue, const Fp8MatmulCall& call, const View& a, const View& b) {
  using T = Fp8Product<format>;
  const int64_t m = call.y.sizes[0], n = call.y.sizes[1], steps = (a.sizes[2] + kWgmmaDepth<T> - 1) / kWgmmaDepth<T>;
  const WgmmaPlan plan = wgmma_plan(m, n, steps, 1, {.split = true, .ping_pong = true});
  const WgmmaBoxRows box(plan, ptx::Along::depth, ptx::Along::depth);
  const auto aligned = [&](const View& view) { return !view || allows_vector_store(view, n); };
  Epilogue<bf16> epilogue{call.y.data,
                          call.bias.data,
                          1.0f,
                          call.y.dtype == DType::f32,
                          call.bias.dtype == DType::f32,
                          false,
                          aligned(call.y) && aligned(call.pre)};
  epilogue.activation = call.arguments.activation;
  epilogue.pre = call.pre.data;
  WgmmaGemm<T, Fp8Source<format>> gemm{};
  gemm.source.a = operand_map(a, 2, box.a);
  gemm.source.b = operand_map(b, 2, box.b);
  gemm.source.steps = static_cast<int>(steps);
  gemm.source.share = plan.share;
  gemm.epilogue.a_scale = static_cast<const float*>(call.a_scale.data);
  gemm.epilogue.b_scale = static_cast<const float*>(call.b_scale.data);
  auto& stored = static_cast<WgmmaEpilogue<bf16>&>(gemm.epilogue);
  if (plan.splits == 1) {
    stored = wgmma_epilogue<bf16>("fp8_matmul", epilogue, m, n, 1, m * n);
    return launch_wgmma(queue, "fp8_matmul_sm90", plan, gemm, m, n, 1);
  }
  const Workspace partial(queue, static_cast<size_t>(plan.splits * m * n) * sizeof(float), "fp8_matmul");
  stored = wgmma_epilogue<bf16>("fp8_matmul", partial_sums_epilogue<bf16>(partial.data(), n), m, n, plan.splits, m * n);
  launch_wgmma(queue, "fp8_matmul_sm90", plan, gemm, m, n, plan.splits);
  split_sum<bf16>(queue, "fp8_matmul_split_sum", epilogue, partial.as<float>(), m * n, n, plan.splits);
}

}  // namespace

bool fp8_matmul_wgmma(const Queue& queue, const Fp8MatmulCall& call) {
  const View a = lifted(call.a), b = lifted(call.b);
  if (!has_wgmma(queue) || a.sizes[2] == 0 || !fits_tma(a, 2) || !fits_tma(b, 2)) return false;
  if (call.arguments.a == Fp8::e4m3)
    product<Fp8::e4m3>(queue, call, a, b);
  else
    product<Fp8::e5m2>(queue, call, a, b);
  return true;
}

}  // namespace weft::kernels::cuda
