// SPDX-License-Identifier: Apache-2.0
#include "emulator/nccl/call.h"

#include <functional>

#include "emulator/machine/fault.h"
#include "emulator/nccl/group.h"

// CUDA 12.8's: an older runtime has none.
extern "C" cudaError_t cudaStreamGetDevice(cudaStream_t stream, int* device) __attribute__((weak));

namespace emulator::nccl {
namespace {

/// Ends the communicator: the others would wait for this rank's operation.
[[noreturn]] void misuse(Communicator& c, const std::string& text) {
  c.fail(ncclInvalidUsage, text);
  throw Failure{ncclInvalidUsage, text, true};
}

void require_argument(bool right, const std::string& text) {
  if (!right) throw Failure{ncclInvalidArgument, text};
}

const char* kind_of(cudaMemoryType type) {
  return type == cudaMemoryTypeUnregistered ? "host memory that CUDA does not know" : "no memory that CUDA knows";
}

/// Pinned host memory passes: devices read and write it.
void require_buffer(Communicator& c, const std::string& what, const char* side, const void* buffer, size_t bytes) {
  if (bytes == 0) return;
  const auto complain = [&](const auto&... problem) {
    misuse(c, cat(what, ": rank ", c.rank(), "'s ", side, " buffer ", buffer, " of ", bytes, " bytes ", problem...));
  };
  const auto* const first = static_cast<const std::byte*>(buffer);
  for (const std::byte* p : {first, first + bytes - 1}) {
    cudaPointerAttributes attributes{};
    attributes.type = cudaMemoryTypeUnregistered;
    if (cudaPointerGetAttributes(&attributes, p) != cudaSuccess) cudaGetLastError();
    const bool known = attributes.type == cudaMemoryTypeDevice || attributes.type == cudaMemoryTypeManaged ||
                       attributes.type == cudaMemoryTypeHost;
    if (!known && p == first) complain("is no device memory: it is ", kind_of(attributes.type));
    if (!known) complain("goes beyond device memory: its end is ", kind_of(attributes.type));
    if (attributes.type == cudaMemoryTypeDevice && attributes.device != c.device())
      complain("lies on device ", attributes.device, ", the communicator on device ", c.device());
  }
}

bool overlap(const std::byte* a, size_t a_bytes, const std::byte* b, size_t b_bytes) {
  const std::less<const std::byte*> before;
  return a_bytes != 0 && b_bytes != 0 && before(a, b + b_bytes) && before(b, a + a_bytes);
}

void require_buffers(Communicator& c, const Collective& call) {
  const Descriptor& what = call.what;
  const Kind kind = what.kind;
  const auto [send, recv] = buffer_sizes(what, c.rank(), c.size());
  const std::string text = what.text();
  require_buffer(c, text, "send", call.send, send);
  require_buffer(c, text, "receive", call.recv, recv);
  if (!overlap(call.send, send, call.recv, recv)) return;
  const size_t own = what.bytes() * static_cast<size_t>(c.rank());
  const bool in_place = kind == Kind::all_gather || kind == Kind::gather        ? call.send == call.recv + own
                        : kind == Kind::reduce_scatter || kind == Kind::scatter ? call.recv == call.send + own
                        : kind == Kind::all_to_all ? c.size() == 1 && call.send == call.recv
                                                   : call.send == call.recv;
  if (!in_place)
    misuse(c, cat(text, ": rank ", c.rank(), "'s send buffer ", static_cast<const void*>(call.send),
                  " and receive buffer ", static_cast<const void*>(call.recv),
                  " overlap, other than in the in-place form of nccl.h"));
}

/// Whether the stream is being captured.
bool examine_stream(Communicator& c, const std::string& what, cudaStream_t stream) {
  int device = c.device(), current = c.device();
  const bool is_default = stream == nullptr || stream == cudaStreamLegacy || stream == cudaStreamPerThread;
  cudaError_t code = cudaSuccess;
  if (!is_default && cudaStreamGetDevice) code = cudaStreamGetDevice(stream, &device);
  // In a group a thread may speak for several devices, with a default stream of each.
  if (is_default && !in_group()) code = cudaGetDevice(&device);
  if (code == cudaSuccess && device != c.device())
    misuse(c, cat(what, ": rank ", c.rank(), "'s communicator is on device ", c.device(), ", its stream on device ",
                  device));
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  if (code == cudaSuccess && is_default) code = cudaGetDevice(&current);
  if (code == cudaSuccess && current != c.device()) code = cudaSetDevice(c.device());
  if (code == cudaSuccess) code = cudaStreamIsCapturing(stream, &status);
  if (current != c.device()) cudaSetDevice(current);
  if (code == cudaSuccess && status == cudaStreamCaptureStatusInvalidated) code = cudaErrorStreamCaptureInvalidated;
  if (code != cudaSuccess) throw Failure{ncclUnhandledCudaError, cat(what, ": the stream: ", cudaGetErrorString(code))};
  return status == cudaStreamCaptureStatusActive;
}

}  // namespace

void require_factor(Communicator& c, const void* factor, size_t bytes) {
  require_buffer(c, "ncclRedOpCreatePreMulSum", "factor", factor, bytes);
}

ncclResult_t call_collective(const CommunicatorPtr& c, Collective call, cudaStream_t stream) {
  c->require_ready();
  Descriptor& what = call.what;
  const bool rooted = what.kind == Kind::reduce || what.kind == Kind::broadcast || what.kind == Kind::gather ||
                      what.kind == Kind::scatter;
  require_argument(!rooted || (what.root >= 0 && what.root < c->size()),
                   cat(name_of(what.kind), ": root ", what.root, " of ", c->size(), " ranks"));
  const size_t unit = size_of(what.dtype()) * static_cast<size_t>(c->size());
  require_argument(what.count <= PTRDIFF_MAX / unit, cat(name_of(what.kind), " of ", what.count, " elements"));
  what.captured = examine_stream(*c, what.text(), stream);
  require_buffers(*c, call);
  call.number = c->record_call(what);
  return what.count != 0 ? add_to_group(c, call, stream) : ncclSuccess;
}

ncclResult_t call_transfer(const CommunicatorPtr& c, Transfer transfer, cudaStream_t stream) {
  c->require_ready();
  require_argument(transfer.type < ncclNumTypes && transfer.type >= 0,
                   cat("data type ", static_cast<int>(transfer.type)));
  require_argument(transfer.peer >= 0 && transfer.peer < c->size(),
                   cat(transfer.text(), ", but there are ", c->size(), " ranks"));
  require_argument(transfer.count <= PTRDIFF_MAX / size_of(transfer.type), transfer.text());
  transfer.captured = examine_stream(*c, transfer.text(), stream);
  require_buffer(*c, transfer.text(), transfer.sends ? "send" : "receive", transfer.buffer, transfer.bytes());
  if (transfer.peer == c->rank() && !in_group())
    misuse(*c, cat(transfer.text(), ": a rank sends to itself only by a send and a receive in one group"));
  transfer.number = c->number_transfer(transfer);
  return add_to_group(c, transfer, stream);
}

uint64_t Communicator::record_call(const Descriptor& what) {
  const auto s = segment();
  if (!s) throw Failure{ncclInvalidArgument, "the communicator was destroyed"};
  const uint64_t number = s->slot(rank_).calls.load() + 1;
  CallRecord& mine = s->call(rank_, number);
  mine.number.store(0);
  mine.word.store(what.word());
  mine.count.store(what.count);
  mine.number.store(number);
  s->slot(rank_).calls.store(number);
  // Both ranks write first and read then, so at least one of them sees the difference. A record that has been
  // overwritten is no loss: operations compare again when they run.
  for (int r = 0; r < size_; ++r) {
    const CallRecord& record = s->call(r, number);
    if (r == rank_ || record.number.load() != number) continue;
    const Descriptor other = Descriptor::of(record.word.load(), record.count.load());
    if (record.number.load() != number || other == what) continue;
    const bool first = rank_ < r;
    misuse(*this, cat("collective #", number, ": rank ", first ? rank_ : r, " calls ", (first ? what : other).text(),
                      ", rank ", first ? r : rank_, ' ', (first ? other : what).text()));
  }
  return number;
}

uint64_t Communicator::number_transfer(const Transfer& transfer) {
  const size_t line = static_cast<size_t>(transfer.captured) * 2 + static_cast<size_t>(transfer.sends);
  const std::lock_guard lock(mutex_);
  return ++transfers_[line * static_cast<size_t>(size_) + static_cast<size_t>(transfer.peer)];
}

}  // namespace emulator::nccl
