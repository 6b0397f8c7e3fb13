// SPDX-License-Identifier: Apache-2.0
// The functions of nccl.h. As in NVIDIA's library each has a second name with a p in front, for profilers that take the
// first.
#pragma GCC visibility push(default)
#include <nccl.h>
#pragma GCC visibility pop

#include <cerrno>
#include <cstring>
#include <new>

#include "emulator/machine/fault.h"
#include "emulator/machine/per_thread.h"
#include "emulator/nccl/call.h"
#include "emulator/nccl/group.h"
#include "emulator/nccl/handle.h"
#include "emulator/nccl/segment.h"

#define EMULATOR_NCCL(name) decltype(nccl##name) pnccl##name __attribute__((alias("nccl" #name)));

using namespace emulator;
using namespace emulator::nccl;

namespace {

/// Runs every call: an exception becomes its code and one line on stderr.
template <class F>
ncclResult_t call(const char* name, F&& body) noexcept {
  ncclResult_t code = ncclInternalError;
  try {
    code = body();
  } catch (const Failure& failure) {
    code = failure.code;
    const std::string text = cat(name, ": ", failure.text);
    failure.told ? remember(failure.text) : report(text);
  } catch (const std::bad_alloc&) {
    code = ncclSystemError;
  } catch (const std::exception& error) {
    report(cat(name, ": ", error.what()));
  }
  if (code != ncclSuccess && code != ncclInProgress) spoil_group(code);
  return code;
}

template <class T>
T* given(T* pointer, const char* what) {
  if (!pointer) throw Failure{ncclInvalidArgument, cat(what, " is NULL")};
  return pointer;
}

int current_device() {
  int device = 0;
  if (const cudaError_t code = cudaGetDevice(&device); code != cudaSuccess)
    throw Failure{ncclUnhandledCudaError, cat("cudaGetDevice: ", cudaGetErrorString(code))};
  return device;
}

ncclResult_t collective(const char* name, Kind kind, const void* send, void* recv, size_t count, ncclDataType_t type,
                        int op, int root, ncclComm_t comm, cudaStream_t stream) {
  return call(name, [&] {
    const CommunicatorPtr c = find(comm);
    Collective call;
    if (type < 0 || type >= ncclNumTypes) throw Failure{ncclInvalidArgument, cat("data type ", static_cast<int>(type))};
    call.what = {kind, static_cast<uint8_t>(type), 0, false, root, count};
    call.send = static_cast<const std::byte*>(send);
    call.recv = static_cast<std::byte*>(recv);
    if (op >= ncclNumOps) {
      const ReductionOperator made = c->find_operator(static_cast<ncclRedOp_t>(op));
      if (made.type != type)
        throw Failure{ncclInvalidArgument, cat("the reduction operator was made for ", name_of(made.type))};
      call.what.op = Descriptor::kScaledSum;
      call.device_factor = made.device_factor;
      call.factor = made.factor;
    } else if (op >= 0) {
      call.what.op = static_cast<uint8_t>(op);
    } else {
      throw Failure{ncclInvalidArgument, cat("reduction operator ", op)};
    }
    return call_collective(c, call, stream);
  });
}

ncclResult_t transfer(const char* name, bool sends, const void* buffer, size_t count, ncclDataType_t type, int peer,
                      ncclComm_t comm, cudaStream_t stream) {
  return call(name, [&] {
    Transfer t;
    t.sends = sends;
    t.type = type;
    t.peer = peer;
    t.count = count;
    t.buffer = static_cast<std::byte*>(const_cast<void*>(buffer));
    return call_transfer(find(comm), t, stream);
  });
}

/// A live communicator, even if its operations have failed.
template <class F>
ncclResult_t ask(const char* name, ncclComm_t comm, int* result, F&& question) {
  return call(name, [&] {
    const CommunicatorPtr c = find(comm);
    if (c->state() == ncclInProgress && !c->finalizing())
      throw Failure{ncclInvalidArgument, "the communicator is used before its last call has ended (ncclInProgress)"};
    *given(result, "the result") = question(*c);
    return ncclSuccess;
  });
}

ncclResult_t refuse(const char* name) {
  return call(name, []() -> ncclResult_t { throw Failure{ncclInvalidUsage, "the emulator does not have this call"}; });
}

}  // namespace

extern "C" {

ncclResult_t ncclGetVersion(int* version) {
  return call("ncclGetVersion", [&] {
    *given(version, "version") = NCCL_VERSION_CODE;
    return ncclSuccess;
  });
}

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  return call("ncclGetUniqueId", [&] {
    const auto made = Segment::make();
    if (!made) throw Failure{ncclSystemError, cat("memfd_create: ", std::strerror(errno))};
    *given(id, "the id") = *made;
    return ncclSuccess;
  });
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int size, ncclUniqueId id, int rank, ncclConfig_t* config) {
  return call("ncclCommInitRankConfig",
              [&] { return make_rank(given(comm, "comm"), size, id, rank, current_device(), checked(config)); });
}

ncclResult_t ncclCommInitRank(ncclComm_t* comm, int size, ncclUniqueId id, int rank) {
  return call("ncclCommInitRank",
              [&] { return make_rank(given(comm, "comm"), size, id, rank, current_device(), checked(nullptr)); });
}

ncclResult_t ncclCommInitRankScalable(ncclComm_t* comm, int size, int rank, int ids, ncclUniqueId* id,
                                      ncclConfig_t* config) {
  return call("ncclCommInitRankScalable", [&] {
    if (ids < 1 || ids > size) throw Failure{ncclInvalidArgument, cat(ids, " ids for ", size, " ranks")};
    // Further ids speed up large machines; one is enough to connect.
    for (int i = 1; i < ids; ++i) {
      if (!Segment::is_id(given(id, "the ids")[i]))
        throw Failure{ncclInvalidArgument, cat("id ", i, " of ", ids, " is none of ncclGetUniqueId")};
      Segment::forget(id[i]);
    }
    return make_rank(given(comm, "comm"), size, *given(id, "the ids"), rank, current_device(), checked(config));
  });
}

ncclResult_t ncclCommInitAll(ncclComm_t* comms, int size, const int* devices) {
  return call("ncclCommInitAll", [&] {
    given(comms, "comm");
    int there = 0;
    if (cudaGetDeviceCount(&there) != cudaSuccess) throw Failure{ncclUnhandledCudaError, "cudaGetDeviceCount"};
    for (int r = 0; r < size; ++r)
      if (const int device = devices ? devices[r] : r; device < 0 || device >= there)
        throw Failure{ncclInvalidUsage, cat("device ", device, " of ", there)};
    ncclUniqueId id;
    if (const ncclResult_t code = ncclGetUniqueId(&id); code != ncclSuccess) return code;
    start_group();
    for (int r = 0; r < size; ++r) make_rank(comms + r, size, id, r, devices ? devices[r] : r, checked(nullptr));
    return end_group();
  });
}

ncclResult_t ncclCommFinalize(ncclComm_t comm) {
  return call("ncclCommFinalize", [&] {
    const CommunicatorPtr c = find(comm);
    c->finalize();
    return c->state();
  });
}

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  if (!comm) return ncclSuccess;
  return call("ncclCommDestroy", [&] {
    const CommunicatorPtr c = find(comm);
    forget(comm);
    c->destroy();
    return ncclSuccess;
  });
}

ncclResult_t ncclCommAbort(ncclComm_t comm) {
  if (!comm) return ncclSuccess;
  return call("ncclCommAbort", [&] {
    const CommunicatorPtr c = find(comm);
    forget(comm);
    c->abort();
    return ncclSuccess;
  });
}

ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t* result, ncclConfig_t* config) {
  return call("ncclCommSplit", [&] { return split(comm, color, key, given(result, "newcomm"), config); });
}

ncclResult_t ncclCommShrink(ncclComm_t comm, int* excluded, int count, ncclComm_t* result, ncclConfig_t* config,
                            int flags) {
  return call("ncclCommShrink", [&] {
    if (flags != NCCL_SHRINK_DEFAULT && flags != NCCL_SHRINK_ABORT)
      throw Failure{ncclInvalidArgument, cat("flags ", flags)};
    return shrink(comm, excluded, count, given(result, "newcomm"), config, flags == NCCL_SHRINK_ABORT);
  });
}

const char* ncclGetErrorString(ncclResult_t result) {
  switch (result) {
    case ncclSuccess:
      return "no error";
    case ncclUnhandledCudaError:
      return "unhandled cuda error";
    case ncclSystemError:
      return "unhandled system error";
    case ncclInternalError:
      return "internal error";
    case ncclInvalidArgument:
      return "invalid argument";
    case ncclInvalidUsage:
      return "invalid usage";
    case ncclRemoteError:
      return "remote process exited or there was a network error";
    case ncclInProgress:
      return "NCCL operation in progress";
    default:
      return "unknown result code";
  }
}

const char* ncclGetLastError(ncclComm_t comm) {
  struct Text {
    std::string text;
  };
  std::string& text = per_thread<Text>().text;  // until this thread asks again
  text.clear();
  try {
    if (comm) text = find(comm)->error_text();
  } catch (const Failure&) {  // after a communicator's end only the common text remains
  }
  if (text.empty()) text = last_error();
  return text.c_str();
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* error) {
  return call("ncclCommGetAsyncError", [&] {
    *given(error, "asyncError") = find(comm)->state();
    return ncclSuccess;
  });
}

ncclResult_t ncclCommCount(const ncclComm_t comm, int* count) {
  return ask("ncclCommCount", comm, count, [](const Communicator& c) { return c.size(); });
}

ncclResult_t ncclCommCuDevice(const ncclComm_t comm, int* device) {
  return ask("ncclCommCuDevice", comm, device, [](const Communicator& c) { return c.device(); });
}

ncclResult_t ncclCommUserRank(const ncclComm_t comm, int* rank) {
  return ask("ncclCommUserRank", comm, rank, [](const Communicator& c) { return c.rank(); });
}

ncclResult_t ncclMemAlloc(void** pointer, size_t size) {
  return call("ncclMemAlloc", [&] {
    const cudaError_t code = cudaMalloc(given(pointer, "ptr"), size);
    if (code != cudaSuccess) throw Failure{ncclUnhandledCudaError, cat("cudaMalloc: ", cudaGetErrorString(code))};
    return ncclSuccess;
  });
}

ncclResult_t ncclMemFree(void* pointer) {
  return call("ncclMemFree", [&] {
    const cudaError_t code = cudaFree(pointer);
    if (code != cudaSuccess) throw Failure{ncclUnhandledCudaError, cat("cudaFree: ", cudaGetErrorString(code))};
    return ncclSuccess;
  });
}

// Registration makes transfers faster on GPUs and has no effect that a program could see.

ncclResult_t ncclCommRegister(const ncclComm_t comm, void* buffer, size_t, void** handle) {
  return call("ncclCommRegister", [&] {
    given(buffer, "buff");
    *given(handle, "handle") = find(comm)->add_registration();
    return ncclSuccess;
  });
}

ncclResult_t ncclCommDeregister(const ncclComm_t comm, void* handle) {
  return call("ncclCommDeregister", [&] {
    find(comm)->remove_registration(handle);
    return ncclSuccess;
  });
}

ncclResult_t ncclCommWindowRegister(ncclComm_t comm, void* buffer, size_t, ncclWindow_t* window, int flags) {
  return call("ncclCommWindowRegister", [&] {
    if (flags != NCCL_WIN_DEFAULT && flags != NCCL_WIN_COLL_SYMMETRIC)
      throw Failure{ncclInvalidArgument, cat("winFlags ", flags)};
    given(buffer, "buff");
    *given(window, "win") = static_cast<ncclWindow_t>(find(comm)->add_registration());
    return ncclSuccess;
  });
}

ncclResult_t ncclCommWindowDeregister(ncclComm_t comm, ncclWindow_t window) {
  return call("ncclCommWindowDeregister", [&] {
    find(comm)->remove_registration(window);
    return ncclSuccess;
  });
}

ncclResult_t ncclRedOpCreatePreMulSum(ncclRedOp_t* op, void* scalar, ncclDataType_t type,
                                      ncclScalarResidence_t residence, ncclComm_t comm) {
  return call("ncclRedOpCreatePreMulSum", [&] {
    const CommunicatorPtr c = find(comm);
    c->require_ready();
    given(scalar, "scalar");
    if (type < 0 || type >= ncclNumTypes || (residence != ncclScalarDevice && residence != ncclScalarHostImmediate))
      throw Failure{ncclInvalidArgument,
                    cat("data type ", static_cast<int>(type), ", residence ", static_cast<int>(residence))};
    ReductionOperator made{type, residence == ncclScalarDevice ? scalar : nullptr, 0};
    if (residence == ncclScalarHostImmediate) std::memcpy(&made.factor, scalar, size_of(type));
    if (residence == ncclScalarDevice) require_factor(*c, scalar, size_of(type));
    *given(op, "op") = c->add_operator(made);
    return ncclSuccess;
  });
}

ncclResult_t ncclRedOpDestroy(ncclRedOp_t op, ncclComm_t comm) {
  return call("ncclRedOpDestroy", [&] {
    find(comm)->remove_operator(op);
    return ncclSuccess;
  });
}

ncclResult_t ncclAllReduce(const void* send, void* recv, size_t count, ncclDataType_t type, ncclRedOp_t op,
                           ncclComm_t comm, cudaStream_t stream) {
  return collective("ncclAllReduce", Kind::all_reduce, send, recv, count, type, op, -1, comm, stream);
}

ncclResult_t ncclReduce(const void* send, void* recv, size_t count, ncclDataType_t type, ncclRedOp_t op, int root,
                        ncclComm_t comm, cudaStream_t stream) {
  return collective("ncclReduce", Kind::reduce, send, recv, count, type, op, root, comm, stream);
}

ncclResult_t ncclBcast(void* buffer, size_t count, ncclDataType_t type, int root, ncclComm_t comm,
                       cudaStream_t stream) {
  return collective("ncclBcast", Kind::broadcast, buffer, buffer, count, type, 0, root, comm, stream);
}

ncclResult_t ncclBroadcast(const void* send, void* recv, size_t count, ncclDataType_t type, int root, ncclComm_t comm,
                           cudaStream_t stream) {
  return collective("ncclBroadcast", Kind::broadcast, send, recv, count, type, 0, root, comm, stream);
}

ncclResult_t ncclReduceScatter(const void* send, void* recv, size_t count, ncclDataType_t type, ncclRedOp_t op,
                               ncclComm_t comm, cudaStream_t stream) {
  return collective("ncclReduceScatter", Kind::reduce_scatter, send, recv, count, type, op, -1, comm, stream);
}

ncclResult_t ncclAllGather(const void* send, void* recv, size_t count, ncclDataType_t type, ncclComm_t comm,
                           cudaStream_t stream) {
  return collective("ncclAllGather", Kind::all_gather, send, recv, count, type, 0, -1, comm, stream);
}

ncclResult_t ncclAlltoAll(const void* send, void* recv, size_t count, ncclDataType_t type, ncclComm_t comm,
                          cudaStream_t stream) {
  return collective("ncclAlltoAll", Kind::all_to_all, send, recv, count, type, 0, -1, comm, stream);
}

ncclResult_t ncclGather(const void* send, void* recv, size_t count, ncclDataType_t type, int root, ncclComm_t comm,
                        cudaStream_t stream) {
  return collective("ncclGather", Kind::gather, send, recv, count, type, 0, root, comm, stream);
}

ncclResult_t ncclScatter(const void* send, void* recv, size_t count, ncclDataType_t type, int root, ncclComm_t comm,
                         cudaStream_t stream) {
  return collective("ncclScatter", Kind::scatter, send, recv, count, type, 0, root, comm, stream);
}

ncclResult_t ncclSend(const void* buffer, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return transfer("ncclSend", true, buffer, count, type, peer, comm, stream);
}

ncclResult_t ncclRecv(void* buffer, size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream) {
  return transfer("ncclRecv", false, buffer, count, type, peer, comm, stream);
}

ncclResult_t ncclGroupStart() {
  start_group();
  return ncclSuccess;
}

ncclResult_t ncclGroupEnd() {
  return call("ncclGroupEnd", [] { return end_group(); });
}

ncclResult_t ncclCommRevoke(ncclComm_t, int) { return refuse("ncclCommRevoke"); }
ncclResult_t ncclGroupSimulateEnd(ncclSimInfo_t*) { return refuse("ncclGroupSimulateEnd"); }

// nccl.h deprecates this name, but programs may use it.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
void ncclResetDebugInit() {}
EMULATOR_NCCL(ResetDebugInit)
#pragma GCC diagnostic pop

EMULATOR_NCCL(GetVersion)
EMULATOR_NCCL(GetUniqueId)
EMULATOR_NCCL(CommInitRankConfig)
EMULATOR_NCCL(CommInitRank)
EMULATOR_NCCL(CommInitRankScalable)
EMULATOR_NCCL(CommInitAll)
EMULATOR_NCCL(CommFinalize)
EMULATOR_NCCL(CommDestroy)
EMULATOR_NCCL(CommAbort)
EMULATOR_NCCL(CommRevoke)
EMULATOR_NCCL(CommSplit)
EMULATOR_NCCL(CommShrink)
EMULATOR_NCCL(GetErrorString)
EMULATOR_NCCL(GetLastError)
EMULATOR_NCCL(CommGetAsyncError)
EMULATOR_NCCL(CommCount)
EMULATOR_NCCL(CommCuDevice)
EMULATOR_NCCL(CommUserRank)
EMULATOR_NCCL(MemAlloc)
EMULATOR_NCCL(MemFree)
EMULATOR_NCCL(CommRegister)
EMULATOR_NCCL(CommDeregister)
EMULATOR_NCCL(CommWindowRegister)
EMULATOR_NCCL(CommWindowDeregister)
EMULATOR_NCCL(RedOpCreatePreMulSum)
EMULATOR_NCCL(RedOpDestroy)
EMULATOR_NCCL(AllReduce)
EMULATOR_NCCL(Reduce)
EMULATOR_NCCL(Bcast)
EMULATOR_NCCL(Broadcast)
EMULATOR_NCCL(ReduceScatter)
EMULATOR_NCCL(AllGather)
EMULATOR_NCCL(AlltoAll)
EMULATOR_NCCL(Gather)
EMULATOR_NCCL(Scatter)
EMULATOR_NCCL(Send)
EMULATOR_NCCL(Recv)
EMULATOR_NCCL(GroupStart)
EMULATOR_NCCL(GroupEnd)
EMULATOR_NCCL(GroupSimulateEnd)

}  // extern "C"
