// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <functional>
#include <string>

#include "core/pickle/byte_stream.h"
#include "core/pickle/pickle_value.h"

namespace weft {

/// What pickles of one kind may hold beside plain values.
struct PickleVocabulary {
  const char* holds;                   ///< for errors: `weights`
  const char* advice = "";             ///< what to do about a name that it lacks, behind that error
  uint64_t most_opcodes = 10'000'000;  ///< a value of one byte may take a hundred of memory
  bool has_bytes = false;              ///< whether Python 3's `bytes` are known; they become texts

  /// What `module.name` stands for, which outlives the pickle; null where this kind of pickle has no business with it.
  std::function<const PickleObject*(const std::string& module, const std::string& name)> find;
  /// Sets `result` to what a persistent id means. Errors: through `fail`. Without it such ids are refused.
  std::function<void(const PickleValue& id, PickleValue& result, const ByteStream::Fail& fail)> load_persistent = {};
};

/// Builds what a pickle holds: dicts, lists, tuples, numbers, texts, bools, None, and what the vocabulary makes of
/// names (pickle protocols 2 to 5; the opcodes are described in CPython's Lib/pickletools.py). Nothing is imported, and
/// REDUCE calls the vocabulary's functions only: any other name or opcode is an error that says which and where. Memory
/// and time are proportional to the pickle's length and number of opcodes. Errors: `fail` is called with one text,
/// `pickle: REDUCE at byte 12: …`.
Pickle unpickle(ByteStream& bytes, const PickleVocabulary& vocabulary, const ByteStream::Fail& fail);

}  // namespace weft
