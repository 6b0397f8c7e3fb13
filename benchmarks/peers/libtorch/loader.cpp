// SPDX-License-Identifier: Apache-2.0
#include <ATen/Parallel.h>
#include <jpeglib.h>
#include <torch/data/dataloader.h>
#include <torch/data/datasets/base.h>
#include <torch/data/datasets/map.h>
#include <torch/data/samplers/random.h>
#include <torch/data/transforms/stack.h>

#include <cmath>
#include <fstream>
#include <iterator>
#include <random>

#include "benchmarks/harness/image_folder.h"
#include "benchmarks/peers/libtorch/cases.h"

// The folder through torch's DataLoader: libjpeg, then random resized crop (antialiased, bilinear), flip and
// normalisation as ATen ops, one thread each in two workers.

namespace peer {
namespace {

/// u8 [height, width, 3].
Tensor decode(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  jpeg_decompress_struct jpeg;
  jpeg_error_mgr errors;  // prints and exits: these images are known to be good
  jpeg.err = jpeg_std_error(&errors);
  jpeg_create_decompress(&jpeg);
  jpeg_mem_src(&jpeg, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
  jpeg_read_header(&jpeg, TRUE);
  jpeg.out_color_space = JCS_RGB;
  jpeg_start_decompress(&jpeg);
  Tensor image = torch::empty({jpeg.output_height, jpeg.output_width, 3}, torch::kUInt8);
  while (jpeg.output_scanline < jpeg.output_height) {
    JSAMPROW row = image.data_ptr<uint8_t>() + int64_t{jpeg.output_scanline} * jpeg.output_width * 3;
    jpeg_read_scanlines(&jpeg, &row, 1);
  }
  jpeg_finish_decompress(&jpeg);
  jpeg_destroy_decompress(&jpeg);
  return image;
}

/// A window of 8% to 100% of the area with a ratio from 3/4 to 4/3 (torchvision's rules, ten attempts).
Tensor random_window(const Tensor& image, std::mt19937& random) {
  const auto uniform = [&](double low, double high) { return std::uniform_real_distribution<>(low, high)(random); };
  const int64_t H = image.size(0), W = image.size(1);
  for (int attempt = 0; attempt < 10; ++attempt) {
    const double area = static_cast<double>(H * W) * uniform(0.08, 1);
    const double ratio = std::exp(uniform(std::log(3.0 / 4), std::log(4.0 / 3)));
    const int64_t w = std::lround(std::sqrt(area * ratio)), h = std::lround(std::sqrt(area / ratio));
    if (w < 1 || h < 1 || w > W || h > H) continue;
    const auto top = static_cast<int64_t>(uniform(0, static_cast<double>(H - h + 1)));
    const auto left = static_cast<int64_t>(uniform(0, static_cast<double>(W - w + 1)));
    return image.narrow(0, top, h).narrow(1, left, w);
  }
  return image;
}

class Folder : public torch::data::datasets::Dataset<Folder> {
 public:
  Folder(const std::filesystem::path& root, int64_t edge) : edge_(edge) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(root))
      if (entry.is_regular_file()) paths_.push_back(entry.path().string());
  }

  torch::data::Example<> get(size_t index) override {
    static thread_local std::mt19937 random(static_cast<unsigned>(index));
    Tensor x = random_window(decode(paths_[index]), random).permute({2, 0, 1}).unsqueeze(0).to(torch::kFloat32);
    x = at::_upsample_bilinear2d_aa(x, {edge_, edge_}, false, c10::nullopt, c10::nullopt).squeeze(0);
    if (random() & 1) x = x.flip(2);
    return {x.div_(255).sub_(mean_).div_(std_), torch::tensor(int64_t{0})};
  }

  c10::optional<size_t> size() const override { return paths_.size(); }

 private:
  std::vector<std::string> paths_;
  int64_t edge_;
  Tensor mean_ = torch::tensor({0.485f, 0.456f, 0.406f}).view({3, 1, 1});
  Tensor std_ = torch::tensor({0.229f, 0.224f, 0.225f}).view({3, 1, 1});
};

struct Images {
  bench::ImageFolder folder;
  int64_t edge, batch;

  void run_epoch() const {
    const int threads = at::get_num_threads();
    at::set_num_threads(1);
    auto loader = torch::data::make_data_loader<torch::data::samplers::RandomSampler>(
        Folder(folder.path(), edge).map(torch::data::transforms::Stack<>()),
        torch::data::DataLoaderOptions().batch_size(static_cast<size_t>(batch)).workers(2));
    for (auto& one : *loader) (void)one;
    at::set_num_threads(threads);
  }
};

}  // namespace

void add_loader_cases(Cases& cases, const Target& target) {
  cases.push_back({"loader_jpeg", "images/s", [=] {
                     const int64_t per_class = target.size(128, 2);
                     const std::shared_ptr<Images> images(
                         new Images{{2, static_cast<int>(per_class)}, target.size(224, 32), target.size(32, 2)});
                     return Work{[=] { images->run_epoch(); }, 2 * static_cast<double>(per_class)};
                   }});
}

}  // namespace peer
