// SPDX-License-Identifier: Apache-2.0
#include <leptonica/allheaders.h>

#include <algorithm>
#include <cctype>
#include <memory>
#include <string_view>
#include <vector>

#include "data/decode.h"
#include "kernels/error.h"

namespace weft::data {
namespace {

struct Destroy {
  void operator()(PIX* pix) const { pixDestroy(&pix); }
};
using Pix = std::unique_ptr<PIX, Destroy>;

constexpr const char* kSuffixes[] = {".jpg", ".jpeg", ".jpe",  ".jfif", ".png", ".webp", ".bmp",
                                     ".gif", ".tif",  ".tiff", ".ppm",  ".pgm", ".pbm",  ".pnm"};

/// Files that Leptonica would read in wrong colours: BMP of 16 bits (as grey) and 32 bits (red and blue exchanged).
bool is_odd_bmp(std::span<const uint8_t> bytes) {
  constexpr size_t kBits = 28;
  return bytes[0] == 'B' && (bytes.size() <= kBits || bytes[kBits] == 16 || bytes[kBits] == 32);
}

/// libtiff multiplies colours by their alpha.
bool is_transparent_tiff(std::span<const uint8_t> bytes, PIX* pix) {
  if ((bytes[0] != 'I' && bytes[0] != 'M') || pixGetSpp(pix) != 4) return false;
  const l_uint32* const words = pixGetData(pix);
  const int64_t count = int64_t{pixGetWpl(pix)} * pixGetHeight(pix);
  return std::any_of(words, words + count, [](l_uint32 word) { return (word & 0xff) != 0xff; });
}

/// GIF states its size at once; Leptonica decodes all of it to say so.
int64_t pixels_of_gif(std::span<const uint8_t> bytes) {
  constexpr size_t kHeader = 10;
  if (bytes.size() < kHeader) return 0;
  return int64_t{bytes[6] | bytes[7] << 8} * int64_t{bytes[8] | bytes[9] << 8};
}

/// Calls visit(name, body) for each chunk of a WebP file or of a frame in it (WebP container specification).
template <class Visit>
void each_chunk(std::span<const uint8_t> chunks, Visit&& visit) {
  constexpr size_t kHeader = 8;
  while (chunks.size() >= kHeader) {
    const auto* const b = chunks.data();
    const size_t size = b[4] | b[5] << 8 | b[6] << 16 | size_t{b[7]} << 24, whole = kHeader + size + size % 2;
    if (kHeader + size > chunks.size()) return;
    visit(std::string_view(reinterpret_cast<const char*>(b), 4), chunks.subspan(kHeader, size));
    if (whole > chunks.size()) return;
    chunks = chunks.subspan(whole);
  }
}

int orientation_of_webp(std::span<const uint8_t> bytes) {
  int orientation = 1;
  each_chunk(bytes.subspan(12), [&](std::string_view name, std::span<const uint8_t> body) {
    if (name != "EXIF") return;
    constexpr uint8_t kExif[] = {'E', 'x', 'i', 'f', 0, 0};  // some programs write it as in a JPEG
    const bool prefixed = body.size() >= sizeof kExif && std::equal(kExif, std::end(kExif), body.begin());
    orientation = exif_orientation(prefixed ? body.subspan(sizeof kExif) : body);
  });
  return orientation;
}

/// The first image of an animated WebP as a file of its own, which Leptonica reads; empty: it is not animated. The
/// background and an image's alpha do not count, as elsewhere.
std::vector<uint8_t> first_image(std::span<const uint8_t> bytes, const std::string& path) {
  constexpr size_t kHeader = 8, kCanvas = 4, kSizes = 6, kFrame = 16;  // bytes before what follows, as specified
  std::span<const uint8_t> canvas, frame;
  each_chunk(bytes.subspan(12), [&](std::string_view name, std::span<const uint8_t> body) {
    if (name == "VP8X" && body.size() >= kCanvas + kSizes) canvas = body.subspan(kCanvas, kSizes);
    if (name == "ANMF" && body.size() >= kFrame && frame.empty()) frame = body;
  });
  if (frame.empty()) return {};
  const auto begin = frame.begin() + kSizes;
  WEFT_CHECK(std::all_of(frame.begin(), begin, [](uint8_t b) { return b == 0; }) &&
                 std::equal(canvas.begin(), canvas.end(), begin, begin + kSizes),
             "decode: cannot read ", path, ": expected an animated WebP whose first image fills it");
  std::vector<uint8_t> file(bytes.begin(), bytes.begin() + 12);
  each_chunk(frame.subspan(kFrame), [&](std::string_view name, std::span<const uint8_t> body) {
    if (name != "VP8 " && name != "VP8L") return;
    file.insert(file.end(), body.data() - kHeader, body.data() + body.size());
    file.resize(file.size() + body.size() % 2);
  });
  for (int i = 0; i < 4; ++i) file[4 + i] = static_cast<uint8_t>((file.size() - 8) >> (8 * i));
  return file;
}

/// With the orientation 1: Leptonica turns images of orientation 8 as those of 6.
std::vector<uint8_t> unturned_tiff(std::span<const uint8_t> bytes) {
  std::vector<uint8_t> file(bytes.begin(), bytes.end());
  const size_t at = exif_orientation_at(bytes);
  if (at > 0) file[at] = file[0] == 'I', file[at + 1] = file[0] != 'I';
  return file;
}

/// A grey binary PNM of 16 bits whose samples have their high byte twice, since Leptonica's order of the two differs by
/// release; empty: it is another image.
std::vector<uint8_t> deep_grey(std::span<const uint8_t> bytes) {
  if (bytes.size() < 2 || bytes[0] != 'P' || bytes[1] != '5') return {};
  size_t at = 2;
  int64_t number = 0;
  for (int i = 0; i < 3; ++i) {  // the width, the height, the value of white
    bool comment = false;
    for (; at < bytes.size() && (comment || !std::isdigit(bytes[at])); ++at)
      comment = bytes[at] == '#' || (comment && bytes[at] != '\n');
    for (number = 0; at < bytes.size() && std::isdigit(bytes[at]); ++at)
      number = std::min<int64_t>(number * 10 + bytes[at] - '0', UINT16_MAX);
  }
  if (number <= UINT8_MAX) return {};
  std::vector<uint8_t> file(bytes.begin(), bytes.end());
  for (size_t sample = at + 1; sample + 1 < file.size(); sample += 2) file[sample + 1] = file[sample];
  return file;
}

}  // namespace

std::span<const char* const> image_suffixes() { return kSuffixes; }
std::span<const char* const> unread_suffixes() { return {}; }

Image decode_other(std::span<const uint8_t> bytes, const std::string& path, DecodeOptions options) {
  [[maybe_unused]] static const bool silent = (leptSetStderrHandler([](const char*) {}), true);
  l_int32 format = 0, width = 0, height = 0;
  int orientation = 1;
  std::vector<uint8_t> changed;
  if (bytes[0] == 'R') {
    orientation = orientation_of_webp(bytes);
    changed = first_image(bytes, path);
  } else if (orientation = exif_orientation(bytes); orientation > 1) {
    changed = unturned_tiff(bytes);
  } else {
    changed = deep_grey(bytes);
  }
  if (!changed.empty()) bytes = changed;
  const bool is_gif = bytes[0] == 'G';
  const bool known =
      is_gif || pixReadHeaderMem(bytes.data(), bytes.size(), &format, &width, &height, nullptr, nullptr, nullptr) == 0;
  const int64_t pixels = is_gif ? pixels_of_gif(bytes) : int64_t{width} * height;
  WEFT_CHECK(!is_odd_bmp(bytes), "decode: cannot read ", path, ": expected a BMP of 1, 4, 8 or 24 bits a pixel");
  WEFT_CHECK(!known || pixels <= options.max_pixels, "decode: expected at most ", options.max_pixels, " pixels in ",
             path, ", got ", pixels);
  const Pix stored(known ? pixReadMem(bytes.data(), bytes.size()) : nullptr);
  const Pix rgb(stored ? pixConvertTo32(stored.get()) : nullptr);
  WEFT_CHECK(rgb, "decode: cannot read ", path, ": damaged, cut short, or of a kind that Leptonica does not read");
  WEFT_CHECK(!is_transparent_tiff(bytes, stored.get()), "decode: cannot read ", path,
             ": expected a TIFF without transparent pixels. Save it without its alpha channel");
  Image image = black_image(pixGetHeight(rgb.get()), pixGetWidth(rgb.get()), 3);
  const l_uint32* const words = pixGetData(rgb.get());
  for (int64_t y = 0; y < image.height; ++y) {
    const l_uint32* const from = words + y * pixGetWpl(rgb.get());
    uint8_t* to = image.row(y);
    for (int64_t x = 0; x < image.width; ++x)
      for (const int shift : {24, 16, 8}) *to++ = static_cast<uint8_t>(from[x] >> shift);
  }
  return upright(std::move(image), orientation);
}

}  // namespace weft::data
