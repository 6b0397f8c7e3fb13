// SPDX-License-Identifier: Apache-2.0
// Checkpoints of earlier versions: HDF5 files. Layout, format 2:
//   /                       attributes weft_format, integer:NAME, number:NAME, text:NAME; parts (their order)
//   /PART                   attributes number:NAME
//   /PART/TENSOR            a contiguous dataset; attributes dtype, crc32c, index (its position among the part's
//                           tensors).
// Tensor names are used as they are ("layer1.0.conv1.weight"), so h5dump and h5py show them. bf16 is stored as u16 and
// bool as u8: HDF5 has neither. File types equal memory types, so every value comes back bit by bit. The object headers
// carry HDF5's own checksums (format version 1.8), the data carry ours. Behind the HDF5 file stands a seal
// (io/seal.h), which HDF5 and its tools ignore: libhdf5 can crash on damaged files, so it sees only files with an
// intact seal.
#include "io/hdf5/hdf5_checkpoint.h"

#include <algorithm>
#include <array>
#include <utility>

#include "core/text.h"
#include "io/crc32c.h"
#include "io/hdf5/hdf5_handle.h"
#include "io/seal.h"

namespace weft {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kHdf5Format = 2;

using Id = Hdf5Id;

/// The type of a dtype's elements, in the file and in memory.
Id element_type(DType dtype) {
  hid_t base = -1;
  switch (dtype) {
    case DType::f32:
    case DType::f16:  // made narrower below
      base = hdf5().T_IEEE_F32LE();
      break;
    case DType::f64:
      base = hdf5().T_IEEE_F64LE();
      break;
    case DType::bf16:
      base = hdf5().T_STD_U16LE();
      break;
    case DType::i64:
      base = hdf5().T_STD_I64LE();
      break;
    case DType::i32:
      base = hdf5().T_STD_I32LE();
      break;
    case DType::u8:
    case DType::boolean:
      base = hdf5().T_STD_U8LE();
      break;
  }
  const hid_t type = hdf5().Tcopy(base);
  if (dtype == DType::f16) {
    // IEEE binary16: sign at bit 15, five exponent bits from 10, ten significand bits from 0.
    hdf5().Tset_fields(type, 15, 10, 5, 0, 10);
    hdf5().Tset_size(type, 2);
    hdf5().Tset_ebias(type, 15);
  }
  return {type, hdf5().Tclose};
}

/// The file being read, and errors that name it.
struct Source {
  std::string path;
  template <class... Parts>
  [[noreturn]] void bad(const Parts&... parts) const {
    fail("checkpoint: ", printable(str(path, ": ", parts...)));
  }
  hid_t read(hid_t result, const std::string& what) const {
    if (result < 0) bad("damaged: ", what, " cannot be read. Resume from another checkpoint");
    return result;
  }
};

/// Opens an attribute of the expected class: another class means damage, or another program's file.
Id open_attribute(const Source& source, hid_t object, const std::string& name, H5T_class_t kind) {
  Id attribute(source.read(hdf5().Aopen(object, name.c_str(), H5P_DEFAULT), "attribute '" + name + "'"), hdf5().Aclose);
  const Id type(source.read(hdf5().Aget_type(attribute), "attribute '" + name + "'"), hdf5().Tclose);
  const Id space(source.read(hdf5().Aget_space(attribute), "attribute '" + name + "'"), hdf5().Sclose);
  if (hdf5().Tget_class(type) != kind || hdf5().Sget_simple_extent_npoints(space) != 1 ||
      (kind == H5T_STRING && hdf5().Tis_variable_str(type) != 0))
    source.bad("attribute '", name, "' is of another kind than Weft writes");
  return attribute;
}

int64_t read_integer(const Source& source, hid_t object, const std::string& name) {
  int64_t value = 0;
  const Id attribute = open_attribute(source, object, name, H5T_INTEGER);
  source.read(hdf5().Aread(attribute, hdf5().T_NATIVE_INT64(), &value), "attribute '" + name + "'");
  return value;
}

double read_number(const Source& source, hid_t object, const std::string& name) {
  double value = 0;
  const Id attribute = open_attribute(source, object, name, H5T_FLOAT);
  source.read(hdf5().Aread(attribute, hdf5().T_NATIVE_DOUBLE(), &value), "attribute '" + name + "'");
  return value;
}

std::string read_text(const Source& source, hid_t object, const std::string& name) {
  const Id attribute = open_attribute(source, object, name, H5T_STRING);
  const Id type(source.read(hdf5().Aget_type(attribute), "attribute '" + name + "'"), hdf5().Tclose);
  std::string text(hdf5().Tget_size(type), '\0');
  source.read(hdf5().Aread(attribute, type, text.data()), "attribute '" + name + "'");
  text.erase(std::find(text.begin(), text.end(), '\0'), text.end());
  return text;
}

/// The names of an object's attributes that begin with `prefix`, without it.
std::vector<std::string> attribute_names(const Source& source, hid_t object, const std::string& prefix) {
  std::vector<std::string> names;
  const auto collect = [](hid_t, const char* attribute, const H5A_info_t*, void* to) -> herr_t {
    static_cast<std::vector<std::string>*>(to)->emplace_back(attribute);
    return 0;
  };
  source.read(hdf5().Aiterate2(object, H5_INDEX_NAME, H5_ITER_INC, nullptr, collect, &names), "the list of attributes");
  std::erase_if(names, [&](const std::string& attribute) { return !attribute.starts_with(prefix); });
  for (std::string& attribute : names) attribute.erase(0, prefix.size());
  return names;
}

DType read_dtype(const Source& source, hid_t dataset, const std::string& tensor) {
  const std::string text = read_text(source, dataset, "dtype");
  for (const DType dtype :
       {DType::f32, DType::f64, DType::bf16, DType::f16, DType::i64, DType::i32, DType::u8, DType::boolean})
    if (name(dtype) == text) return dtype;
  source.bad("tensor '", tensor, "' has the unknown dtype '", text, "'");
}

Shape read_shape(const Source& source, hid_t dataset, const std::string& tensor) {
  const Id space(source.read(hdf5().Dget_space(dataset), "tensor '" + tensor + "'"), hdf5().Sclose);
  const int rank = hdf5().Sget_simple_extent_ndims(space);
  if (rank < 0 || rank > kMaxRank) source.bad("tensor '", tensor, "' has ", rank, " dimensions, at most ", kMaxRank);
  std::array<hsize_t, kMaxRank> sizes{};
  hdf5().Sget_simple_extent_dims(space, sizes.data(), nullptr);
  Shape shape;
  for (int d = 0; d < rank; ++d) shape.push_back(static_cast<int64_t>(sizes[d]));
  return shape;
}

Tensor read_tensor(const Source& source, hid_t group, const std::string& tensor, int64_t& index) {
  const Id dataset = hdf5_dataset(group, tensor.c_str());
  source.read(hid_t{dataset}, "tensor '" + tensor + "'");
  const DType dtype = read_dtype(source, dataset, tensor);
  const Shape shape = read_shape(source, dataset, tensor);
  const Id type = element_type(dtype);
  const Id stored(source.read(hdf5().Dget_type(dataset), "tensor '" + tensor + "'"), hdf5().Tclose);
  if (hdf5().Tequal(type, stored) <= 0) source.bad("tensor '", tensor, "' is not stored as its dtype ", dtype);
  index = read_integer(source, dataset, "index");
  // Check the data's size before allocating: a damaged shape could ask for any amount.
  uint64_t bytes = size_of(dtype);
  for (const int64_t size : shape)
    if (size < 0 || __builtin_mul_overflow(bytes, static_cast<uint64_t>(size), &bytes)) bytes = ~uint64_t{0};
  if (hdf5().Dget_storage_size(dataset) != bytes)
    source.bad("damaged: tensor '", tensor, "' has data of another size than its shape");
  const Tensor result = Tensor::empty(shape, dtype);
  if (bytes > 0)
    source.read(hdf5().Dread(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, result.raw_data()),
                "tensor '" + tensor + "'");
  const auto expected = static_cast<uint32_t>(read_integer(source, dataset, "crc32c"));
  const uint32_t got = crc32c(result.raw_data(), bytes);
  if (got != expected)
    source.bad("damaged: tensor '", tensor, "' has checksum ", got, ", expected ", expected,
               ". Resume from another checkpoint");
  return result;
}

StateDict read_part(const Source& source, hid_t file, const std::string& part) {
  const Id group = hdf5_group(file, part.c_str());
  source.read(hid_t{group}, "part '" + part + "'");
  std::vector<std::string> names;
  const auto collect = [](hid_t, const char* link, const H5L_info_t*, void* to) -> herr_t {
    static_cast<std::vector<std::string>*>(to)->emplace_back(link);
    return 0;
  };
  source.read(hdf5().Literate(group, H5_INDEX_NAME, H5_ITER_INC, nullptr, collect, &names), "the list of tensors");
  std::vector<std::pair<int64_t, NamedTensor>> found;
  for (const std::string& tensor : names) {
    int64_t index = 0;
    Tensor value = read_tensor(source, group, tensor, index);
    found.emplace_back(index, NamedTensor{tensor, std::move(value)});
  }
  std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  StateDict state;
  for (auto& [index, entry] : found) state.tensors.push_back(std::move(entry));
  for (const std::string& scalar : attribute_names(source, group, "number:"))
    state.scalars.push_back({scalar, read_number(source, group, "number:" + scalar)});
  return state;
}

}  // namespace

Checkpoint load_hdf5_checkpoint(const fs::path& path) {
  const Source source{path.string()};
  const Hdf5Quiet quiet;
  const SealState state = check_seal(path);
  if (state == SealState::missing)
    source.bad("damaged or cut short: it does not end with a seal. Resume from another checkpoint");
  if (state == SealState::broken)
    source.bad("damaged: its bytes do not fit the checksum at its end. Resume from another checkpoint");
  const Id file(hdf5().Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), hdf5().Fclose);
  if (!file.valid()) source.bad("damaged or cut short. Resume from another checkpoint");
  if (hdf5().Aexists(file, "weft_format") <= 0) source.bad("expected a checkpoint of Weft, got another HDF5 file");
  const int64_t format = read_integer(source, file, "weft_format");
  if (format != kHdf5Format)
    source.bad("expected format ", kHdf5Format, ", got ", format, ". Use the Weft that wrote it");

  Checkpoint checkpoint;
  for (const std::string& key : attribute_names(source, file, "integer:"))
    checkpoint.integers[key] = read_integer(source, file, "integer:" + key);
  for (const std::string& key : attribute_names(source, file, "number:"))
    checkpoint.numbers[key] = read_number(source, file, "number:" + key);
  for (const std::string& key : attribute_names(source, file, "text:"))
    checkpoint.texts[key] = read_text(source, file, "text:" + key);
  const std::string parts = read_text(source, file, "parts");
  for (size_t begin = 0; begin < parts.size();) {
    const size_t end = std::min(parts.find('\n', begin), parts.size());
    const std::string part = parts.substr(begin, end - begin);
    checkpoint.parts.emplace_back(part, read_part(source, file, part));
    begin = end + 1;
  }
  return checkpoint;
}

}  // namespace weft
