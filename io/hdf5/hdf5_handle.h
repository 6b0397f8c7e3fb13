// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <utility>

#include "io/hdf5/hdf5_library.h"

namespace weft {

/// An HDF5 identifier that closes itself.
class Hdf5Id {
 public:
  using Close = herr_t (*)(hid_t);
  Hdf5Id(hid_t id, Close closer) : id_(id), closer_(closer) {}
  ~Hdf5Id() {
    if (id_ >= 0) closer_(id_);
  }
  Hdf5Id(Hdf5Id&& other) noexcept : id_(std::exchange(other.id_, -1)), closer_(other.closer_) {}
  Hdf5Id& operator=(Hdf5Id&& other) noexcept {
    std::swap(id_, other.id_);
    std::swap(closer_, other.closer_);
    return *this;
  }
  operator hid_t() const { return id_; }  // NOLINT(google-explicit-constructor)
  bool valid() const { return id_ >= 0; }
  /// Closes now; returns whether that succeeded.
  bool close() {
    const hid_t id = std::exchange(id_, -1);
    return id < 0 || closer_(id) >= 0;
  }

 private:
  hid_t id_;
  Close closer_;
};

/// While it lives, HDF5 prints no traces of its errors on stderr.
class Hdf5Quiet {
 public:
  Hdf5Quiet() {
    hdf5().Eget_auto2(H5E_DEFAULT, &handler_, &data_);
    hdf5().Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  }
  ~Hdf5Quiet() { hdf5().Eset_auto2(H5E_DEFAULT, handler_, data_); }
  Hdf5Quiet(const Hdf5Quiet&) = delete;
  Hdf5Quiet& operator=(const Hdf5Quiet&) = delete;

 private:
  H5E_auto2_t handler_ = nullptr;
  void* data_ = nullptr;
};

}  // namespace weft
