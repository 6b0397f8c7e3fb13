// SPDX-License-Identifier: Apache-2.0
// Made-up fields in the layout that train_vit reads, for users without ERA5.
#include <cmath>
#include <fstream>
#include <iostream>
#include <numbers>
#include <random>
#include <vector>

#include "apps/support/flags.h"
#include "core/tensor.h"
#include "data/hdf5_fields.h"
#include "io/npy.h"

namespace weft::nersc_vit {
namespace {

namespace fs = std::filesystem;

struct Options {
  std::string out = "fields";
  int64_t years = 3, times = 128, channels = 20, rows = 32, columns = 64, seed = 0;
  bool dry_run = false;
};

bool parse_options(int argc, char** argv, Options& o) {
  support::Flags flags("make_fields",
                       "Writes made-up weather for train_vit: OUT/train and OUT/valid with a file for each year, their "
                       "means and standard deviations in OUT/stats, and OUT/ViT.yaml.");
  flags.add("out", o.out, "folder to write to");
  flags.add("years", o.years, "files; the last one is for validation", {.min = 2, .max = 1000});
  flags.add("times", o.times, "times in each file", {.min = 2, .max = 1e6});
  flags.add("channels", o.channels, "fields at each time", {.min = 1, .max = 1000});
  flags.add("rows", o.rows, "latitudes", {.min = 2, .max = 1e5});
  flags.add("columns", o.columns, "longitudes", {.min = 2, .max = 1e5});
  flags.add("seed", o.seed, "of the years", {.min = 0, .max = 1e15});
  flags.add("dry-run", o.dry_run, "say how large the files would be, write nothing");
  flags.example("make_fields --out fields --years 3 --times 128");
  return flags.parse(argc, argv);
}

constexpr int kWaves = 4;
constexpr double kTurn = 2 * std::numbers::pi;

/// Equal on every machine, unlike the standard library's distributions.
double uniform(std::mt19937_64& random) { return static_cast<double>(random() >> 11) * 0x1p-53; }

/// Made-up weather of one year: in each channel waves that travel eastward, each at a speed of its own, on a mean and
/// with an amplitude of the channel's; the present fields determine the next. A pure function of the seed.
class Waves {
 public:
  Waves(const data::FieldSize& size, uint64_t seed) : size_(size) {
    std::mt19937_64 of_channels(1);  // speeds and amplitudes are the weather's, phases the year's
    std::mt19937_64 of_year(seed);
    for (int64_t c = 0; c < size.channels; ++c) {
      Channel channel{.mean = 20 * uniform(of_channels) - 10, .amplitude = 1 + 9 * uniform(of_channels), .waves = {}};
      for (int k = 0; k < kWaves; ++k)
        channel.waves.push_back({.number = 1 + static_cast<int64_t>(3 * uniform(of_channels)),
                                 .phase = kTurn * uniform(of_year),
                                 .speed = 0.1 + 0.3 * uniform(of_channels),
                                 .amplitude = 0.5 + uniform(of_channels),
                                 .tilt = 2 * uniform(of_channels) - 1});
      channels_.push_back(std::move(channel));
    }
  }

  /// [channels, rows, columns] at one time.
  void fill(int64_t time, float* values) const {
    for (const Channel& channel : channels_)
      for (int64_t row = 0; row < size_.rows; ++row) {
        const double latitude = (static_cast<double>(row) + 0.5) / static_cast<double>(size_.rows) - 0.5;  // half turns
        for (int64_t column = 0; column < size_.columns; ++column) {
          const double longitude = static_cast<double>(column) / static_cast<double>(size_.columns);  // turns
          double sum = 0;
          for (const Wave& wave : channel.waves)
            sum += wave.amplitude * std::sin(kTurn * static_cast<double>(wave.number) * longitude + wave.phase +
                                             wave.tilt * latitude * kTurn - wave.speed * static_cast<double>(time));
          *values++ =
              static_cast<float>(channel.mean + channel.amplitude * std::cos(latitude * std::numbers::pi) * sum);
        }
      }
  }

 private:
  struct Wave {
    int64_t number;  ///< number of crests around the globe
    double phase, speed, amplitude, tilt;
  };
  struct Channel {
    double mean, amplitude;
    std::vector<Wave> waves;
  };
  data::FieldSize size_;
  std::vector<Channel> channels_;
};

/// Sums over all values of the training years, by channel.
struct Moments {
  std::vector<double> sum, squares;
  double count = 0;

  explicit Moments(int64_t channels) : sum(static_cast<size_t>(channels)), squares(sum.size()) {}
  void add(const float* values, int64_t places) {
    for (size_t c = 0; c < sum.size(); ++c)
      for (int64_t i = 0; i < places; ++i) {
        const double value = values[static_cast<int64_t>(c) * places + i];
        sum[c] += value;
        squares[c] += value * value;
      }
    count += static_cast<double>(places);
  }
  void write(const fs::path& folder) const {
    std::vector<float> means, stds;
    for (size_t c = 0; c < sum.size(); ++c) {
      const double mean = sum[c] / count;
      means.push_back(static_cast<float>(mean));
      stds.push_back(static_cast<float>(std::sqrt(std::max(squares[c] / count - mean * mean, 1e-12))));
    }
    const Shape sizes{1, static_cast<int64_t>(sum.size()), 1, 1};
    write_npy(folder / "global_means.npy", Tensor::from(means, sizes));
    write_npy(folder / "global_stds.npy", Tensor::from(stds, sizes));
  }
};

/// A configuration that a laptop can train.
void write_yaml(const Options& o) {
  const fs::path folder = fs::absolute(o.out).lexically_normal();
  std::ofstream file(fs::path(o.out) / "ViT.yaml");
  file << "base: &base\n  embed_dim: 64\n  depth: 2\n  patch_size: 8\n  num_heads: 4\n"
       << "  img_size: [" << o.rows / 8 * 8 << ", " << o.columns / 8 * 8 << "]\n"
       << "  n_in_channels: " << o.channels << "\n  n_out_channels: " << o.channels << "\n"
       << "  dt: 1\n  global_batch_size: 16\n  num_iters: 120\n  lr: 2E-3\n  warmup: 10\n  lr_schedule: 'cosine'\n"
       << "  optimizer: 'Adam'\n  amp_mode: none\n  num_data_workers: 1\n"
       << "  expdir: '" << (folder / "logs").string() << "'\n"
       << "  train_data_path: '" << (folder / "train").string() << "'\n"
       << "  valid_data_path: '" << (folder / "valid").string() << "'\n"
       << "  global_means_path: '" << (folder / "stats/global_means.npy").string() << "'\n"
       << "  global_stds_path: '" << (folder / "stats/global_stds.npy").string() << "'\n"
       << "  limit_nsamples: None\n  limit_nsamples_val: None\n\n"
       << "short:\n  <<: *base\n  num_iters: 32\n";
  WEFT_CHECK(file.flush().good(), "make_fields: cannot write ", o.out, "/ViT.yaml");
}

int run(int argc, char** argv) {
  Options o;
  if (!parse_options(argc, argv, o)) return train::kExitOk;
  const fs::path out = o.out;
  if (o.dry_run) {
    std::cout << "would write " << o.years << " files of " << o.times * o.channels * o.rows * o.columns * 4
              << " bytes each below " << o.out << std::endl;
    return train::kExitOk;
  }
  for (const char* part : {"train", "valid", "stats"}) {
    std::error_code problem;
    fs::create_directories(out / part, problem);
    WEFT_CHECK(!problem, "--out: cannot make the folder ", (out / part).string(), ": ", problem.message());
  }
  const data::FieldSize size{o.times, o.channels, o.rows, o.columns};
  Moments moments(o.channels);
  for (int64_t year = 0; year < o.years; ++year) {
    const bool training = year + 1 < o.years;
    const Waves waves(size, static_cast<uint64_t>(o.seed * 1000 + year));
    const fs::path path = out / (training ? "train" : "valid") / str(1979 + year, ".h5");
    data::write_fields(path, size, [&](int64_t time, float* values) {
      waves.fill(time, values);
      if (training) moments.add(values, o.rows * o.columns);
    });
    std::cout << path.string() << ": " << o.times << " x " << o.channels << " x " << o.rows << " x " << o.columns
              << '\n';
  }
  moments.write(out / "stats");
  write_yaml(o);
  std::cout << "train_vit --yaml_config " << (out / "ViT.yaml").string() << " --config base" << std::endl;
  return train::kExitOk;
}

}  // namespace
}  // namespace weft::nersc_vit

int main(int argc, char** argv) {
  return weft::train::guarded_main("make_fields", [&] { return weft::nersc_vit::run(argc, argv); });
}
