// SPDX-License-Identifier: Apache-2.0
// pack: a folder of images into one file. A parallel file system opens one file a thousand times faster than a million
// files.
#include <filesystem>
#include <iostream>

#include "apps/jsc/course.h"
#include "apps/jsc/encoded_part.h"
#include "apps/support/flags.h"
#include "core/text.h"
#include "data/image_writer.h"
#include "io/crc32c.h"
#include "train/exit.h"
#include "train/progress.h"

namespace weft::jsc {
namespace {

namespace fs = std::filesystem;

struct PackOptions {
  std::string data_root = "data/hymenoptera_data";
  std::string storage = "h5";
  std::string out;
  bool dry_run = false;
};

bool parse(int argc, char** argv, PackOptions& o) {
  support::Flags flags(
      "pack",
      "Packs a folder of images, with all its parts, into one file that one_gpu, ddp, train_image and "
      "load_bench read: an HDF5 file in the layout of JSC's course, or Weft's packed format. The files' "
      "bytes are kept as they are, and compared with the folder's before the file gets its name.");
  flags.add("data_root", o.data_root, "folder with train/CLASS/*.jpg, val/CLASS/*.jpg, test/…; or ImageNet's ILSVRC/");
  flags.add_choice("dset_type", o.storage, {"h5", "packed"}, "what to write");
  flags.add("out", o.out, "the file; none: beside the folder, with its name and .h5 or .packed");
  flags.add("dry_run", o.dry_run, "look at the folder, say what would be packed, write nothing");
  flags.example("pack --data_root data/hymenoptera_data --dset_type h5");
  flags.example("pack --data_root ILSVRC --dset_type packed --out imagenet.packed");
  return flags.parse(with_underscores(argc, argv));
}

/// The packed images of a part: a checksum and a label for each image.
struct Packed {
  std::string part;
  std::vector<uint32_t> crcs;
  std::vector<int64_t> labels;
};

/// Calls visit(bytes, label) for each image.
template <class Visit>
void for_each_image(const data::EncodedDataset& set, const std::string& title, train::Progress& progress,
                    Visit&& visit) {
  std::vector<uint8_t> buffer;
  progress.begin(title, set.size());
  for (int64_t i = 0; i < set.size(); ++i) {
    visit(set.encoded(i, buffer), set.label(i));
    progress.step({.images = 1});
  }
  progress.end("done");
}

uint32_t crc_of(std::span<const uint8_t> bytes) { return crc32c(bytes.data(), bytes.size()); }

std::vector<Packed> write(const PackOptions& o, const fs::path& file, train::Progress& progress) {
  std::vector<Packed> all;
  std::unique_ptr<data::ImageWriter> writer;
  for (const std::string& part : parts_of("fs", o.data_root)) {
    const auto set = open_part("fs", o.data_root, part);
    std::cout << set->describe() << std::endl;
    if (!writer)
      writer = o.storage == "h5" ? data::hdf5_writer(file, set->classes()) : data::packed_writer(file, set->classes());
    writer->begin_part(part, set->size());
    Packed& packed = all.emplace_back(Packed{part, {}, {}});
    for_each_image(*set, "pack " + part, progress, [&](std::span<const uint8_t> bytes, int64_t label) {
      writer->add(bytes, label);
      packed.crcs.push_back(crc_of(bytes));
      packed.labels.push_back(label);
    });
  }
  writer->commit();
  return all;
}

void verify(const PackOptions& o, const fs::path& file, const std::vector<Packed>& all, train::Progress& progress) {
  for (const Packed& packed : all) {
    const auto set = open_part(o.storage, file.string(), packed.part);
    size_t i = 0;
    WEFT_CHECK(set->size() == static_cast<int64_t>(packed.crcs.size()), "pack: expected ", packed.crcs.size(),
               " images in part ", packed.part, ", read back ", set->size());
    for_each_image(*set, "verify " + packed.part, progress, [&](std::span<const uint8_t> bytes, int64_t label) {
      WEFT_CHECK(crc_of(bytes) == packed.crcs[i] && label == packed.labels[i],
                 "pack: ", printable(set->origin(static_cast<int64_t>(i))),
                 " reads back with other bytes than were written");
      ++i;
    });
  }
}

void say_plan(const PackOptions& o) {
  for (const std::string& part : parts_of("fs", o.data_root)) {
    std::cout << open_part("fs", o.data_root, part)->describe() << '\n';
  }
  std::cout << "would write " << o.out << std::endl;
}

int run(int argc, char** argv) {
  PackOptions o;
  if (!parse(argc, argv, o)) return train::kExitOk;
  const Stopwatch watch;
  WEFT_CHECK(fs::is_directory(o.data_root), "--data_root: expected a folder of images, got ", o.data_root,
             fs::exists(o.data_root) ? ", which is a file" : ", which does not exist");
  if (o.out.empty()) o.out = (fs::path(o.data_root) / "").parent_path().string() + "." + o.storage;
  // Readers see the file under its name only when it has been read back.
  const fs::path out = o.out, beside = out.parent_path() / str(".unverified.", out.filename().string());
  WEFT_CHECK(!fs::is_directory(out), "--out: expected a file, got the folder ", o.out);
  if (o.dry_run) {
    say_plan(o);
    return train::kExitOk;
  }
  train::Progress progress;
  try {
    const std::vector<Packed> all = write(o, beside, progress);
    verify(o, beside, all, progress);
    fs::rename(beside, out);
  } catch (...) {
    std::error_code ignored;
    fs::remove(beside, ignored);
    throw;
  }
  std::cout << "wrote " << o.out << ", " << fs::file_size(out) << " bytes\n"
            << elapsed_line(watch.seconds()) << std::endl;
  return train::kExitOk;
}

}  // namespace
}  // namespace weft::jsc

int main(int argc, char** argv) {
  return weft::train::guarded_main("pack", [&] { return weft::jsc::run(argc, argv); });
}
