// SPDX-License-Identifier: Apache-2.0
// wgmma. Products and sums are f32 (of fp8 too, where the hardware keeps fewer bits), those of integers are exact; sums
// of f16 are rounded after each instruction.
#include "emulator/ptx/matrix/wgmma.h"

#include <algorithm>

#include "emulator/machine/per_thread.h"
#include "emulator/ptx/check/checker.h"
#include "emulator/ptx/time/time_count.h"

namespace emulator::ptx::matrix {

namespace {

constexpr int kWarps = 4;  // per warpgroup
constexpr int kRows = 64, kMostColumns = 256, kDepthBytes = 32, kRun = 16;
constexpr uint32_t kPoison = ~0u;

/// Register q of sums holds, for lane 4 g + p: row g + 8 (q / 2 % 2), column 8 (q / 4) + 2 p + q % 2. An f16 register
/// holds two of these.
int sum_place(int q, int lane) { return (q / 4 * 8 + lane % 4 * 2 + q % 2) * kWarpRows + lane / 4 + q / 2 % 2 * 8; }

void words_of(const Wgmma& form, const float* values, size_t r, uint32_t* words) {
  if (form.d_type == Type::f16) {
    const int q = static_cast<int>(r) * 2;
    for (int lane = 0; lane < kLanes; ++lane)
      words[lane] = F16::bits(values[sum_place(q, lane)]) | uint32_t{F16::bits(values[sum_place(q + 1, lane)])} << 16;
    return;
  }
  for (int lane = 0; lane < kLanes; ++lane)
    words[lane] = std::bit_cast<uint32_t>(values[sum_place(static_cast<int>(r), lane)]);
}

void values_of(const Wgmma& form, const uint32_t* words, size_t r, float* values) {
  if (form.d_type == Type::f16) {
    const int q = static_cast<int>(r) * 2;
    for (int lane = 0; lane < kLanes; ++lane) {
      values[sum_place(q, lane)] = F16::number(static_cast<uint16_t>(words[lane]));
      values[sum_place(q + 1, lane)] = F16::number(static_cast<uint16_t>(words[lane] >> 16));
    }
    return;
  }
  for (int lane = 0; lane < kLanes; ++lane)
    values[sum_place(static_cast<int>(r), lane)] = std::bit_cast<float>(words[lane]);
}

template <class E>
void convert(const char* from, typename E::Number* to) {
  constexpr int kElements = kRun / static_cast<int>(sizeof(typename E::Bits));
  typename E::Bits bits[kElements];
  std::memcpy(bits, from, sizeof(bits));
  for (int e = 0; e < kElements; ++e) to[e] = E::number(bits[e]);
}

/// An operand's runs of 16 bytes, first to last: visit(address, line, depth in bytes).
template <class Visit>
void for_each_run(const MatrixDescriptor& matrix, int first_line, int lines, bool along_lines, Visit&& visit) {
  const uint32_t first = static_cast<uint32_t>(first_line), end = first + static_cast<uint32_t>(lines);
  if (along_lines) {
    for (uint32_t depth = 0; depth < kDepthBytes / 2; ++depth)
      for (uint32_t line = first; line < end; line += 8) visit(matrix.along_lines(line, depth), line, depth);
    return;
  }
  for (uint32_t line = first; line < end; ++line)
    for (uint32_t depth = 0; depth < kDepthBytes; depth += kRun) visit(matrix.along_depth(line, depth), line, depth);
}

/// The largest range of an operand: [first, end). A swizzle moves bytes within their 128.
struct Extent {
  uint32_t first, end;
};
Extent extent_of(const MatrixDescriptor& matrix, int first_line, int lines, bool along_lines) {
  const uint32_t first = static_cast<uint32_t>(first_line), last = first + static_cast<uint32_t>(lines) - 1;
  if (matrix.swizzle == SwizzleMode::none)
    return {matrix.start, matrix.start + 7 * 16 + matrix.leading + last / 8 * matrix.stride + kRun};
  const uint32_t bytes = static_cast<uint32_t>(swizzle_bytes(matrix.swizzle));
  const uint32_t most = along_lines ? bytes + last * 2 / bytes * matrix.leading + 7 * bytes + matrix.stride
                                    : kDepthBytes + 7 * bytes + last / 8 * matrix.stride;
  return {matrix.start / 128 * 128, (matrix.start + most + 127) / 128 * 128};
}

/// Checks that the operand is in the block's shared memory, aligned for its swizzle.
void check_operand(Warp& w, const Instruction* i, uint64_t bits, int first_line, int lines, bool along_lines,
                   const char* name) {
  const MatrixDescriptor matrix = MatrixDescriptor::decode(bits);
  // With a base offset of 0 the swizzle goes by addresses, as TMA's does, so that any line may be the first.
  if (matrix.base_offset != 0 && !matrix.begins_in_pattern())
    w.fail(i, 0, FaultCode::launch_failure,
           cat("wgmma: operand ", name, " begins at shared address ", matrix.start,
               ", not in the first line of the pattern of a ", swizzle_bytes(matrix.swizzle),
               "-byte swizzle, which begins at multiples of ", swizzle_pattern(matrix.swizzle),
               ", and its descriptor's base offset ", matrix.base_offset, " does not say so"));
  if (const Extent extent = extent_of(matrix, first_line, lines, along_lines);
      extent.first >= kSharedBase && extent.end <= w.block->shared_end)
    return;
  uint32_t least = ~0u, most = 0;
  for_each_run(matrix, first_line, lines, along_lines, [&](uint32_t address, uint32_t, uint32_t) {
    least = std::min(least, address);
    most = std::max(most, address);
  });
  if (least < kSharedBase || most + kRun > w.block->shared_end)
    w.fail(i, 0, FaultCode::illegal_address,
           cat("wgmma: operand ", name, " reaches from shared address ", least, " to ", most + kRun, ", the block has ",
               kSharedBase, " to ", w.block->shared_end));
}

uint64_t same_in_all_lanes(Warp& w, const Instruction* i, Ref ref, const char* name) {
  const uint64_t* const bits = w.in<uint64_t>(ref);
  uint64_t differ = 0;
  for (int lane = 1; lane < kLanes; ++lane) differ |= bits[lane] ^ bits[0];
  if (differ)
    w.fail(i, 0, FaultCode::launch_failure, cat("wgmma: the descriptor of ", name, " is not the same in all lanes"));
  return bits[0];
}

int first_row(const Warp& w) { return static_cast<int>(w.index % kWarps) * kWarpRows; }

}  // namespace

size_t WarpMatrices::find_sums(Warp& w, const Instruction* i, const Wgmma& form) {
  for (size_t k = 0; k < sums_.size(); ++k)
    if (sums_[k].form == &form || (sums_[k].form->d_type == form.d_type && sums_[k].form->d == form.d)) return k;
  for (const Sums& other : sums_)
    if (other.held && std::ranges::find_first_of(other.form->d, form.d) != other.form->d.end())
      w.fail(i, 0, FaultCode::launch_failure,
             "wgmma: some registers of its sums belong to a wgmma of another shape that was not waited for");
  Sums& sums = sums_.emplace_back();
  sums.form = &form;
  sums.values = std::make_unique<float[]>(static_cast<size_t>(form.shape.n) * kWarpRows);
  return sums_.size() - 1;
}

/// Registers become the emulator's for as long as wgmmas work on them.
void WarpMatrices::take(Warp& w, const Instruction* i, Sums& sums, bool values) {
  const Wgmma& form = *sums.form;
  for (size_t r = 0; r < form.d.size(); ++r) {
    uint32_t* const lanes = w.out<uint32_t>(form.d[r]);
    if (!fenced_ && sums.known) {
      uint32_t words[kLanes];
      words_of(form, sums.values.get(), r, words);
      if (std::memcmp(words, lanes, sizeof(words)) != 0)
        w.fail(i, 0, FaultCode::launch_failure,
               "wgmma: its sums were changed since the last wgmma.wait_group: wgmma.fence must come between");
    }
    if (values) values_of(form, lanes, r, sums.values.get());
    std::fill_n(lanes, kLanes, kPoison);
  }
  sums.held = true;
}

void WarpMatrices::deliver(Warp& w, const Instruction* i, Sums& sums) {
  const Wgmma& form = *sums.form;
  for (size_t r = 0; r < form.d.size(); ++r) {
    uint32_t* const lanes = w.out<uint32_t>(form.d[r]);
    uint32_t touched = 0;
    for (int lane = 0; lane < kLanes; ++lane) touched |= lanes[lane] ^ kPoison;
    if (touched)
      w.fail(i, 0, FaultCode::launch_failure,
             cat("wgmma: register ", r, " of the sums of the wgmma issued last to them was written before the wait"));
    words_of(form, sums.values.get(), r, lanes);
  }
  sums.held = false;
  sums.known = true;
}

void WarpMatrices::tell_checks(Warp& w, const Instruction* i, const Wgmma& form, const Op& op) const {
  BlockChecks* const checks = race_checks_of(*w.block);
  if (!checks) return;
  const auto gather = [&](uint64_t bits, int first_line, int lines, bool along_lines) {
    std::vector<BlockChecks::Run> runs;
    for_each_run(MatrixDescriptor::decode(bits), first_line, lines, along_lines, [&](uint32_t address, uint32_t, uint32_t) {
      const char* const memory = w.block->shared + address;
      if (!runs.empty() && runs.back().memory + runs.back().bytes == memory)
        runs.back().bytes += kRun;
      else if (!runs.empty() && memory + kRun == runs.back().memory)
        runs.back() = {memory, runs.back().bytes + kRun};
      else
        runs.push_back({memory, kRun});
    });
    return runs;
  };
  const size_t count = issued() - 1;
  const bool is_first = checks->wgmma_issued(w, count);
  std::vector<BlockChecks::Run> a, b;
  if (!form.a_from_registers) a = gather(op.a, first_row(w), kWarpRows, form.a_along_lines);
  if (is_first) b = gather(op.b, 0, form.shape.n, form.b_along_lines);
  checks->wgmma_read({w, 0, checks->site(i), "wgmma"}, count, a, b);
}

void WarpMatrices::issue(Warp& w, const Instruction* i, const Wgmma& form) {
  if (!ever_fenced_ || (form.a_from_registers && !fenced_))
    w.fail(i, 0, FaultCode::launch_failure,
           "wgmma: wgmma.fence must come before a warp's first wgmma, and between what writes registers and the wgmma "
           "that reads them");
  Op& op = ops_.emplace_back();
  op.form = &form;
  op.at = i;
  op.accumulate = form.always;
  if (form.accumulate != kNoRef) {
    const uint32_t p = w.predicate(form.accumulate, form.accumulate_negated);
    if (p != 0 && p != ~0u) w.fail(i, 0, FaultCode::launch_failure, "wgmma: scale-d is not the same in all lanes");
    op.accumulate = p != 0;
  }
  op.a = 0;
  if (form.a_from_registers) {
    for (size_t r = 0; r < 4; ++r)
      std::memcpy(op.a_registers[r].data(), w.in<uint32_t>(form.a_registers[r]), sizeof(op.a_registers[r]));
  } else {
    op.a = same_in_all_lanes(w, i, form.a, "a");
    check_operand(w, i, op.a, first_row(w), kWarpRows, form.a_along_lines, "a");
  }
  op.b = same_in_all_lanes(w, i, form.b, "b");
  check_operand(w, i, op.b, 0, form.shape.n, form.b_along_lines, "b");
  tell_checks(w, i, form, op);
  op.sums = find_sums(w, i, form);
  Sums& sums = sums_[op.sums];
  if (!sums.held) take(w, i, sums, op.accumulate);
  ++sums.unfinished;
  constexpr uint32_t kChance = 4;  // the hardware may be done at once
  if (w.block->cluster->random_order() && w.block->cluster->choose(kChance) == 0)
    for (Op& earlier : ops_) run(w, earlier, nullptr);
}

/// The second matrix of a product as numbers, and which four columns are zeros.
template <class N, int kDepth>
struct LoadedB {
  alignas(64) N numbers[kDepth * kMostColumns];
  bool zeros[kMostColumns / kColumns];
  int zero_fours;
};
struct IntegerProducts {
  alignas(64) int32_t sums[kWarpRows * kMostColumns];
};

template <class A, class B>
void WarpMatrices::run_as(Warp& w, Op& op, Loaded* loaded) {
  using N = typename A::Number;
  const Wgmma& form = *op.form;
  constexpr int kElements = kRun / static_cast<int>(sizeof(typename A::Bits)), kDepth = 2 * kElements;
  const int n = form.shape.n;
  const char* const shared = w.block->shared;
  alignas(64) N a[kDepth * kWarpRows];
  auto& [b, zeros, zero_fours] = per_thread<LoadedB<N, kDepth>>();

  if (form.a_from_registers) {
    for (int r = 0; r < 4; ++r)
      for (int row = 0; row < 8; ++row) {
        N line[kElements];
        convert<A>(reinterpret_cast<const char*>(op.a_registers[static_cast<size_t>(r)].data()) + row * kRun, line);
        for (int e = 0; e < kElements; ++e) a[(r / 2 * kElements + e) * kWarpRows + r % 2 * 8 + row] = line[e];
      }
  } else {
    const uint32_t first = static_cast<uint32_t>(first_row(w));
    for_each_run(MatrixDescriptor::decode(op.a), first_row(w), kWarpRows, form.a_along_lines,
                 [&](uint32_t address, uint32_t line, uint32_t depth) {
                   if (form.a_along_lines) return convert<A>(shared + address, a + depth * kWarpRows + (line - first));
                   N run[kElements];
                   convert<A>(shared + address, run);
                   for (uint32_t e = 0; e < kElements; ++e)
                     a[(depth / sizeof(typename A::Bits) + e) * kWarpRows + (line - first)] = run[e];
                 });
  }
  if (form.negative)
    for (N& x : a) x = -x;
  if (!loaded || loaded->form != &form || loaded->b != op.b) {
    for_each_run(MatrixDescriptor::decode(op.b), 0, n, form.b_along_lines,
                 [&, to = &b[0]](uint32_t address, uint32_t line, uint32_t depth) {
                   convert<B>(shared + address, form.b_along_lines
                                                    ? to + depth * static_cast<uint32_t>(n) + line
                                                    : to + line * kDepth + depth / sizeof(typename B::Bits));
                 });
    zero_fours =
        form.b_along_lines ? find_zeros<N, true>(b, n, kDepth, zeros) : find_zeros<N, false>(b, n, kDepth, zeros);
  }
  if (loaded) *loaded = {&form, op.b};
  static constexpr bool kNone[kMostColumns / kColumns] = {};
  const bool* const skips = zero_fours > 0 && are_finite(a, kDepth * kWarpRows) ? zeros : kNone;

  float* const values = sums_[op.sums].values.get();
  const size_t count = static_cast<size_t>(n) * kWarpRows;
  const auto multiply = [&, b = &b[0]](N* sums) {
    if (form.b_along_lines)
      multiply_columns<N, true>(sums, a, b, n, kDepth, skips);
    else
      multiply_columns<N, false>(sums, a, b, n, kDepth, skips);
  };
  if constexpr (std::is_same_v<N, int32_t>) {
    int32_t* const products = per_thread<IntegerProducts>().sums;
    std::fill_n(products, count, 0);
    multiply(products);
    for (size_t k = 0; k < count; ++k) {
      const int32_t before = op.accumulate ? std::bit_cast<int32_t>(values[k]) : 0;
      values[k] = std::bit_cast<float>(add_s32(before, products[k], form.saturate));
    }
  } else {
    if (!op.accumulate) std::fill_n(values, count, 0.0f);
    multiply(values);
    if (form.d_type == Type::f16)
      for (size_t k = 0; k < count; ++k) values[k] = F16::number(F16::bits(values[k]));
  }
}

void WarpMatrices::run(Warp& w, Op& op, Loaded* loaded) {
  if (op.done) return;
  op.done = true;
  if (sampled()) {  // zeros, or what the sums were
    if (!op.accumulate)
      std::fill_n(sums_[op.sums].values.get(), static_cast<size_t>(op.form->shape.n) * kWarpRows, 0.0f);
    return;
  }
  const Type a = op.form->a_type, b = op.form->b_type;
  if (a == Type::bf16) return run_as<Bf16, Bf16>(w, op, loaded);
  if (a == Type::f16) return run_as<F16, F16>(w, op, loaded);
  if (a == Type::tf32) return run_as<Tf32, Tf32>(w, op, loaded);
  if (a == Type::e4m3) return b == a ? run_as<E4m3, E4m3>(w, op, loaded) : run_as<E4m3, E5m2>(w, op, loaded);
  if (a == Type::e5m2) return b == a ? run_as<E5m2, E5m2>(w, op, loaded) : run_as<E5m2, E4m3>(w, op, loaded);
  if (a == Type::s8) return b == a ? run_as<S8, S8>(w, op, loaded) : run_as<S8, U8>(w, op, loaded);
  return b == a ? run_as<U8, U8>(w, op, loaded) : run_as<U8, S8>(w, op, loaded);
}

void WarpMatrices::compute(Warp& w, size_t number, Loaded& loaded) {
  if (number >= first_) run(w, ops_[number - first_], &loaded);
}

bool WarpMatrices::holds(Ref sum) const {
  return std::ranges::any_of(sums_, [&](const Sums& sums) {
    return sums.held && std::ranges::find(sums.form->d, sum) != sums.form->d.end();
  });
}

void WarpMatrices::wait(Warp& w, const Instruction* i, size_t pending) {
  fenced_ = false;
  if (groups_.size() > pending) {
    const size_t finished = groups_.size() - pending, end = groups_[finished - 1];
    groups_.erase(groups_.begin(), groups_.begin() + static_cast<std::ptrdiff_t>(finished));
    for (; first_ < end; ++first_) {
      run(w, ops_.front(), nullptr);
      --sums_[ops_.front().sums].unfinished;
      ops_.pop_front();
    }
  }
  for (Sums& sums : sums_)
    if (sums.held && sums.unfinished == 0) deliver(w, i, sums);
}

namespace {

/// For all warps of a block.
struct BlockMatrices {
  std::unique_ptr<WarpMatrices[]> warps;
};

WarpMatrices& matrices_of(Warp& w, const Instruction* i, const char* what) {
  Block& block = *w.block;
  if ((w.index / kWarps + 1) * kWarps * kLanes > block.threads)
    w.fail(i, 0, FaultCode::launch_failure,
           cat(what, ": a warpgroup is 4 whole warps; warp ", w.index, " of a block of ", block.threads,
               " threads is in none"));
  if (!block.hopper) {
    auto matrices = std::make_shared<BlockMatrices>();
    matrices->warps = std::make_unique<WarpMatrices[]>(block.warps.size());
    block.hopper = std::move(matrices);
  }
  return static_cast<BlockMatrices*>(block.hopper.get())->warps[w.index];
}

const Instruction* fence(Warp& w, const Instruction* i) {
  const Instruction* next = nullptr;
  if (!whole_warp(w, i, "wgmma.fence", next)) return next;
  matrices_of(w, i, "wgmma.fence").fence();
  return i + 1;
}

const Instruction* commit(Warp& w, const Instruction* i) {
  const Instruction* next = nullptr;
  if (!whole_warp(w, i, "wgmma.commit_group", next)) return next;
  matrices_of(w, i, "wgmma.commit_group").commit();
  return i + 1;
}

const Instruction* wait(Warp& w, const Instruction* i) {
  const Instruction* next = nullptr;
  if (!whole_warp(w, i, "wgmma.wait_group", next)) return next;
  WarpMatrices& own = matrices_of(w, i, "wgmma.wait_group");
  // A wgmma is its warpgroup's: it is done when all four warps have issued and their rows are computed. Programs
  // rely on that when one warp fills the operands' memory again.
  if (const size_t due = own.due(i->imm); due != 0) {
    const uint32_t first = w.index / kWarps * kWarps;
    WarpMatrices* const all = &own - (w.index - first);
    for (uint32_t k = 0; k < kWarps; ++k)
      if (all[k].issued() < due) return w.poll(i, "wgmma.wait_group");
    size_t number = due;
    for (uint32_t k = 0; k < kWarps; ++k) number = std::min(number, all[k].finished());
    WarpMatrices::Loaded loaded;
    for (; number < due; ++number)
      for (uint32_t k = 0; k < kWarps; ++k) all[k].compute(w.block->warps[first + k], number, loaded);
  }
  own.wait(w, i, i->imm);
  if (BlockChecks* const checks = race_checks_of(*w.block)) checks->wgmma_waited(w, own.finished());
  return i + 1;
}

const Instruction* mma_async(Warp& w, const Instruction* i) {
  const Instruction* next = nullptr;
  if (!whole_warp(w, i, "wgmma.mma_async", next)) return next;
  matrices_of(w, i, "wgmma.mma_async").issue(w, i, *static_cast<const Wgmma*>(i->more));
  return i + 1;
}

void only(Lowering& l, std::string_view name) {
  for (const std::string_view mod : l.mods())
    if (mod != name && mod != "sync" && mod != "aligned") l.unknown(cat('.', mod));
}

void lower_fence(Lowering& l) {
  only(l, "fence");
  l.emit(fence);
}
void lower_commit(Lowering& l) {
  only(l, "commit_group");
  l.emit(commit);
}
void lower_wait(Lowering& l) {
  only(l, "wait_group");
  if (l.operand(0).kind != Operand::Kind::integer) l.unknown();
  l.emit(wait).imm = static_cast<uint64_t>(l.operand(0).value);
}

int immediate(Lowering& l, size_t at, int low, int high) {
  const Operand& operand = l.operand(at);
  if (operand.kind != Operand::Kind::integer || (operand.value != low && operand.value != high))
    l.unknown(cat("operand ", at));
  return static_cast<int>(operand.value);
}

bool is_known(const Wgmma& g) {
  const Type a = g.a_type, b = g.b_type, d = g.d_type;
  const auto fp8 = [](Type t) { return t == Type::e4m3 || t == Type::e5m2; };
  const auto int8 = [](Type t) { return t == Type::s8 || t == Type::u8; };
  if (a == Type::f16 && b == a) return d == Type::f32 || d == Type::f16;
  if ((a == Type::bf16 || a == Type::tf32) && b == a) return d == Type::f32;
  if (fp8(a) && fp8(b)) return d == Type::f32 || d == Type::f16;
  return int8(a) && int8(b) && d == Type::s32;
}

void lower_mma_async(Lowering& l) {
  Wgmma g;
  for (const std::string_view mod : l.mods()) {
    if (mod == "satfinite")
      g.saturate = true;
    else if (!read_shape(mod, g.shape) && mod != "mma_async" && mod != "sync" && mod != "aligned" &&
             type_of(mod) == Type::none)
      l.unknown(cat('.', mod));
  }
  g.d_type = l.type(0);
  g.a_type = l.type(1);
  g.b_type = l.type(2);
  const int bytes = g.a_type == Type::tf32 ? 4 : bytes_of(g.a_type);
  if (!is_known(g) || (g.saturate && !g.integers())) l.unknown("these types");
  if (g.shape.m != kRows || g.shape.n % 8 || g.shape.n > kMostColumns || g.shape.k != kDepthBytes / bytes)
    l.unknown("this shape");

  const Operand& d = l.operand(0);
  const size_t registers = static_cast<size_t>(g.shape.n) / (g.d_type == Type::f16 ? 4 : 2);
  if (d.kind != Operand::Kind::vector || d.parts.size() != registers) l.unknown("the number of registers of d");
  for (const Operand& part : d.parts) g.d.push_back(l.destination(part));
  if (std::ranges::find(g.d, kNoRef) != g.d.end()) l.unknown("a sum that is not kept");

  const Operand& a = l.operand(1);
  g.a_from_registers = a.kind == Operand::Kind::vector;
  if (g.a_from_registers) {
    if (a.parts.size() != g.a_registers.size()) l.unknown("the number of registers of a");
    for (size_t r = 0; r < g.a_registers.size(); ++r) g.a_registers[r] = l.source(a.parts[r], Type::b32);
  } else {
    g.a = l.source(a, Type::b64);
  }
  g.b = l.source(l.operand(2), Type::b64);
  if (l.operand(3).kind == Operand::Kind::integer)
    g.always = l.operand(3).value != 0;
  else
    g.accumulate = l.predicate(l.operand(3), &g.accumulate_negated);

  size_t at = 4;
  if (!g.integers()) {
    const int scale_a = immediate(l, at, -1, 1), scale_b = immediate(l, at + 1, -1, 1);
    g.negative = scale_a != scale_b;
    at += 2;
  }
  if (bytes == 2) {  // others lie along the depth
    if (!g.a_from_registers) g.a_along_lines = immediate(l, at++, 0, 1) != 0;
    g.b_along_lines = immediate(l, at++, 0, 1) != 0;
  }
  if (at != l.operands()) l.unknown("the number of operands");
  l.emit(mma_async).more = l.keep(std::move(g));
}

}  // namespace

void report_unawaited(Warp& w) {
  const auto* const all = static_cast<const BlockMatrices*>(w.block->hopper.get());
  const Instruction* const first = all ? all->warps[w.index].unawaited() : nullptr;
  if (first)
    w.block->checks->report_unawaited({w, 0, w.block->checks->site(first), "wgmma"},
                                      "the warp exits and has not waited for it. Missing: wgmma.wait_group.");
}

bool holds_sums(const Warp& w, Ref sum) {
  const auto* const all = static_cast<const BlockMatrices*>(w.block->hopper.get());
  return all && all->warps[w.index].holds(sum);
}

}  // namespace emulator::ptx::matrix

namespace emulator::ptx {

Family wgmma_family() {
  using namespace matrix;
  static constexpr Opcode kOpcodes[] = {
      {"wgmma.fence", lower_fence, Roles::all_read},
      {"wgmma.commit_group", lower_commit, Roles::all_read},
      {"wgmma.wait_group", lower_wait, Roles::all_read},
      {"wgmma.mma_async", lower_mma_async, Roles::first_updated},
  };
  return {kOpcodes, std::size(kOpcodes)};
}

}  // namespace emulator::ptx
