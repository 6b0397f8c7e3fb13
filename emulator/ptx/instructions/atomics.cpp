// SPDX-License-Identifier: Apache-2.0
// atom and red. Global memory belongs to all OS threads, so the host's atomic instructions do the work; shared memory
// is its block's thread's own.
#include <algorithm>
#include <atomic>
#include <mutex>

#include "emulator/ptx/check/standstill.h"
#include "emulator/ptx/instructions/memory_transfer.h"
#include "emulator/ptx/instructions/numbers.h"

namespace emulator::ptx {

namespace {

/// The inputs of an operation. `flushes`: f32 sums in global memory have no subnormals (PTX ISA 9.0, "atom").
template <class Word>
struct Inputs {
  Word old, b, c;
  bool flushes;
};

struct Exchange {
  template <class W>
  static W apply(const Inputs<W>& in) {
    return in.b;
  }
};
struct CompareExchange {
  template <class W>
  static W apply(const Inputs<W>& in) {
    return in.old == in.b ? in.c : in.old;
  }
};
struct Add {
  template <class W>
  static W apply(const Inputs<W>& in) {
    return in.old + in.b;
  }
};
struct And {
  template <class W>
  static W apply(const Inputs<W>& in) {
    return in.old & in.b;
  }
};
struct Or {
  template <class W>
  static W apply(const Inputs<W>& in) {
    return in.old | in.b;
  }
};
struct Xor {
  template <class W>
  static W apply(const Inputs<W>& in) {
    return in.old ^ in.b;
  }
};
struct Increment {
  template <class W>
  static W apply(const Inputs<W>& in) {
    return in.old >= in.b ? 0 : in.old + 1;
  }
};
struct Decrement {
  template <class W>
  static W apply(const Inputs<W>& in) {
    return in.old == 0 || in.old > in.b ? in.b : in.old - 1;
  }
};
template <bool Signed, bool Greater>
struct Extreme {
  template <class W>
  static W apply(const Inputs<W>& in) {
    using T = std::conditional_t<Signed, std::make_signed_t<W>, W>;
    const T x = static_cast<T>(in.old), y = static_cast<T>(in.b);
    return static_cast<W>(Greater ? std::max(x, y) : std::min(x, y));
  }
};
struct AddF32 {
  static uint32_t apply(const Inputs<uint32_t>& in) {
    const float x = f32_of(in.old), y = f32_of(in.b);
    return bits_of(canonical(in.flushes ? flushed(flushed(x) + flushed(y)) : x + y));
  }
};
struct AddF64 {
  static uint64_t apply(const Inputs<uint64_t>& in) { return bits_of(f64_of(in.old) + f64_of(in.b)); }
};

enum class HalfOp : uint8_t { add, min, max };
/// The sum of two halves is exact in f32 or rounds there without harm: f32 has more than twice their bits.
template <HalfOp Op, bool Brain>
uint32_t half_result(uint32_t x, uint32_t y) {
  const float a = Brain ? f32_of_bf16(x) : f32_of_f16(x), b = Brain ? f32_of_bf16(y) : f32_of_f16(y);
  if constexpr (Op == HalfOp::add) return Brain ? bf16_of_f32(a + b) : f16_of_f32(a + b);
  if (a != a) return b != b ? kNanHalf : y;
  if (b != b) return x;
  const bool x_is_less = a < b || (a == b && (x & 0x8000) != 0);
  return x_is_less == (Op == HalfOp::min) ? x : y;
}
/// One half, or the two of a word.
template <HalfOp Op, bool Brain>
struct Half {
  template <class W>
  static W apply(const Inputs<W>& in) {
    uint32_t r = half_result<Op, Brain>(in.old & 0xffff, in.b & 0xffff);
    if constexpr (sizeof(W) == 4) r |= half_result<Op, Brain>(in.old >> 16, in.b >> 16) << 16;
    return static_cast<W>(r);
  }
};

/// Stores the new value and returns the old one. `shared`: no other OS thread sees it.
template <class F, class W>
W update(char* at, W b, W c, bool shared) {
  W* const place = reinterpret_cast<W*>(at);
  if (shared) {
    const W old = *place;
    *place = F::apply(Inputs<W>{old, b, c, false});
    return old;
  }
  if constexpr (std::is_same_v<F, Exchange>) return __atomic_exchange_n(place, b, __ATOMIC_SEQ_CST);
  if constexpr (std::is_same_v<F, Add>) return __atomic_fetch_add(place, b, __ATOMIC_SEQ_CST);
  W old = __atomic_load_n(place, __ATOMIC_RELAXED);
  for (;;) {
    const W next = F::apply(Inputs<W>{old, b, c, true});
    if (next == old && !std::is_same_v<F, CompareExchange>) {
      std::atomic_thread_fence(std::memory_order_seq_cst);
      return old;
    }
    if (__atomic_compare_exchange_n(place, &old, next, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)) return old;
  }
}

struct AtomicForm : AccessForm {
  Ref b[8] = {}, c = kNoRef;
  bool returns = false;
};

bool is_shared(const Warp& w, const AccessForm& form, const char* at) {
  return form.space == Space::shared || (at >= w.block->shared && at < w.block->shared + w.block->shared_end);
}

template <class F, class W>
const Instruction* atomic(Warp& w, const Instruction* i) {
  const AtomicForm& form = *static_cast<const AtomicForm*>(i->more);
  const uint32_t lanes = w.lanes(i);
  if (lanes == 0) return i + 1;
  char* at[kLanes];
  locate_quickly(w, i, form, lanes, true, true, at);
  for (uint32_t left = lanes; left != 0; left &= left - 1) {
    const int lane = std::countr_zero(left);
    const bool shared = is_shared(w, form, at[lane]);
    for (int e = 0; e < form.count; ++e) {
      const W b = static_cast<W>(w.in<Stored<W>>(form.b[e])[lane]);
      const W c = form.c == kNoRef ? W{} : static_cast<W>(w.in<Stored<W>>(form.c)[lane]);
      char* const place = at[lane] + static_cast<size_t>(e) * sizeof(W);
      const W old = update<F, W>(place, b, c, shared);
      w.changed = w.changed || __atomic_load_n(reinterpret_cast<const W*>(place), __ATOMIC_RELAXED) != old;
      if (form.registers[e] != kNoRef) w.out<Stored<W>>(form.registers[e])[lane] = old;
    }
  }
  w.spins = w.spins || form.returns;
  if (form.returns && w.block->grid->suspected) note_spin(w, lanes, at);
  return i + 1;
}

/// 16 bytes at once, where the host can.
bool compare_exchange(Wide* place, Wide* expected, Wide next) {
#if defined(__GCC_HAVE_SYNC_COMPARE_AND_SWAP_16)
  __extension__ typedef unsigned __int128 Word;
  const Word wanted = std::bit_cast<Word>(*expected);
  const Word found = __sync_val_compare_and_swap(reinterpret_cast<Word*>(place), wanted, std::bit_cast<Word>(next));
  *expected = std::bit_cast<Wide>(found);
  return found == wanted;
#else
  // Kernels' accesses of 16 bytes that are atomic all come through here.
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  if (place->low != expected->low || place->high != expected->high) return *expected = *place, false;
  *place = next;
  return true;
#endif
}

template <bool Compares>
const Instruction* atomic_wide(Warp& w, const Instruction* i) {
  const AtomicForm& form = *static_cast<const AtomicForm*>(i->more);
  const uint32_t lanes = w.lanes(i);
  char* at[kLanes];
  locate_quickly(w, i, form, lanes, true, true, at);
  for (uint32_t left = lanes; left != 0; left &= left - 1) {
    const int lane = std::countr_zero(left);
    Wide* const place = reinterpret_cast<Wide*>(at[lane]);
    const Wide b = w.in<Wide>(form.b[0])[lane];
    Wide old = b;
    if constexpr (Compares) {
      compare_exchange(place, &old, w.in<Wide>(form.c)[lane]);
    } else {
      while (!compare_exchange(place, &old, b)) {
      }
    }
    if (form.registers[0] != kNoRef) w.out<Wide>(form.registers[0])[lane] = old;
  }
  w.spins = w.changed = true;
  return i + 1;
}

template <class F>
Handler by_width(int bytes) {
  return bytes == 4 ? atomic<F, uint32_t> : bytes == 8 ? atomic<F, uint64_t> : nullptr;
}

template <HalfOp Op>
Handler for_half(Type type) {
  switch (type) {
    case Type::f16:
      return atomic<Half<Op, false>, uint16_t>;
    case Type::f16x2:
      return atomic<Half<Op, false>, uint32_t>;
    case Type::bf16:
      return atomic<Half<Op, true>, uint16_t>;
    case Type::bf16x2:
      return atomic<Half<Op, true>, uint32_t>;
    default:
      return nullptr;
  }
}

template <bool Greater>
Handler extreme(Type type) {
  switch (type) {
    case Type::u32:
      return atomic<Extreme<false, Greater>, uint32_t>;
    case Type::s32:
      return atomic<Extreme<true, Greater>, uint32_t>;
    case Type::u64:
      return atomic<Extreme<false, Greater>, uint64_t>;
    case Type::s64:
      return atomic<Extreme<true, Greater>, uint64_t>;
    default:
      return for_half < Greater ? HalfOp::max : HalfOp::min > (type);
  }
}

/// nullptr for what PTX does not have.
Handler handler(std::string_view op, Type type) {
  const int bytes = bytes_of(type);
  const bool integer = !is_float(type);
  if (op == "add") {
    if (type == Type::f32) return atomic<AddF32, uint32_t>;
    if (type == Type::f64) return atomic<AddF64, uint64_t>;
    return is_float(type) ? for_half<HalfOp::add>(type) : by_width<Add>(bytes);
  }
  if (op == "min") return extreme<false>(type);
  if (op == "max") return extreme<true>(type);
  if (op == "inc") return type == Type::u32 ? atomic<Increment, uint32_t> : nullptr;
  if (op == "dec") return type == Type::u32 ? atomic<Decrement, uint32_t> : nullptr;
  if (!integer) return nullptr;
  if (op == "and") return by_width<And>(bytes);
  if (op == "or") return by_width<Or>(bytes);
  if (op == "xor") return by_width<Xor>(bytes);
  if (op == "exch") return bytes == 16 ? atomic_wide<false> : by_width<Exchange>(bytes);
  if (op == "cas") {
    if (bytes == 2) return atomic<CompareExchange, uint16_t>;
    return bytes == 16 ? atomic_wide<true> : by_width<CompareExchange>(bytes);
  }
  return nullptr;
}

bool is_operation(std::string_view mod) {
  static constexpr std::string_view kOperations[] = {"add", "min", "max", "inc",  "dec",
                                                     "and", "or",  "xor", "exch", "cas"};
  return std::ranges::find(kOperations, mod) != std::end(kOperations);
}

void take_elements(Lowering& l, const Operand& operand, AtomicForm& form, bool written) {
  const bool is_vector = operand.kind == Operand::Kind::vector;
  if ((is_vector ? operand.parts.size() : 1) != form.count) l.unknown("the vector has another number of elements");
  for (size_t e = 0; e < form.count; ++e) {
    const Operand& part = is_vector ? operand.parts[e] : operand;
    if (part.kind == Operand::Kind::reg && std::max(4, l.register_bytes(part)) != std::max<int>(4, form.bytes))
      l.unknown("a register of another width");
    (written ? form.registers : form.b)[e] = written ? l.destination(part) : l.source(part, form.type);
  }
}

void lower_atomic(Lowering& l) {
  AtomicForm form;
  std::string_view op;
  for (const std::string_view mod : l.mods()) {
    if (take_modifier(mod, form) || mod == "noftz") continue;
    if (mod == "v2" || mod == "v4" || mod == "v8")
      form.count = static_cast<uint8_t>(mod[1] - '0');
    else if (const Type type = type_of(mod); type != Type::none && form.type == Type::none)
      form.type = type;
    else if (is_operation(mod) && op.empty())
      op = mod;
    else
      l.unknown(cat("modifier .", mod));
  }
  if (form.space != Space::generic && form.space != Space::global && form.space != Space::shared)
    l.unknown("atomics are of global and shared memory");
  if (form.order == Order::weak) form.order = Order::relaxed;
  if (form.scope == Scope::none) form.scope = Scope::gpu;
  const Handler run = handler(op, form.type);
  if (!run) l.unknown();
  form.bytes = static_cast<uint8_t>(bytes_of(form.type));
  if (form.bytes * form.count > 16) l.unknown("more than 16 bytes");
  if (form.count > 1 && !is_float(form.type)) l.unknown("vectors are of floats");

  form.returns = l.op() == "atom";
  std::ranges::fill(form.registers, kNoRef);
  size_t n = 0;
  if (form.returns) take_elements(l, l.operand(n++), form, true);
  const size_t address = n++;
  take_elements(l, l.operand(n++), form, false);
  form.replaces = op == "exch";
  if (op == "cas") form.c = l.source(l.operand(n++), form.type);
  expect_policy(l, n);
  take_address(l, l.operand(address), form);
  Instruction& i = l.emit(run, form.registers[0], form.base, form.b[0], form.c);
  i.imm = static_cast<uint64_t>(form.offset);
  i.more = l.keep(form);
}

constexpr Opcode kOpcodes[] = {{"atom", lower_atomic}, {"red", lower_atomic, Roles::all_read}};

}  // namespace

Family atomic_family() { return {kOpcodes, std::size(kOpcodes)}; }

}  // namespace emulator::ptx
