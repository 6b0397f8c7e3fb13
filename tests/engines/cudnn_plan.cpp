// SPDX-License-Identifier: Apache-2.0
#include "kernels/engines/cudnn_plan.h"

#include "tests/engines/cudnn_without_gpu.h"
#include "tests/support/compare.h"
#include "tests/support/devices.h"
#include "tests/support/random_values.h"

// Convolutions by cuDNN, without a GPU.

namespace weft::tests {
namespace {

struct Case {
  const char* name;
  int64_t N, H, C, O, R, stride = 1, padding = 0, dilation = 1, groups = 1;
};

/// Each kind of convolution in ResNet-50 (stem; 3x3, plain and strided; 1x1 narrow, wide and strided) and in ViT, and
/// those that no model here has.
constexpr Case kCases[] = {{"stem", 64, 224, 3, 64, 7, 2, 3},
                           {"3x3", 64, 56, 64, 64, 3, 1, 1},
                           {"3x3 last stage", 64, 7, 512, 512, 3, 1, 1},
                           {"3x3 strided", 64, 56, 128, 128, 3, 2, 1},
                           {"1x1 wide to narrow", 64, 56, 256, 64, 1},
                           {"1x1 narrow to wide", 64, 14, 256, 1024, 1},
                           {"1x1 strided", 64, 56, 256, 512, 1, 2},
                           {"patches", 64, 224, 3, 768, 16, 16},
                           {"grouped", 8, 14, 64, 96, 3, 1, 1, 1, 2},
                           {"depthwise", 8, 14, 32, 32, 3, 1, 1, 1, 32},
                           {"dilated", 8, 14, 64, 64, 3, 1, 2, 2},
                           {"odd channels", 8, 9, 5, 7, 3, 1, 1}};

/// The views of a case, on made-up addresses or on memory.
struct Problem3 {
  View x, w, y, bias;
  Conv2dArguments arguments;
  Queue queue;
  Direction direction;

  Problem3(const Case& c, Direction direction_, DType dtype, bool with_bias = false)
      : arguments{{c.stride, c.stride}, {c.padding, c.padding}, {c.dilation, c.dilation}, c.groups},
        direction(direction_) {
    const auto memory = [](uintptr_t address) { return reinterpret_cast<void*>(address); };
    const int64_t P = (c.H + 2 * c.padding - c.dilation * (c.R - 1) - 1) / c.stride + 1;
    x = View::dense(memory(0x100000), dtype, {c.N, c.H, c.H, c.C});
    w = View::dense(memory(0x200000), dtype, {c.O, c.R, c.R, c.C / c.groups});
    y = View::dense(memory(0x300000), dtype, {c.N, P, P, c.O});
    if (with_bias) bias = View::dense(memory(0x400000), dtype, {c.O});
  }
  Conv2dCall call() const { return {direction, queue, x, w, y, bias, arguments}; }
};

/// Nothing here is square: an image of 19 x 25, a filter of 3 x 5, strides, padding and dilation of their own.
Problem3 oblong(Direction direction) {
  Problem3 problem({"oblong", 2, 19, 6, 12, 3}, direction, DType::bf16);
  problem.x = View::dense(problem.x.data, DType::bf16, {2, 19, 25, 6});
  problem.w = View::dense(problem.w.data, DType::bf16, {12, 3, 5, 6});
  problem.y = View::dense(problem.y.data, DType::bf16, {2, 9, 21, 12});
  problem.arguments = {.stride = {2, 1}, .padding = {1, 0}, .dilation = {2, 1}};
  return problem;
}

constexpr Direction kDirections[] = {Direction::forward, Direction::backward_input, Direction::backward_weight};

/// Each architecture is a test of its own: its engines take seconds to load and to compile.
class CudnnFor : public Cudnn, public testing::WithParamInterface<int> {};

TEST_P(CudnnFor, EveryConvolutionHasAPlan) {
  const CudnnDescriptor gpu = properties(GetParam());
  for (const Case& c : kCases)
    for (const DType dtype : {DType::bf16, DType::f16, DType::f32})
      for (const Direction direction : kDirections) {
        SCOPED_TRACE(str(c.name, ' ', op_of(direction), ' ', dtype));
        const Problem3 problem(c, direction, dtype);
        ASSERT_TRUE(cudnn_supports(problem.call()));
        try {
          CudnnPlan plan({real(), nullptr, &gpu}, problem.call());
          EXPECT_LE(plan.workspace(0), int64_t{1} << 30);
          EXPECT_FALSE(plan.adds_bias());
        } catch (const Error& error) {
          ADD_FAILURE() << error.what();
        }
      }
}

INSTANTIATE_TEST_SUITE_P(Architectures, CudnnFor, testing::Values(800, 900));

TEST_F(Cudnn, TheBiasIsFused) {
  for (const int version : {800, 900}) {
    const CudnnDescriptor gpu = properties(version);
    for (const Case& c : kCases)
      for (const DType dtype : {DType::bf16, DType::f16}) {
        SCOPED_TRACE(str(c.name, ' ', dtype, " on ", version));
        CudnnPlan plan({real(), nullptr, &gpu}, Problem3(c, Direction::forward, dtype, true).call());
        EXPECT_TRUE(plan.adds_bias());
        EXPECT_GE(plan.make(4), 1);
      }
  }
}

TEST_F(Cudnn, ItsOwnCheckOfSizesSeesEveryWrongOne) {  // and so proves that ours arrive in its order of dimensions
  const CudnnDescriptor gpu = properties(900);
  for (const Direction direction : kDirections) {
    const Problem3 good = oblong(direction);
    EXPECT_EQ(error_text([&] { CudnnGraph({real(), nullptr, &gpu}, good.call(), false); }), "");
    for (const int d : {0, 1, 2, 3}) {
      Problem3 bad = good;
      auto sizes = bad.y.sizes;
      ++sizes[static_cast<size_t>(d)];
      bad.y = View::dense(bad.y.data, DType::bf16, {sizes[0], sizes[1], sizes[2], sizes[3]});
      EXPECT_THAT(error_text([&] {
                    CudnnGraph({real(), nullptr, &gpu}, bad.call(), false);
                  }),
                  testing::HasSubstr("CUDNN_STATUS_BAD_PARAM"))
          << d << ' ' << op_of(direction);
    }
  }
}

TEST_F(Cudnn, ErrorsNameFunctionObjectStatusReasonAndProblem) {
  if (sees_a_gpu()) GTEST_SKIP() << "there is a GPU";
  const Problem3 problem(kCases[1], Direction::backward_input, DType::bf16);
  EXPECT_EQ(
      error_text([&] { CudnnPlans(real()).run(problem.call(), 0); }),
      "conv2d_backward_input: cudnnCreate: CUDNN_STATUS_NOT_INITIALIZED (cudaGetDeviceCount(&count) != cudaSuccess); "
      "conv2d_backward_input x=bf16 w=bf16 N=64 H=56 W=56 C=64 O=64 R=3 S=3 stride_h=1 stride_w=1 padding_h=1 "
      "padding_w=1 dilation_h=1 dilation_w=1 groups=1 bias=0 x_align=16 w_align=16 y_align=16 bias_align=0");
  CudnnDescriptor convolution(real(), CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, "convolution");
  EXPECT_THAT(error_text([&] { convolution.finalize(); }),
              testing::StartsWith("cudnnBackendFinalize of a convolution: CUDNN_STATUS_BAD_PARAM"));
}

TEST_F(Cudnn, WhatItHasNoEngineForIsLeftToOurKernel) {
  Problem3 problem(kCases[1], Direction::backward_weight, DType::bf16);
  EXPECT_TRUE(cudnn_supports(problem.call()));
  problem.w.dtype = DType::f32;
  EXPECT_FALSE(cudnn_supports(problem.call()));
  EXPECT_FALSE(cudnn_supports(Problem3(kCases[1], Direction::forward, DType::f64).call()));
}

TEST(CudnnNotes, EnginesThatBreakTheContractAreOut) {
  using Notes = std::vector<cudnnBackendNumericalNote_t>;
  const Notes tensor_core{CUDNN_NUMERICAL_NOTE_TENSOR_CORE},
      random{CUDNN_NUMERICAL_NOTE_TENSOR_CORE, CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC};
  EXPECT_TRUE(keeps_contract({}, DType::f32, false));
  EXPECT_TRUE(keeps_contract(tensor_core, DType::bf16, false));
  EXPECT_TRUE(keeps_contract(tensor_core, DType::f16, false));
  EXPECT_FALSE(keeps_contract(tensor_core, DType::f32, false));  // tf32
  EXPECT_TRUE(keeps_contract(tensor_core, DType::f32, false, /*tf32=*/true));
  EXPECT_FALSE(keeps_contract(random, DType::bf16, false));
  EXPECT_TRUE(keeps_contract(random, DType::bf16, true));
  EXPECT_TRUE(keeps_contract({CUDNN_NUMERICAL_NOTE_STRICT_NAN_PROP}, DType::f32, false));
  for (const auto note :
       {CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS, CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION,
        CUDNN_NUMERICAL_NOTE_FFT, CUDNN_NUMERICAL_NOTE_WINOGRAD, CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_4x4,
        CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_6x6, CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_13x13})
    EXPECT_FALSE(keeps_contract({note}, DType::bf16, true)) << note;
}

TEST_F(CudnnRun, PointersStreamWorkspaceAndStrides) {
  CudnnPlans plans(library);
  for (const Direction direction : kDirections) {
    script.strides.clear();
    script.pointers.clear();
    Problem3 problem(kCases[0], direction, DType::bf16);  // the stem's plan wants a workspace
    problem.queue.stream = reinterpret_cast<void*>(0x5);
    plans.run(problem.call(), 0);
    EXPECT_EQ(script.stream, reinterpret_cast<cudaStream_t>(0x5));
    EXPECT_EQ(script.pointers, (std::map<int64_t, void*>{{CudnnGraph::kX, problem.x.data},
                                                         {CudnnGraph::kW, problem.w.data},
                                                         {CudnnGraph::kY, problem.y.data}}));
    EXPECT_NE(script.workspace, nullptr);
    using Strides = std::vector<int64_t>;  // n, c, h, w in elements
    EXPECT_EQ(script.strides[CudnnGraph::kX], (Strides{224 * 224 * 3, 1, 224 * 3, 3}));
    EXPECT_EQ(script.strides[CudnnGraph::kW], (Strides{7 * 7 * 3, 1, 7 * 3, 3}));
    EXPECT_EQ(script.strides[CudnnGraph::kY], (Strides{112 * 112 * 64, 1, 112 * 64, 64}));
  }
}

TEST_F(CudnnRun, HeightAndWidthKeepTheirPlaces) {
  for (const Direction direction : kDirections) {
    script.strides.clear();
    CudnnPlans(library).run(oblong(direction).call(), 0);
    using Strides = std::vector<int64_t>;
    EXPECT_EQ(script.strides[CudnnGraph::kX], (Strides{19 * 25 * 6, 1, 25 * 6, 6}));
    EXPECT_EQ(script.strides[CudnnGraph::kW], (Strides{3 * 5 * 6, 1, 5 * 6, 6}));
    EXPECT_EQ(script.strides[CudnnGraph::kY], (Strides{9 * 21 * 12, 1, 21 * 12, 12}));
  }
}

TEST_F(CudnnRun, PlansAreMadeOnceAndWhenAsked) {
  CudnnPlans plans(library);
  const Problem3 problem(kCases[1], Direction::forward, DType::bf16), other(kCases[2], Direction::forward, DType::bf16);
  plans.run(problem.call(), 0);
  const int first = script.plans_made;
  EXPECT_GE(first, 1);
  for (int i = 0; i < 3; ++i) plans.run(problem.call(), 0);
  EXPECT_EQ(script.plans_made, first);
  EXPECT_EQ(plans.variants(problem.call()), 4);
  const int four = script.plans_made;
  EXPECT_GE(four, 4);
  plans.run(problem.call(), 3);
  EXPECT_EQ(script.plans_made, four);
  plans.run(other.call(), 2);  // as a tuning cache of another process may ask
  EXPECT_GE(script.plans_made, four + 3);
  EXPECT_THAT(error_text([&] { plans.run(problem.call(), 1000); }),
              testing::StartsWith("conv2d_forward: cuDNN offers no plan number 1000; conv2d_forward x=bf16"));
}

TEST_F(CudnnRun, TheBiasGoesIntoThePlanOrBehindIt) {
  const Case small{"small", 1, 4, 8, 8, 1};
  for (const bool refuses : {false, true}) {
    script.refuses_fusion = refuses;
    script.pointers.clear();
    CudnnPlans plans(library);
    Problem3 problem(small, Direction::forward, DType::f32, true);
    const auto sums = uniform(4 * 4 * 8, DType::f32), bias = uniform(8, DType::f32);
    const DeviceArray y(DeviceKind::cpu, DType::f32, {1, 4, 4, 8}, sums), b(DeviceKind::cpu, DType::f32, {8}, bias);
    problem.y = y;
    problem.bias = b;
    plans.run(problem.call(), 0);
    EXPECT_EQ(script.pointers.contains(CudnnGraph::kBias), !refuses);
    std::vector<double> want = sums;  // the product itself is not computed here
    if (refuses)
      for (size_t i = 0; i < want.size(); ++i) want[i] += bias[i % 8];
    EXPECT_TRUE(near(y.host(), want, tolerance(DType::f32)));
  }
}

TEST_F(CudnnRun, AFailureOfTheLastStep) {
  script.executed = CUDNN_STATUS_EXECUTION_FAILED;
  const Problem3 problem(kCases[3], Direction::backward_weight, DType::f16);
  EXPECT_THAT(
      error_text([&] { CudnnPlans(library).run(problem.call(), 0); }),
      testing::AllOf(
          testing::StartsWith("conv2d_backward_weight: cudnnBackendExecute: CUDNN_STATUS_EXECUTION_FAILED"),
          testing::HasSubstr("; conv2d_backward_weight x=f16 w=f16 N=64 H=56 W=56 C=128 O=128 R=3 S=3 stride_h=2")));
}

}  // namespace
}  // namespace weft::tests
