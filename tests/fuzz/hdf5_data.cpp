// SPDX-License-Identifier: Apache-2.0
// HDF5 files that are whole, but whose images or fields are not as Weft or the courses' scripts write them. Input:
// steps that change a file of both kinds.
#include "data/hdf5_fields.h"
#include "data/hdf5_images.h"
#include "data/image_writer.h"
#include "io/file_reader.h"
#include "tests/fuzz/hdf5_steps.h"

using namespace weft;

namespace {

constexpr std::array kNames{"train", "val", "images", "targets", "fields", "classes", "new\nline", "test"};
constexpr std::array kPlaces{"/", "/train", "/val"};

std::vector<uint8_t> start(const std::filesystem::path& path) {
  const auto writer = data::hdf5_writer(path, {"ants", "bees"});
  writer->begin_part("train", 2);
  writer->add(std::vector<uint8_t>{1, 2, 3}, 1);
  writer->add(std::vector<uint8_t>{4}, 0);
  writer->begin_part("val", 1);
  writer->add(std::vector<uint8_t>{5}, 0);
  writer->commit();
  return read_file(path);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const fuzz::Folder folder;
  fuzz::Input input(data, size);
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  const auto path = folder.path() / "data.h5";
  static const std::vector<uint8_t> whole = start(path);
  folder.write("data.h5", whole);
  const hid_t file = H5Fopen(path.c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
  if (file < 0) std::abort();
  const fuzz::Hdf5Steps steps{.places = kPlaces, .names = kNames, .linked = "/train"};
  for (int step = 0; step < 64 && !input.empty(); ++step) steps.add(file, input);
  if (H5Fclose(file) < 0) std::abort();
  fuzz::expect_value_or_error([&] {
    const auto fields = data::open_fields(path);
    data::FieldSize window = fields->size();
    std::vector<float> values(static_cast<size_t>(window.values()));
    fields->read(window.times - 1, window, values.data());
  });
  std::vector<std::string> parts;
  fuzz::expect_value_or_error([&] { parts = data::hdf5_parts(path); });
  std::vector<uint8_t> buffer;
  for (const std::string& part : parts)
    fuzz::expect_value_or_error([&] {
      const auto set = data::hdf5_images(path, part);
      for (int64_t i = 0; i < set->size(); ++i) {
        static_cast<void>(set->classes().at(static_cast<size_t>(set->label(i))));
        set->encoded(i, buffer);
      }
    });
  return 0;
}
