// SPDX-License-Identifier: Apache-2.0
#include "io/pickle/pickle_value.h"

#include "io/pickle/pickle_opcodes.h"
#include "kernels/error.h"

namespace weft {

void PickleObject::build(const PickleValue&, const ByteStream::Fail& fail) {
  fail(str("expected a dict to give attributes to, got ", kind()));
}

const char* PickleValue::kind() const {
  if (const auto* list = as<PickleList>()) return list->is_tuple ? "a tuple" : "a list";
  if (const auto* object = as<PickleObject>()) return object->kind();
  static constexpr const char* kinds[] = {"None",   "a bool",        "a whole number", "a number",
                                          "a text", "a long number", "a list",         "a dict"};
  return kinds[is.index()];
}

std::string PickleValue::begun() const {
  const auto* list = as<PickleList>();
  const auto* dict = as<PickleDict>();
  const uint64_t byte = list != nullptr ? list->begun_at : dict != nullptr ? dict->begun_at : 0;
  if (byte == 0) return kind();
  const PickleOp opcode = list != nullptr ? PickleOp::empty_list : PickleOp::empty_dict;
  return str(pickle_opcode_name(static_cast<uint8_t>(opcode)), " at byte ", byte);
}

}  // namespace weft
