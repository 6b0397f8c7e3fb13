// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <functional>
#include <string>

#include "io/memory_budget.h"
#include "io/pickle/pickle_value.h"

namespace weft {

/// The values that pickles of one kind may hold in addition to plain values.
struct PickleVocabulary {
  const char* holds;        ///< for errors: `weights`
  const char* advice = "";  ///< ends the error about an unknown name: what to do
  /// Replaces `the file names 'NAME', which … do not need` and the advice for some names; "" for others.
  std::function<std::string(const std::string& name)> refusal = {};
  uint64_t most_opcodes = 10'000'000;  ///< a value of one byte may take a hundred bytes of memory
  MemoryBudget* memory = nullptr;      ///< limit of the values' memory; null: as much as the opcodes make

  /// The value of `module.name`, which outlives the pickle; null for names that this kind of pickle does not allow.
  std::function<const PickleObject*(const std::string& module, const std::string& name)> find;
  /// Sets `result` to the value of a persistent id. Errors: through `fail`. Without it such ids are refused.
  std::function<void(const PickleValue& id, PickleValue& result, const ByteStream::Fail& fail)> load_persistent = {};
};

/// Builds the values of a pickle: dicts, lists, tuples, numbers, strings, bytes (as strings), bools, None, and what the
/// vocabulary allows (pickle protocols 0 to 5; the opcodes are described in CPython's Lib/pickletools.py). Nothing is
/// imported, and REDUCE calls the vocabulary's functions only: any other name or opcode is an error that names it and
/// its position. Memory and time are proportional to the pickle's length and number of opcodes. Errors: `fail` is
/// called with one message, `pickle: REDUCE at byte 12: …`.
Pickle unpickle(ByteStream& bytes, const PickleVocabulary& vocabulary, const ByteStream::Fail& fail);

}  // namespace weft
