// SPDX-License-Identifier: Apache-2.0
// wmma.load, wmma.store, wmma.mma. PTX leaves the fragments open; here they equal mma.sync's. So element e of an
// accumulator is element e of every other of its shape, for f16 and f32. A fragment with more registers
// than elements (f16) holds its elements several times, as on the hardware.
#include "emulator/ptx/instructions/access.h"
#include "emulator/ptx/matrix/matrix_layout.h"
#include "emulator/ptx/matrix/matrix_numbers.h"

namespace emulator::ptx::matrix {

namespace {

constexpr int kLine = 8;
constexpr int kQuarter = 4;  // lanes of a line

struct Fragment {
  Addresses address;
  Where where = Where::generic;
  Ref stride = kNoRef;  ///< elements, lanes of 4 bytes; kNoRef: `lines` or `depth` as they lie densely
  uint32_t dense = 0;
  int lines = 0, depth = 0;
  int count = 0, needed = 0;  ///< registers, and those that differ
  uint32_t bytes = 0;         ///< per element; integers below 8 bits: of a byte of them
  uint32_t packed = 1;        ///< integers in a byte
  bool along_lines = false;   ///< lines run fastest in memory
  Registers registers;
};

bool is_shared(const Warp& w, const char* memory) {
  return memory >= w.block->shared && memory < w.block->shared + w.block->shared_end;
}

/// Where element `e` of the lane's part of register `r` lies: (line, depth).
struct Element {
  int line, depth;
};

/// Operands: a register holds some neighbours along the depth.
Element operand_element(const Fragment& f, int r, int lane, int e) {
  const int blocks = f.lines / kLine, each = f.bytes == 8 ? 1 : 4 / static_cast<int>(f.bytes);
  r %= f.needed;
  return {r % blocks * kLine + lane / kQuarter, r / blocks * each * kQuarter + lane % kQuarter * each + e};
}

/// Sums: see matrix_layout.h. In each block the lines are rows.
Element sum_element(const Fragment& f, int r, int lane, int e) {
  const int blocks = f.lines / kLine, block = f.bytes == 2 ? r : r / 2, odd = f.bytes == 2 ? e : r % 2;
  return {block % blocks * kLine + lane / kQuarter, block / blocks * kLine + lane % kQuarter * 2 + odd};
}

template <bool kLoad, bool kSums>
const Instruction* move(Warp& w, const Instruction* i) {
  const Instruction* next = nullptr;
  if (!whole_warp(w, i, kLoad ? "wmma.load" : "wmma.store", next)) return next;
  const auto& f = *static_cast<const Fragment*>(i->more);
  const uint32_t word = f.bytes == 8 ? 8 : 4;
  const int each = kSums && f.bytes != 2 ? 1 : static_cast<int>(word / f.bytes);
  alignas(64) char words[kMostRegisters * kLanes * sizeof(double)];  // the address may be in a register that is written
  const size_t register_bytes = size_t{word} * kLanes;
  for (int r = 0; r < f.count; ++r) {
    char* const lanes = words + static_cast<size_t>(r) * register_bytes;
    char* places[8][kLanes];  // indexed by element
    if (!kLoad) std::memcpy(lanes, w.in<char>(f.registers[static_cast<size_t>(r)]), register_bytes);
    for (int lane = 0; lane < kLanes; ++lane) {
      const uint64_t begin = f.address.at(w, lane);
      const uint64_t stride = f.stride == kNoRef ? f.dense : w.in<uint32_t>(f.stride)[lane] / f.packed;
      for (int e = 0; e < each; ++e) {
        const auto [line, depth] = kSums ? sum_element(f, r, lane, e) : operand_element(f, r, lane, e);
        const uint64_t fast = static_cast<uint64_t>(f.along_lines ? line : depth);
        const uint64_t slow = static_cast<uint64_t>(f.along_lines ? depth : line);
        char* const memory = resolve(w, i, lane, f.where, begin + (slow * stride + fast) * f.bytes, f.bytes, !kLoad);
        places[e][lane] = memory;
        char* const element = lanes + static_cast<uint32_t>(lane) * word + static_cast<uint32_t>(e) * f.bytes;
        if (kLoad)
          std::memcpy(element, memory, f.bytes);
        else
          std::memcpy(memory, element, f.bytes);
      }
    }
    if (checked(w)) [[unlikely]]
      for (int e = 0; e < each; ++e)
        note_access(w, i, {is_shared(w, places[e][0]) ? Space::shared : Space::global, Order::weak, Scope::none, !kLoad, false,
                           kAllLanes, f.bytes, places[e]});
  }
  if (kLoad)
    for (int r = 0; r < f.count; ++r)
      if (const Ref to = f.registers[static_cast<size_t>(r)]; to != kNoRef)
        std::memcpy(w.out<char>(to), words + static_cast<size_t>(r) * register_bytes, register_bytes);
  return i + 1;
}

bool is_shape(const Shape& s, Type type) {
  if (type == Type::f64) return s == Shape{8, 8, 4};
  if (type == Type::tf32) return s == Shape{16, 16, 8};
  if (type == Type::s4 || type == Type::u4) return s == Shape{8, 8, 32};
  if (type == Type::b1) return s == Shape{8, 8, 128};
  return s.k == 16 && ((s.m == 16 && s.n == 16) || (s.m == 32 && s.n == 8) || (s.m == 8 && s.n == 32));
}

uint32_t packed_in_byte(Type type) { return type == Type::b1 ? 8 : type == Type::s4 || type == Type::u4 ? 2 : 1; }

uint32_t element_bytes(Type type) {
  if (type == Type::tf32) return 4;
  return packed_in_byte(type) > 1 ? 1 : static_cast<uint32_t>(bytes_of(type));
}

/// wmma.load.a.sync.aligned.row.m16n16k16.shared.f16, wmma.store.d…
struct Form {
  char matrix = 0;
  bool row = false;
  Shape shape;
  Type type = Type::none;
};
/// Whether operands of another type have sums of this shape.
bool is_shape_of_sums(const Form& form) {
  if (form.type == Type::f32) return is_shape(form.shape, Type::tf32);
  return form.type == Type::s32 && (is_shape(form.shape, Type::s4) || is_shape(form.shape, Type::b1));
}

Form read_form(Lowering& l) {
  Form form;
  bool col = false;
  for (const std::string_view mod : l.mods()) {
    if (mod == "a" || mod == "b" || mod == "c" || mod == "d")
      form.matrix = mod[0];
    else if (mod == "row")
      form.row = true;
    else if (mod == "col")
      col = true;
    else if (type_of(mod) != Type::none)
      form.type = type_of(mod);
    else if (!read_shape(mod, form.shape) && mod != "sync" && mod != "aligned" && mod != "shared" && mod != "global" &&
             mod != "shared::cta" && mod != "load" && mod != "store")
      l.unknown(cat('.', mod));
  }
  if (form.row == col || !form.matrix || form.type == Type::none) l.unknown();
  return form;
}

Fragment read_fragment(Lowering& l, const Form& form, size_t registers_at, size_t address_at, bool load) {
  Fragment f;
  const bool sums = form.matrix == 'c' || form.matrix == 'd';
  f.where = read_where(l);
  f.bytes = element_bytes(form.type);
  f.lines = form.matrix == 'b' ? form.shape.n : form.shape.m;
  f.packed = packed_in_byte(form.type);
  f.depth = sums ? form.shape.n : form.shape.k / static_cast<int>(f.packed);
  // b's lines are columns: they run fastest where b lies by rows.
  f.along_lines = form.row == (form.matrix == 'b');
  if (f.packed > 1 && f.along_lines) l.unknown("this order of integers below 8 bits");
  f.dense = static_cast<uint32_t>(f.along_lines ? f.lines : f.depth);
  f.address = read_addresses(l, l.operand(address_at));
  if (l.operands() > 2) f.stride = l.source(l.operand(2), Type::u32);
  const Type word = form.type == Type::f64 ? Type::f64 : Type::b32;
  f.count = read_registers(l, l.operand(registers_at), word, load, f.registers);
  f.needed =
      sums ? sum_registers(form.shape.m, form.shape.n, form.type) : operand_registers(f.lines, form.shape.k, form.type);
  const bool repeated = !sums && form.type == Type::f16 && f.count % f.needed == 0;
  if (f.count != f.needed && !repeated) l.unknown("the number of registers");
  return f;
}

}  // namespace

void lower_wmma_load(Lowering& l) {
  const Form form = read_form(l);
  const bool sums = form.matrix == 'c';
  if (form.matrix == 'd') l.unknown();
  const bool known =
      sums ? form.type == Type::f16 || form.type == Type::f32 || form.type == Type::s32 || form.type == Type::f64
           : multiply_handler(form.type, form.type) && form.type != Type::e4m3 && form.type != Type::e5m2;
  if (!known || !(is_shape(form.shape, form.type) || (sums && is_shape_of_sums(form))))
    l.unknown("no such fragment here");
  const Fragment f = read_fragment(l, form, 0, 1, true);
  l.emit(sums ? move<true, true> : move<true, false>).more = l.keep(f);
}

void lower_wmma_store(Lowering& l) {
  const Form form = read_form(l);
  const bool known =
      form.type == Type::f16 || form.type == Type::f32 || form.type == Type::s32 || form.type == Type::f64;
  if (form.matrix != 'd' || !known || !(is_shape(form.shape, form.type) || is_shape_of_sums(form)))
    l.unknown("no such fragment here");
  l.emit(move<false, true>).more = l.keep(read_fragment(l, form, 1, 0, false));
}

void lower_wmma_mma(Lowering& l) {
  Multiply m;
  int types = 0;
  for (const std::string_view mod : l.mods()) {
    if (mod == "satfinite")
      m.saturate = true;
    else if (type_of(mod) != Type::none)
      ++types;
    else if (!read_shape(mod, m.shape) && mod != "xor" && mod != "and" && mod != "popc" && mod != "sync" &&
             mod != "aligned" && mod != "row" && mod != "col" && mod != "rn" && mod != "mma")
      l.unknown(cat('.', mod));
  }
  // f16 names only the accumulators' types: .dtype.ctype.
  const bool f16 = types == 2;
  if (!f16 && types != 4) l.unknown();
  const Type a = f16 ? Type::f16 : l.type(1), b = f16 ? Type::f16 : l.type(2);
  m.d_type = l.type(0);
  m.c_type = l.type(f16 ? 1 : 3);
  const Handler handler = a == b ? multiply_handler(a, b) : nullptr;
  read_bit_operation(l, m, a);
  if (!handler || a == Type::e4m3 || a == Type::e5m2 || !is_shape(m.shape, a)) l.unknown("no such wmma here");
  const auto is_sum = [&](Type sum) {
    if (a == Type::f16) return sum == Type::f16 || sum == Type::f32;
    return sum == (a == Type::f64 ? Type::f64 : is_integer(a) || a == Type::b1 ? Type::s32 : Type::f32);
  };
  if (!is_sum(m.d_type) || !is_sum(m.c_type) || (m.saturate && !is_integer(a)))
    l.unknown("the type of the sums");
  const auto sum_word = [](Type type) { return type == Type::f16 ? Type::b32 : type; };
  const Type word = a == Type::f64 ? Type::f64 : Type::b32;
  const auto fits = [&](int count, int lines) {
    const int needed = operand_registers(lines, m.shape.k, a);
    return count == needed || (a == Type::f16 && count % needed == 0);
  };
  const bool right =
      read_registers(l, l.operand(0), sum_word(m.d_type), true, m.d) == sum_registers(m.shape.m, m.shape.n, m.d_type) &&
      fits(read_registers(l, l.operand(1), word, false, m.a), m.shape.m) &&
      fits(read_registers(l, l.operand(2), word, false, m.b), m.shape.n) &&
      read_registers(l, l.operand(3), sum_word(m.c_type), false, m.c) == sum_registers(m.shape.m, m.shape.n, m.c_type);
  if (!right) l.unknown("the number of registers");
  l.emit(handler).more = l.keep(m);
}

}  // namespace emulator::ptx::matrix
