// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>

namespace weft {

/// The opcodes of Weft's pickles (CPython, Lib/pickletools.py).
enum class PickleOp : uint8_t {
  // Protocols 0 and 1: arguments are lines of text.
  integer_line = 'I',
  long_line = 'L',
  float_line = 'F',
  string_line = 'S',
  unicode_line = 'V',
  list = 'l',
  dict = 'd',
  put_line = 'p',
  get_line = 'g',
  // Protocols 1 to 5.
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
  bytearray8 = 0x96,
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
  empty_set = 0x8f,
  add_items = 0x90,
  frozen_set = 0x91,
  bin_put = 'q',
  long_bin_put = 'r',
  memoize = 0x94,
  bin_get = 'h',
  long_bin_get = 'j',
  global = 'c',
  stack_global = 0x93,
  reduce = 'R',
  new_object = 0x81,
  build = 'b',
  bin_persid = 'Q',
  proto = 0x80,
  frame = 0x95,
};

/// `REDUCE`, or `opcode 0xff` for an unknown byte.
std::string pickle_opcode_name(uint8_t opcode);

}  // namespace weft
