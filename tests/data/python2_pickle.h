// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weft::data::testing {

/// Pickles as Python 2's cPickle writes them by protocol 2, opcode by opcode: what CIFAR's python version is made of.
class Python2Pickle {
 public:
  std::vector<uint8_t> bytes{0x80, 2};

  Python2Pickle& op(std::string_view opcodes) {
    bytes.insert(bytes.end(), opcodes.begin(), opcodes.end());
    return *this;
  }
  Python2Pickle& put() {  // BINPUT, as behind everything that could be meant again
    if (puts_ < 256) return op("q").little(puts_++, 1);
    return op("r").little(puts_++, 4);
  }
  Python2Pickle& text(std::string_view text) { return op("U").little(text.size(), 1).op(text).put(); }
  Python2Pickle& integer(int64_t value) {
    if (value >= 0 && value < 256) return op("K").little(static_cast<uint64_t>(value), 1);
    if (value >= 0 && value < 65536) return op("M").little(static_cast<uint64_t>(value), 2);
    return op("J").little(static_cast<uint64_t>(value), 4);
  }
  Python2Pickle& integers(const std::vector<int64_t>& values) {
    op("]").put().op("(");
    for (const int64_t value : values) integer(value);
    return op("e");
  }
  Python2Pickle& texts(const std::vector<std::string>& values) {
    op("]").put().op("(");
    for (const std::string& value : values) text(value);
    return op("e");
  }
  /// NumPy's uint8 array of two dimensions; `type` and the sizes may lie about it.
  Python2Pickle& array(int64_t rows, int64_t columns, const std::vector<uint8_t>& values,
                       std::string_view type = "u1") {
    op("cnumpy.core.multiarray\n_reconstruct\n").put().op("cnumpy\nndarray\n").put().integer(0).op("\x85");
    text("b").op("\x87").put().op("R").put().op("(").integer(1).integer(rows).integer(columns).op("\x86").put();
    op("cnumpy\ndtype\n").put().text(type).integer(0).integer(1).op("\x87").put().op("R").put().op("(").integer(3);
    text("|").op("NNN").op("J\xff\xff\xff\xffJ\xff\xff\xff\xff").integer(0).op("t").put().op("b").op("\x89T");
    little(values.size(), 4);
    bytes.insert(bytes.end(), values.begin(), values.end());
    return op("t").put().op("b");
  }
  Python2Pickle& little(uint64_t value, int count) {
    for (int i = 0; i < count; ++i) bytes.push_back(static_cast<uint8_t>(value >> (8 * i)));
    return *this;
  }

 private:
  uint64_t puts_ = 1;
};

/// A file of CIFAR's python version: names of images, labels by key, planes of 3072 bytes an image.
inline std::vector<uint8_t> python_cifar(const std::vector<uint8_t>& planes,
                                         const std::vector<std::pair<std::string, std::vector<int64_t>>>& labels) {
  const auto count = static_cast<int64_t>(labels.at(0).second.size());
  Python2Pickle file;
  file.op("}").put().op("(").text("filenames").texts(std::vector<std::string>(static_cast<size_t>(count), "a.png"));
  file.text("batch_label").text("testing batch 1 of 1");
  for (const auto& [key, values] : labels) file.text(key).integers(values);
  file.text("data").array(count, static_cast<int64_t>(planes.size()) / count, planes);
  return file.op("u.").bytes;
}

}  // namespace weft::data::testing
