// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <map>
#include <string_view>
#include <tuple>
#include <vector>

#include "emulator/ptx/parse/parser.h"
#include "emulator/ptx/parse/scopes.h"

namespace emulator::ptx {

/// The meaning of a register's name: one register, `name<count>`, or the elements of a `.v2` or `.v4`.
struct Registers {
  int first = 0, count = 0;
  bool is_vector = false;
};

/// Labels and references to them. A reference is resolved when the scope closes that has the label.
class Labels {
 public:
  struct Reference {
    std::string_view name;
    int statement;  ///< -1: an entry of a table
    int table, entry;
    uint32_t line;
  };
  void open() { scopes_.emplace_back(); }
  /// References that no label of this scope answers go to the scope around it. At the outermost one, the first of them
  /// is returned through `missing`.
  void close(Function& function, Reference* missing);
  bool define(std::string_view name, int statement);
  void refer(Reference reference) { scopes_.back().references.push_back(reference); }
  /// Labels of .branchtargets, which come before or after their brx.idx.
  bool define_table(std::string_view name, int table);

 private:
  struct Scope {
    std::unordered_map<std::string_view, int> labels, tables;
    std::vector<Reference> references;
  };
  std::vector<Scope> scopes_;
};

class BodyParser {
 public:
  BodyParser(Function& out) : out_(out), lexer_(out.body, out.body_line) {}
  void parse();

 private:
  void open_scope();
  bool close_scope();
  void directive(std::string_view name);
  void registers();
  void variables(std::string_view space);
  void location();
  void branch_targets(std::string_view label);
  void prototype(std::string_view name, bool is_list);
  void instruction(int guard, bool guard_negated);
  void guarded();
  void named();  ///< a label or an instruction

  // parser_operand.cpp
  Operand operand(const Statement& statement);
  Operand primary(const Statement& statement);
  Operand address(const Statement& statement);
  Operand name_operand(std::string_view word);
  Operand register_operand(const Registers& registers, int index, std::string_view name);
  void offset(Operand& operand);
  bool find_register(std::string_view name, Registers& found, int& index) const;
  int predicate_register(std::string_view name);

  Function& out_;
  Lexer lexer_;
  Scopes<Registers> single_, ranges_;
  Scopes<int> variables_;
  Labels labels_;
  int depth_ = 0;
  uint32_t current_line_ = 0;
  bool has_location_ = false;
  /// The last .loc of each source location, for `inlined_at`.
  std::map<std::tuple<uint32_t, uint32_t, uint32_t>, uint32_t> places_;
};

}  // namespace emulator::ptx
