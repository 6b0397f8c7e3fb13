// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>

namespace weft {

/// The opcodes of Weft's pickles (CPython, Lib/pickletools.py).
enum class PickleOp : uint8_t {
  mark = '(',
  stop = '.',
  none = 'N',
  new_true = 0x88,
  new_false = 0x89,
  bin_int = 'J',
  bin_int1 = 'K',
  bin_int2 = 'M',
  long1 = 0x8a,
  bin_float = 'G',
  bin_unicode = 'X',
  short_bin_unicode = 0x8c,
  bin_unicode8 = 0x8d,
  bin_string = 'T',
  short_bin_string = 'U',
  bin_bytes = 'B',
  short_bin_bytes = 'C',
  bin_bytes8 = 0x8e,
  empty_tuple = ')',
  tuple = 't',
  tuple1 = 0x85,
  tuple2 = 0x86,
  tuple3 = 0x87,
  empty_list = ']',
  append = 'a',
  appends = 'e',
  empty_dict = '}',
  set_item = 's',
  set_items = 'u',
  bin_put = 'q',
  long_bin_put = 'r',
  memoize = 0x94,
  bin_get = 'h',
  long_bin_get = 'j',
  global = 'c',
  stack_global = 0x93,
  reduce = 'R',
  build = 'b',
  bin_persid = 'Q',
  proto = 0x80,
  frame = 0x95,
};

/// `REDUCE`, or `opcode 0xff` for an unknown byte.
std::string pickle_opcode_name(uint8_t opcode);

}  // namespace weft
