// SPDX-License-Identifier: Apache-2.0
#include "kernels/engines/cudnn_recurrent.h"

#include <cstdlib>
#include <numeric>

#include "kernels/runtime/runtime.h"
#include "tests/engines/cudnn_without_gpu.h"
#include "tests/support/device_array.h"
#include "tests/support/devices.h"
#include "tests/support/error_text.h"
#include "tests/support/random_values.h"

// Recurrent layers by cuDNN, without a GPU: the real library takes the descriptors; functions with a handle are ours,
// and see the arguments of the real call.

namespace weft::tests {
namespace {

constexpr int64_t T = 3, B = 2, I = 5, H = 4;
constexpr size_t kGap = 64;  ///< bytes between the four parts of the pretended buffer of weights

struct Seen {
  cudnnRNNMode_t mode;
  cudnnRNNBiasMode_t bias;
  cudnnDataType_t type, sums;
  cudnnMathType_t math;
  std::vector<int> sizes;                   ///< I, H, the projection's H, layers
  std::vector<std::vector<int>> data;       ///< x and y: T, B, units, and the lengths
  std::vector<int> state;                   ///< sizes and strides of h and c
  std::vector<std::string> calls;           ///< in their order
  std::vector<const void*> pointers;        ///< the last call's, as it takes them
  std::vector<std::vector<float>> weights;  ///< x, h and their biases, in their order there
  std::vector<const void*> buffers;         ///< weights, work, the reserve
  cudnnStatus_t status = CUDNN_STATUS_SUCCESS;
};
Seen seen;

int gates() { return seen.mode == CUDNN_LSTM ? 4 : 3; }
bool has_bias() { return seen.bias == CUDNN_RNN_DOUBLE_BIAS; }
std::vector<size_t> part_sizes() {
  const size_t rows = static_cast<size_t>(gates() * H);
  return {rows * I, rows * H, has_bias() ? rows : 0, has_bias() ? rows : 0};
}
/// Where a part begins, in bytes; part 4: the buffer's end.
size_t offset_of(size_t part) {
  const std::vector<size_t> sizes = part_sizes();
  return std::accumulate(sizes.begin(), sizes.begin() + static_cast<std::ptrdiff_t>(part), kGap,
                         [](size_t bytes, size_t size) { return bytes + size * 4 + kGap; });
}
float* part_of(void* buffer, size_t part) {
  return reinterpret_cast<float*>(static_cast<char*>(buffer) + offset_of(part));
}

void note(const char* name, std::vector<const void*> pointers, const void* weights, const void* work,
          const void* reserve) {
  seen.calls.push_back(name);
  seen.pointers = std::move(pointers);
  seen.buffers = {weights, work, reserve};
  seen.weights.clear();
  for (size_t part = 0; part < 4; ++part)
    seen.weights.push_back(from_gpu<float>(part_of(const_cast<void*>(weights), part), part_sizes()[part]));
}

class CudnnRecurrent : public CudnnRun {
 protected:
  void SetUp() override {
    CudnnRun::SetUp();
    if (IsSkipped()) return;
    if (!runs_on(DeviceKind::cuda)) GTEST_SKIP() << "needs the device cuda";
    seen = {};
    library.SetRNNDescriptor_v8 = [](cudnnRNNDescriptor_t rnn, cudnnRNNAlgo_t algorithm, cudnnRNNMode_t mode,
                                     cudnnRNNBiasMode_t bias, cudnnDirectionMode_t direction, cudnnRNNInputMode_t input,
                                     cudnnDataType_t type, cudnnDataType_t sums, cudnnMathType_t math, int32_t in,
                                     int32_t hidden, int32_t projection, int32_t layers,
                                     cudnnDropoutDescriptor_t dropout, uint32_t flags) {
      seen.mode = mode, seen.bias = bias, seen.type = type, seen.sums = sums, seen.math = math;
      seen.sizes = {in, hidden, projection, layers};
      return real().SetRNNDescriptor_v8(rnn, algorithm, mode, bias, direction, input, type, sums, math, in, hidden,
                                        projection, layers, dropout, flags);
    };
    library.SetRNNDataDescriptor = [](cudnnRNNDataDescriptor_t data, cudnnDataType_t type, cudnnRNNDataLayout_t layout,
                                      int steps, int batch, int units, const int lengths[], void* padding) {
      seen.data.push_back({steps, batch, units});
      seen.data.back().insert(seen.data.back().end(), lengths, lengths + batch);
      return real().SetRNNDataDescriptor(data, type, layout, steps, batch, units, lengths, padding);
    };
    library.SetTensorNdDescriptor = [](cudnnTensorDescriptor_t tensor, cudnnDataType_t type, int rank, const int dims[],
                                       const int strides[]) {
      seen.state.assign(dims, dims + rank);
      seen.state.insert(seen.state.end(), strides, strides + rank);
      return real().SetTensorNdDescriptor(tensor, type, rank, dims, strides);
    };
    library.GetRNNWeightSpaceSize = [](cudnnHandle_t, cudnnRNNDescriptor_t, size_t* bytes) {
      *bytes = offset_of(4);
      return CUDNN_STATUS_SUCCESS;
    };
    library.GetRNNTempSpaceSizes = [](cudnnHandle_t, cudnnRNNDescriptor_t, cudnnForwardMode_t mode,
                                      cudnnRNNDataDescriptor_t, size_t* work, size_t* reserve) {
      *work = 1000;
      if (mode == CUDNN_FWD_MODE_TRAINING) *reserve = 300;
      return CUDNN_STATUS_SUCCESS;
    };
    library.GetRNNWeightParams = [](cudnnHandle_t, cudnnRNNDescriptor_t, int32_t, size_t, const void* buffer,
                                    int32_t gate, cudnnTensorDescriptor_t, void** matrix, cudnnTensorDescriptor_t,
                                    void** bias) {
      const size_t side = static_cast<size_t>(gate / gates()), at = static_cast<size_t>(gate % gates());
      void* const start = const_cast<void*>(buffer);
      *matrix = part_of(start, side) + at * H * (side == 0 ? I : H);
      *bias = has_bias() ? part_of(start, 2 + side) + at * H : nullptr;
      return CUDNN_STATUS_SUCCESS;
    };
    library.RNNForward = [](cudnnHandle_t, cudnnRNNDescriptor_t, cudnnForwardMode_t mode, const int32_t*,
                            cudnnRNNDataDescriptor_t, const void* x, cudnnRNNDataDescriptor_t, void* y,
                            cudnnTensorDescriptor_t, const void* h, void*, cudnnTensorDescriptor_t, const void* c,
                            void* last_c, size_t, const void* weights, size_t, void* work, size_t, void* reserve) {
      note(mode == CUDNN_FWD_MODE_TRAINING ? "training" : "inference", {x, y, h, c, last_c}, weights, work, reserve);
      return seen.status;
    };
    library.RNNBackwardData_v8 = [](cudnnHandle_t, cudnnRNNDescriptor_t, const int32_t*, cudnnRNNDataDescriptor_t,
                                    const void* y, const void* dy, cudnnRNNDataDescriptor_t, void* dx,
                                    cudnnTensorDescriptor_t, const void* h, const void* dlast_h, void* dh,
                                    cudnnTensorDescriptor_t, const void* c, const void* dlast_c, void* dc, size_t,
                                    const void* weights, size_t, void* work, size_t, void* reserve) {
      note("data", {y, dy, dx, h, dlast_h, dh, c, dlast_c, dc}, weights, work, reserve);
      return CUDNN_STATUS_SUCCESS;
    };
    library.RNNBackwardWeights_v8 = [](cudnnHandle_t, cudnnRNNDescriptor_t, cudnnWgradMode_t, const int32_t*,
                                       cudnnRNNDataDescriptor_t, const void* x, cudnnTensorDescriptor_t, const void* h,
                                       cudnnRNNDataDescriptor_t, const void* y, size_t, void* gradients, size_t,
                                       void* work, size_t, void* reserve) {
      note("weights", {x, h, y}, gradients, work, reserve);
      for (size_t part = 0; part < 4; ++part) {
        std::vector<float> sums = seen.weights[part];
        for (size_t i = 0; i < sums.size(); ++i) sums[i] += static_cast<float>(1000 * part + i);
        runtime(DeviceKind::cuda).copy(0, part_of(gradients, part), sums.data(), sums.size() * sizeof(float), nullptr);
        runtime(DeviceKind::cuda).synchronize_device(0);
      }
      return CUDNN_STATUS_SUCCESS;
    };
    setenv("CUBLAS_WORKSPACE_CONFIG", ":16:8", 1);
  }
  void TearDown() override { unsetenv("CUBLAS_WORKSPACE_CONFIG"); }
};

/// A call on arrays of the GPU.
struct Layer {
  static constexpr DeviceKind kind = DeviceKind::cuda;
  static DeviceArray array(Sizes sizes) {
    const std::vector<double> values = uniform(count_of(sizes), DType::f32);
    return {kind, DType::f32, std::move(sizes), values};
  }
  int64_t rows;
  bool bias;
  DeviceArray x = array({T, B, I}), h = array({B, H}), c = array({B, H}), y = array({T, B, H}), last_c = array({B, H}),
              dy = array({T, B, H}), dlast_c = array({B, H}), dx = array({T, B, I}), dh = array({B, H}),
              dc = array({B, H}), reserve{kind, DType::u8, {300}};
  std::vector<DeviceArray> weights, dweights;
  kernels::Queue queue = queue_on(kind);

  Layer(bool lstm, bool with_bias) : rows(lstm ? 4 * H : 3 * H), bias(with_bias) {
    for (std::vector<DeviceArray>* const all : {&weights, &dweights}) {
      all->push_back(array({rows, I}));
      all->push_back(array({rows, H}));
      for (int i = 0; i < 2; ++i) all->push_back(array({rows}));
    }
  }
  bool lstm() const { return rows == 4 * H; }
  std::array<View, 4> views(const std::vector<DeviceArray>& all) const {
    const View none;
    return {all[0], all[1], bias ? all[2].view() : none, bias ? all[3].view() : none};
  }
  RecurrentCall call(Pass pass) const {
    const View none;
    RecurrentCall made{queue, pass, x, h, lstm() ? c.view() : none, views(weights), y, lstm() ? last_c.view() : none};
    if (pass != Pass::inference) made.reserve = reserve;
    if (pass != Pass::backward) return made;
    made.dy = dy, made.dx = dx, made.dh = dh;
    if (lstm()) made.dlast_c = dlast_c, made.dc = dc;
    made.dweights = views(dweights);
    return made;
  }
};

std::vector<float> floats(const DeviceArray& array) {
  const std::vector<double> values = array.host();
  return {values.begin(), values.end()};
}

TEST_F(CudnnRecurrent, PassesGetTheirTensorsAndTheWeightsInTheLibrarysOrder) {
  using Pointers = std::vector<const void*>;
  for (const bool lstm : {true, false})
    for (const bool bias : {true, false}) {
      SCOPED_TRACE(str(lstm ? "lstm" : "gru", bias ? " with bias" : ""));
      seen = {};
      CudnnRecurrentPlans plans(library);
      const Layer layer(lstm, bias);
      const void *const c = lstm ? layer.c.view().data : nullptr, *const last_c =
                                                                      lstm ? layer.last_c.view().data : nullptr;
      const void *const x = layer.x.view().data, *const y = layer.y.view().data, *const h = layer.h.view().data;
      const void* const reserve = layer.reserve.view().data;
      const auto expect_weights = [&] {
        for (size_t part = 0; part < 4; ++part)
          EXPECT_EQ(seen.weights[part], part < 2 || bias ? floats(layer.weights[part]) : std::vector<float>()) << part;
      };
      plans.run(layer.call(Pass::inference), 0);
      EXPECT_EQ(seen.pointers, (Pointers{x, y, h, c, last_c}));
      EXPECT_EQ(seen.buffers[2], nullptr);
      expect_weights();
      EXPECT_EQ(seen.mode, lstm ? CUDNN_LSTM : CUDNN_GRU);
      EXPECT_EQ(seen.bias, bias ? CUDNN_RNN_DOUBLE_BIAS : CUDNN_RNN_NO_BIAS);
      EXPECT_EQ(seen.sizes, (std::vector<int>{I, H, H, 1}));
      EXPECT_EQ(seen.data, (std::vector<std::vector<int>>{{T, B, I, T, T}, {T, B, H, T, T}}));
      EXPECT_EQ(seen.state, (std::vector<int>{1, B, H, B * H, H, 1}));

      plans.run(layer.call(Pass::training), 0);
      EXPECT_EQ(seen.pointers, (Pointers{x, y, h, c, last_c}));
      EXPECT_EQ(seen.buffers[2], reserve);
      EXPECT_EQ(plans.ask(layer.call(Pass::training), [](const CudnnRecurrentPlan& plan) { return plan.reserve(); }),
                300);
      expect_weights();

      plans.run(layer.call(Pass::backward), 0);
      EXPECT_EQ(seen.calls, (std::vector<std::string>{"inference", "training", "data", "weights"}));
      EXPECT_EQ(seen.pointers, (Pointers{x, h, y}));
      EXPECT_EQ(seen.buffers[2], reserve);
      for (size_t part = 0; part < 4; ++part) {
        EXPECT_EQ(std::accumulate(seen.weights[part].begin(), seen.weights[part].end(), 0.0f), 0) << "not cleared";
        if (part >= 2 && !bias) continue;
        std::vector<float> want(part_sizes()[part]);
        std::iota(want.begin(), want.end(), static_cast<float>(1000 * part));
        EXPECT_EQ(floats(layer.dweights[part]), want) << part;
      }
    }
}

TEST_F(CudnnRecurrent, GradientsOfTheDataGetTheirTensors) {
  library.RNNBackwardWeights_v8 = [](auto...) { return CUDNN_STATUS_SUCCESS; };
  for (const bool lstm : {true, false}) {
    CudnnRecurrentPlans plans(library);
    const Layer layer(lstm, true);
    const auto of = [&](const DeviceArray& array) { return lstm ? array.view().data : nullptr; };
    plans.run(layer.call(Pass::backward), 0);
    EXPECT_EQ(seen.pointers, (std::vector<const void*>{layer.y.view().data, layer.dy.view().data, layer.dx.view().data,
                                                       layer.h.view().data, nullptr, layer.dh.view().data, of(layer.c),
                                                       of(layer.dlast_c), of(layer.dc)}));
    for (size_t part = 0; part < 4; ++part) EXPECT_EQ(seen.weights[part], floats(layer.weights[part])) << part;
    // Its buffers do not overlap.
    const auto at = [](const void* pointer) { return reinterpret_cast<uintptr_t>(pointer); };
    EXPECT_GE(at(seen.buffers[1]), at(seen.buffers[0]) + 2 * offset_of(4));
  }
}

TEST_F(CudnnRecurrent, SumsAreInF32AndF32IsNotTf32) {
  for (const auto& [dtype, type, sums, math] :
       {std::tuple{DType::f32, CUDNN_DATA_FLOAT, CUDNN_DATA_FLOAT, CUDNN_FMA_MATH},
        {DType::f64, CUDNN_DATA_DOUBLE, CUDNN_DATA_DOUBLE, CUDNN_DEFAULT_MATH},
        {DType::bf16, CUDNN_DATA_BFLOAT16, CUDNN_DATA_FLOAT, CUDNN_DEFAULT_MATH},
        {DType::f16, CUDNN_DATA_HALF, CUDNN_DATA_FLOAT, CUDNN_DEFAULT_MATH}}) {
    const Layer layer(true, true);
    RecurrentCall call = layer.call(Pass::inference);
    call.x.dtype = dtype;
    CudnnRecurrentPlan({library, nullptr, nullptr}, call);
    EXPECT_EQ(std::tuple(seen.type, seen.sums, seen.math), std::tuple(type, sums, math)) << dtype;
  }
}

TEST_F(CudnnRecurrent, ErrorsNameTheProblemAndGapsAreSeen) {
  const Layer layer(true, true);
  seen.status = CUDNN_STATUS_EXECUTION_FAILED;
  CudnnRecurrentPlans plans(library);
  EXPECT_THAT(error_text([&] { plans.run(layer.call(Pass::training), 0); }),
              testing::AllOf(testing::StartsWith("lstm: cudnnRNNForward: CUDNN_STATUS_EXECUTION_FAILED"),
                             testing::EndsWith("; lstm in=f32 T=3 B=2 I=5 H=4 bias=1 pass=1")));
  library.GetRNNWeightParams = [](cudnnHandle_t, cudnnRNNDescriptor_t, int32_t, size_t, const void* buffer,
                                  int32_t gate, cudnnTensorDescriptor_t, void** matrix, cudnnTensorDescriptor_t,
                                  void** bias) {
    *matrix = *bias = part_of(const_cast<void*>(buffer), 0) + 1000 * gate;
    return CUDNN_STATUS_SUCCESS;
  };
  EXPECT_THAT(error_text([&] { CudnnRecurrentPlans(library).run(layer.call(Pass::inference), 0); }),
              testing::StartsWith("lstm: gates of a weight do not follow each other; lstm in=f32"));
  if (sees_a_gpu()) return;
  EXPECT_THAT(error_text([&] { CudnnRecurrentPlans(real()).run(layer.call(Pass::inference), 0); }),
              testing::StartsWith("lstm: cudnnCreate: CUDNN_STATUS_NOT_INITIALIZED"));
}

TEST_F(CudnnRecurrent, WhatItCannotComputeIsLeftToOurKernels) {
  const Layer layer(false, true);
  RecurrentCall call = layer.call(Pass::training);
  EXPECT_EQ(cudnn_refusal(call), "");
  call.x.sizes[0] = int64_t{1} << 31;
  EXPECT_EQ(cudnn_refusal(call), "cuDNN's RNN counts by 32 bits");
  call.x.sizes[0] = 0;
  EXPECT_EQ(cudnn_refusal(call), "there is nothing to compute");
  unsetenv("CUBLAS_WORKSPACE_CONFIG");
  if (nondeterministic_engines_allowed()) return;
  EXPECT_EQ(cudnn_refusal(layer.call(Pass::training)),
            "cuDNN's RNN gives the same bits in every run only where CUBLAS_WORKSPACE_CONFIG is set");
}

}  // namespace
}  // namespace weft::tests
