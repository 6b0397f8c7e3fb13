// SPDX-License-Identifier: Apache-2.0
// load_bench: how fast images come out of a folder, an HDF5 file, or a packed file.
#include <algorithm>
#include <iostream>
#include <thread>

#include "apps/jsc/course.h"
#include "apps/jsc/encoded_part.h"
#include "apps/jsc/load_measure.h"
#include "apps/support/flags.h"
#include "data/image_loader.h"
#include "data/transforms/resize.h"
#include "dist/group/world.h"
#include "train/exit.h"
#include "train/progress.h"

namespace weft::jsc {
namespace {

struct BenchOptions {
  std::string storage = "fs";
  std::string data_root = "data/hymenoptera_data";
  int64_t batch_size = 2048;
  int64_t workers = -1;
  int64_t epochs = 1;
  std::string part = "train";
  bool shuffle = false, read_only = false, decode_only = false, raw = false;
  int64_t seed = 42;
  bool dry_run = false;
};

bool parse(int argc, char** argv, BenchOptions& o) {
  support::Flags flags("load_bench",
                       "Times how fast training images come out of a folder, an HDF5 file or a packed file (`pack` "
                       "writes both): read, decoded, resized to 256x256, cut to 224x224, mirrored, normalised, in "
                       "batches. Under srun each task takes its part.");
  flags.add_choice("dset_type", o.storage, kStorages, "how the images are kept");
  flags.add("data_root", o.data_root,
            "the folder (train/CLASS/*.jpg, or ImageNet's ILSVRC/), the file, or the folder that holds the file (-d)");
  flags.add("batch_size", o.batch_size, "images in a batch", {.min = 1, .max = 1e9});
  flags.add("workers", o.workers, "threads; 0: the one that asks for batches; -1: SLURM_CPUS_PER_TASK, or all cores",
            {.min = -1, .max = 1024});
  flags.add("epochs", o.epochs, "passes over the images; with --raw, of each of five rounds, whose median counts",
            {.min = 1, .max = 1e6});
  flags.add_choice("part", o.part, {"train", "val", "test"}, "which part");
  flags.add("shuffle", o.shuffle, "in random order, another one in each epoch");
  flags.add("seed", o.seed, "of the order and the transforms", {.min = 0});
  flags.add("decode_only", o.decode_only, "read and decode, no transforms and no batches");
  flags.add("read_only", o.read_only, "read the encoded bytes and nothing else");
  flags.add(
      "raw", o.raw,
      "also measure what nothing can beat, turn by turn in the same run: plain reading from the disk's cache, and "
      "libjpeg-turbo alone");
  flags.add("dry_run", o.dry_run, "open the images, say what would be timed, time nothing");
  flags.example("load_bench --dset_type fs --data_root data/hymenoptera_data --batch_size 64 --workers 4");
  flags.example("load_bench --dset_type packed --data_root data/hymenoptera_data.packed --read_only --raw");
  std::vector<std::string> arguments = with_underscores(argc, argv);
  for (std::string& argument : arguments)
    if (argument == "-d") argument = "--data_root";
  if (!flags.parse(arguments)) return false;
  if (o.read_only && o.decode_only) throw train::UsageError("--read_only: expected it without --decode_only");
  if (o.workers >= 0) return true;
  const char* cpus = std::getenv("SLURM_CPUS_PER_TASK");
  o.workers =
      cpus != nullptr ? support::parse_integer("SLURM_CPUS_PER_TASK", cpus) : std::thread::hardware_concurrency();
  if (o.workers < 0 || o.workers > 1024)
    throw train::UsageError(str("SLURM_CPUS_PER_TASK: expected 0 to 1024, got ", o.workers));
  return true;
}

/// The transforms of the course: 256x256, a random window of 224x224, mirrored half of the time.
data::Pipeline make_pipeline(const std::string& part) {
  constexpr int64_t kResized = 256, kSide = 224;
  data::Pipeline pipeline{"course", kSide, kSide, {}, {}};
  if (part != "train") {
    pipeline.prepare = [](const data::Image& image, data::Draw&) { return data::resize(image, kSide, kSide); };
    return pipeline;
  }
  pipeline.prepare = [](const data::Image& image, data::Draw& draw) {
    const data::Image whole = data::resize(image, kResized, kResized);
    data::Image window = data::black_image(kSide, kSide, 3, image.label);
    const auto top = static_cast<int32_t>(draw.below(kResized - kSide + 1));
    const auto left = static_cast<int32_t>(draw.below(kResized - kSide + 1));
    data::cut_out(window.pixels.data(), kSide, kSide, {whole.pixels.data(), kResized, kResized, 3}, {top, left, 0});
    return window;
  };
  pipeline.place = [](data::Draw& draw) { return data::Place{0, 0, draw.coin() ? 1 : 0}; };
  return pipeline;
}

using Set = std::shared_ptr<const data::EncodedDataset>;

class Bench {
 public:
  Bench(const BenchOptions& options, const dist::World& ranks, Set set, std::string place)
      : options_(options),
        ranks_(ranks),
        set_(std::move(set)),
        place_(std::move(place)),
        order_(set_->size(), {.seed = static_cast<uint64_t>(options.seed),
                              .shuffle = options.shuffle,
                              .rank = ranks.rank(),
                              .world = ranks.size(),
                              .tail = data::Tail::uneven}) {
    WEFT_CHECK(order_.size() > 0, "load_bench: expected an image for each of ", ranks.size(), " ranks, got ",
               set_->size());
  }

  void run() {
    if (options_.read_only || options_.decode_only)
      measure_pieces();
    else
      measure_batches();
  }

 private:
  static constexpr int kRounds = 5;  ///< turns of a measurement and its peer

  int threads() const { return static_cast<int>(std::max<int64_t>(options_.workers, 1)); }
  Load load() const { return {options_.epochs, threads()}; }

  void measure_batches() {
    const data::ImageLoaderOptions loading{.batch_size = std::min(options_.batch_size, order_.size()),
                                      .workers = static_cast<int>(options_.workers),
                                      .seed = static_cast<uint64_t>(options_.seed),
                                      .mean = {0.485f, 0.456f, 0.406f},
                                      .std = {0.229f, 0.224f, 0.225f}};
    data::ImageLoader loader(set_, order_, make_pipeline(options_.part), loading);
    train::Progress progress;
    Passes passes;
    for (int64_t epoch = 0; epoch < options_.epochs; ++epoch) {
      if (ranks_.is_first()) progress.begin(str("epoch ", epoch + 1, '/', options_.epochs), loader.steps_per_epoch());
      const Stopwatch watch;
      loader.start(epoch);
      while (const auto batch = loader.next()) {
        passes.images += batch->count;
        if (ranks_.is_first()) progress.step({.images = batch->count});
      }
      passes.seconds += watch.seconds();
      progress.end();
    }
    report("load", {passes});
    if (!options_.raw) return;
    measure_reading();
    measure_decoding();
  }

  void measure_pieces() {
    if (options_.read_only) {
      measure_reading();
      return;
    }
    report("read and decode", {decode_images(*set_, order_, load())});
    if (options_.raw) measure_decoding();
  }

  void measure_reading() {
    if (!options_.raw) {
      report("read", {read_images(*set_, order_, load())});
      return;
    }
    const RawRead peer(options_.storage, place_, *set_, read_images(*set_, order_, {1, threads()}).bytes);
    std::vector<Passes> own, raw;
    for (int round = 0; round < kRounds; ++round) {
      raw.push_back(peer.run(load()));
      own.push_back(read_images(*set_, order_, load()));
    }
    const double rate = report("read", own);
    compare("the disk's cache", rate, report("plain pread", raw));
  }

  void measure_decoding() {
    const DecodePeers peers(*set_, order_);
    std::vector<Passes> own, raw;
    for (int round = 0; round < kRounds; ++round) {
      raw.push_back(peers.raw(load()));
      own.push_back(peers.own(load()));
    }
    const double rate = report("decode", own);
    compare("libjpeg-turbo alone", rate, report("libjpeg-turbo", raw));
  }

  /// Prints the median of the rounds, of all ranks together; returns the rate that peers are compared by.
  double report(const char* what, const std::vector<Passes>& rounds) const {
    std::vector<double> seconds;
    for (const Passes& round : rounds) seconds.push_back(round.seconds);
    std::sort(seconds.begin(), seconds.end());
    double slowest = 0;
    for (const std::string& text : ranks_.texts(str(seconds[seconds.size() / 2]), "seconds of a round"))
      slowest = std::max(slowest, std::stod(text));
    const std::vector<double> all = ranks_.sum(
        {static_cast<double>(rounds[0].images), static_cast<double>(rounds[0].bytes)}, "images of a round");
    if (ranks_.is_first()) {
      std::printf("%-16s", what);
      if (all[0] > 0) std::printf(" %8.0f images/s", all[0] / slowest);
      if (all[1] > 0) std::printf(" %8.1f MB/s", all[1] / slowest / 1e6);
      std::printf("  (%.3f s)\n", slowest);
    }
    return (all[1] > 0 ? all[1] : all[0]) / slowest;
  }

  void compare(const char* peer, double own, double raw) const {
    if (ranks_.is_first()) std::printf("%.3f of %s\n", own / raw, peer);
  }

  const BenchOptions& options_;
  const dist::World& ranks_;
  Set set_;
  std::string place_;
  data::Sampler order_;
};

/// The first line of the course's programs.
const char* start_line(const std::string& storage) {
  return storage == "h5"       ? "Start loading with H5 file"
         : storage == "packed" ? "Start loading with packed file"
                               : "Start loading ILSVRC images";
}

int run(int argc, char** argv) {
  BenchOptions options;
  if (!parse(argc, argv, options)) return train::kExitOk;
  const Stopwatch watch;
  if (!options.dry_run) choose_port();
  const dist::World ranks = dist::init({.alone = options.dry_run, .device = "cpu"});
  const std::string place = storage_place(options.storage, options.data_root);
  const Set set = open_part(options.storage, place, options.part);
  if (options.dry_run) {
    std::cout << set->describe() << "\nwould time " << options.epochs << (options.epochs == 1 ? " pass" : " passes")
              << " over them with " << options.workers << " workers" << std::endl;
    return train::kExitOk;
  }
  if (ranks.is_first()) {
    std::cerr << set->describe() << "; " << options.workers << " workers" << (ranks.size() > 1 ? " on each of " : "")
              << (ranks.size() > 1 ? ranks.describe() + " ranks" : "") << std::endl;
    std::cout << start_line(options.storage) << std::endl;
  }
  Bench(options, ranks, set, place).run();
  if (ranks.is_first()) {
    std::fflush(stdout);
    std::cout << elapsed_line(watch.seconds()) << std::endl;
  }
  ranks.wait_for_all("end of the run");
  return train::kExitOk;
}

}  // namespace
}  // namespace weft::jsc

int main(int argc, char** argv) {
  return weft::train::guarded_main("load_bench", [&] { return weft::jsc::run(argc, argv); });
}
