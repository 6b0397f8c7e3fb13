// SPDX-License-Identifier: Apache-2.0
// A pickle of protocol 2 as torch.save makes it: {name: _rebuild_tensor_v2(storage, 0, sizes, strides, False,
// OrderedDict())}
#include <cstring>
#include <map>
#include <tuple>
#include <unordered_set>

#include "apps/support/weights/pickle_opcodes.h"
#include "apps/support/weights/weights_file.h"
#include "apps/support/weights/zip_archive.h"
#include "core/printable.h"

namespace weft::support {
namespace {

const char* storage_class(DType dtype) {
  constexpr const char* names[] = {"FloatStorage", "DoubleStorage", "BFloat16Storage", "HalfStorage",
                                   "LongStorage",  "IntStorage",    "ByteStorage",     "BoolStorage"};
  return names[static_cast<int>(dtype)];
}

/// Writes opcodes; each one line of pickletools.dis.
class Pickler {
 public:
  void op(PickleOp op) { bytes_ += static_cast<char>(op); }
  void global(const char* module, const char* name) {
    op(PickleOp::global);
    bytes_ += str(module, "\n", name, "\n");
  }
  void text(const std::string& text) {
    op(PickleOp::bin_unicode);
    little_endian(text.size(), 4);
    bytes_ += text;
  }
  void integer(int64_t value) {
    if (value <= 0x7fffffff) {
      op(PickleOp::bin_int);
      return little_endian(static_cast<uint64_t>(value), 4);
    }
    op(PickleOp::long1);
    bytes_ += '\x08';
    little_endian(static_cast<uint64_t>(value), 8);
  }
  void numbers(const Shape& values) {
    op(PickleOp::mark);
    for (const int64_t value : values) integer(value);
    op(PickleOp::tuple);
  }
  std::string take() { return std::move(bytes_); }
  void little_endian(uint64_t value, int bytes) {
    for (int i = 0; i < bytes; ++i) bytes_ += static_cast<char>(value >> (8 * i));
  }

 private:
  std::string bytes_;
};

void tensor(Pickler& out, const Tensor& tensor, const std::string& key) {
  Shape strides = tensor.sizes();
  int64_t stride = 1;
  for (int d = strides.rank() - 1; d >= 0; --d) {
    const int64_t size = strides[d];
    strides[d] = stride;
    stride *= std::max<int64_t>(size, 1);
  }
  out.global("torch._utils", "_rebuild_tensor_v2");
  out.op(PickleOp::mark);
  out.op(PickleOp::mark);
  out.text("storage");
  out.global("torch", storage_class(tensor.dtype()));
  out.text(key);
  out.text("cpu");
  out.integer(tensor.numel());
  out.op(PickleOp::tuple);
  out.op(PickleOp::bin_persid);
  out.integer(0);
  out.numbers(tensor.sizes());
  out.numbers(strides);
  out.op(PickleOp::new_false);
  out.global("collections", "OrderedDict");
  out.op(PickleOp::empty_tuple);
  out.op(PickleOp::reduce);
  out.op(PickleOp::tuple);
  out.op(PickleOp::reduce);
}

/// Dense on the CPU for as long as the pointer lives.
ZipWriter::Load load_of(const Tensor& tensor) {
  return [tensor] {
    auto dense = std::make_shared<Tensor>(tensor.detach().to(Device{}).contiguous());
    return std::shared_ptr<const void>(dense, dense->raw_data());
  };
}

ZipWriter::Load load_of(std::string bytes) {
  auto text = std::make_shared<std::string>(std::move(bytes));
  return [text] { return std::shared_ptr<const void>(text, text->data()); };
}

}  // namespace

void write_torch(const std::filesystem::path& path, const StateDict& state) {
  WEFT_CHECK(state.scalars.empty(), "pytorch: expected tensors only, got the number '",
             state.scalars.empty() ? "" : printable(state.scalars[0].name), "'. A checkpoint holds numbers too");
  // Tensors that are the same memory get one storage.
  using Memory = std::tuple<const void*, DType, std::vector<int64_t>, std::vector<int64_t>>;
  std::map<Memory, std::string> keys;
  std::vector<std::pair<std::string, Tensor>> storages;
  std::unordered_set<std::string_view> names;

  Pickler pickle;
  pickle.op(PickleOp::proto);
  pickle.little_endian(2, 1);
  pickle.op(PickleOp::empty_dict);
  pickle.op(PickleOp::mark);
  for (const NamedTensor& entry : state.tensors) {
    WEFT_CHECK(names.insert(entry.name).second, "pytorch: expected each name once, got '", printable(entry.name),
               "' twice");
    const Shape sizes = entry.tensor.sizes();
    const kernels::View& view = entry.tensor.view();
    const Memory memory{entry.tensor.numel() > 0 ? view.data : &entry, view.dtype,
                        std::vector<int64_t>(sizes.begin(), sizes.end()),
                        std::vector<int64_t>(view.strides.begin(), view.strides.begin() + view.rank)};
    const auto [found, is_new] = keys.emplace(memory, str(storages.size()));
    if (is_new) storages.emplace_back(found->second, entry.tensor);
    pickle.text(entry.name);
    tensor(pickle, entry.tensor, found->second);
  }
  pickle.op(PickleOp::set_items);
  pickle.op(PickleOp::stop);

  AtomicFile file(path, "pytorch");
  ZipWriter zip(file);
  const std::string bytes = pickle.take();
  zip.add("archive/data.pkl", bytes.size(), load_of(bytes));
  for (const auto& [key, memory] : storages) zip.add("archive/data/" + key, memory.nbytes(), load_of(memory));
  zip.add("archive/version", 2, load_of(std::string("3\n")));
  zip.close();
  file.commit();
}

}  // namespace weft::support
