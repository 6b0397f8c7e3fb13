// SPDX-License-Identifier: Apache-2.0
#include "kernels/engines/cudnn_attention.h"

#include <limits>

#include "tests/engines/cudnn_without_gpu.h"
#include "tests/engines/sdpa.h"
#include "tests/support/device_array.h"
#include "tests/support/devices.h"
#include "tests/support/error_text.h"

// Attention by cuDNN, without a GPU. Its engines are compiled when a plan is made, and then loaded into the driver:
// where there is none, a pretended one takes its place.

namespace weft::tests {
namespace {

/// Needs a driver of its own, or this process has one that is pretended.
class CudnnAttention : public CudnnRun {
 protected:
  void SetUp() override {
    CudnnRun::SetUp();
    if (IsSkipped()) return;
    if (*WEFT_PRETENDED_DRIVER == '\0') GTEST_SKIP() << "needs the toolkit's stub of the CUDA driver";
    if (!pretended_driver())
      GTEST_SKIP() << "there is a CUDA driver, into which kernels of other GPUs cannot be loaded";
  }
};

TEST_F(CudnnAttention, EveryProblemHasAPlanOnBothArchitectures) {
  std::vector<Sdpa> problems;
  for (const bool backward : {false, true}) {
    for (const bool causal : {false, true})
      for (const bool lengths : {false, true}) problems.push_back({4, 197, 197, 12, 64, causal, lengths, backward});
    problems.push_back({2, 512, 512, 16, 128, true, false, backward, DType::f16});
    problems.push_back({2, 128, 300, 2, 128, false, true, backward});
    problems.push_back({1, 70, 70, 2, 40, false, false, backward});
  }
  for (const int version : {800, 900}) {
    const CudnnDescriptor target = properties(version);
    for (const Sdpa& problem : problems) {
      SCOPED_TRACE(str(problem, " on ", version));
      ASSERT_EQ(cudnn_refusal(problem.call()), "");
      try {
        CudnnAttentionPlan plan({real(), nullptr, &target}, problem.call());
        EXPECT_LE(plan.workspace(0), int64_t{1} << 30);
      } catch (const Error& error) {
        ADD_FAILURE() << error.what();
      }
    }
  }
}

// The gradients of the weights: 2 B H N M bytes, here 2 GiB.
TEST_F(CudnnAttention, ALargeWorkspaceIsForWhatNothingElseComputes) {
  const Sdpa problem{4, 4096, 4096, 16, 128, false, false, true};
  CudnnTarget target{real(), nullptr, &*gpu};
  EXPECT_THAT(
      error_text([&] { CudnnAttentionPlan(target, problem.call()); }),
      testing::ContainsRegex("no engine of cuDNN computes it with a workspace of at most 1024 MiB, a quarter of "
                             "the GPU's memory: one wants 20[4-9][0-9] MiB"));
  target.most_workspace = int64_t{3} << 30;
  CudnnAttentionPlan plan(target, problem.call());
  EXPECT_EQ(plan.make(4), 1);
  EXPECT_GE(plan.workspace(0), int64_t{2} << 30);
}

TEST_F(CudnnAttention, SumsOfDqHaveAnOrderUnlessTheUserDoesWithout) {
  const Sdpa problem{2, 128, 128, 4, 64, false, false, true};
  for (const bool ordered : {true, false}) {
    script.dims.clear();
    const CudnnAttentionGraph graph({library, nullptr, &*gpu}, problem.call(), ordered);
    EXPECT_EQ(script.dims.contains(CudnnAttentionGraph::kSums), !ordered);
    CudnnEngines engines({real(), nullptr, &*gpu}, DType::bf16);
    engines.find(graph.descriptor());
    EXPECT_EQ(engines.make(1), 1) << ordered;
  }
}

class CudnnAttentionGraphs : public CudnnRun {};  // needs no driver

TEST_F(CudnnAttentionGraphs, ItsOwnCheckOfSizesSeesEveryWrongOne) {  // and so proves that ours arrive in its order
  const auto refused = [&](const Sdpa& problem) {
    return error_text([&] { CudnnAttentionGraph({real(), nullptr, &*gpu}, problem.call(), true); });
  };
  for (const bool backward : {false, true}) {
    const Sdpa good{2, 40, 56, 3, 64, true, true, backward};
    EXPECT_NO_THROW(CudnnAttentionGraph({real(), nullptr, &*gpu}, good.call(), true)) << backward;
    for (const int d : {0, 1, 2, 3}) {
      if (d == 0) continue;  // a batch of 1 may be stretched
      Sdpa bad = good;
      auto sizes = bad.v.sizes;
      ++sizes[static_cast<size_t>(d)];
      bad.v = View::dense(bad.v.data, DType::bf16, {sizes[0], sizes[1], sizes[2], sizes[3]});
      EXPECT_THAT(refused(bad), testing::HasSubstr("CUDNN_STATUS_BAD_PARAM")) << d << ' ' << backward;
    }
  }
}

TEST_F(CudnnAttentionGraphs, SizesAndStridesInItsOrderOfDimensions) {
  using Id = CudnnAttentionGraph::Id;
  using Numbers = std::vector<int64_t>;
  const Sdpa problem{2, 40, 40, 3, 64, false, true, true};
  const CudnnAttentionGraph graph({library, nullptr, &*gpu}, problem.call(), true);
  const Numbers packed{40 * 9 * 64, 64, 9 * 64, 1}, dense{40 * 3 * 64, 64, 3 * 64, 1};
  for (const auto& [id, strides] : {std::pair{Id::kQ, packed},
                                    {Id::kDq, packed},
                                    {Id::kDk, packed},
                                    {Id::kDv, packed},
                                    {Id::kY, dense},
                                    {Id::kDy, dense}}) {
    EXPECT_EQ(script.dims[id], (Numbers{2, 3, 40, 64})) << id;
    EXPECT_EQ(script.strides[id], strides) << id;
  }
  for (const Id id : {Id::kK, Id::kV}) {  // the backward takes them transposed
    EXPECT_EQ(script.dims[id], (Numbers{2, 3, 64, 40})) << id;
    EXPECT_EQ(script.strides[id], (Numbers{40 * 9 * 64, 64, 1, 9 * 64})) << id;
  }
  EXPECT_EQ(script.dims[Id::kLse], (Numbers{2, 3, 40, 1}));
  EXPECT_EQ(script.strides[Id::kLse], (Numbers{120, 40, 1, 1}));
  EXPECT_EQ(script.dims[Id::kKeys], (Numbers{2, 1, 1, 1}));
}

/// Arrays on the GPU, and a plan whose last step is ours.
class CudnnAttentionRun : public CudnnAttention {
 protected:
  struct Arrays {
    Sdpa problem;
    DeviceArray q, k, v, y, lse, dy, dq, dk, dv, lengths;

    Arrays(const Sdpa& p, const std::vector<double>& key_lengths)
        : problem(p),
          q(kind, p.dtype, {p.B, p.N, p.H, p.D}),
          k(kind, p.dtype, {p.B, p.M, p.H, p.D}),
          v(kind, p.dtype, {p.B, p.M, p.H, p.D}),
          y(kind, p.dtype, {p.B, p.N, p.H, p.D}),
          lse(kind, DType::f32, {p.B, p.H, p.N}),
          dy(kind, p.dtype, {p.B, p.N, p.H, p.D}),
          dq(kind, p.dtype, {p.B, p.N, p.H, p.D}),
          dk(kind, p.dtype, {p.B, p.M, p.H, p.D}),
          dv(kind, p.dtype, {p.B, p.M, p.H, p.D}),
          lengths(kind, DType::i64, {p.B}, key_lengths) {
      problem.queue = queue_on(kind);
      problem.q = q, problem.k = k, problem.v = v, problem.y = y, problem.lse = lse, problem.dy = dy;
      problem.dq = dq, problem.dk = dk, problem.dv = dv;
      if (p.lengths) problem.key_lengths = lengths;
    }
    static constexpr DeviceKind kind = DeviceKind::cuda;
  };
};

TEST_F(CudnnAttentionRun, PointersNumbersStreamAndLengths) {
  if (!runs_on(DeviceKind::cuda)) GTEST_SKIP() << "needs the device cuda";
  using Id = CudnnAttentionGraph::Id;
  CudnnAttentionPlans plans(library);
  for (const bool backward : {false, true}) {
    Arrays arrays({4, 8, 24, 2, 64, true, true, backward}, {5, 0, 99, -3});
    const AttentionCall call = arrays.problem.call();
    std::vector<int32_t> lengths;
    float scale = 0, masked = 0, one = 1;
    script.pointers.clear();
    script.at_execution = [&] {
      lengths = from_gpu<int32_t>(script.pointers.at(Id::kQueries), 4);
      for (const int32_t length : from_gpu<int32_t>(script.pointers.at(Id::kKeys), 4)) lengths.push_back(length);
      scale = *static_cast<const float*>(script.pointers.at(Id::kScale));
      masked = *static_cast<const float*>(script.pointers.at(Id::kMasked));
      if (backward) one = *static_cast<const float*>(script.pointers.at(Id::kOne));
    };
    plans.run(call, 0);
    script.at_execution = [] {};
    EXPECT_EQ(lengths, (std::vector<int32_t>{8, 8, 8, 8, 5, 0, 24, 0}));
    EXPECT_EQ(scale, 0.125f);
    EXPECT_EQ(masked, -std::numeric_limits<float>::infinity());
    EXPECT_EQ(one, 1.0f);
    for (const auto& [id, view] :
         {std::pair{Id::kQ, &call.q}, {Id::kK, &call.k}, {Id::kV, &call.v}, {Id::kY, &call.y}, {Id::kLse, &call.lse}})
      EXPECT_EQ(script.pointers.at(id), view->data) << id;
    EXPECT_EQ(script.pointers.contains(Id::kDq), backward);
    if (!backward) continue;
    for (const auto& [id, view] :
         {std::pair{Id::kDy, &call.dy}, {Id::kDq, &call.dq}, {Id::kDk, &call.dk}, {Id::kDv, &call.dv}})
      EXPECT_EQ(script.pointers.at(id), view->data) << id;
    // Its own memory does not overlap: lengths, delta, the plan's workspace.
    const auto at = [](const void* pointer) { return reinterpret_cast<uintptr_t>(pointer); };
    const uintptr_t delta = at(script.pointers.at(Id::kDelta)), workspace = at(script.workspace);
    EXPECT_GE(delta, at(script.pointers.at(Id::kKeys)) + 4 * 4);
    EXPECT_GE(workspace, delta + 4 * 2 * 8 * 4);
  }
}

TEST_F(CudnnAttentionRun, WhatNobodySeesIsCleared) {
  if (!runs_on(DeviceKind::cuda)) GTEST_SKIP() << "needs the device cuda";
  CudnnAttentionPlans plans(library);
  const auto fill = [](const View& view, size_t bytes) {
    runtime(DeviceKind::cuda).fill_bytes(0, view.data, 0x3f, bytes, nullptr);
  };
  Arrays arrays({2, 8, 24, 2, 64, false, true, false}, {0, 5});
  const size_t queries = 2 * 8 * 2 * 64 * 2, keys = 2 * 24 * 2 * 64 * 2;
  script.at_execution = [&] { fill(arrays.y, queries), fill(arrays.lse, 2 * 2 * 8 * 4); };  // writes anything
  plans.run(arrays.problem.call(), 0);
  script.at_execution = [&] { fill(arrays.dq, queries), fill(arrays.dk, keys), fill(arrays.dv, keys); };
  arrays.problem.backward = true;
  plans.run(arrays.problem.call(), 0);
  const auto zeros_from = [](const std::vector<double>& values, size_t row, size_t rows, size_t first) {
    for (size_t i = 0; i < values.size(); ++i)
      EXPECT_EQ(values[i] == 0, i / row / rows == 0 || i / row % rows >= first) << i;
  };
  zeros_from(arrays.y.host(), 128, 8, 8);
  zeros_from(arrays.dq.host(), 128, 8, 8);
  zeros_from(arrays.dk.host(), 128, 24, 5);
  zeros_from(arrays.dv.host(), 128, 24, 5);
  const std::vector<double> lse = arrays.lse.host();
  for (size_t i = 0; i < lse.size(); ++i)
    EXPECT_EQ(lse[i] == -std::numeric_limits<double>::infinity(), i < lse.size() / 2) << i;
}

TEST_F(CudnnAttentionRun, PlansAreMadeOnceAndErrorsNameTheProblem) {
  CudnnAttentionPlans plans(library);
  const Sdpa problem{2, 128, 128, 4, 64};
  script.executed = CUDNN_STATUS_EXECUTION_FAILED;
  for (int i = 0; i < 2; ++i)
    EXPECT_THAT(
        error_text([&] { plans.run(problem.call(), 0); }),
        testing::AllOf(testing::StartsWith("attention_forward: cudnnBackendExecute: CUDNN_STATUS_EXECUTION_FAILED"),
                       testing::HasSubstr("; attention_forward in=bf16 B=2 N=128 M=128 H=4 D=64 causal=0")));
  EXPECT_EQ(script.plans_made, 1);
  EXPECT_THAT(error_text([&] { plans.run(problem.call(), 1000); }),
              testing::StartsWith("attention_forward: cuDNN offers no plan number 1000; attention_forward in=bf16"));
}

TEST_F(Cudnn, AttentionWithoutADeviceSaysSo) {
  if (sees_a_gpu()) GTEST_SKIP() << "there is a GPU";
  const Sdpa problem{2, 128, 300, 4, 64, true, false, true};
  EXPECT_EQ(
      error_text([&] { CudnnAttentionPlans(real()).run(problem.call(), 0); }),
      "attention_backward: cudnnCreate: CUDNN_STATUS_NOT_INITIALIZED (cudaGetDeviceCount(&count) != cudaSuccess); "
      "attention_backward in=bf16 B=2 N=128 M=300 H=4 D=64 causal=1 lengths=0 mask=0 dropout=0 q0=32768 q1=256 q2=64 "
      "k0=76800 k1=256 k2=64 v0=76800 v1=256 v2=64 y0=32768 y1=256 y2=64 dy0=32768 dy1=256 dy2=64 dq0=32768 dq1=256 "
      "dq2=64 dk0=76800 dk1=256 dk2=64 dv0=76800 dv1=256 dv2=64");
}

TEST_F(Cudnn, AttentionThatItCannotComputeIsLeftToOurKernelWithAReason) {
  const auto refusal = [](const auto& change) {
    Sdpa problem{2, 128, 128, 4, 64, false, false, true};
    change(problem);
    return cudnn_refusal(problem.call());
  };
  EXPECT_EQ(refusal([](Sdpa&) {}), "");
  EXPECT_EQ(refusal([](Sdpa& p) { p.q.dtype = DType::f32; }), "cuDNN's attention computes bf16 and f16 alone");
  EXPECT_EQ(refusal([](Sdpa& p) { p.arguments.dropout = 0.1; }),
            "cuDNN drops other weights than the contract's Philox numbers say");
  EXPECT_EQ(refusal([](Sdpa& p) {
              p.key_mask = View::dense(&p, DType::boolean, {2, 128});
            }),
            "cuDNN masks keys by a length, not one by one");
  EXPECT_EQ(refusal([](Sdpa& p) {
              p.arguments.causal = true;
              p.arguments.window = 5;
            }),
            "our graph for cuDNN has no window");
  EXPECT_EQ(refusal([](Sdpa& p) { p.k.sizes[2] = p.v.sizes[2] = 2; }),
            "our graph for cuDNN has a head of keys for each head of queries");
  for (const int64_t channels : {12, 136})
    EXPECT_EQ(refusal([&](Sdpa& p) { p.q.sizes[3] = channels; }),
              "cuDNN's attention takes 8, 16, … 128 channels per head");
  EXPECT_EQ(refusal([](Sdpa& p) { p.k.sizes[1] = 0; }), "there is nothing to compute");
  EXPECT_EQ(refusal([](Sdpa& p) { p.dk = View::none(); }), "cuDNN computes the gradients of q, k and v together");
  EXPECT_THAT(refusal([](Sdpa& p) { p.v.strides[1] += 4; }),
              testing::HasSubstr("do not begin at multiples of 16 bytes"));
  EXPECT_THAT(refusal([](Sdpa& p) { p.dv.data = static_cast<char*>(p.dv.data) + 2; }),
              testing::HasSubstr("do not begin at multiples of 16 bytes"));
  EXPECT_THAT(refusal([](Sdpa& p) { p.k.strides[0] = 0; }),
              testing::HasSubstr("do not begin at multiples of 16 bytes"));
}

}  // namespace
}  // namespace weft::tests
