// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <mutex>
#include <utility>

#include "io/hdf5/hdf5_library.h"

namespace weft {

/// Held while libhdf5 opens and reads a dataset: the library has one lock at best.
inline std::mutex& hdf5_mutex() {
  static std::mutex mutex;
  return mutex;
}

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

/// How an object of class H5P_LINK_ACCESS, H5P_GROUP_ACCESS or H5P_DATASET_ACCESS is opened if it lies in the file
/// itself: not through a link to another file, which may be anything that its name stands for, such as a named pipe.
inline Hdf5Id hdf5_inside(hid_t access_class) {
  Hdf5Id list(hdf5().Pcreate(access_class), hdf5().Pclose);
  const H5L_elink_traverse_t refuse = [](const char*, const char*, const char*, const char*, unsigned*, hid_t,
                                         void*) -> herr_t { return -1; };
  hdf5().Pset_elink_cb(list, refuse, nullptr);
  return list;
}

/// The group `name` below `parent`; invalid: there is none in this file.
inline Hdf5Id hdf5_group(hid_t parent, const char* name) {
  return {hdf5().Gopen2(parent, name, hdf5_inside(hdf5().P_CLS_GROUP_ACCESS_ID())), hdf5().Gclose};
}

/// The dataset `name` below `parent`; invalid: there is none whose values lie in this file.
inline Hdf5Id hdf5_dataset(hid_t parent, const char* name) {
  Hdf5Id set(hdf5().Dopen2(parent, name, hdf5_inside(hdf5().P_CLS_DATASET_ACCESS_ID())), hdf5().Dclose);
  if (!set.valid()) return set;
  const Hdf5Id plist(hdf5().Dget_create_plist(set), hdf5().Pclose);
  if (hdf5().Pget_layout(plist) == H5D_VIRTUAL || hdf5().Pget_external_count(plist) != 0) set.close();
  return set;
}

/// The end of the error about a dataset or group `name` that cannot be opened: the reason if `name` is a link, or a
/// group where a dataset is meant.
inline const char* hdf5_elsewhere(hid_t parent, const char* name) {
  if (hdf5_group(parent, name).valid()) return ": it is a group";
  const bool is_there = hdf5().Lexists(parent, name, hdf5_inside(hdf5().P_CLS_LINK_ACCESS_ID())) > 0;
  return is_there
             ? ": it is a link that leads nowhere, or lies in another file (external or virtual). Copy it into this one"
             : "";
}

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
