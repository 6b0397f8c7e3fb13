// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <string>

#include "apps/support/weights/byte_stream.h"
#include "apps/support/weights/pickle_value.h"

namespace weft::support {

/// Builds what a pickle of weights holds: tensors, dicts, OrderedDicts, lists, tuples, numbers, texts, bools and None
/// (pickle protocols 2 to 5; the opcodes are described in CPython's Lib/pickletools.py). Nothing is imported and
/// nothing called: REDUCE knows four names, and any other name or opcode is an error that says which and where. Memory
/// and time are proportional to the pickle's length, of ten million opcodes at most. Errors: `fail` is called with one
/// text, `pickle: REDUCE at byte 12: …`.
Pickle unpickle(ByteStream& bytes, const ByteStream::Fail& fail);

/// `REDUCE`, or `opcode 0xff` for a byte that is none.
std::string pickle_opcode_name(uint8_t opcode);

/// Sets `result` to what the callable makes of its arguments: a tensor, a dict. Errors: through `fail`.
void pickle_call(PickleCallable callable, const PickleList& arguments, PickleValue& result,
                 const ByteStream::Fail& fail);

/// What `module.name` stands for; false when a pickle of weights has no business with it.
bool find_pickle_global(const std::string& module, const std::string& name, PickleValue& result);

/// The storage that a persistent id `('storage', type, key, place, numel[, view])` means; `pickle.storages` grows.
void pickle_storage(Pickle& pickle, const PickleValue& id, PickleValue& result, const ByteStream::Fail& fail);

}  // namespace weft::support
