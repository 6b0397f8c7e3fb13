// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <array>

#include "io/checkpoint.h"
#include "io/crc32c.h"
#include "io/hdf5/hdf5_handle.h"
#include "io/seal.h"

namespace weft::tests {

// Writes checkpoints as earlier versions of Weft did (the layout is in io/hdf5/hdf5_checkpoint.cpp). Needs HDF5.

namespace hdf5_checkpoint {

inline Hdf5Id element_type(DType dtype) {
  const Hdf5Library& h = hdf5();
  const bool is_16_bits = dtype == DType::f16;
  const hid_t base = dtype == DType::f32 || is_16_bits ? h.T_IEEE_F32LE()
                     : dtype == DType::f64             ? h.T_IEEE_F64LE()
                     : dtype == DType::bf16            ? h.T_STD_U16LE()
                     : dtype == DType::i64             ? h.T_STD_I64LE()
                     : dtype == DType::i32             ? h.T_STD_I32LE()
                                                       : h.T_STD_U8LE();
  const hid_t type = h.Tcopy(base);
  if (is_16_bits) {
    h.Tset_fields(type, 15, 10, 5, 0, 10);
    h.Tset_size(type, 2);
    h.Tset_ebias(type, 15);
  }
  return {type, h.Tclose};
}

inline void write_attribute(hid_t object, const std::string& name, hid_t type, const void* value) {
  const Hdf5Library& h = hdf5();
  const Hdf5Id space(h.Screate(H5S_SCALAR), h.Sclose);
  const Hdf5Id attribute(h.Acreate2(object, name.c_str(), type, space, H5P_DEFAULT, H5P_DEFAULT), h.Aclose);
  WEFT_CHECK(h.Awrite(attribute, type, value) >= 0, "cannot write ", name);
}

inline void write_integer(hid_t object, const std::string& name, int64_t value) {
  write_attribute(object, name, hdf5().T_STD_I64LE(), &value);
}

inline void write_number(hid_t object, const std::string& name, double value) {
  write_attribute(object, name, hdf5().T_IEEE_F64LE(), &value);
}

inline void write_text(hid_t object, const std::string& name, const std::string& text) {
  const Hdf5Library& h = hdf5();
  const Hdf5Id type(h.Tcopy(h.T_C_S1()), h.Tclose);
  h.Tset_size(type, std::max<size_t>(text.size(), 1));
  h.Tset_strpad(type, H5T_STR_NULLPAD);
  h.Tset_cset(type, H5T_CSET_UTF8);
  write_attribute(object, name, type, text.c_str());
}

inline void write_tensor(hid_t group, const NamedTensor& entry, int64_t index) {
  const Hdf5Library& h = hdf5();
  const Tensor dense = entry.tensor.detach().to(Device{}).contiguous();
  const Shape shape = dense.sizes();
  std::array<hsize_t, kMaxRank> sizes{};
  std::copy(shape.begin(), shape.end(), sizes.begin());
  const Hdf5Id type = element_type(dense.dtype());
  const Hdf5Id space(shape.rank() == 0 ? h.Screate(H5S_SCALAR) : h.Screate_simple(shape.rank(), sizes.data(), nullptr),
                     h.Sclose);
  const Hdf5Id dataset(h.Dcreate2(group, entry.name.c_str(), type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT),
                       h.Dclose);
  write_text(dataset, "dtype", std::string(name(dense.dtype())));
  write_integer(dataset, "crc32c", crc32c(dense.raw_data(), dense.nbytes()));
  write_integer(dataset, "index", index);
  if (dense.numel() > 0) h.Dwrite(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, dense.raw_data());
}

}  // namespace hdf5_checkpoint

inline void write_hdf5_checkpoint(const std::filesystem::path& path, const Checkpoint& checkpoint) {
  using namespace hdf5_checkpoint;
  const Hdf5Library& h = hdf5();
  AtomicFile target(path, "test");
  {
    const Hdf5Id access(h.Pcreate(h.P_CLS_FILE_ACCESS_ID()), h.Pclose);
    h.Pset_libver_bounds(access, H5F_LIBVER_V18, H5F_LIBVER_V18);
    const Hdf5Id file(h.Fcreate(target.temporary().c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, access), h.Fclose);
    WEFT_CHECK(file.valid(), "cannot create ", path.string());
    write_integer(file, "weft_format", 2);
    for (const auto& [name, value] : checkpoint.integers) write_integer(file, "integer:" + name, value);
    for (const auto& [name, value] : checkpoint.numbers) write_number(file, "number:" + name, value);
    for (const auto& [name, value] : checkpoint.texts) write_text(file, "text:" + name, value);
    std::string parts;
    for (const auto& [part, state] : checkpoint.parts) {
      parts += (parts.empty() ? "" : "\n") + part;
      const Hdf5Id group(h.Gcreate2(file, part.c_str(), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT), h.Gclose);
      for (const NamedScalar& scalar : state.scalars) write_number(group, "number:" + scalar.name, scalar.value);
      int64_t index = 0;
      for (const NamedTensor& entry : state.tensors) write_tensor(group, entry, index++);
    }
    write_text(file, "parts", parts);
  }
  seal(target);
  target.commit();
}

}  // namespace weft::tests
