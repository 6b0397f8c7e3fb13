// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cublasLt.h>

#include <string>

namespace weft::kernels::vendor {

/// The functions of cuBLASLt that Weft calls, found in libcublasLt.so when the first is needed.
struct CublasLtLibrary {
#define WEFT_CUBLASLT_FUNCTIONS(X)                                                                                   \
  X(GetVersion)                                                                                                      \
  X(GetStatusName)                                                                                                   \
  X(GetStatusString)                                                                                                 \
  X(Create)                                                                                                          \
  X(Destroy)                                                                                                         \
  X(MatrixLayoutCreate)                                                                                              \
  X(MatrixLayoutDestroy)                                                                                             \
  X(MatrixLayoutSetAttribute)                                                                                        \
  X(MatrixLayoutGetAttribute) X(MatmulDescCreate) X(MatmulDescDestroy) X(MatmulDescSetAttribute)                     \
      X(MatmulDescGetAttribute) X(MatmulPreferenceCreate) X(MatmulPreferenceDestroy) X(MatmulPreferenceSetAttribute) \
          X(MatmulPreferenceGetAttribute) X(MatmulAlgoGetHeuristic) X(Matmul)
#define WEFT_CUBLASLT_MEMBER(name) decltype(&cublasLt##name) name = nullptr;
  WEFT_CUBLASLT_FUNCTIONS(WEFT_CUBLASLT_MEMBER)
#undef WEFT_CUBLASLT_MEMBER

  /// Why the library cannot be used, with the cure; empty where it can.
  std::string missing;
};

/// Loads it at the first call. Throws nothing: see CublasLtLibrary::missing.
const CublasLtLibrary& cublaslt_library();

}  // namespace weft::kernels::vendor
