// SPDX-License-Identifier: Apache-2.0
// Exchange among the lanes of a warp: shfl, vote, match, redux, activemask, elect.
#include <algorithm>

#include "emulator/ptx/check/checker.h"
#include "emulator/ptx/instructions/access.h"
#include "emulator/ptx/instructions/numbers.h"
#include "emulator/ptx/instructions/synchronised.h"

namespace emulator::ptx {

namespace {

enum class Mode : uint8_t { up, down, bfly, idx };

/// Read from a lane that does not take part.
constexpr uint32_t kPoison = 0xffffffff;

/// Where a lane reads, and whether that is within its segment (PTX ISA 9.0, "shfl.sync").
struct Source {
  uint32_t lane;
  bool is_valid;
};
template <Mode M>
[[gnu::always_inline]] inline Source source_lane(int lane, uint32_t b, uint32_t c) {
  const int step = static_cast<int>(b & 31), clamp = static_cast<int>(c & 31), segment = static_cast<int>(c >> 8 & 31);
  const int begin = lane & segment, last = begin | (clamp & ~segment);
  int from = begin | (step & ~segment);
  if constexpr (M == Mode::up) from = lane - step;
  if constexpr (M == Mode::down) from = lane + step;
  if constexpr (M == Mode::bfly) from = lane ^ step;
  const bool is_valid = M == Mode::up ? from >= last : from <= last;
  return {static_cast<uint32_t>(is_valid ? from : lane), is_valid};
}

struct Table {
  alignas(32) uint32_t from[kLanes];
  uint32_t valid = 0;
};
template <Mode M>
Table table_of(const uint32_t* b, const uint32_t* c) {
  Table table;
  EMULATOR_EACH_LANE table.from[l] = source_lane<M>(l, b[l], c[l]).lane;
  uint32_t valid = 0;
  for (int l = 0; l < kLanes; ++l) valid |= source_lane<M>(l, b[l], c[l]).is_valid ? kLaneBits<uint32_t>.bit[l] : 0;
  table.valid = valid;
  return table;
}

/// The check of uninitialised values: CUDA lets a lane read only from one that executes the instruction, too.
[[gnu::noinline]] void note_absent_sources(Warp& w, const Instruction* i, uint32_t lanes, uint32_t members, uint32_t there,
                                           const Table& table) {
  for (uint32_t left = lanes; left != 0; left &= left - 1) {
    const int lane = std::countr_zero(left);
    const uint32_t from = table.from[lane], bit = 1u << from;
    if (there & bit) continue;
    const bool never_was = w.first_thread + from >= w.block->threads;
    return w.block->checks->report_undefined(
        w, i, lane,
        cat("shfl: lane ", lane, " reads lane ", from, ", which ",
            (members & bit) == 0 ? cat("mask ", mask_text(members), " does not name")
            : never_was          ? "this block does not have"
                                 : "has exited"));
  }
}

/// d, a; imm: the predicate's index; aux: the member mask's register.
[[gnu::always_inline]] inline void shuffle(Warp& w, const Instruction* i, uint32_t lanes, uint32_t members,
                                           const Table& table) {
  w.set_predicate(static_cast<Ref>(i->imm), lanes, table.valid);
  if (i->d == kNoRef) return;
  const uint32_t* const a = w.in<uint32_t>(i->a);
  uint32_t* const d = w.out<uint32_t>(i->d);
  const uint32_t there = members & lanes;
  if (w.undefined) [[unlikely]]
    w.block->checks->exchanged(w, i->d, i->a, lanes, table.from);
  if (there != kAllLanes) {
    if (checked(w)) [[unlikely]]
      if (w.block->checks && w.block->grid->checks->fresh) note_absent_sources(w, i, lanes, members, there, table);
    alignas(32) uint32_t found[kLanes];
    for (int lane = 0; lane < kLanes; ++lane) {
      const uint32_t from = table.from[lane];
      found[lane] = (there >> from & 1) != 0 ? a[from] : kPoison;
    }
    return blend(d, found, lanes);
  }
#ifdef __clang__  // whose vectors have no shuffle by places that only the run knows
  alignas(32) uint32_t found[kLanes];
  for (int lane = 0; lane < kLanes; ++lane) found[lane] = a[table.from[lane]];
  blend(d, found, lanes);
#else
  // A lane's source is in one of four rows of eight: each is shuffled, then the right one taken.
  using Vector = Row<uint32_t>::Vector;
  Vector row[4];
  for (int k = 0; k < 4; ++k) row[k] = Row<uint32_t>::load(a + k * 8);
  for (int k = 0; k < 4; ++k) {
    const Vector from = Row<uint32_t>::load(table.from + k * 8), which = from >> 3, place = from & 7;
    Vector r = __builtin_shuffle(row[0], place);
    r = which == 1 ? __builtin_shuffle(row[1], place) : r;
    r = which == 2 ? __builtin_shuffle(row[2], place) : r;
    r = which == 3 ? __builtin_shuffle(row[3], place) : r;
    Row<uint32_t>::store(d + k * 8, r);
  }
#endif
}

/// With sources b and clamps c that lanes compute.
template <Mode M>
struct Shuffle {
  static constexpr const char* kWhat = "shfl.sync";
  void operator()(Warp& w, const Instruction* i, uint32_t lanes, uint32_t members) const {
    shuffle(w, i, lanes, members, table_of<M>(w.in<uint32_t>(i->b), w.in<uint32_t>(i->c)));
  }
};
/// With sources that are known.
struct ShuffleByTable {
  static constexpr const char* kWhat = "shfl.sync";
  void operator()(Warp& w, const Instruction* i, uint32_t lanes, uint32_t members) const {
    shuffle(w, i, lanes, members, *static_cast<const Table*>(i->more));
  }
};

template <class Act>
const Instruction* with_members(Warp& w, const Instruction* i) {
  return synchronised(w, i, Act::kWhat, i->aux, Act());
}
/// Without .sync: the lanes that happen to be here.
template <class Act>
const Instruction* with_present(Warp& w, const Instruction* i) {
  if (const uint32_t lanes = w.lanes(i)) Act()(w, i, lanes, lanes);
  return i + 1;
}

/// The last operand of a .sync instruction.
Ref members_of(Lowering& l, size_t n) {
  if (l.operands() != n + 1) l.unknown("number of operands");
  return l.source(l.operand(n), Type::b32);
}

/// d|p, d or _|p: their registers.
struct Results {
  Ref d = kNoRef, p = kNoRef;
};
Results results_of(Lowering& l, const Operand& operand) {
  if (operand.kind != Operand::Kind::pair) return {l.destination(operand), kNoRef};
  return {l.destination(operand.parts[0]), l.predicate(operand.parts[1])};
}

template <Mode M>
void lower_shuffle_mode(Lowering& l, bool sync) {
  const Results results = results_of(l, l.operand(0));
  const Operand &b = l.operand(2), &c = l.operand(3);
  const Ref members = sync ? members_of(l, 4) : kNoRef;
  if (!sync && l.operands() != 4) l.unknown("number of operands");
  const bool known = b.kind == Operand::Kind::integer && c.kind == Operand::Kind::integer;
  Handler run = sync ? with_members<Shuffle<M>> : with_present<Shuffle<M>>;
  if (known) run = sync ? with_members<ShuffleByTable> : with_present<ShuffleByTable>;
  const Ref source = l.source(l.operand(1), Type::b32);
  Instruction& i =
      l.emit(run, results.d, source, known ? kNoRef : l.source(b, Type::u32), known ? kNoRef : l.source(c, Type::u32));
  i.imm = results.p;
  i.aux = members;
  if (!known) return;
  uint32_t steps[kLanes], clamps[kLanes];
  std::fill_n(steps, kLanes, static_cast<uint32_t>(b.value));
  std::fill_n(clamps, kLanes, static_cast<uint32_t>(c.value));
  i.more = l.keep(table_of<M>(steps, clamps));
}

void lower_shuffle(Lowering& l) {
  bool sync = false;
  Mode mode = Mode::idx;
  int modes = 0;
  for (const std::string_view mod : l.mods()) {
    static constexpr std::string_view kModes[] = {"up", "down", "bfly", "idx"};
    if (const auto found = std::ranges::find(kModes, mod); found != std::end(kModes))
      mode = static_cast<Mode>(found - std::begin(kModes)), ++modes;
    else if (mod == "sync")
      sync = true;
    else if (mod != "b32")
      l.unknown(cat("modifier .", mod));
  }
  if (modes != 1) l.unknown();
  switch (mode) {
    case Mode::up:
      return lower_shuffle_mode<Mode::up>(l, sync);
    case Mode::down:
      return lower_shuffle_mode<Mode::down>(l, sync);
    case Mode::bfly:
      return lower_shuffle_mode<Mode::bfly>(l, sync);
    case Mode::idx:
      return lower_shuffle_mode<Mode::idx>(l, sync);
  }
}

enum class Vote : uint8_t { all, any, uni, ballot };

/// a: a predicate; imm: it is negated.
template <Vote V>
struct VoteOf {
  static constexpr const char* kWhat = "vote.sync";
  void operator()(Warp& w, const Instruction* i, uint32_t lanes, uint32_t) const {
    const uint32_t yes = w.predicate(i->a, i->imm != 0) & lanes;
    if constexpr (V == Vote::ballot) {
      if (i->d == kNoRef) return;
      uint32_t* const d = w.out<uint32_t>(i->d);
      if (lanes == kAllLanes)
        for (int lane = 0; lane < kLanes; ++lane) d[lane] = yes;
      else
        for (uint32_t left = lanes; left != 0; left &= left - 1) d[std::countr_zero(left)] = yes;
    } else {
      const bool result = V == Vote::all ? yes == lanes : V == Vote::any ? yes != 0 : yes == 0 || yes == lanes;
      w.set_predicate(i->d, lanes, result ? kAllLanes : 0);
    }
  }
};

template <Vote V>
void emit_vote(Lowering& l, bool sync) {
  const Ref d = V == Vote::ballot ? l.destination(l.operand(0)) : l.predicate(l.operand(0));
  bool negated = false;
  const Ref a = l.predicate(l.operand(1), &negated);
  const Ref members = sync ? members_of(l, 2) : kNoRef;
  if (!sync && l.operands() != 2) l.unknown("number of operands");
  Instruction& i = l.emit(sync ? with_members<VoteOf<V>> : with_present<VoteOf<V>>, d, a);
  i.imm = negated;
  i.aux = members;
}

void lower_vote(Lowering& l) {
  for (const std::string_view mod : l.mods())
    if (mod != "sync" && mod != "all" && mod != "any" && mod != "uni" && mod != "ballot" && mod != "pred" &&
        mod != "b32")
      l.unknown(cat("modifier .", mod));
  const bool sync = l.has("sync");
  if (l.has("ballot")) return emit_vote<Vote::ballot>(l, sync);
  if (l.has("all")) return emit_vote<Vote::all>(l, sync);
  if (l.has("any")) return emit_vote<Vote::any>(l, sync);
  if (l.has("uni")) return emit_vote<Vote::uni>(l, sync);
  l.unknown();
}

/// d: the lanes whose value is the own one's (any), or all of them when they agree (all); imm: the predicate.
template <class T, bool All>
struct Match {
  static constexpr const char* kWhat = "match.sync";
  void operator()(Warp& w, const Instruction* i, uint32_t lanes, uint32_t) const {
    T values[kLanes];
    std::memcpy(values, w.in<T>(i->a), sizeof(values));
    for (uint32_t left = lanes; left != 0;) {
      const T value = values[std::countr_zero(left)];
      uint32_t same = 0;
      for (int lane = 0; lane < kLanes; ++lane) same |= static_cast<uint32_t>(values[lane] == value) << lane;
      same &= left;
      const bool agree = same == lanes;
      const uint32_t targets = All ? lanes : same;
      if (i->d != kNoRef)
        for (uint32_t rest = targets; rest != 0; rest &= rest - 1)
          w.out<uint32_t>(i->d)[std::countr_zero(rest)] = All && !agree ? 0 : same;
      if constexpr (All) {
        w.set_predicate(static_cast<Ref>(i->imm), lanes, agree ? kAllLanes : 0);
        return;
      }
      left &= ~same;
    }
  }
};

void lower_match(Lowering& l) {
  const bool all = l.has("all");
  for (const std::string_view mod : l.mods())
    if (mod != "sync" && mod != "all" && mod != "any" && mod != "b32" && mod != "b64")
      l.unknown(cat("modifier .", mod));
  if (all == l.has("any") || !l.has("sync")) l.unknown();
  const Type type = l.type();
  const Results results = results_of(l, l.operand(0));
  if (!all && results.p != kNoRef) l.unknown("match.any has no predicate");
  const bool wide = type == Type::b64;
  const Handler run = all ? (wide ? with_members<Match<uint64_t, true>> : with_members<Match<uint32_t, true>>)
                          : (wide ? with_members<Match<uint64_t, false>> : with_members<Match<uint32_t, false>>);
  const Ref members = members_of(l, 2);
  Instruction& i = l.emit(run, results.d, l.source(l.operand(1), type));
  i.imm = results.p;
  i.aux = members;
}

struct Sum {
  static uint32_t of(uint32_t a, uint32_t b) { return a + b; }
};
struct And {
  static uint32_t of(uint32_t a, uint32_t b) { return a & b; }
};
struct Or {
  static uint32_t of(uint32_t a, uint32_t b) { return a | b; }
};
struct Xor {
  static uint32_t of(uint32_t a, uint32_t b) { return a ^ b; }
};
template <class T, bool Greater>
struct Extreme {
  static uint32_t of(uint32_t a, uint32_t b) {
    const T x = static_cast<T>(a), y = static_cast<T>(b);
    return static_cast<uint32_t>(Greater ? std::max(x, y) : std::min(x, y));
  }
};
/// +0 is more than -0. A NaN counts only with .NaN, or when there is nothing else.
template <bool Greater, bool Absolute, bool Nan>
struct FloatExtreme {
  static uint32_t of(uint32_t a, uint32_t b) {
    const uint32_t x = Absolute ? a & 0x7fffffff : a, y = Absolute ? b & 0x7fffffff : b;
    const bool x_is_nan = (x & 0x7fffffff) > 0x7f800000, y_is_nan = (y & 0x7fffffff) > 0x7f800000;
    if (x_is_nan || y_is_nan) return (Nan || (x_is_nan && y_is_nan)) ? kNanF32 : (x_is_nan ? y : x);
    const bool x_is_less = f32_of(x) < f32_of(y) || (f32_of(x) == f32_of(y) && (x >> 31) != 0);
    return x_is_less == Greater ? y : x;
  }
};

template <class F>
struct Reduce {
  static constexpr const char* kWhat = "redux.sync";
  void operator()(Warp& w, const Instruction* i, uint32_t lanes, uint32_t) const {
    const uint32_t* const a = w.in<uint32_t>(i->a);
    // A value alone is brought into form, too: of -1 the .abs is 1, of a NaN the canonical one.
    uint32_t result = a[std::countr_zero(lanes)];
    if constexpr (requires { F::kAlone; }) result = F::of(result, result);
    for (uint32_t left = lanes & (lanes - 1); left != 0; left &= left - 1)
      result = F::of(result, a[std::countr_zero(left)]);
    if (i->d == kNoRef) return;
    for (uint32_t left = lanes; left != 0; left &= left - 1) w.out<uint32_t>(i->d)[std::countr_zero(left)] = result;
  }
};
template <bool Greater, bool Absolute, bool Nan>
struct FloatReduce : FloatExtreme<Greater, Absolute, Nan> {
  static constexpr bool kAlone = true;
};

template <class F>
constexpr Handler reducer() {
  return with_members<Reduce<F>>;
}
template <bool Greater>
Handler float_reducer(bool absolute, bool nan) {
  if (absolute) return nan ? reducer<FloatReduce<Greater, true, true>>() : reducer<FloatReduce<Greater, true, false>>();
  return nan ? reducer<FloatReduce<Greater, false, true>>() : reducer<FloatReduce<Greater, false, false>>();
}

Handler choose_reducer(std::string_view op, Type type, bool absolute, bool nan) {
  if (type == Type::f32) {
    if (op == "min") return float_reducer<false>(absolute, nan);
    return op == "max" ? float_reducer<true>(absolute, nan) : nullptr;
  }
  if (absolute || nan) return nullptr;
  if (type == Type::b32) {
    if (op == "and") return reducer<And>();
    if (op == "or") return reducer<Or>();
    return op == "xor" ? reducer<Xor>() : nullptr;
  }
  if (type != Type::u32 && type != Type::s32) return nullptr;
  if (op == "add") return reducer<Sum>();
  if (op == "min") return type == Type::s32 ? reducer<Extreme<int32_t, false>>() : reducer<Extreme<uint32_t, false>>();
  if (op == "max") return type == Type::s32 ? reducer<Extreme<int32_t, true>>() : reducer<Extreme<uint32_t, true>>();
  return nullptr;
}

void lower_redux(Lowering& l) {
  std::string_view op;
  bool absolute = false, nan = false;
  for (const std::string_view mod : l.mods()) {
    if (mod == "sync" || type_of(mod) != Type::none) continue;
    if (mod == "abs")
      absolute = true;
    else if (mod == "NaN")
      nan = true;
    else if (op.empty())
      op = mod;
    else
      l.unknown(cat("modifier .", mod));
  }
  const Handler run = choose_reducer(op, l.type(), absolute, nan);
  if (!run) l.unknown();
  const Ref members = members_of(l, 2);
  Instruction& i = l.emit(run, l.destination(l.operand(0)), l.source(l.operand(1), l.type()));
  i.aux = members;
}

const Instruction* active_mask(Warp& w, const Instruction* i) {
  const uint32_t lanes = w.lanes(i);
  for (uint32_t left = lanes; left != 0; left &= left - 1) w.out<uint32_t>(i->d)[std::countr_zero(left)] = lanes;
  return i + 1;
}
void lower_active_mask(Lowering& l) {
  const Ref d = l.destination(l.operand(0));
  if (d != kNoRef) l.emit(active_mask, d);
}

/// The lowest lane leads.
struct Elect {
  static constexpr const char* kWhat = "elect.sync";
  void operator()(Warp& w, const Instruction* i, uint32_t lanes, uint32_t) const {
    const uint32_t leader = lanes & (~lanes + 1);
    if (i->d != kNoRef)
      for (uint32_t left = lanes; left != 0; left &= left - 1)
        w.out<uint32_t>(i->d)[std::countr_zero(left)] = static_cast<uint32_t>(std::countr_zero(leader));
    w.set_predicate(static_cast<Ref>(i->imm), lanes, leader);
  }
};
void lower_elect(Lowering& l) {
  if (l.mods().size() != 1 || !l.has("sync")) l.unknown();
  const Results results = results_of(l, l.operand(0));
  const Ref members = members_of(l, 1);
  Instruction& i = l.emit(with_members<Elect>, results.d);
  i.imm = results.p;
  i.aux = members;
}

constexpr Opcode kOpcodes[] = {{"shfl", lower_shuffle}, {"vote", lower_vote},   {"match", lower_match},
                               {"redux", lower_redux},  {"elect", lower_elect}, {"activemask", lower_active_mask}};

}  // namespace

Family warp_family() { return {kOpcodes, std::size(kOpcodes)}; }

}  // namespace emulator::ptx
