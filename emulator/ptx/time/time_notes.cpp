// SPDX-License-Identifier: Apache-2.0
#include "emulator/ptx/time/time_notes.h"

#include <algorithm>
#include <charconv>

#include "emulator/ptx/instructions/access.h"
#include "emulator/ptx/matrix/matrix_layout.h"

namespace emulator::ptx {

namespace {

using Kind = TimeNote::Kind;
using time_model::Limit;

bool starts(std::string_view text, std::string_view with) { return text.substr(0, with.size()) == with; }

/// m64n256k16 -> 64 * 256 * 16; 0: none.
double product_of_shape(std::string_view mod, int& m, int& n, int& k) {
  const char* at = mod.data();
  const char* const end = at + mod.size();
  int* const sizes[3] = {&m, &n, &k};
  for (int d = 0; d < 3; ++d) {
    if (at == end || *at != "mnk"[d]) return 0;
    const auto [next, error] = std::from_chars(at + 1, end, *sizes[d]);
    if (error != std::errc{}) return 0;
    at = next;
  }
  return at == end ? double(m) * n * k : 0;
}

void units(TimeNote& n, Limit unit, double issue, double on_unit, double mufu = 0) {
  n.unit = unit;
  n.issue = static_cast<float>(issue);
  n.on_unit = static_cast<float>(on_unit);
  n.mufu = static_cast<float>(mufu);
}

bool is_wide(const Lowering& l) { return bytes_of(l.type(0)) == 8; }
bool is_half(Type t) { return t == Type::f16 || t == Type::bf16 || t == Type::f16x2 || t == Type::bf16x2; }

/// Arithmetic. How many machine instructions of which unit: as cuobjdump shows them for sm_80 to sm_90 (they differ by one
/// here and there). 64-bit integers are pairs of 32-bit ones.
void note_arithmetic(const Lowering& l, TimeNote& n) {
  const std::string_view op = l.op();
  const Type type = l.type(0);
  const double wide = is_wide(l) ? 2 : 1;
  if (op == "mov") {
    const Operand& from = l.operand(1);
    const bool special = from.kind == Operand::Kind::special;
    const bool packs = from.kind == Operand::Kind::vector || l.operand(0).kind == Operand::Kind::vector;
    // S2R; constants and copies go into the operands of others, packing 16-bit halves is a PRMT.
    const bool halves = packs && bytes_of(type) == 4;
    return units(n, Limit::integer, special || halves ? 1 : 0, special || halves ? 1 : 0);
  }
  if (op == "cvta" || op == "mapa" || op == "isspacep") return units(n, Limit::integer, op == "cvta" ? 0 : 1, op == "cvta" ? 0 : 1);
  if (op == "fma" || op == "add" || op == "sub" || op == "mul" || op == "mad" || op == "neg" || op == "abs" || op == "min" || op == "max") {
    if (type == Type::f32) return units(n, Limit::fp32, 1, 1);
    if (type == Type::f32x2) return units(n, Limit::fp32, 2, 2);
    if (type == Type::f64) return units(n, Limit::fp64, 1, 1);
    if (is_half(type)) return units(n, Limit::half, 1, 1);
    if (op == "mul" || op == "mad") {
      if (l.has("wide")) return units(n, Limit::integer, 1, 1);
      if (wide == 2) return units(n, Limit::integer, 4, 4);
      return units(n, Limit::integer, 1, 1);
    }
    return units(n, Limit::integer, wide, wide);
  }
  if (op == "div" || op == "rem") {
    if (type == Type::f32) {
      const bool quick = l.has("approx") || l.has("full");
      return units(n, Limit::fp32, quick ? 4 : 12, quick ? 3 : 10, 1);
    }
    if (type == Type::f64) return units(n, Limit::fp64, 20, 10, 1);
    const double count = wide == 2 ? 70 : 20;
    return units(n, Limit::integer, count, count, 1);
  }
  if (op == "ex2" || op == "lg2" || op == "sin" || op == "cos" || op == "rcp" || op == "rsqrt" || op == "sqrt" || op == "tanh") {
    if (type == Type::f64) return units(n, Limit::fp64, 16, 10, 1);
    if (is_half(type)) return units(n, Limit::half, 2, 0, bytes_of(type) == 4 ? 2 : 1);
    const bool approximate = l.has("approx");
    // Subnormal numbers are scaled into range and back where they are not flushed.
    const double around = !approximate ? 8 : l.has("ftz") || op == "tanh" ? 0 : op == "rcp" || op == "sin" || op == "cos" ? 1 : 2;
    return units(n, Limit::fp32, 1 + around, around, 1);
  }
  if (op == "cvt") {
    const Type from = l.type(1);
    if (type == Type::f64 || from == Type::f64) return units(n, Limit::mufu, 1, 4);
    if (!is_float(type) && !is_float(from)) {
      if (bytes_of(from) >= bytes_of(type) && bytes_of(type) >= 4) return units(n, Limit::integer, 0, 0);
      return units(n, Limit::integer, bytes_of(type) == 8 ? 0.5 : 1, bytes_of(type) == 8 ? 0.5 : 1);
    }
    return units(n, Limit::integer, 1, 1);
  }
  if (op == "setp" || op == "set" || op == "selp" || op == "slct") {
    if (type == Type::f64) return units(n, Limit::fp64, 1, 1);
    return units(n, Limit::integer, wide, wide);
  }
  if (op == "bra" || op == "brx" || op == "ret" || op == "exit" || op == "call" || op == "trap") return units(n, Limit::issue, 1, 0);
  if (op == "shfl") {
    n.unit = Limit::lsu;
    return;
  }
  if (op == "redux") return units(n, Limit::integer, 1, 2);
  if (op == "popc" || op == "clz" || op == "bfind" || op == "brev") return units(n, Limit::mufu, 1, 1);
  if (op == "bfe" || op == "bfi") return units(n, Limit::integer, 2, 2);
  if (op == "fence" || op == "membar" || op == "nanosleep" || op == "griddepcontrol" || op == "setmaxnreg" || op == "elect" ||
      op == "activemask" || op == "vote" || op == "match" || op == "createpolicy" || op == "pmevent")
    return units(n, Limit::issue, 1, 0);
  units(n, Limit::integer, wide, wide);  // logic, shifts, prmt and what else there is
}

/// [address] of an access whose lanes are independent.
void note_address(Lowering& l, size_t operand, Addresses& address) {
  if (l.operand(operand).kind == Operand::Kind::address) address = read_addresses(l, l.operand(operand));
}

Space space_of(const Lowering& l) {
  for (const std::string_view mod : l.mods()) {
    if (mod == "global") return Space::global;
    if (mod == "shared" || starts(mod, "shared::")) return Space::shared;
    if (mod == "local") return Space::local;
    if (mod == "param" || starts(mod, "param::")) return Space::param;
    if (mod == "const") return Space::constant;
  }
  return Space::generic;
}

void note_access(Lowering& l, TimeNote& n) {
  const std::string_view op = l.op();
  n.space = space_of(l);
  if (n.space == Space::param) return units(n, Limit::issue, 0, 0);  // an operand of others, in constant memory
  n.kind = Kind::access;
  n.unit = Limit::lsu;
  n.atomic = op == "atom" || op == "red";
  n.write = op == "st" || n.atomic;
  int count = 1;
  for (const std::string_view mod : l.mods())
    if (mod == "v2" || mod == "v4" || mod == "v8") count = mod[1] - '0';
  // `atom.cas` and the like have a type, too.
  n.bytes = static_cast<uint8_t>(std::min(32, std::max(1, bytes_of(l.type(0))) * count));
  // Shared memory has integers of 32 bits, and any exch and cas.
  n.retried = n.atomic && !l.has("exch") && !l.has("cas") && (is_float(l.type(0)) || bytes_of(l.type(0)) != 4);
  n.bypasses_l1 = n.write || l.has("cg") || l.has("volatile") || l.has("acquire") || l.has("relaxed");
  note_address(l, op == "st" || op == "red" ? 0 : 1, n.address);
}

double flop_of_shape(const Lowering& l, int& m, int& n, int& k) {
  for (const std::string_view mod : l.mods())
    if (const double product = product_of_shape(mod, m, n, k); product > 0) return 2 * product;
  return 0;
}

/// The multiplied type follows the accumulators'; wmma names types other than f16.
Type multiplied_type(const Lowering& l) {
  const Type t = l.type(1);
  return t == Type::f32 || t == Type::none ? Type::f16 : t;
}

double element_bytes(Type t) { return t == Type::tf32 ? 4 : std::max(1, bytes_of(t)); }

void note_matrix(const Lowering& l, TimeNote& n, bool warpgroup) {
  int m = 0, columns = 0, k = 0;
  // mma.sp leaves out half of the products.
  const double flop = flop_of_shape(l, m, columns, k) / (warpgroup ? 4 : matrix::is_sparse(l) ? 2 : 1);
  const Type type = multiplied_type(l);
  n.unit = Limit::tensor;
  if (type == Type::f64)
    n.flop_f64 = static_cast<float>(flop);
  else
    n.flop = static_cast<float>(flop / time_model::tensor_type_rate(element_bytes(type)));
}

}  // namespace

void note_statement(Lowering& l, const Accesses& accesses, const RegisterPlaces& places, size_t statement, size_t first,
                    TimeTable& table) {
  const size_t end = l.kernel().code.size();
  table.notes.resize(end);
  if (first >= end) return;
  TimeNote n;
  n.kind = Kind::plain;
  const std::string_view op = l.op();
  const auto& mods = l.mods();
  const std::string_view mod = mods.empty() ? std::string_view() : mods[0];
  if (op == "ld" || op == "ldu" || op == "st" || op == "atom" || op == "red") {
    note_access(l, n);
    if (mod == "async") n.kind = Kind::plain;
  } else if (op == "ldmatrix" || op == "stmatrix") {
    n.kind = Kind::matrix_access;
    n.unit = Limit::lsu;
    n.space = Space::shared;
    n.write = op == "stmatrix";
    n.bytes = 16;
    n.imm = l.has("x4") ? 4 : l.has("x2") ? 2 : 1;
    note_address(l, n.write ? 0 : 1, n.address);
  } else if (op == "cp" && l.has("bulk")) {
    n.kind = l.has("commit_group") ? Kind::bulk_commit : l.has("wait_group") ? Kind::bulk_wait : l.has("prefetch") ? Kind::plain : Kind::bulk;
    units(n, Limit::issue, 1, 0);
    if (n.kind == Kind::bulk_wait) n.imm = static_cast<uint32_t>(l.operand(0).value);
  } else if (op == "cp" && mod == "async") {
    units(n, Limit::issue, 1, 0);
    if (l.has("commit_group")) {
      n.kind = Kind::copy_commit;
    } else if (l.has("wait_group") || l.has("wait_all")) {
      n.kind = Kind::copy_wait;
      n.imm = l.has("wait_all") ? 0 : static_cast<uint32_t>(l.operand(0).value);
    } else if (l.operands() >= 3) {
      n.kind = Kind::copy;
      units(n, Limit::lsu, 1, 1);
      n.space = Space::global;
      n.bytes = static_cast<uint8_t>(l.operand(2).value);
      n.bypasses_l1 = l.has("cg");
      note_address(l, 1, n.second);
      note_address(l, 0, n.address);
    }
  } else if (op == "bar" || op == "barrier") {
    units(n, Limit::issue, 1, 0);
    if (l.has("cluster")) {
      n.kind = l.has("arrive") ? Kind::cluster_arrive : Kind::cluster_wait;
    } else if (mod != "warp") {
      n.kind = Kind::barrier;
      n.waits = !l.has("arrive");
      n.id = l.source(l.operand(l.has("red") ? 1 : 0), Type::u32);
    }
  } else if (op == "mbarrier") {
    units(n, Limit::lsu, 1, 1);
    if (mod == "try_wait" || mod == "test_wait") n.kind = Kind::mbarrier_wait;
  } else if (op == "wgmma") {
    units(n, Limit::issue, 1, 0);
    if (mod == "mma_async") {
      n.kind = Kind::wgmma;
      note_matrix(l, n, true);
    } else if (mod == "commit_group") {
      n.kind = Kind::wgmma_commit;
    } else if (mod == "wait_group") {
      n.kind = Kind::wgmma_wait;
      n.imm = static_cast<uint32_t>(l.operand(0).value);
    }
  } else if (op == "mma" || (op == "wmma" && mod == "mma")) {
    n.kind = Kind::mma;
    note_matrix(l, n, false);
    if (op == "wmma") n.issue = 2;
  } else {
    note_arithmetic(l, n);
  }
  n.first_ref = static_cast<uint32_t>(table.refs.size());
  const auto place = [&](const Access& access) {
    const Ref at = places.place[static_cast<size_t>(access.reg)];
    if (at == kNoRef) return;
    const bool predicate = l.function().registers[static_cast<size_t>(access.reg)].type == Type::pred;
    table.refs.push_back(predicate ? at | TimeTable::kPredicate : at / 128);
  };
  // The sums of wgmma are waited for by wait_group.
  if (n.kind != Kind::wgmma) {
    for (const Access* a = accesses.begin(statement); a != accesses.end(statement); ++a)
      if (a->read) place(*a);
    n.reads = static_cast<uint16_t>(table.refs.size() - n.first_ref);
    for (const Access* a = accesses.begin(statement); a != accesses.end(statement); ++a)
      if (a->written) place(*a);
    n.writes = static_cast<uint16_t>(table.refs.size() - n.first_ref - n.reads);
  }
  table.notes[first] = n;
}

}  // namespace emulator::ptx
