// SPDX-License-Identifier: Apache-2.0
#include "dist/group/nccl_communicator.h"

#include <cuda_runtime.h>

#include <cstring>
#include <thread>
#include <utility>

namespace weft::dist {
namespace {

using Clock = std::chrono::steady_clock;

// How long the end of a communicator may take when the ranks go apart.
constexpr std::chrono::seconds kEnd{10};

ncclDataType_t type_of(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return ncclFloat32;
    case DType::f64:
      return ncclFloat64;
    case DType::bf16:
      return ncclBfloat16;
    case DType::f16:
      return ncclFloat16;
    case DType::i64:
      return ncclInt64;
    case DType::i32:
      return ncclInt32;
    default:
      return ncclUint8;
  }
}

ncclRedOp_t op_of(ReduceOp op) {
  constexpr ncclRedOp_t ops[] = {ncclSum, ncclAvg, ncclMax, ncclMin};
  return ops[static_cast<int>(op)];
}

void select(Device device) {
  const cudaError_t status = cudaSetDevice(device.index);
  WEFT_CHECK(status == cudaSuccess, "process group nccl: ", device, ": ", cudaGetErrorString(status));
}

/// As select, where an error has been told already. The watchdog's thread and the membership's have named no device,
/// and what they call would make a context (half a GiB) on device 0.
void try_to_select(Device device) {
  if (cudaSetDevice(device.index) != cudaSuccess) cudaGetLastError();
}

ncclConfig_t never_blocking() {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  return config;
}

}  // namespace

template <class Do>
ncclResult_t NcclCommunicator::unless_aborted(Do&& call) {
  const std::lock_guard lock(mutex_);
  WEFT_CHECK(!aborted_, "process group nccl: aborted");
  return call();
}

void NcclCommunicator::connect(int rank, int size, Store& store, const std::string& key, Deadline deadline,
                               int ranks_per_root) {
  select(device_);
  const auto init = nccl().CommInitRankScalable;
  const int roots = init ? (size + ranks_per_root - 1) / ranks_per_root : 1;
  std::vector<ncclUniqueId> ids(static_cast<size_t>(roots));
  for (int64_t root = 0; root < roots; ++root) {
    if (root * size / roots != rank) continue;
    ncclUniqueId& own = ids[static_cast<size_t>(root)];
    const ncclResult_t result = nccl().GetUniqueId(&own);
    WEFT_CHECK(result == ncclSuccess, "process group nccl: ncclGetUniqueId: ", nccl().GetErrorString(result));
    store.set(str(key, '/', root), std::string(own.internal, sizeof own.internal));
  }
  const std::vector<std::string> texts =
      store.get_all(key, roots, std::chrono::ceil<Milliseconds>(deadline - Clock::now()));
  for (size_t root = 0; root < ids.size(); ++root) {
    const std::string& text = texts[root];
    WEFT_CHECK(text.size() == sizeof ids[root].internal, "process group nccl: got an id of ", text.size(), " bytes");
    std::memcpy(ids[root].internal, text.data(), text.size());
  }
  ncclConfig_t config = never_blocking();
  try {
    check(unless_aborted([&] {
            return roots > 1 ? init(&comm_, size, rank, roots, ids.data(), &config)
                             : nccl().CommInitRankConfig(&comm_, size, ids[0], rank, &config);
          }),
          roots > 1 ? "ncclCommInitRankScalable" : "ncclCommInitRankConfig", deadline);
  } catch (...) {
    abort();
    throw;
  }
}

NcclCommunicator::~NcclCommunicator() {
  if (aborted_ || !comm_) return;
  try {
    select(device_);
    check(nccl().CommFinalize(comm_), "ncclCommFinalize", Clock::now() + kEnd);
    nccl().CommDestroy(comm_);
    nccl().CommAbort(part_);
  } catch (const Error&) {
    abort();
  }
}

void NcclCommunicator::check(ncclResult_t result, const char* what, Deadline deadline) {
  for (int look = 0; result == ncclInProgress; ++look) {
    {
      const std::lock_guard lock(mutex_);
      WEFT_CHECK(!aborted_, "process group nccl: ", what, ": aborted");
      const ncclResult_t asked = nccl().CommGetAsyncError(comm_, &result);
      if (asked != ncclSuccess) result = asked;
    }
    if (result != ncclInProgress) break;
    WEFT_CHECK(Clock::now() < deadline, "process group nccl: ", what, ": the other ranks did not come in time");
    // A collective is enqueued in microseconds; ranks that wait for the last rank leave the processor to that rank.
    look < 1000 ? std::this_thread::yield() : std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  WEFT_CHECK(result == ncclSuccess, "process group nccl: ", what, ": ", nccl().GetErrorString(result), ". ",
             nccl().GetLastError(nullptr));
}

std::unique_ptr<NcclCommunicator> NcclCommunicator::split(int color, int key, Deadline deadline) {
  select(device_);
  ncclConfig_t config = never_blocking();
  const ncclResult_t result = unless_aborted(
      [&] { return nccl().CommSplit(comm_, color < 0 ? NCCL_SPLIT_NOCOLOR : color, key, &part_, &config); });
  // NCCL (2.28, init.cc) returns ncclSuccess at once. Its own thread writes the part, before this one is ready again.
  check(result == ncclSuccess ? ncclInProgress : result, "ncclCommSplit", deadline);
  if (color < 0) return nullptr;
  std::unique_ptr<NcclCommunicator> part(new NcclCommunicator(device_, std::exchange(part_, nullptr)));
  part->check(ncclInProgress, "ncclCommSplit", deadline);
  return part;
}

namespace {

/// All calls of `body` as one of NCCL's.
ncclResult_t grouped(auto size, auto body) {
  nccl().GroupStart();
  for (decltype(size) i = 0; i < size; ++i)
    if (const ncclResult_t result = body(i); result != ncclSuccess && result != ncclInProgress) {
      nccl().GroupEnd();
      return result;
    }
  return nccl().GroupEnd();
}

struct Place {
  int rank = 0, size = 1;
};
Place place_in(ncclComm_t comm) {
  Place place;
  nccl().CommUserRank(comm, &place.rank);
  nccl().CommCount(comm, &place.size);
  return place;
}

/// Collectives that NCCL 2.18 lacks: a message for each pair of ranks, and a rank's to itself.
ncclResult_t exchange(const Collective& c, ncclComm_t comm, cudaStream_t stream) {
  const auto [rank, size] = place_in(comm);
  const ncclDataType_t type = type_of(c.tensor().dtype());
  const auto at = [&](const Tensor& tensor, size_t element) {
    return static_cast<std::byte*>(tensor.raw_data()) + element * size_of(tensor.dtype());
  };
  const bool gathers = c.kind == CollectiveKind::all_gather || c.kind == CollectiveKind::gather;
  const bool all = c.kind == CollectiveKind::all_to_all, scatters = c.kind == CollectiveKind::scatter;
  const auto count = static_cast<size_t>((gathers ? c.input : c.output).numel() / (all ? size : 1));
  return grouped(size, [&, rank = rank](int r) {
    const PartRange whole{0, count}, out = scatters ? whole : part_range(c.parts, count, r);
    const PartRange in = gathers ? whole : part_range(all ? c.input_parts : c.parts, count, r);
    const bool sends = in.end > in.begin && (!c.has_root() || c.peer == (scatters ? rank : r));
    const bool receives = out.end > out.begin && (!c.has_root() || c.peer == (scatters ? r : rank));
    if (sends && receives && r == rank && at(c.input, in.begin) == at(c.output, out.begin)) return ncclSuccess;
    ncclResult_t result = ncclSuccess;
    if (sends) result = nccl().Send(at(c.input, in.begin), in.end - in.begin, type, r, comm, stream);
    if (receives && (result == ncclSuccess || result == ncclInProgress))
      result = nccl().Recv(at(c.output, out.begin), out.end - out.begin, type, r, comm, stream);
    return result;
  });
}

/// reduce_scatter with parts of different sizes.
ncclResult_t reduce_parts(const Collective& c, ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
  const auto [rank, size] = place_in(comm);
  return grouped(size, [&, rank = rank](int r) {
    const PartRange part = part_range(c.parts, 0, r);
    std::byte* const in = static_cast<std::byte*>(c.input.raw_data()) + part.begin * size_of(c.input.dtype());
    return nccl().Reduce(in, r == rank ? c.output.raw_data() : in, part.end - part.begin, type_of(c.input.dtype()), op,
                         r, comm, stream);
  });
}

}  // namespace

ncclResult_t NcclCommunicator::enqueue(const Collective& c, ncclRedOp_t op, cudaStream_t stream) {
  if (c.kind > CollectiveKind::reduce || (c.kind == CollectiveKind::all_gather && !c.parts.empty()))
    return exchange(c, comm_, stream);
  if (!c.parts.empty()) return reduce_parts(c, op, comm_, stream);
  void* const out = c.output.raw_data();
  const ncclDataType_t type = type_of(c.output.dtype());
  const auto count = static_cast<size_t>((c.kind == CollectiveKind::all_gather ? c.input : c.output).numel());
  switch (c.kind) {
    case CollectiveKind::reduce:
      return nccl().Reduce(out, out, count, type, op, c.peer, comm_, stream);
    case CollectiveKind::all_reduce:
      return nccl().AllReduce(out, out, count, type, op, comm_, stream);
    case CollectiveKind::broadcast:
      return nccl().Broadcast(out, out, count, type, c.peer, comm_, stream);
    case CollectiveKind::all_gather:
      return nccl().AllGather(c.input.raw_data(), out, count, type, comm_, stream);
    case CollectiveKind::reduce_scatter:
      return nccl().ReduceScatter(c.input.raw_data(), out, count, type, op, comm_, stream);
    case CollectiveKind::send:
      return nccl().Send(out, count, type, c.peer, comm_, stream);
    case CollectiveKind::receive:
      return nccl().Recv(out, count, type, c.peer, comm_, stream);
    default:
      break;
  }
  return ncclInvalidUsage;
}

ncclResult_t NcclCommunicator::enqueue_all(const std::vector<Call>& calls, void* stream) {
  const auto one = [&](size_t i) {
    const Collective& c = calls[i].collective;
    return enqueue(c, calls[i].factor.defined() ? ops_[i] : op_of(c.op), static_cast<cudaStream_t>(stream));
  };
  return calls.size() == 1 ? one(0) : grouped(calls.size(), one);
}

void NcclCommunicator::start(const std::vector<Call>& calls, void* stream, Deadline deadline) {
  select(device_);
  ops_.assign(calls.size(), ncclNumOps);
  for (size_t i = 0; i < calls.size(); ++i) {
    const Tensor& factor = calls[i].factor;
    if (!factor.defined()) continue;
    const ncclDataType_t type = type_of(factor.dtype());
    check(unless_aborted(
              [&] { return nccl().RedOpCreatePreMulSum(&ops_[i], factor.raw_data(), type, ncclScalarDevice, comm_); }),
          "ncclRedOpCreatePreMulSum", deadline);
  }
  at_ = name(calls.front().collective.kind);
  const ncclResult_t result = unless_aborted([&] { return enqueue_all(calls, stream); });
  if (result != ncclInProgress) check(result, at_, deadline);
}

void NcclCommunicator::finish(Deadline deadline) {
  check(ncclInProgress, at_, deadline);
  for (const ncclRedOp_t op : std::exchange(ops_, {}))
    if (op != ncclNumOps)
      check(unless_aborted([&] { return nccl().RedOpDestroy(op, comm_); }), "ncclRedOpDestroy", deadline);
}

bool NcclCommunicator::is_ready() {
  const std::lock_guard lock(mutex_);
  ncclResult_t result = ncclSuccess;
  if (!aborted_ && nccl().CommGetAsyncError(comm_, &result) != ncclSuccess) return true;
  return result != ncclInProgress;
}

void NcclCommunicator::abort() {
  const std::lock_guard lock(mutex_);
  if (aborted_.exchange(true) || !comm_) return;
  try_to_select(device_);
  nccl().CommAbort(comm_);
  nccl().CommAbort(part_);
}

std::string NcclCommunicator::asynchronous_error() {
  const std::lock_guard lock(mutex_);
  if (aborted_ || !comm_) return {};
  try_to_select(device_);
  ncclResult_t result = ncclSuccess;
  const ncclResult_t asked = nccl().CommGetAsyncError(comm_, &result);
  if (asked != ncclSuccess) result = asked;
  if (result == ncclSuccess || result == ncclInProgress) return {};
  return str(nccl().GetErrorString(result), ". ", nccl().GetLastError(comm_));
}

}  // namespace weft::dist
