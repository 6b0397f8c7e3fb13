// SPDX-License-Identifier: Apache-2.0
#include "io/hdf5/read_hdf5.h"

#include <array>
#include <vector>

#include "io/hdf5/hdf5_open.h"
#include "io/stored_dtype.h"

namespace weft {
namespace {

constexpr int kMostDims = 8;

/// The first datasets of a file or group, which errors suggest.
std::vector<std::string> datasets_of(hid_t file) {
  std::vector<std::string> names;
  const auto add = [](hid_t, const char* name, const H5L_info_t*, void* to) -> herr_t {
    constexpr size_t kMost = 1000;
    auto& all = *static_cast<std::vector<std::string>*>(to);
    all.emplace_back(name);
    return all.size() == kMost ? 1 : 0;
  };
  hdf5().Lvisit(file, H5_INDEX_NAME, H5_ITER_NATIVE, add, &names);
  std::erase_if(names, [&](const std::string& name) { return !hdf5_dataset(file, name.c_str()).valid(); });
  return names;
}

/// The dtype that a dataset's elements are read as and HDF5's type for it in memory; -1: none here.
struct MemoryType {
  DType dtype = DType::f32;
  hid_t type = -1;
};

/// Whether `stored` is how h5py writes truths: an enum of bytes FALSE = 0 and TRUE = 1.
bool is_truth(hid_t stored) {
  const auto has = [&](const char* name, int8_t wanted) {
    int8_t value = -1;
    return hdf5().Tenum_valueof(stored, name, &value) >= 0 && value == wanted;
  };
  return hdf5().Tget_class(stored) == H5T_ENUM && hdf5().Tget_size(stored) == 1 && hdf5().Tget_nmembers(stored) == 2 &&
         has("FALSE", 0) && has("TRUE", 1);
}

MemoryType memory_type(hid_t stored) {
  if (is_truth(stored)) return {DType::boolean, stored};
  const size_t bytes = hdf5().Tget_size(stored);
  const H5T_class_t kind = hdf5().Tget_class(stored);
  constexpr size_t kHalfBias = 15;  // a bf16 has another bias of the exponent
  if (kind == H5T_FLOAT && (bytes == 4 || (bytes == 2 && hdf5().Tget_ebias(stored) == kHalfBias)))
    return {bytes == 4 ? DType::f32 : DType::f16, hdf5().T_NATIVE_FLOAT()};  // an f16 by f32, which holds all of them
  if (kind == H5T_FLOAT && bytes == 8) return {DType::f64, hdf5().T_NATIVE_DOUBLE()};
  if (kind != H5T_INTEGER) return {};
  const bool is_signed = hdf5().Tget_sign(stored) == H5T_SGN_2;
  if (bytes == 1 && !is_signed) return {DType::u8, hdf5().T_STD_U8LE()};
  if (bytes < 4 || (bytes == 4 && is_signed)) return {DType::i32, hdf5().T_NATIVE_INT32()};
  if (bytes == 4 || (bytes == 8 && is_signed)) return {DType::i64, hdf5().T_NATIVE_INT64()};
  return {};
}

}  // namespace

Tensor read_hdf5(const std::filesystem::path& path, const std::string& name) {
  const FileReader file(path, "hdf5");
  const std::lock_guard lock(hdf5_mutex());
  const Hdf5Quiet quiet;
  const Hdf5Id opened = hdf5_file(file);
  const Hdf5Id dataset = hdf5_dataset(opened, name.c_str());
  if (!dataset.valid()) {
    if (const Hdf5Id group = hdf5_group(opened, name.c_str()); group.valid()) {
      std::vector<std::string> names = datasets_of(group);
      for (std::string& one : names) one = str(name, name.ends_with('/') ? "" : "/", one);
      file.bad("expected a dataset '", name, "', got a group. It has ",
               names.empty() ? "no datasets" : joined(names, 8));
    }
    const std::vector<std::string> names = datasets_of(opened);
    file.bad("expected a dataset '", name, "', got none", hdf5_elsewhere(opened, name.c_str()), ".",
             names.empty() ? " The file has no datasets" : suggestion(name, names));
  }
  const auto bad = [&](const auto&... parts) { file.bad("dataset '", name, "': ", parts...); };
  const Hdf5Id space(hdf5().Dget_space(dataset), hdf5().Sclose), type(hdf5().Dget_type(dataset), hdf5().Tclose);
  const int rank = hdf5().Sget_simple_extent_ndims(space);
  if (rank < 0 || rank > kMostDims) bad("expected at most ", kMostDims, " dimensions, got ", rank);
  std::array<hsize_t, kMostDims> dims{};
  hdf5().Sget_simple_extent_dims(space, dims.data(), nullptr);
  const Shape sizes(std::vector<int64_t>(dims.begin(), dims.begin() + rank));
  if (!is_countable(sizes)) bad("expected fewer than 2^60 numbers, got ", sizes);
  if (hdf5().Sget_simple_extent_npoints(space) != sizes.numel()) bad("expected numbers, got an empty dataset");
  const MemoryType memory = memory_type(type);
  if (memory.type < 0)
    bad("expected booleans, floats of 16, 32 or 64 bits, or integers up to i64, got another type (h5dump -H shows it)");
  if (const std::string missing = hdf5_missing_filter(dataset); !missing.empty()) bad(missing);
  const Tensor values = Tensor::empty(sizes, memory.dtype == DType::f16 ? DType::f32 : memory.dtype);
  if (values.numel() > 0 && hdf5().Dread(dataset, memory.type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.raw_data()) < 0)
    bad("cannot be read. Is the file whole?");
  if (memory.dtype == DType::boolean)
    for (const auto *at = static_cast<const uint8_t*>(values.raw_data()), *end = at + values.numel(); at != end; ++at)
      if (*at > 1) bad("expected FALSE (0) or TRUE (1), got ", int{*at});
  return values.to(memory.dtype);
}

}  // namespace weft
