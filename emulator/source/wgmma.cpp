// SPDX-License-Identifier: Apache-2.0
#include "emulator/source/wgmma.h"

#include <algorithm>
#include <cstring>

#include "emulator/machine/fault.h"
#include "emulator/ptx/matrix_numbers.h"
#include "emulator/source/check.h"
#include "emulator/source/hopper_block.h"
#include "emulator/source/ptx.h"
#include "emulator/source/report.h"
#include "emulator/source/wgmma_multiply.h"
#include "emulator/source/worker.h"

namespace emulator::source {

namespace {

constexpr int kRows = 64, kDepth = 16;  // in positions of two bytes: of tf32 8, of one byte 32

/// Thread t holds d[4 j + 2 i .. +1] = (16 (t / 32) + t % 32 / 4 + 8 i, 8 j + 2 (t % 4) .. +1).
template <class Visit>
void for_each_pair(int thread, int n, Visit&& visit) {
  const int row = thread / 32 * 16 + thread % 32 / 4, column = thread % 4 * 2;
  for (int j = 0; j < n / 8; ++j)
    for (int i = 0; i < 2; ++i) visit(4 * j + 2 * i, (row + 8 * i) * n + 8 * j + column);
}

Warpgroup& warpgroup_of(Worker& worker, const char* what, SourceLine where) {
  const int thread = worker.current(), group = thread / Warpgroup::kThreads;
  if ((group + 1) * Warpgroup::kThreads > worker.threads_count())
    worker.report().fail([&] {
      return cat(what, " at ", where, ": a warpgroup is 128 threads; thread ", thread, " of ", worker.threads_count(),
                 " is in none");
    });
  return worker.hopper().warpgroups[static_cast<size_t>(group)];
}

/// The depth of a position in elements.
int depth_of(WgmmaType type, int position) {
  if (type == WgmmaType::tf32) return position / 2;
  return type == WgmmaType::e4m3 || type == WgmmaType::e5m2 ? position * 2 : position;
}

/// Where the 8 elements (16 bytes) lie that begin at (row, depth): 8 of depth or, `along_rows`, 8 rows. Elements of
/// four bytes lie as two of two, those of one two in one.
uint32_t run_of(const MatrixDescriptor& matrix, int row, int depth, bool along_rows) {
  const uint32_t r = static_cast<uint32_t>(row), k = static_cast<uint32_t>(depth);
  return along_rows ? matrix.along_lines(r, k) : matrix.along_depth(r, 2 * k);
}

}  // namespace

void Warpgroup::reset() {
  ops_.clear();
  groups_.clear();
  sums_.clear();
  first_ = 0;
  issued_.fill(0);
  committed_.fill(0);
  fenced_.fill(false);
  ever_fenced_.fill(false);
  waiting_ = 0;
}

void Warpgroup::fence(int thread) {
  const size_t t = static_cast<size_t>(thread % kThreads);
  fenced_[t] = ever_fenced_[t] = true;
}

int Warpgroup::find_sums(Worker& worker, size_t thread, const WgmmaCall& call, SourceLine where) {
  constexpr size_t kMost = 16;
  int unused = -1;
  for (size_t i = 0; i < sums_.size(); ++i) {
    const Sums& sums = sums_[i];
    if (sums.d[thread] == call.d && sums.n == call.n) return static_cast<int>(i);
    if (sums.unfinished == 0) {
      unused = static_cast<int>(i);
    } else if (sums.d[thread] && call.d < sums.d[thread] + sums.n / 2 && sums.d[thread] < call.d + call.n / 2) {
      worker.report().fail([&] {
        return cat("wgmma at ", where, ": its sums overlap those of the wgmma of another shape at ", sums.last,
                   ", which was not waited for");
      });
    }
  }
  if (sums_.size() < kMost) {  // rather than one whose last values say whether the thread changed them
    unused = static_cast<int>(sums_.size());
    sums_.emplace_back();
  }
  if (unused < 0)
    worker.report().fail([&] { return cat("wgmma at ", where, ": more than ", kMost, " different sums under way"); });
  Sums& sums = sums_[static_cast<size_t>(unused)];
  sums.n = call.n;
  sums.d.fill(nullptr);
  sums.held.fill(false);
  sums.values.assign(static_cast<size_t>(kRows * call.n), 0.0f);
  return unused;
}

/// Registers become the emulator's for as long as wgmmas work on them.
void Warpgroup::take_sums(Worker& worker, Sums& sums, size_t thread, const WgmmaCall& call, SourceLine where) {
  const bool known = sums.d[thread] == call.d;
  bool touched = false;
  for_each_pair(static_cast<int>(thread), call.n, [&](int i, int at) {
    float* const values = sums.values.data() + at;
    touched = touched || (known && std::memcmp(values, call.d + i, 2 * sizeof(float)) != 0);
    std::memcpy(values, call.d + i, 2 * sizeof(float));
  });
  if (touched && !fenced_[thread])
    worker.report().fail([&] {
      return cat("wgmma at ", where,
                 ": its sums were changed since the last wgmma_wait: wgmma_fence() must come between");
    });
  sums.d[thread] = call.d;
  sums.held[thread] = true;
  std::memset(call.d, 0xff, static_cast<size_t>(call.n) / 2 * sizeof(float));
}

/// Returns an operand's address; checks that all of it is in the block's shared memory.
void Warpgroup::check_operand(Worker& worker, const Op& op, size_t number, bool is_a) const {
  const MatrixDescriptor matrix = MatrixDescriptor::decode(is_a ? op.call.a : op.call.b);
  const bool along_rows = is_a ? op.call.a_along_rows : op.call.b_along_rows;
  const char* const name = is_a ? "a" : "b";
  if (matrix.swizzle != SwizzleMode::none) {
    const uint32_t bytes = static_cast<uint32_t>(swizzle_bytes(matrix.swizzle));
    if (!matrix.begins_in_pattern() || matrix.start % 128 >= bytes)
      worker.report().fail([&] {
        return cat("wgmma at ", op.where, ": operand ", name, " begins at ", worker.describe_operand(matrix.start),
                   ", not in the first line of the pattern of a ", bytes,
                   "-byte swizzle, which begins at multiples of ", swizzle_pattern(matrix.swizzle));
      });
  }
  const int rows = is_a ? kRows : op.call.n;
  for (int i = 0; i < rows * kDepth / 8; ++i) {
    const int row = along_rows ? i / kDepth * 8 : i / 2, depth = along_rows ? i % kDepth : i % 2 * 8;
    const uintptr_t offset = run_of(matrix, row, depth, along_rows);
    if (!worker.is_operand(offset))
      worker.report().fail([&] {
        return cat("wgmma at ", op.where, ": operand ", name, " at row ", row, ", depth ",
                   depth_of(op.call.type, depth), " reads ", worker.describe_operand(offset),
                   ", beyond the block's dynamic shared memory");
      });
    check_wgmma_read(number, reinterpret_cast<const void*>(worker.dynamic_shared_arena() + offset), op.where);
  }
}

void Warpgroup::issue(Worker& worker, const WgmmaCall& call, SourceLine where) {
  const size_t t = static_cast<size_t>(worker.current() % kThreads);
  if (!ever_fenced_[t] || (call.a_registers && !fenced_[t]))
    worker.report().fail([&] {
      return cat("wgmma at ", where,
                 ": wgmma_fence() must come before a warpgroup's first wgmma, and between what "
                 "writes registers and the wgmma that reads them");
    });
  const size_t number = issued_[t]++;
  if (number - first_ == ops_.size()) {
    Op& op = ops_.emplace_back();
    op.call = call;
    op.where = where;
    op.sums = find_sums(worker, t, call, where);
    ++sums_[static_cast<size_t>(op.sums)].unfinished;
  }
  Op& op = ops_[number - first_];
  const WgmmaCall& other = op.call;
  if (where.line != op.where.line || call.n != other.n || call.type != other.type ||
      (call.a_registers == nullptr) != (other.a_registers == nullptr))
    worker.report().fail([&] {
      return cat("divergent wgmma: it runs the one at ", where, ", others of its warpgroup that at ", op.where);
    });
  if (call.a != other.a || call.b != other.b || call.accumulate != other.accumulate)
    worker.report().fail([&] {
      return cat("wgmma at ", where,
                 ": descriptors and `accumulate` are those of the warpgroup, but this thread's differ "
                 "from those of others");
    });
  Sums& sums = sums_[static_cast<size_t>(op.sums)];
  if (!sums.held[t])
    take_sums(worker, sums, t, call, where);
  else if (sums.d[t] != call.d)
    worker.report().fail([&] {
      return cat("wgmma at ", where, ": others of its warpgroup go on with the sums of the wgmma at ", sums.last);
    });
  if (call.a_registers) std::memcpy(op.a[t].data(), call.a_registers, sizeof(op.a[t]));
  sums.last = where;
  if (++op.threads < kThreads) return;
  if (!call.a_registers) check_operand(worker, op, number, true);
  check_operand(worker, op, number, false);
  if (worker.chance(2)) run_until(worker, number + 1);  // the hardware may be as fast as that
}

void Warpgroup::commit(Worker& worker, SourceLine where) {
  const size_t t = static_cast<size_t>(worker.current() % kThreads);
  const size_t group = committed_[t]++;
  if (group == groups_.size())
    groups_.push_back(issued_[t]);
  else if (groups_[group] != issued_[t])
    worker.report().fail([&] {
      return cat("wgmma_commit at ", where, ": this thread has issued ", issued_[t], " wgmmas, others ",
                 groups_[group]);
    });
}

void Warpgroup::run(Worker& worker, Op& op) {
  const WgmmaCall& call = op.call;
  Sums& sums = sums_[static_cast<size_t>(op.sums)];
  const char* const shared = reinterpret_cast<const char*>(worker.dynamic_shared_arena());
  const auto number = [&](uint16_t bits) {
    return call.type == WgmmaType::bf16 ? ptx::matrix::Bf16::number(bits) : ptx::matrix::F16::number(bits);
  };
  // Both with depth as the slow index.
  static thread_local float a[2 * kDepth * kRows], b[2 * kDepth * 256];  // too large for a thread's stack
  const auto load_tf32 = [&](uint64_t descriptor, int rows, float* to) {
    const MatrixDescriptor matrix = MatrixDescriptor::decode(descriptor);
    for (int row = 0; row < rows; ++row)
      for (int depth = 0; depth < kDepth; depth += 8) {
        uint32_t run[4];
        std::memcpy(run, shared + run_of(matrix, row, depth, false), sizeof(run));
        for (int k = 0; k < 4; ++k) to[(depth / 2 + k) * rows + row] = from_tf32(run[k]);
      }
  };
  const auto load_fp8 = [&](uint64_t descriptor, int rows, float* to, auto&& number_of) {
    const MatrixDescriptor matrix = MatrixDescriptor::decode(descriptor);
    for (int row = 0; row < rows; ++row)
      for (int depth = 0; depth < kDepth; depth += 8) {
        uint8_t run[16];
        std::memcpy(run, shared + run_of(matrix, row, depth, false), sizeof(run));
        for (int k = 0; k < 16; ++k) to[(depth * 2 + k) * rows + row] = number_of(run[k]);
      }
  };
  const auto load = [&](uint64_t descriptor, bool along_rows, int rows, float* to) {
    if (call.type == WgmmaType::tf32) return load_tf32(descriptor, rows, to);
    if (call.type == WgmmaType::e5m2 && to == a) return load_fp8(descriptor, rows, to, ptx::matrix::E5m2::number);
    if (call.type == WgmmaType::e4m3 || call.type == WgmmaType::e5m2)
      return load_fp8(descriptor, rows, to, ptx::matrix::E4m3::number);
    const MatrixDescriptor matrix = MatrixDescriptor::decode(descriptor);
    for (int i = 0; i < rows * kDepth / 8; ++i) {
      const int row = along_rows ? i / kDepth * 8 : i / 2, depth = along_rows ? i % kDepth : i % 2 * 8;
      uint16_t run[8];
      std::memcpy(run, shared + run_of(matrix, row, depth, along_rows), sizeof(run));
      for (int k = 0; k < 8; ++k) to[along_rows ? depth * rows + row + k : (depth + k) * rows + row] = number(run[k]);
    }
  };
  if (call.a_registers) {
    for (int t = 0; t < kThreads; ++t)
      for (int r = 0; r < 4; ++r)
        for (int i = 0; i < 2; ++i) {
          const int row = t / 32 * 16 + t % 32 / 4 + r % 2 * 8, depth = t % 4 * 2 + r / 2 * 8 + i;
          const uint32_t word = op.a[static_cast<size_t>(t)][static_cast<size_t>(r)];
          a[depth * kRows + row] = number(static_cast<uint16_t>(word >> (16 * i)));
        }
  } else {
    load(call.a, call.a_along_rows, kRows, a);
  }
  load(call.b, call.b_along_rows, call.n, b);
  if (!call.accumulate) std::fill(sums.values.begin(), sums.values.end(), 0.0f);
  multiply_add(sums.values.data(), a, b, kRows, call.n, depth_of(call.type, kDepth));
  op.done = true;
}

void Warpgroup::run_until(Worker& worker, size_t end) {
  for (size_t i = first_; i < end; ++i)
    if (Op& op = ops_[i - first_]; !op.done) run(worker, op);
}

void Warpgroup::deliver(Worker& worker, Sums& sums, SourceLine where) {
  for (int t = 0; t < kThreads; ++t) {
    float* const d = sums.d[static_cast<size_t>(t)];
    for_each_pair(t, sums.n, [&](int i, int at) {
      constexpr uint64_t kUntouched = ~uint64_t{0};
      if (std::memcmp(d + i, &kUntouched, sizeof(kUntouched)) != 0)
        worker.report().fail_for(worker.current() / kThreads * kThreads + t, [&] {
          return cat("the sums of the wgmma at ", sums.last, " were written before the wgmma_wait at ", where);
        });
      std::memcpy(d + i, sums.values.data() + at, sizeof(kUntouched));
    });
  }
  sums.held.fill(false);
}

void Warpgroup::wait(Worker& worker, int pending, SourceLine where) {
  const size_t t = static_cast<size_t>(worker.current() % kThreads);
  const int first_thread = worker.current() / kThreads * kThreads;
  if (waiting_ && (wait_pending_ != pending || wait_at_.line != where.line))
    worker.report().fail(
        [&] { return cat("divergent wgmma_wait: it waits at ", where, ", others of its warpgroup at ", wait_at_); });
  wait_pending_ = pending;
  wait_at_ = where;
  fenced_[t] = false;
  if (++waiting_ < kThreads) {
    worker.block("wgmma_wait", this, where);
    return;
  }
  waiting_ = 0;
  for (size_t i = 0; i < kThreads; ++i)
    if (committed_[i] != groups_.size() || issued_[i] != issued_[t])
      worker.report().fail([&] {
        return cat("wgmma_wait at ", where, ": thread ", first_thread + static_cast<int>(i), " has issued ", issued_[i],
                   " wgmmas in ", committed_[i], " groups, thread ", worker.current(), " ", issued_[t], " in ",
                   committed_[t]);
      });
  const size_t finished = groups_.size() - std::min(groups_.size(), static_cast<size_t>(pending));
  const size_t end = finished ? groups_[finished - 1] : 0;
  if (end > first_) {
    run_until(worker, end);
    for (; first_ < end; ++first_) {
      --sums_[static_cast<size_t>(ops_.front().sums)].unfinished;
      ops_.pop_front();
    }
    for (Sums& sums : sums_)
      if (sums.unfinished == 0 && sums.held[t]) deliver(worker, sums, where);
  }
  check_warpgroup_done(first_thread / kThreads, first_);
  for (int i = 0; i < kThreads; ++i) worker.wake(first_thread + i);
}

const SourceLine* Warpgroup::unfinished(int thread) const {
  const size_t t = static_cast<size_t>(thread % kThreads);
  return issued_[t] > first_ ? &ops_.front().where : nullptr;
}

uint64_t wgmma_descriptor(const void* tile, int swizzle, uint32_t leading, uint32_t stride, SourceLine where) {
  Worker& worker = *Worker::running();
  const uintptr_t offset = reinterpret_cast<uintptr_t>(tile) - worker.dynamic_shared_arena();
  if (!worker.in_dynamic_shared_arena(reinterpret_cast<uintptr_t>(tile)) || offset % 16)
    worker.report().fail([&] {
      return cat("wgmma_descriptor at ", where, ": ", worker.describe_shared(tile),
                 " is not a multiple of 16 in dynamic shared memory, where the emulator wants wgmma's operands");
    });
  if (leading % 16 || stride % 16 || leading >> 18 || stride >> 18)
    worker.report().fail([&] {
      return cat("wgmma_descriptor at ", where, ": offsets ", leading, " and ", stride,
                 " are not multiples of 16 below 2^18");
    });
  return uint64_t{offset >> 4} | uint64_t{leading >> 4} << 16 | uint64_t{stride >> 4} << 32 |
         static_cast<uint64_t>(swizzle) << 62;
}

void wgmma_fence(SourceLine where) {
  Worker& worker = *Worker::running();
  warpgroup_of(worker, "wgmma_fence", where).fence(worker.current());
}
void wgmma_commit(SourceLine where) {
  Worker& worker = *Worker::running();
  warpgroup_of(worker, "wgmma_commit", where).commit(worker, where);
}
void wgmma_wait(int pending, SourceLine where) {
  Worker& worker = *Worker::running();
  warpgroup_of(worker, "wgmma_wait", where).wait(worker, pending, where);
}
void wgmma(const WgmmaCall& call, SourceLine where) {
  Worker& worker = *Worker::running();
  warpgroup_of(worker, "wgmma", where).issue(worker, call, where);
}

}  // namespace emulator::source
