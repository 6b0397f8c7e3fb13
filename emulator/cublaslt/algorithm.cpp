// SPDX-License-Identifier: Apache-2.0
#include "emulator/cublaslt/algorithm.h"

#include <algorithm>
#include <cstring>

#include "emulator/cublaslt/number.h"
#include "emulator/machine/fault.h"

namespace emulator::lt {
namespace {

constexpr int kMostSplits = 32;
constexpr int64_t kTile = 64;  // rows and columns of D that a block of a GPU would compute: for waves alone

Types types_of(const Algorithm& a) {
  const auto type = [&](int i) { return static_cast<cudaDataType_t>(a.types[i]); };
  return {static_cast<cublasComputeType_t>(a.compute), type(0), type(1), type(2), type(3), type(4)};
}

size_t sum_bytes(const Types& types) {
  return types.compute == CUBLAS_COMPUTE_64F || types.compute == CUBLAS_COMPUTE_64F_PEDANTIC ? 8 : 4;
}

uint64_t implementation_of(const Types& t) {
  const bool f64 = t.a == CUDA_R_64F, integers = t.a == CUDA_R_8I, half_sums = t.scale == CUDA_R_16F;
  const bool cores = t.a != CUDA_R_32F || t.compute == CUBLAS_COMPUTE_32F_FAST_16F ||
                     t.compute == CUBLAS_COMPUTE_32F_FAST_16BF || t.compute == CUBLAS_COMPUTE_32F_FAST_TF32;
  uint64_t flags = f64        ? CUBLASLT_NUMERICAL_IMPL_FLAGS_DMMA
                   : integers ? CUBLASLT_NUMERICAL_IMPL_FLAGS_IMMA
                   : cores    ? CUBLASLT_NUMERICAL_IMPL_FLAGS_HMMA
                              : CUBLASLT_NUMERICAL_IMPL_FLAGS_FMA;
  flags |= f64                             ? CUBLASLT_NUMERICAL_IMPL_FLAGS_ACCUMULATOR_64F
           : integers && t.d != CUDA_R_32F ? CUBLASLT_NUMERICAL_IMPL_FLAGS_ACCUMULATOR_32I
           : half_sums                     ? CUBLASLT_NUMERICAL_IMPL_FLAGS_ACCUMULATOR_16F
                                           : CUBLASLT_NUMERICAL_IMPL_FLAGS_ACCUMULATOR_32F;
  for (const cudaDataType_t type : {t.a, t.b}) switch (type) {
      case CUDA_R_16F:
        flags |= CUBLASLT_NUMERICAL_IMPL_FLAGS_INPUT_16F;
        break;
      case CUDA_R_16BF:
        flags |= CUBLASLT_NUMERICAL_IMPL_FLAGS_INPUT_16BF;
        break;
      case CUDA_R_64F:
        flags |= CUBLASLT_NUMERICAL_IMPL_FLAGS_INPUT_64F;
        break;
      case CUDA_R_8I:
        flags |= CUBLASLT_NUMERICAL_IMPL_FLAGS_INPUT_8I;
        break;
      case CUDA_R_8F_E4M3:
        flags |= CUBLASLT_NUMERICAL_IMPL_FLAGS_INPUT_8F_E4M3;
        break;
      case CUDA_R_8F_E5M2:
        flags |= CUBLASLT_NUMERICAL_IMPL_FLAGS_INPUT_8F_E5M2;
        break;
      default:
        flags |= t.compute == CUBLAS_COMPUTE_32F_FAST_TF32   ? CUBLASLT_NUMERICAL_IMPL_FLAGS_INPUT_TF32
                 : t.compute == CUBLAS_COMPUTE_32F_FAST_16F  ? CUBLASLT_NUMERICAL_IMPL_FLAGS_INPUT_16F
                 : t.compute == CUBLAS_COMPUTE_32F_FAST_16BF ? CUBLASLT_NUMERICAL_IMPL_FLAGS_INPUT_16BF
                                                             : CUBLASLT_NUMERICAL_IMPL_FLAGS_INPUT_32F;
    }
  return flags;
}

bool strides_fit(const Algorithm& algorithm, const Problem& p) {
  const Matrix* const matrices[] = {&p.a, &p.b, &p.c, &p.d};
  for (int i = 0; i < 4; ++i) {
    const auto unit = static_cast<int64_t>(alignment_of(algorithm, matrices[i]->type) / size_of(matrices[i]->type));
    if (p.lds[i] % unit != 0 || (p.batches > 1 && matrices[i]->batch % unit != 0)) return false;
  }
  return true;
}

}  // namespace

Algorithm make_algorithm(Method method, const Types& t) {
  Algorithm a;
  a.id = static_cast<int>(method);
  a.compute = t.compute;
  const cudaDataType_t types[] = {t.scale, t.a, t.b, t.c, t.d};
  for (int i = 0; i < 5; ++i) a.types[i] = static_cast<uint16_t>(types[i]);
  if (method == Method::split_k) {
    a.splits = 2;
    a.reduction = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
  }
  return a;
}

void require_fit(const Algorithm& a, const Problem& p) {
  const auto require = [](bool right, cublasStatus_t status, const auto&... text) {
    if (!right) fail(status, cat(text...));
  };
  require(a.magic == Algorithm::kMagic && a.id >= 0 && a.id < kMethods, CUBLAS_STATUS_INVALID_VALUE,
          "the algorithm is none of this library's");
  const Algorithm same = make_algorithm(static_cast<Method>(a.id), p.types);
  require(a.compute == same.compute && std::equal(a.types, a.types + 5, same.types), CUBLAS_STATUS_INVALID_VALUE,
          "the algorithm was made for other types: A ", name_of(types_of(a).a), ", D ", name_of(types_of(a).d));
  const bool splits = a.splits > 1;
  require(a.tile == CUBLASLT_MATMUL_TILE_UNDEFINED && a.stages == CUBLASLT_MATMUL_STAGES_UNDEFINED && a.custom == 0 &&
              a.inner_shape == 0 && a.cluster_shape == 0 && a.swizzle <= 1,
          CUBLAS_STATUS_NOT_SUPPORTED,
          "the algorithm is configured with a tile, stages, shape or option that its capabilities lack");
  require(a.splits >= 0 && a.splits <= kMostSplits && (!splits || a.id == static_cast<int>(Method::split_k)),
          CUBLAS_STATUS_NOT_SUPPORTED, "SPLITK_NUM ", a.splits, " is not offered by algorithm ", a.id);
  require(!splits || a.reduction == CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE, CUBLAS_STATUS_NOT_SUPPORTED, "SPLITK_NUM ",
          a.splits, " with reduction scheme ", a.reduction, " is not offered: use COMPUTE_TYPE");
  require(strides_fit(a, p), CUBLAS_STATUS_NOT_SUPPORTED, "algorithm ", a.id,
          " needs leading dimensions and batch strides of ", "multiples of 16 bytes");
}

size_t workspace_bytes(const Algorithm& a, const Problem& p) {
  if (a.splits <= 1) return 0;
  return static_cast<size_t>(a.splits) * static_cast<size_t>(p.m * p.n) * static_cast<size_t>(p.batches) *
         sum_bytes(p.types);
}

size_t alignment_of(const Algorithm& a, cudaDataType_t type) {
  return a.id == static_cast<int>(Method::aligned) ? 16 : size_of(type);
}

float waves_of(const Algorithm& a, const Problem& p, int processors) {
  const auto tiles = [](int64_t size) { return (size + kTile - 1) / kTile; };
  return static_cast<float>(tiles(p.m) * tiles(p.n) * p.batches * std::max(a.splits, 1)) /
         static_cast<float>(processors);
}

std::vector<Algorithm> find_algorithms(const Problem& p, const Preference& preference, int processors) {
  std::vector<Algorithm> all{make_algorithm(Method::aligned, p.types), make_algorithm(Method::any, p.types)};
  // A GPU with more processors than D has tiles would sum slices of the depth in parallel.
  const bool deep = waves_of(all[0], p, processors) <= 0.5f && p.k >= 256;
  for (const int splits : {2, 4}) {
    Algorithm a = make_algorithm(Method::split_k, p.types);
    a.splits = splits;
    if (p.k >= splits) all.insert(deep ? all.begin() : all.end(), a);
  }
  std::erase_if(all, [&](const Algorithm& a) {
    const Matrix* const matrices[] = {&p.a, &p.b, &p.c, &p.d};
    for (int i = 0; i < 4; ++i)
      if (preference.alignments[i] < alignment_of(a, matrices[i]->type)) return true;
    return !strides_fit(a, p) || workspace_bytes(a, p) > preference.workspace ||
           (a.reduction & ~preference.reductions) != 0 ||
           (preference.waves > 0 && waves_of(a, p, processors) > preference.waves) ||
           (implementation_of(p.types) & ~preference.implementations) != 0;
  });
  return all;
}

void get_capability(const Algorithm& a, cublasLtMatmulAlgoCapAttributes_t attribute, void* value, size_t bytes,
                    size_t* written) {
  const Types types = types_of(a);
  const bool splits = a.id == static_cast<int>(Method::split_k), integers = types.a == CUDA_R_8I;
  const auto word = [&]() -> uint64_t {
    switch (attribute) {
      case CUBLASLT_ALGO_CAP_SPLITK_SUPPORT:
        return splits;
      case CUBLASLT_ALGO_CAP_REDUCTION_SCHEME_MASK:
        return splits ? CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE : CUBLASLT_REDUCTION_SCHEME_NONE;
      case CUBLASLT_ALGO_CAP_CTA_SWIZZLING_SUPPORT:
      case CUBLASLT_ALGO_CAP_STRIDED_BATCH_SUPPORT:
      case CUBLASLT_ALGO_CAP_OUT_OF_PLACE_RESULT_SUPPORT:
        return 1;
      case CUBLASLT_ALGO_CAP_UPLO_SUPPORT:
      case CUBLASLT_ALGO_CAP_CUSTOM_OPTION_MAX:
      case CUBLASLT_ALGO_CAP_CUSTOM_MEMORY_ORDER:
      case CUBLASLT_ALGO_CAP_LD_NEGATIVE:
      case CUBLASLT_ALGO_CAP_POINTER_ARRAY_BATCH_SUPPORT:
      case CUBLASLT_ALGO_CAP_FLOATING_POINT_EMULATION_SUPPORT:
        return 0;
      case CUBLASLT_ALGO_CAP_TILE_IDS:
        return CUBLASLT_MATMUL_TILE_UNDEFINED;
      case CUBLASLT_ALGO_CAP_STAGES_IDS:
        return CUBLASLT_MATMUL_STAGES_UNDEFINED;
      case CUBLASLT_ALGO_CAP_POINTER_MODE_MASK:
        return CUBLASLT_POINTER_MODE_MASK_HOST | CUBLASLT_POINTER_MODE_MASK_DEVICE |
               (integers && types.scale == CUDA_R_32F ? CUBLASLT_POINTER_MODE_MASK_ALPHA_DEVICE_VECTOR_BETA_HOST : 0);
      case CUBLASLT_ALGO_CAP_EPILOGUE_MASK:
        return integers ? CUBLASLT_EPILOGUE_DEFAULT : 0x3ff;
      case CUBLASLT_ALGO_CAP_NUMERICAL_IMPL_FLAGS:
        return implementation_of(types);
      case CUBLASLT_ALGO_CAP_MIN_ALIGNMENT_A_BYTES:
        return alignment_of(a, types.a);
      case CUBLASLT_ALGO_CAP_MIN_ALIGNMENT_B_BYTES:
        return alignment_of(a, types.b);
      case CUBLASLT_ALGO_CAP_MIN_ALIGNMENT_C_BYTES:
        return alignment_of(a, types.c);
      case CUBLASLT_ALGO_CAP_MIN_ALIGNMENT_D_BYTES:
        return alignment_of(a, types.d);
      default:
        fail(CUBLAS_STATUS_INVALID_VALUE, cat("there is no capability ", static_cast<int>(attribute)));
    }
  }();
  const Attribute whole[] = {
      {attribute, 0, attribute == CUBLASLT_ALGO_CAP_NUMERICAL_IMPL_FLAGS ? size_t{8} : size_t{4}}};
  // Programs give an array of all ids there may be.
  const bool ids = attribute == CUBLASLT_ALGO_CAP_TILE_IDS || attribute == CUBLASLT_ALGO_CAP_STAGES_IDS;
  get_attribute(&word, whole, attribute, value, ids && bytes > 4 ? 4 : bytes, written);
}

}  // namespace emulator::lt
