// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cerrno>

#include "data/image_writer.h"
#include "io/atomic_file.h"
#include "io/hdf5/hdf5_handle.h"
#include "kernels/error.h"

namespace weft::data {
namespace {

/// The error of a write to the disk; HDF5 passes errno on only inside its texts.
struct WriteFailed {
  int error_number;
};

hid_t wrote(hid_t result) {
  if (result < 0) throw WriteFailed{errno != 0 ? errno : EIO};
  return result;
}

class Hdf5Writer final : public ImageWriter {
 public:
  Hdf5Writer(const std::filesystem::path& path, const std::vector<std::string>& classes)
      : output_(path, "hdf5"),
        count_("hdf5", classes),
        file_(-1, hdf5().Fclose),
        part_(-1, hdf5().Gclose),
        images_(-1, hdf5().Dclose) {
    constexpr size_t kMostClasses = 1 << 15;  // targets are i16
    WEFT_CHECK(classes.size() <= kMostClasses, "hdf5: expected at most ", kMostClasses, " classes, got ",
               classes.size());
    guarded([&] {
      file_ = Hdf5Id(wrote(hdf5().Fcreate(output_.temporary().c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT)),
                     hdf5().Fclose);
      write_classes(classes);
    });
  }

  void begin_part(const std::string& name, int64_t count) override {
    count_.begin_part(name, count);
    guarded([&] {
      end_part();
      part_ = Hdf5Id(wrote(hdf5().Gcreate2(file_, name.c_str(), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT)), hdf5().Gclose);
      const auto length = static_cast<hsize_t>(count);
      const Hdf5Id space(wrote(hdf5().Screate_simple(1, &length, nullptr)), hdf5().Sclose);
      images_ = Hdf5Id(wrote(hdf5().Dcreate2(part_, "images", sequence_, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT)),
                       hdf5().Dclose);
    });
  }

  void add(std::span<const uint8_t> bytes, int64_t label) override {
    count_.add(bytes, label);
    guarded([&] {
      const Hdf5Id space(wrote(hdf5().Dget_space(images_)), hdf5().Sclose),
          one(wrote(hdf5().Screate(H5S_SCALAR)), hdf5().Sclose);
      const hsize_t index = targets_.size(), length = 1;
      wrote(hdf5().Sselect_hyperslab(space, H5S_SELECT_SET, &index, nullptr, &length, nullptr));
      const hvl_t sequence{bytes.size(), const_cast<uint8_t*>(bytes.data())};  // HDF5 only reads it
      wrote(hdf5().Dwrite(images_, sequence_, one, space, H5P_DEFAULT, &sequence));
    });
    targets_.push_back(static_cast<int16_t>(label));
  }

  void commit() override {
    count_.finish();
    guarded([&] {
      end_part();
      if (!file_.close()) throw WriteFailed{errno != 0 ? errno : EIO};
    });
    output_.commit();
  }

 private:
  /// Runs one piece of writing; its failure becomes the error of the file.
  template <class Body>
  void guarded(Body&& body) {
    try {
      errno = 0;
      body();
    } catch (const WriteFailed& failure) {
      output_.fail_write(failure.error_number);
    }
  }

  /// `classes` of the root: texts of one length, with zeros after the short ones.
  void write_classes(const std::vector<std::string>& classes) {
    size_t longest = 1;
    for (const std::string& name : classes) longest = std::max(longest, name.size());
    std::string texts;
    for (const std::string& name : classes) texts += name, texts.append(longest - name.size(), '\0');
    const Hdf5Id type(wrote(hdf5().Tcopy(hdf5().T_C_S1())), hdf5().Tclose);
    hdf5().Tset_size(type, longest);
    hdf5().Tset_strpad(type, H5T_STR_NULLPAD);
    hdf5().Tset_cset(type, H5T_CSET_UTF8);
    const hsize_t count = classes.size();
    const Hdf5Id space(wrote(hdf5().Screate_simple(1, &count, nullptr)), hdf5().Sclose);
    const Hdf5Id attribute(wrote(hdf5().Acreate2(file_, "classes", type, space, H5P_DEFAULT, H5P_DEFAULT)),
                           hdf5().Aclose);
    wrote(hdf5().Awrite(attribute, type, texts.data()));
  }

  void end_part() {
    if (!part_.valid()) return;
    const hsize_t length = targets_.size();
    const Hdf5Id space(wrote(hdf5().Screate_simple(1, &length, nullptr)), hdf5().Sclose);
    Hdf5Id targets(
        wrote(hdf5().Dcreate2(part_, "targets", hdf5().T_STD_I16LE(), space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT)),
        hdf5().Dclose);
    wrote(hdf5().Dwrite(targets, hdf5().T_NATIVE_INT16(), H5S_ALL, H5S_ALL, H5P_DEFAULT, targets_.data()));
    if (!targets.close() || !images_.close() || !part_.close()) throw WriteFailed{errno != 0 ? errno : EIO};
    targets_.clear();
  }

  const Hdf5Quiet quiet_;
  AtomicFile output_;
  PartCount count_;
  const Hdf5Id sequence_{hdf5().Tvlen_create(hdf5().T_STD_U8LE()), hdf5().Tclose};
  Hdf5Id file_, part_, images_;
  std::vector<int16_t> targets_;
};

}  // namespace

std::unique_ptr<ImageWriter> hdf5_writer(const std::filesystem::path& path, std::vector<std::string> classes) {
  return std::make_unique<Hdf5Writer>(path, classes);
}

}  // namespace weft::data
