// SPDX-License-Identifier: Apache-2.0
// An ordinary program of cuBLASLt. Without an argument it checks results and statuses; `fault NAME` makes
// one mistake on purpose, which cuBLASLt leaves undefined; `speed` prints how fast products are.
#include <chrono>

#include "tests/emulator/cublaslt_matrices.h"

namespace cublaslt_program {
namespace {

struct Types {
  cublasComputeType_t compute;
  cudaDataType scale, a, b, c, d;
};
constexpr Types kTypes[] = {
    {CUBLAS_COMPUTE_16F, CUDA_R_16F, CUDA_R_16F, CUDA_R_16F, CUDA_R_16F, CUDA_R_16F},
    {CUBLAS_COMPUTE_32F, CUDA_R_32F, CUDA_R_16BF, CUDA_R_16BF, CUDA_R_16BF, CUDA_R_16BF},
    {CUBLAS_COMPUTE_32F, CUDA_R_32F, CUDA_R_16F, CUDA_R_16F, CUDA_R_16F, CUDA_R_16F},
    {CUBLAS_COMPUTE_32F, CUDA_R_32F, CUDA_R_8I, CUDA_R_8I, CUDA_R_32F, CUDA_R_32F},
    {CUBLAS_COMPUTE_32F_PEDANTIC, CUDA_R_32F, CUDA_R_16BF, CUDA_R_16BF, CUDA_R_32F, CUDA_R_32F},
    {CUBLAS_COMPUTE_32F, CUDA_R_32F, CUDA_R_16F, CUDA_R_16F, CUDA_R_32F, CUDA_R_32F},
    {CUBLAS_COMPUTE_32F, CUDA_R_32F, CUDA_R_32F, CUDA_R_32F, CUDA_R_32F, CUDA_R_32F},
    {CUBLAS_COMPUTE_32F_FAST_16F, CUDA_R_32F, CUDA_R_32F, CUDA_R_32F, CUDA_R_32F, CUDA_R_32F},
    {CUBLAS_COMPUTE_32F_FAST_16BF, CUDA_R_32F, CUDA_R_32F, CUDA_R_32F, CUDA_R_32F, CUDA_R_32F},
    {CUBLAS_COMPUTE_32F_FAST_TF32, CUDA_R_32F, CUDA_R_32F, CUDA_R_32F, CUDA_R_32F, CUDA_R_32F},
    {CUBLAS_COMPUTE_64F, CUDA_R_64F, CUDA_R_64F, CUDA_R_64F, CUDA_R_64F, CUDA_R_64F},
};

Case of(const Types& t) {
  Case c;
  c.compute = t.compute, c.scale = t.scale, c.a = t.a, c.b = t.b, c.c = t.c, c.d = t.d;
  return c;
}

void verify(const Case& c) {
  Product product(c);
  CHECK(product.run() == CUBLAS_STATUS_SUCCESS, c.text());
  product.check();
}

void every_type_and_layout() {
  for (const Types& types : kTypes)
    for (int bits = 0; bits < 64; ++bits) {
      Case c = of(types);
      c.transpose_a = bits & 1, c.transpose_b = bits & 2, c.rows_a = bits & 4, c.rows_b = bits & 8,
      c.rows_d = bits & 16;
      if (bits & 32) c.m = 1, c.n = 37, c.k = 19, c.batches = 3, c.pad = 5, c.alpha = 0.5, c.beta = -2;
      verify(c);
    }
}

void sizes() {
  const int64_t shapes[][3] = {{1, 1, 1}, {257, 193, 300}, {16, 6, 256}, {300, 7, 1}, {5, 400, 513}, {128, 128, 64}};
  for (const Types& types : {kTypes[0], kTypes[1], kTypes[6], kTypes[10]})
    for (const auto& [m, n, k] : shapes) {
      Case c = of(types);
      c.m = m, c.n = n, c.k = k, c.transpose_a = true, c.beta = 1;
      verify(c);
      c.in_place = true;
      verify(c);
    }
}

void epilogues() {
  for (const Types& types : {kTypes[0], kTypes[1], kTypes[2], kTypes[4], kTypes[6], kTypes[10]})
    for (const uint32_t epilogue :
         {CUBLASLT_EPILOGUE_RELU, CUBLASLT_EPILOGUE_RELU_AUX, CUBLASLT_EPILOGUE_BIAS, CUBLASLT_EPILOGUE_RELU_BIAS,
          CUBLASLT_EPILOGUE_RELU_AUX_BIAS, CUBLASLT_EPILOGUE_DRELU, CUBLASLT_EPILOGUE_DRELU_BGRAD,
          CUBLASLT_EPILOGUE_GELU, CUBLASLT_EPILOGUE_GELU_AUX, CUBLASLT_EPILOGUE_GELU_BIAS,
          CUBLASLT_EPILOGUE_GELU_AUX_BIAS, CUBLASLT_EPILOGUE_DGELU, CUBLASLT_EPILOGUE_DGELU_BGRAD,
          CUBLASLT_EPILOGUE_BGRADA, CUBLASLT_EPILOGUE_BGRADB})
      for (const bool large : {false, true}) {
        Case c = of(types);
        c.epilogue = epilogue;
        c.batches = large ? 1 : 2;
        if (large) c.m = 261, c.n = 199, c.k = 33, c.transpose_a = true;
        verify(c);
        c.beta = 0.5, c.transpose_b = true, c.splits = 2, c.workspace = size_t{4} << 20;
        verify(c);
      }
}

bool has_fp8() {
  cudaDeviceProp gpu;
  CUDA(cudaGetDeviceProperties(&gpu, 0));
  return gpu.major * 10 + gpu.minor >= 89;
}

void fp8() {
  for (const auto& [a, b] :
       {std::pair{CUDA_R_8F_E4M3, CUDA_R_8F_E4M3}, {CUDA_R_8F_E4M3, CUDA_R_8F_E5M2}, {CUDA_R_8F_E5M2, CUDA_R_8F_E4M3}})
    for (const auto& [c_type, d] : {std::pair{CUDA_R_16BF, CUDA_R_16BF},
                                    {CUDA_R_16F, CUDA_R_16F},
                                    {CUDA_R_32F, CUDA_R_32F},
                                    {CUDA_R_16BF, CUDA_R_8F_E4M3},
                                    {CUDA_R_16F, CUDA_R_8F_E4M3},
                                    {CUDA_R_16BF, CUDA_R_8F_E5M2}})
      for (const uint32_t epilogue :
           {CUBLASLT_EPILOGUE_DEFAULT, CUBLASLT_EPILOGUE_BIAS, CUBLASLT_EPILOGUE_RELU_BIAS, CUBLASLT_EPILOGUE_GELU})
        for (const bool scaled : {false, true}) {
          Case c{.a = a,
                 .b = b,
                 .c = c_type,
                 .d = d,
                 .transpose_a = true,
                 .m = 48,
                 .n = 21,
                 .k = 64,
                 .epilogue = epilogue};
          c.scaled = scaled, c.beta = scaled ? 0.5 : 0;
          Product product(c);
          const bool in_table = d != CUDA_R_8F_E5M2 || a != b;
          if (!in_table || !has_fp8()) {
            CHECK(product.run() == CUBLAS_STATUS_NOT_SUPPORTED);
            continue;
          }
          CHECK(product.run() == CUBLAS_STATUS_SUCCESS, c.text());
          product.check();
        }
}

void integers() {
  for (const auto& [scale, d] : {std::pair{CUDA_R_32I, CUDA_R_32I}, {CUDA_R_32F, CUDA_R_8I}})
    for (const auto mode : {CUBLASLT_POINTER_MODE_HOST, CUBLASLT_POINTER_MODE_DEVICE,
                            CUBLASLT_POINTER_MODE_ALPHA_DEVICE_VECTOR_BETA_HOST}) {
      if (mode == CUBLASLT_POINTER_MODE_ALPHA_DEVICE_VECTOR_BETA_HOST && scale == CUDA_R_32I) continue;
      Case c{CUBLAS_COMPUTE_32I, scale, CUDA_R_8I, CUDA_R_8I, d, d, true};
      c.m = 264, c.n = 23, c.k = 300, c.mode = mode, c.beta = 1, c.batches = 2, c.pad = 8;
      c.alpha = scale == CUDA_R_32I ? 3 : 0.03;
      verify(c);
      c.splits = 2, c.workspace = size_t{1} << 20;
      verify(c);
    }
}

void device_scalars() {
  for (const Types& types : {kTypes[0], kTypes[1], kTypes[6], kTypes[10]})
    for (const double beta : {0.0, 0.25}) {
      Case c = of(types);
      c.mode = CUBLASLT_POINTER_MODE_DEVICE, c.alpha = 0.5, c.beta = beta;
      verify(c);
    }
}

/// Algorithms differ, and each computes the same; those with a workspace write partial sums there.
void algorithms() {
  Case c = of(kTypes[6]);
  c.m = 64, c.n = 48, c.k = 512, c.transpose_a = true, c.workspace = size_t{1} << 20;
  Product product(c);
  LT(product.find(c.workspace));
  CHECK(product.algorithms.size() == 4);
  size_t with_workspace = 0;
  for (const auto& one : product.algorithms) {
    CHECK(one.state == CUBLAS_STATUS_SUCCESS && one.wavesCount > 0);
    with_workspace += one.workspaceSize > 0;
    product.algorithm = &one.algo;
    product.workspace_bytes = one.workspaceSize;
    LT(product.run());
    product.check();
    cublasLtMatmulHeuristicResult_t checked{};
    LT(cublasLtMatmulAlgoCheck(handle(), product.descriptor, product.a.layout, product.b.layout, product.c.layout,
                               product.d.layout, &one.algo, &checked));
    CHECK(checked.workspaceSize == one.workspaceSize && checked.wavesCount == one.wavesCount);
    if (one.workspaceSize == 0) continue;
    product.workspace_bytes = one.workspaceSize - 1;
    CHECK(product.run() == CUBLAS_STATUS_INVALID_VALUE);
  }
  CHECK(with_workspace == 2);
  LT(product.find(0));
  CHECK(product.algorithms.size() == 2);

  int ids[9], count = 0;
  LT(cublasLtMatmulAlgoGetIds(handle(), c.compute, c.scale, c.a, c.b, c.c, c.d, 9, ids, &count));
  CHECK(count == 3);
  for (int i = 0; i < count; ++i) {
    cublasLtMatmulAlgo_t made;
    LT(cublasLtMatmulAlgoInit(handle(), c.compute, c.scale, c.a, c.b, c.c, c.d, ids[i], &made));
    int32_t splits = 3, supported = 0;
    size_t written = 0;
    LT(cublasLtMatmulAlgoCapGetAttribute(&made, CUBLASLT_ALGO_CAP_SPLITK_SUPPORT, &supported, sizeof supported,
                                         &written));
    CHECK(written == sizeof supported);
    LT(cublasLtMatmulAlgoConfigSetAttribute(&made, CUBLASLT_ALGO_CONFIG_SPLITK_NUM, &splits, sizeof splits));
    product.algorithm = &made;
    product.workspace_bytes = c.workspace;
    CHECK(product.run() == (supported ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED));
    if (supported) product.check();
  }
  Case bf16 = of(kTypes[1]);
  Product other(bf16);
  other.algorithm = product.algorithm;
  CHECK(other.run() == CUBLAS_STATUS_INVALID_VALUE);  // made for f32
  const cublasLtMatmulAlgo_t nothing{};
  other.algorithm = &nothing;
  CHECK(other.run() == CUBLAS_STATUS_INVALID_VALUE);
}

/// A graph keeps scalars and pointers of the host as they were, and reads memory as it is.
void graphs() {
  Case c = of(kTypes[1]);
  c.k = 256, c.epilogue = CUBLASLT_EPILOGUE_RELU_BIAS, c.splits = 2, c.workspace = size_t{1} << 20, c.alpha = 0.5;
  Product product(c);
  cudaStream_t stream = nullptr;
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t run = nullptr;
  CUDA(cudaStreamCreate(&stream));
  CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  LT(product.run(stream));
  CUDA(cudaStreamEndCapture(stream, &graph));
  CUDA(cudaGraphInstantiate(&run, graph, 0));
  const char other[4] = {};
  product.alpha_pointer = other;
  for (int i = 0; i < 3; ++i) {
    product.a.fill();
    CUDA(cudaGraphLaunch(run, stream));
    CUDA(cudaStreamSynchronize(stream));
    product.check();
  }
  CUDA(cudaGraphExecDestroy(run));
  CUDA(cudaGraphDestroy(graph));
  CUDA(cudaStreamDestroy(stream));
}

void transforms() {
  cublasLtMatrixTransformDesc_t descriptor = nullptr;
  LT(cublasLtMatrixTransformDescCreate(&descriptor, CUDA_R_32F));
  const int32_t transpose = CUBLAS_OP_T;
  LT(cublasLtMatrixTransformDescSetAttribute(descriptor, CUBLASLT_MATRIX_TRANSFORM_DESC_TRANSA, &transpose,
                                             sizeof transpose));
  for (const cudaDataType type : {CUDA_R_32F, CUDA_R_16BF, CUDA_R_8I})
    for (const bool two : {false, true}) {
      Matrix a(type, 7, 12, 2, 3), b(type, 12, 7, 2, 1, true), c(type, 12, 7, 2);
      a.fill();
      b.fill();
      const float alpha = 2, beta = -1;
      LT(cublasLtMatrixTransform(handle(), descriptor, &alpha, a.memory.at(), a.layout, &beta,
                                 two ? b.memory.at() : nullptr, two ? b.layout : nullptr, c.memory.at(), c.layout,
                                 nullptr));
      CUDA(cudaDeviceSynchronize());
      c.memory.get();
      for (int64_t n = 0; n < 2; ++n)
        for (int64_t i = 0; i < 12; ++i)
          for (int64_t j = 0; j < 7; ++j) {
            const double want = 2 * a(n, j, i) - (two ? b(n, i, j) : 0);
            CHECK(std::abs(c(n, i, j) - want) <= 1.01 * rounding(type, want));
          }
    }
  LT(cublasLtMatrixTransformDescDestroy(descriptor));
}

/// Documented errors.
void statuses() {
  const auto expect = [](cublasStatus_t status, const Case& c, const auto& spoil) {
    Product product(c);
    spoil(product);
    CHECK(product.run() == status, c.text());
    CHECK(product.find(0) == status || status == CUBLAS_STATUS_SUCCESS || product.algorithm || !product.a_pointer,
          c.text());
  };
  const auto unset = [](Product&) {};
  constexpr auto kInvalid = CUBLAS_STATUS_INVALID_VALUE, kNot = CUBLAS_STATUS_NOT_SUPPORTED;
  const Case f32;
  const auto attribute = [](cublasLtMatmulDescAttributes_t which, auto value) {
    return [=](Product& p) { p.set(which, value); };
  };
  expect(kInvalid, f32, [](Product& p) { p.a.set(CUBLASLT_MATRIX_LAYOUT_LD, int64_t{23}); });
  expect(kInvalid, f32, [](Product& p) { p.b.set(CUBLASLT_MATRIX_LAYOUT_ROWS, uint64_t{27}); });
  expect(kInvalid, f32, [](Product& p) { p.d.set(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, int32_t{2}); });
  expect(kInvalid, f32, [](Product& p) { p.a.set(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, int32_t{0}); });
  expect(kInvalid, f32, [](Product& p) { p.c.set(CUBLASLT_MATRIX_LAYOUT_ORDER, int32_t{CUBLASLT_ORDER_ROW}); });
  expect(kInvalid, f32, [](Product& p) { p.a.set(CUBLASLT_MATRIX_LAYOUT_ORDER, int32_t{9}); });
  expect(kNot, f32, [](Product& p) { p.a.set(CUBLASLT_MATRIX_LAYOUT_ORDER, int32_t{CUBLASLT_ORDER_COL32}); });
  expect(kNot, f32, [](Product& p) { p.a.set(CUBLASLT_MATRIX_LAYOUT_PLANE_OFFSET, int64_t{64}); });
  expect(kNot, f32,
         [](Product& p) { p.a.set(CUBLASLT_MATRIX_LAYOUT_BATCH_MODE, uint32_t{CUBLASLT_BATCH_MODE_POINTER_ARRAY}); });
  expect(kNot, f32, [](Product& p) { p.a.set(CUBLASLT_MATRIX_LAYOUT_TYPE, uint32_t{CUDA_C_32F}); });
  expect(kInvalid, f32, attribute(CUBLASLT_MATMUL_DESC_TRANSA, int32_t{7}));
  expect(kNot, f32, attribute(CUBLASLT_MATMUL_DESC_TRANSC, int32_t{CUBLAS_OP_T}));
  expect(kNot, f32, attribute(CUBLASLT_MATMUL_DESC_FILL_MODE, int32_t{CUBLAS_FILL_MODE_UPPER}));
  expect(kInvalid, f32, attribute(CUBLASLT_MATMUL_DESC_EPILOGUE, uint32_t{3}));
  expect(kInvalid, f32, attribute(CUBLASLT_MATMUL_DESC_POINTER_MODE, int32_t{9}));
  expect(kNot, f32, attribute(CUBLASLT_MATMUL_DESC_POINTER_MODE, int32_t{CUBLASLT_POINTER_MODE_DEVICE_VECTOR}));
  expect(kNot, f32, attribute(CUBLASLT_MATMUL_DESC_COMPUTE_TYPE, int32_t{CUBLAS_COMPUTE_32F_EMULATED_16BFX9}));
  expect(kNot, f32, attribute(CUBLASLT_MATMUL_DESC_COMPUTE_TYPE, int32_t{CUBLAS_COMPUTE_16F}));
  expect(kNot, f32, attribute(CUBLASLT_MATMUL_DESC_SCALE_TYPE, int32_t{CUDA_R_64F}));
  expect(kNot, f32, attribute(CUBLASLT_MATMUL_DESC_A_SCALE_MODE, int32_t{CUBLASLT_MATMUL_MATRIX_SCALE_OUTER_VEC_32F}));
  expect(kInvalid, f32,
         [](Product& p) { p.set(CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, static_cast<const void*>(p.a.memory.at())); });
  expect(kInvalid, f32,
         [](Product& p) { p.set(CUBLASLT_MATMUL_DESC_AMAX_D_POINTER, static_cast<void*>(p.a.memory.at())); });
  expect(kInvalid, {.epilogue = CUBLASLT_EPILOGUE_GELU_AUX},
         attribute(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, int64_t{28}));
  expect(kInvalid, {.epilogue = CUBLASLT_EPILOGUE_RELU_AUX},
         attribute(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, int64_t{64}));
  expect(kNot, {.epilogue = CUBLASLT_EPILOGUE_BIAS},
         attribute(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, int32_t{CUDA_R_16BF}));
  expect(kNot, {.epilogue = CUBLASLT_EPILOGUE_RELU_BIAS, .rows_d = true}, unset);
  expect(kNot, {.a = CUDA_R_16F, .b = CUDA_R_16BF}, unset);
  expect(kNot, {.c = CUDA_R_16F}, unset);
  const Case e4m3{.a = CUDA_R_8F_E4M3, .b = CUDA_R_8F_E4M3, .transpose_a = true, .m = 32, .n = 32, .k = 32};
  expect(CUBLAS_STATUS_SUCCESS, e4m3, unset);
  for (auto spoiled : {&Case::m, &Case::k}) {
    Case c = e4m3;
    c.*spoiled = 25;
    expect(kNot, c, unset);
  }
  Case nn = e4m3;
  nn.transpose_a = false;
  expect(kNot, nn, unset);
  Case i8{CUBLAS_COMPUTE_32I, CUDA_R_32I, CUDA_R_8I, CUDA_R_8I, CUDA_R_32I, CUDA_R_32I, true};
  expect(CUBLAS_STATUS_SUCCESS, i8, unset);
  i8.k = 30;
  expect(kNot, i8, unset);
  i8.k = 28, i8.epilogue = CUBLASLT_EPILOGUE_RELU;
  expect(kNot, i8, unset);

  const auto run_alone = [](cublasStatus_t status, const Case& c,
                            const auto& spoil) {  // not visible to the heuristic
    Product product(c);
    spoil(product);
    CHECK(product.run() == status);
  };
  run_alone(kInvalid, f32, [](Product& p) { p.a_pointer = nullptr; });
  run_alone(kInvalid, f32, [](Product& p) { p.d_pointer = nullptr; });
  run_alone(kInvalid, f32, [](Product& p) { p.alpha_pointer = nullptr; });
  run_alone(kInvalid, {.beta = 1}, [](Product& p) { p.c_pointer = nullptr; });
  run_alone(CUBLAS_STATUS_SUCCESS, f32, [](Product& p) { p.c_pointer = nullptr; });
}

void descriptors() {
  cublasLtMatrixLayout_t layout = nullptr;
  LT(cublasLtMatrixLayoutCreate(&layout, CUDA_R_32F, 5, 7, 6));
  uint64_t rows = 0;
  size_t written = 0;
  LT(cublasLtMatrixLayoutGetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_ROWS, &rows, sizeof rows, &written));
  CHECK(rows == 5 && written == sizeof rows);
  LT(cublasLtMatrixLayoutGetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_ORDER, nullptr, 0, &written));
  CHECK(written == sizeof(int32_t));
  CHECK(cublasLtMatrixLayoutGetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_ROWS, &rows, 4, &written) ==
        CUBLAS_STATUS_INVALID_VALUE);
  CHECK(cublasLtMatrixLayoutGetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_ROWS, nullptr, 8, &written) ==
        CUBLAS_STATUS_INVALID_VALUE);
  CHECK(cublasLtMatrixLayoutGetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_ROWS, &rows, 0, nullptr) ==
        CUBLAS_STATUS_INVALID_VALUE);
  CHECK(cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_LD, &rows, 4) == CUBLAS_STATUS_INVALID_VALUE);
  CHECK(cublasLtMatrixLayoutSetAttribute(layout, static_cast<cublasLtMatrixLayoutAttribute_t>(20), &rows, 8) ==
        CUBLAS_STATUS_INVALID_VALUE);
  LT(cublasLtMatrixLayoutDestroy(layout));
  cublasLtMatrixLayoutOpaque_t given;
  LT(cublasLtMatrixLayoutInit(&given, CUDA_R_16F, 9, 3, 9));
  CHECK(cublasLtMatrixLayoutInit_internal(&given, 8, CUDA_R_16F, 9, 3, 9) == CUBLAS_STATUS_ALLOC_FAILED);
  cublasLtMatmulDescOpaque_t product;
  cublasLtMatmulPreferenceOpaque_t preference;
  cublasLtMatrixTransformDescOpaque_t transform;
  cublasLtEmulationDescOpaque_t emulation;
  LT(cublasLtMatmulDescInit(&product, CUBLAS_COMPUTE_32F, CUDA_R_32F));
  LT(cublasLtMatmulPreferenceInit(&preference));
  LT(cublasLtMatrixTransformDescInit(&transform, CUDA_R_32F));
  LT(cublasLtEmulationDescInit(&emulation));
  uint32_t alignment = 0;
  LT(cublasLtMatmulPreferenceGetAttribute(&preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, &alignment,
                                          sizeof alignment, nullptr));
  CHECK(alignment == 256);
  int32_t fill = 0, special = 0;
  LT(cublasLtMatmulDescGetAttribute(&product, CUBLASLT_MATMUL_DESC_FILL_MODE, &fill, sizeof fill, nullptr));
  LT(cublasLtEmulationDescGetAttribute(&emulation, CUBLASLT_EMULATION_DESC_SPECIAL_VALUES_SUPPORT, &special,
                                       sizeof special, nullptr));
  CHECK(fill == CUBLAS_FILL_MODE_FULL && special == 0xffff);

  CHECK(cublasLtGetVersion() == CUBLAS_VERSION &&
        std::string(cublasLtGetStatusName(CUBLAS_STATUS_NOT_SUPPORTED)) == "CUBLAS_STATUS_NOT_SUPPORTED");
  int major = 0;
  LT(cublasLtGetProperty(MAJOR_VERSION, &major));
  CHECK(major == CUBLAS_VER_MAJOR && cublasLtGetCudartVersion() == CUDART_VERSION);
  size_t capacity = 0;
  LT(cublasLtHeuristicsCacheSetCapacity(100));
  LT(cublasLtHeuristicsCacheGetCapacity(&capacity));
  CHECK(capacity >= 100);
  CHECK(cublasLtLoggerSetLevel(9) == CUBLAS_STATUS_INVALID_VALUE && cublasLtLoggerSetLevel(0) == CUBLAS_STATUS_SUCCESS);
  cublasLtHandle_t gone = nullptr;
  LT(cublasLtCreate(&gone));
  LT(cublasLtDestroy(gone));
  CHECK(cublasLtDestroy(gone) == CUBLAS_STATUS_NOT_INITIALIZED &&
        cublasLtDestroy(nullptr) == CUBLAS_STATUS_INVALID_VALUE);
}

/// One mistake: it is reported, and the call returns INVALID_VALUE. Others show later.
void fault(const std::string& name) {
  Case c;
  c.beta = 1, c.m = 64, c.n = 64, c.k = 512;
  if (name.starts_with("workspace")) c.splits = 2, c.workspace = size_t{1} << 20;
  if (name == "bias") c.epilogue = CUBLASLT_EPILOGUE_BIAS;
  if (name.starts_with("batch")) c.batches = 2;
  if (name == "other_device") CUDA(cudaSetDevice(1));
  Product p(c);
  if (name == "other_device") CUDA(cudaSetDevice(0));
  std::vector<char> pageable(c.m * c.k * 4);
  if (name == "bias") p.set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, static_cast<const void*>(nullptr));
  if (name == "misaligned") p.a_pointer = p.a.memory.at(2);
  if (name == "algorithm_alignment") {
    LT(p.find(0));
    p.algorithm = &p.algorithms.front().algo;
    p.b_pointer = p.b.memory.at(4);
  }
  if (name == "host") p.a_pointer = pageable.data();
  if (name == "beyond") p.b_pointer = p.b.memory.at(16);
  if (name == "workspace_null") p.workspace_pointer = nullptr;
  if (name == "workspace_misaligned") p.workspace_pointer = static_cast<char*>(p.workspace_pointer) + 128;
  if (name == "overlap") p.d_pointer = p.a.memory.at();
  if (name == "in_place_other_layout") {
    p.c_pointer = p.d_pointer;
    p.c.set(CUBLASLT_MATRIX_LAYOUT_LD, int64_t{0});
  }
  if (name == "batch_overlap") p.d.set(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, int64_t{63});
  cudaStream_t one = nullptr, two = nullptr;
  CUDA(cudaStreamCreateWithFlags(&one, cudaStreamNonBlocking));
  CUDA(cudaStreamCreateWithFlags(&two, cudaStreamNonBlocking));
  char *fresh = nullptr, *gone = nullptr;
  CUDA(cudaMalloc(&fresh, pageable.size()));
  CUDA(cudaMalloc(&gone, pageable.size()));
  if (name == "uninitialised") p.a_pointer = fresh;
  if (name == "unordered" || name == "ordered") {  // D is copied while it is computed
    LT(p.run(one));
    cudaEvent_t event = nullptr;
    CUDA(cudaEventCreate(&event));
    CUDA(cudaEventRecord(event, one));
    if (name == "ordered") CUDA(cudaStreamWaitEvent(two, event));
    CUDA(cudaMemcpyAsync(fresh, p.d_pointer, 64, cudaMemcpyDeviceToDevice, two));
    CUDA(cudaDeviceSynchronize());
  } else if (name == "freed") {  // between capture and launch
    p.a_pointer = gone;
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t run = nullptr;
    CUDA(cudaStreamBeginCapture(one, cudaStreamCaptureModeRelaxed));
    LT(p.run(one));
    CUDA(cudaStreamEndCapture(one, &graph));
    CUDA(cudaGraphInstantiate(&run, graph, 0));
    CUDA(cudaFree(gone));
    cudaGraphLaunch(run, one);
    std::printf("%s\n", cudaGetErrorName(cudaStreamSynchronize(one)));
  } else {
    std::printf("%s\n", cublasLtGetStatusName(p.run()));
    CUDA(cudaDeviceSynchronize());
  }
}

void speed() {
  for (const Types& types : {kTypes[0], kTypes[1], kTypes[6], kTypes[10]})
    for (const int64_t size : {64, 1024}) {
      Case c = of(types);
      c.m = c.n = c.k = size, c.transpose_a = true;
      Product product(c);
      LT(product.run());
      CUDA(cudaDeviceSynchronize());
      const int repeats = size < 256 ? 100 : 3;
      const auto begin = std::chrono::steady_clock::now();
      for (int i = 0; i < repeats; ++i) LT(product.run());
      CUDA(cudaDeviceSynchronize());
      const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() / repeats;
      std::printf("compute %d, a %d, %ld cubed: %.3f ms, %.1f GFLOP/s\n", c.compute, c.a, size, seconds * 1e3,
                  2e-9 * static_cast<double>(size * size * size) / seconds);
    }
}

}  // namespace
}  // namespace cublaslt_program

int main(int argc, char** argv) {
  using namespace cublaslt_program;
  const std::string what = argc > 1 ? argv[1] : "";
  if (what == "fault") return fault(argv[2]), 0;
  if (what == "speed") return speed(), 0;
  const std::pair<const char*, void (*)()> checks[] = {{"descriptors", descriptors},
                                                       {"statuses", statuses},
                                                       {"algorithms", algorithms},
                                                       {"every_type_and_layout", every_type_and_layout},
                                                       {"sizes", sizes},
                                                       {"epilogues", epilogues},
                                                       {"fp8", fp8},
                                                       {"integers", integers},
                                                       {"device_scalars", device_scalars},
                                                       {"graphs", graphs},
                                                       {"transforms", transforms}};
  for (const auto& [name, check] : checks) {
    if (!what.empty() && what != name) continue;
    check();
    std::printf("%s: right\n", name);
  }
}
