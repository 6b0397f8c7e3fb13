// SPDX-License-Identifier: Apache-2.0
#include "data/shapes.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "data/cifar.h"
#include "data/dataset.h"
#include "data/draw.h"
#include "data/parallel_for.h"
#include "io/file_reader.h"
#include "kernels/error.h"

namespace weft::data {
namespace {

constexpr int64_t kSide = 32;
constexpr int64_t kShapeBytes = 3 * kSide * kSide;

struct Point {
  double x = 0, y = 0;
};
double length(Point p) { return std::hypot(p.x, p.y); }
double dot(Point a, Point b) { return a.x * b.x + a.y * b.y; }

using Colour = std::array<double, 3>;
Colour random_colour(Draw& draw) { return {draw.uniform(0, 255), draw.uniform(0, 255), draw.uniform(0, 255)}; }
double distance(const Colour& a, const Colour& b) { return std::hypot(a[0] - b[0], a[1] - b[1], a[2] - b[2]); }

/// A colour that runs from one side of the image to the other.
struct Gradient {
  Colour from, to;
  Point direction;

  Colour at(Point p) const {
    const double t = std::clamp(0.5 + dot(p, direction) / kSide, 0.0, 1.0);
    Colour colour;
    for (int c = 0; c < 3; ++c) colour[c] = from[c] + t * (to[c] - from[c]);
    return colour;
  }
};

Point random_direction(Draw& draw) {
  const double angle = draw.uniform(0, 2 * std::numbers::pi);
  return {std::cos(angle), std::sin(angle)};
}

Gradient random_gradient(Draw& draw) {
  const Colour from = random_colour(draw), other = random_colour(draw);
  const double share = draw.uniform(0, 0.5);
  Colour to;
  for (int c = 0; c < 3; ++c) to[c] = from[c] + share * (other[c] - from[c]);
  return {from, to, random_direction(draw)};
}

/// The least distance between the ends of two gradients: what the eye has to tell a shape from its ground.
double contrast(const Gradient& a, const Gradient& b) {
  return std::min(std::min(distance(a.from, b.from), distance(a.from, b.to)),
                  std::min(distance(a.to, b.from), distance(a.to, b.to)));
}

bool inside_star(Point p) {
  // Fold into one tenth of the star: between a tip at radius 1 and the dent beside it.
  constexpr double kTenth = std::numbers::pi / 5;
  constexpr double kDent = 0.42;
  double angle = std::fmod(std::abs(std::atan2(p.y, p.x)), 2 * kTenth);
  if (angle > kTenth) angle = 2 * kTenth - angle;
  const double r = length(p);
  const Point folded{r * std::cos(angle), r * std::sin(angle)};
  const Point dent{kDent * std::cos(kTenth), kDent * std::sin(kTenth)};
  return (folded.x - 1) * dent.y - folded.y * (dent.x - 1) < 0;
}

/// Whether a point, in units where every shape fills about the unit circle, lies inside shape `label`.
bool inside(int64_t label, Point p) {
  const double r = length(p), ax = std::abs(p.x), ay = std::abs(p.y);
  const double largest = std::max(ax, ay);
  switch (label) {
    case 0:
      return r < 0.85;
    case 1:
      return r < 0.95 && r > 0.55;
    case 2:
      return largest < 0.75;
    case 3:
      return largest < 0.85 && largest > 0.5;
    case 4:
      return p.y < 0.5 && 0.866 * ax - 0.5 * p.y < 0.5;
    case 5:
      return inside_star(p);
    case 6:
      return largest < 0.95 && std::min(ax, ay) < 0.3;
    case 7:
      return r < 0.95 && length({p.x - 0.5, p.y}) > 0.75;
    case 8: {
      const double x = 1.2 * p.x, y = -1.2 * p.y, base = x * x + y * y - 1;
      return base * base * base < x * x * y * y * y;
    }
    default:
      return ay < 0.85 && ax < 0.08 + 0.85 * ay;
  }
}

/// A thin line across the image.
struct Line {
  Point through, normal;
  double half_width;
  Colour colour;

  double cover(Point p) const {
    return std::clamp(half_width + 0.5 - std::abs(dot({p.x - through.x, p.y - through.y}, normal)), 0.0, 1.0);
  }
};

Line random_line(Draw& draw) {
  const Point through{draw.uniform(-14, 14), draw.uniform(-14, 14)};
  return {through, random_direction(draw), draw.uniform(0.2, 0.6), random_colour(draw)};
}

void blend(Colour& under, const Colour& over, double cover) {
  for (int c = 0; c < 3; ++c) under[c] += cover * (over[c] - under[c]);
}

struct Scene {
  int64_t label = 0;
  Point centre;
  double radius = 1;
  Point axis;
  Gradient ground, shape;
  std::vector<Line> behind, before;
  double noise = 0;
};

Scene random_scene(Draw& draw) {
  Scene scene;
  scene.label = draw.below(static_cast<int64_t>(kShapeNames.size()));
  scene.radius = draw.uniform(7, 13);
  const double room = kSide / 2.0 - 0.85 * scene.radius;
  scene.centre = {draw.uniform(-room, room), draw.uniform(-room, room)};
  scene.axis = random_direction(draw);
  scene.ground = random_gradient(draw);
  constexpr double kLeastContrast = 100;
  do {
    scene.shape = random_gradient(draw);
  } while (contrast(scene.shape, scene.ground) < kLeastContrast);
  for (int64_t n = draw.below(4); n > 0; --n) scene.behind.push_back(random_line(draw));
  if (draw.coin(0.3)) scene.before.push_back(random_line(draw));
  scene.noise = draw.uniform(3, 15);
  return scene;
}

/// The share of the pixel at `p` that the shape covers, from 4x4 samples.
double shape_cover(const Scene& scene, Point p) {
  const double dx = p.x - scene.centre.x, dy = p.y - scene.centre.y;
  if (std::hypot(dx, dy) > 1.4 * scene.radius + 1) return 0;
  constexpr int kSamples = 4;
  int hits = 0;
  for (int sy = 0; sy < kSamples; ++sy)
    for (int sx = 0; sx < kSamples; ++sx) {
      const Point d{dx + (sx + 0.5) / kSamples - 0.5, dy + (sy + 0.5) / kSamples - 0.5};
      const Point turned{dot(d, scene.axis), scene.axis.x * d.y - scene.axis.y * d.x};
      hits += inside(scene.label, {turned.x / scene.radius, turned.y / scene.radius});
    }
  return static_cast<double>(hits) / (kSamples * kSamples);
}

/// Nearly normal noise of variance 1: four bytes of one word, summed.
double noise_value(Draw& draw) {
  const uint32_t word = draw.word();
  const uint32_t sum = (word & 255) + (word >> 8 & 255) + (word >> 16 & 255) + (word >> 24);
  constexpr double kDeviation = 147.8;  // sqrt(4 (256^2 - 1) / 12)
  return (static_cast<double>(sum) - 510) / kDeviation;
}

struct Drawn {
  std::vector<uint8_t> pixels;
  std::vector<int64_t> labels;
};

Drawn draw_all(uint64_t seed, Split split, int64_t count) {
  Drawn drawn{std::vector<uint8_t>(count * kShapeBytes), std::vector<int64_t>(count)};
  parallel_for(count, 0, [&](int64_t i) {
    const Image image = draw_shape(seed, split, i);
    std::copy(image.pixels.begin(), image.pixels.end(), drawn.pixels.begin() + i * kShapeBytes);
    drawn.labels[i] = image.label;
  });
  return drawn;
}

}  // namespace

Image draw_shape(uint64_t seed, Split split, int64_t index) {
  Draw draw(seed ^ 0x5A9E500000000000ull, static_cast<uint64_t>(split) << 40 | static_cast<uint64_t>(index));
  const Scene scene = random_scene(draw);
  Image image = black_image(kSide, kSide, 3, scene.label);
  for (int64_t y = 0; y < kSide; ++y)
    for (int64_t x = 0; x < kSide; ++x) {
      const Point p{static_cast<double>(x) + 0.5 - kSide / 2, static_cast<double>(y) + 0.5 - kSide / 2};
      Colour colour = scene.ground.at(p);
      for (const Line& line : scene.behind) blend(colour, line.colour, line.cover(p));
      blend(colour, scene.shape.at(p), shape_cover(scene, p));
      for (const Line& line : scene.before) blend(colour, line.colour, line.cover(p));
      for (int64_t c = 0; c < 3; ++c) {
        const double noisy = colour[c] + scene.noise * noise_value(draw);
        image.row(y)[3 * x + c] = static_cast<uint8_t>(std::clamp(std::nearbyint(noisy), 0.0, 255.0));
      }
    }
  return image;
}

std::shared_ptr<const Dataset> shapes(Split split, ShapesOptions options) {
  const int64_t count = split == Split::train ? options.train : options.val;
  WEFT_CHECK(count > 0, "shapes: expected at least one image, got ", count);
  Drawn drawn = draw_all(options.seed, split, count);
  FixedDataset::Contents contents;
  contents.title = str("shapes ", name(split));
  contents.pixels = std::move(drawn.pixels);
  contents.labels = std::move(drawn.labels);
  contents.height = contents.width = kSide;
  contents.channels = 3;
  contents.classes.assign(kShapeNames.begin(), kShapeNames.end());
  return std::make_shared<FixedDataset>(std::move(contents));
}

void write_shapes(const std::filesystem::path& directory, ShapesOptions options) {
  constexpr int64_t kBatches = 5;
  WEFT_CHECK(options.train > 0 && options.train % kBatches == 0 && options.val > 0,
             "write_shapes: expected a positive multiple of 5 for train and a positive val, got ", options.train,
             " and ", options.val);
  std::error_code problem;
  std::filesystem::create_directories(directory, problem);
  WEFT_CHECK(!problem, "write_shapes: cannot make the folder ", directory.string(), ": ", problem.message());
  const Drawn train = draw_all(options.seed, Split::train, options.train);
  const int64_t each = options.train / kBatches;
  for (int64_t b = 0; b < kBatches; ++b)
    write_file(directory / str("data_batch_", b + 1, ".bin"),
               cifar10_records(train.pixels.data() + b * each * kShapeBytes, train.labels.data() + b * each, each));
  std::string names;
  for (const char* shape : kShapeNames) names += str(shape, "\n");
  write_file(directory / "batches.meta.txt", {names.begin(), names.end()});
  const Drawn val = draw_all(options.seed, Split::val, options.val);
  write_file(directory / "test_batch.bin", cifar10_records(val.pixels.data(), val.labels.data(), options.val));
}

std::shared_ptr<const Dataset> shapes(const std::filesystem::path& directory, Split split, ShapesOptions options) {
  // test_batch.bin is written last: where it is, the set is whole.
  if (!std::filesystem::exists(directory / "test_batch.bin")) write_shapes(directory, options);
  return cifar10(directory, split);
}

}  // namespace weft::data
