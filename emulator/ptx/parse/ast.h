// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

// PTX as written (PTX ISA 9.0). Names are views into the module's text, which outlives the tree.

namespace emulator::ptx {

enum class Space : uint8_t { generic, global, shared, local, param, constant };

/// The types that instructions and registers have. Packed ones (f16x2 …) are as wide as their b-type.
enum class Type : uint8_t {
  none, pred, b8, b16, b32, b64, b128, u8, u16, u32, u64, s8, s16, s32, s64,
  f16, bf16, f16x2, bf16x2, tf32, f32, f32x2, f64, u16x2, s16x2,
  e4m3, e5m2, e2m3, e3m2, e2m1, ue8m0, e4m3x2, e5m2x2, e2m3x2, e3m2x2, e2m1x2, ue8m0x2, b1, b4, b6, s4, u4, s2, u2,
};
/// Type::none when the text names no type. The leading dot is not part of `text`.
Type type_of(std::string_view text);
/// Bytes in a register or in memory; of pred 0, of types below a byte 1.
int bytes_of(Type type);
bool is_float(Type type);
bool is_signed(Type type);

struct Operand {
  enum class Kind : uint8_t {
    none,
    reg,      ///< a virtual register: `reg` is its index in Function::registers; `negated` for !%p
    special,  ///< a special register by name, without the %: `tid.x`, `laneid`, `clock64`, `envreg1`
    integer,  ///< `value`: the bits, sign-extended to 64
    real,     ///< `value`: the bits of an f64 (0d…, 1.5) or, with `single`, of an f32 (0f…)
    vector,   ///< { … }: `parts`
    address,  ///< [ … ]: parts[0] is the base (reg, symbol, or integer), `value` the offset in bytes; of [ a, {…} ] and
              ///< [ a, b ] parts[1] … are what follows
    symbol,   ///< a variable, parameter, function or label by `name`, plus `value` bytes
    sink,     ///< _
    pair,     ///< p|q: two parts
    list,     ///< ( … ) of a call: `parts`
  };
  Kind kind = Kind::none;
  bool negated = false;
  bool single = false;
  int reg = -1;  ///< for a symbol that is a variable of the body: its index in Function::variables
  int64_t value = 0;
  std::string_view name;  ///< for a register: the selector after it (`b0`, `h1`), mostly empty
  std::vector<Operand> parts;
};

/// An instruction as written.
struct Statement {
  int guard = -1;  ///< a predicate register, or -1
  bool guard_negated = false;
  std::string_view op;                ///< `mad`; everything before the first dot
  std::vector<std::string_view> mods; ///< `lo`, `s32`; `shared::cta` is one, and so is `cg::sync`
  std::vector<Operand> operands;
  int target = -1;  ///< for bra: the index of the instruction at the label; for brx.idx: index in Function::tables;
                    ///< for a call through a register: index in Function::prototypes
  uint32_t line = 0;      ///< index in Function::lines
  uint32_t ptx_line = 0;  ///< in the module's text

  bool has(std::string_view mod) const {
    for (const std::string_view m : mods)
      if (m == mod) return true;
    return false;
  }
  /// The i-th modifier that is a type, or Type::none.
  Type type(int i = 0) const;
};

/// A register as `.reg` declares it.
struct Register {
  std::string_view name;
  Type type = Type::none;
};

/// Where an instruction comes from; `inlined_at` is an index in the same list, or 0. Entry 0 is unknown.
struct Line {
  uint32_t file = 0;  ///< index in Module's files
  uint32_t line = 0;  ///< from 1; 0: unknown
  uint32_t ptx_line = 0;
  uint32_t inlined_at = 0;
};

/// `.global .align 16 .b8 name[64] = {…};`, also in functions (.shared, .local) and among parameters.
struct Variable {
  std::string_view name;
  Space space = Space::global;
  Type type = Type::none;
  uint32_t align = 1;
  uint64_t bytes = 0;    ///< 0 of an array without a size: dynamic shared memory
  bool is_external = false, is_array = false;
  bool is_managed = false;       ///< .attribute(.managed)
  std::vector<uint8_t> content;  ///< the bytes as far as they are given; the rest is 0
  /// Addresses inside of `content` that are known when the variable named has one.
  struct Address {
    uint64_t at;
    std::string_view name;
    int64_t offset;
    bool generic;
    uint8_t bytes = 8;  ///< number of the address's bytes that are stored
    uint8_t shift = 0;  ///< in bits: `0xFF00(name)` stores one byte, the second
  };
  std::vector<Address> addresses;
  int base = -1;        ///< for a variable in a call's frame: the register that holds its base address …
  uint64_t offset = 0;  ///< … and the offset to it in bytes
};

/// `name: .callprototype (…) _ (…);`, or `.calltargets`, which are the first function's.
struct Prototype {
  std::string_view name;
  std::vector<Variable> results, parameters;
  std::string_view target;
};

/// A kernel (.entry) or a device function (.func). A kernel's body is parsed when it is first launched.
struct Function {
  std::string_view name;
  bool is_kernel = false;
  std::vector<Variable> parameters, results;
  int max_threads[3] = {0, 0, 0};   ///< .maxntid, 0: not given
  int required_threads[3] = {0, 0, 0};  ///< .reqntid
  int min_blocks = 0;               ///< .minnctapersm
  int max_registers = 0;
  int cluster[3] = {0, 0, 0};       ///< .reqnctapercluster
  int max_cluster = 0;              ///< .maxclusterrank
  bool explicit_cluster = false;
  std::string_view body;            ///< the text between { and }; without data() when there is only a declaration
  uint32_t body_line = 0;           ///< its first line in the module

  // The body, when parsed:
  bool parsed = false;
  std::vector<Register> registers;
  std::vector<Variable> variables;  ///< .shared and .local ones of the body, .param ones of its calls
  std::vector<Statement> code;
  std::vector<std::vector<int>> tables;  ///< .branchtargets: indices of instructions
  std::vector<Prototype> prototypes;
  std::vector<Line> lines;
  /// With calls inlined: the called sections after the kernel's own code, which is [0] (frames.h).
  struct Section {
    const Function* function = nullptr;
    int first_variable = 0, last_variable = 0;  ///< [first, last)
    int incoming = -1, frame = -1, top = -1;    ///< registers: the arguments, the variables, the first free byte
  };
  std::vector<Section> sections;
};

/// The header of a module and its functions, whose bodies are skipped. Errors: Fault with the line of the text.
struct Text {
  std::string text;
  int version = 0;  ///< 90 for 9.0
  int target = 0;   ///< 90
  bool arch_specific = false;  ///< sm_90a
  std::vector<std::string> files;  ///< indexed by number; [0] is empty
  std::vector<Variable> variables;
  std::vector<Function> functions;
};
std::unique_ptr<Text> parse_module(std::string text);
/// Fills in the rest of `function`. Labels and registers are resolved by their { } scopes, `name<N>` expanded.
void parse_body(const Text& module, Function& function);

}  // namespace emulator::ptx
