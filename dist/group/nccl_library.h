// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <nccl.h>

#include <string>

namespace weft::dist {

/// NCCL's functions, found in libnccl.so.2 when the first group needs them: a program without GPUs runs where there is
/// no NCCL.
struct NcclLibrary {
#define WEFT_NCCL_FUNCTIONS(X)                                                                                         \
  X(GetVersion)                                                                                                        \
  X(GetUniqueId)                                                                                                       \
  X(CommInitRankConfig) X(CommFinalize) X(CommDestroy) X(CommAbort) X(CommSplit) X(CommGetAsyncError)                  \
      X(GetErrorString) X(GetLastError) X(RedOpCreatePreMulSum) X(RedOpDestroy) X(AllReduce) X(Broadcast) X(AllGather) \
          X(ReduceScatter) X(Reduce) X(Send) X(Recv) X(GroupStart) X(GroupEnd) X(CommUserRank) X(CommCount)
#define WEFT_NCCL_MEMBER(name) decltype(&nccl##name) name = nullptr;
  WEFT_NCCL_FUNCTIONS(WEFT_NCCL_MEMBER)
#undef WEFT_NCCL_MEMBER
  /// From NCCL 2.23 on; older headers do not declare this function. Null: the library has none.
  using InitScalable = ncclResult_t (*)(ncclComm_t*, int size, int rank, int ids, ncclUniqueId*, ncclConfig_t*);
  InitScalable CommInitRankScalable = nullptr;
};

/// Errors: there is no libnccl.so.2, or one older than 2.18 (which cannot split a communicator).
const NcclLibrary& nccl();
/// `2.28.3`.
std::string nccl_version();

}  // namespace weft::dist
