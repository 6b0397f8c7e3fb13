// SPDX-License-Identifier: Apache-2.0
#include "data/decode.h"

#if WEFT_HAVE_JPEG
#include <cstddef>
#include <cstdio>
// jpeglib.h needs size_t and FILE before it.
#include <jpeglib.h>
#endif

#include <thread>

#include "kernels/engines/nvjpeg.h"
#include "tests/data/fixture.h"

namespace weft::data::testing {
namespace {

int largest_difference(const Image& a, const Image& b) {
  EXPECT_EQ(a.height, b.height);
  EXPECT_EQ(a.width, b.width);
  EXPECT_EQ(a.channels, b.channels);
  if (a.pixels.size() != b.pixels.size()) return 256;
  int largest = 0;
  for (size_t i = 0; i < a.pixels.size(); ++i) largest = std::max(largest, std::abs(a.pixels[i] - b.pixels[i]));
  return largest;
}

bool is_png(const std::string& file) { return file.ends_with(".png"); }

bool is_jpeg(const std::string& file) { return file.ends_with(".jpg") || file.ends_with(".JPEG"); }

#define NEED_DECODER_OF(file)               \
  if (is_png(file)) {                       \
    WEFT_NEED_PART(SPNG, "libspng");        \
  } else if (is_jpeg(file)) {               \
    WEFT_NEED_PART(JPEG, "libjpeg-turbo");  \
  } else {                                  \
    WEFT_NEED_PART(LEPTONICA, "Leptonica"); \
  }

struct Case {
  const char* file;
  const char* expected;
  int tolerance;
  friend void PrintTo(const Case& one, std::ostream* out) { *out << one.file; }
};

class Decode : public ::testing::TestWithParam<Case> {};

TEST_P(Decode, EqualsPillow) {
  const auto [file, expected, tolerance] = GetParam();
  NEED_DECODER_OF(file);
  const Image image = decode(read_file(golden(file)), file);
  EXPECT_LE(largest_difference(image, read_ppm(golden(str(expected, ".ppm")))), tolerance);
}

// JPEG decoders may differ by a level or two; PNG is exact.
INSTANTIATE_TEST_SUITE_P(
    Images, Decode,
    ::testing::Values(Case{"baseline.jpg", "baseline", 2}, Case{"progressive.jpg", "progressive", 2},
                      Case{"chroma420.JPEG", "chroma420", 2}, Case{"grey.jpg", "grey", 2}, Case{"cmyk.jpg", "cmyk", 3},
                      Case{"exif1.jpg", "exif1", 2}, Case{"exif2.jpg", "exif2", 2}, Case{"exif3.jpg", "exif3", 2},
                      Case{"exif4.jpg", "exif4", 2}, Case{"exif5.jpg", "exif5", 2}, Case{"exif6.jpg", "exif6", 2},
                      Case{"exif7.jpg", "exif7", 2}, Case{"exif8.jpg", "exif8", 2}, Case{"rgb.png", "rgb", 0},
                      Case{"grey.png", "grey_png", 0}, Case{"alpha.png", "alpha", 0}, Case{"palette.png", "palette", 0},
                      Case{"bilevel.png", "bilevel", 0}, Case{"deep.png", "deep", 0}, Case{"rgb.webp", "rgb", 0},
                      Case{"alpha.webp", "alpha", 0}, Case{"rgb.bmp", "rgb", 0}, Case{"rgb.tiff", "rgb", 0},
                      Case{"grey.tif", "grey_png", 0}, Case{"bilevel.tif", "bilevel", 0}, Case{"rgb.pnm", "rgb", 0},
                      Case{"animated.gif", "animated", 0}));

#if WEFT_HAVE_JPEG
/// A colour JPEG by libjpeg, where each colour of 4:2:0 stands for all its pixels.
Image replicated(const std::vector<uint8_t>& bytes, int orientation) {
  jpeg_error_mgr errors;  // ends the process
  jpeg_decompress_struct jpeg{};
  jpeg.err = jpeg_std_error(&errors);
  jpeg_create_decompress(&jpeg);
  jpeg_mem_src(&jpeg, bytes.data(), static_cast<unsigned long>(bytes.size()));
  jpeg_read_header(&jpeg, TRUE);
  jpeg.do_fancy_upsampling = FALSE;
  jpeg_start_decompress(&jpeg);
  Image image = black_image(jpeg.output_height, jpeg.output_width, 3);
  while (jpeg.output_scanline < jpeg.output_height) {
    JSAMPROW row = image.row(jpeg.output_scanline);
    jpeg_read_scanlines(&jpeg, &row, 1);
  }
  jpeg_finish_decompress(&jpeg);
  jpeg_destroy_decompress(&jpeg);
  return upright(std::move(image), orientation);
}

// On a GPU, or on the emulator's. The inverse DCT's rounding is free within a level (T.83),
// which is up to two after the colours' conversion; libjpeg's in floats differs from its default by 65 in all of 2304
// values.
TEST(DecodeImage, OnAGpuAsOnTheCpuWithReplicatedColours) {
  namespace nvjpeg = kernels::vendor::nvjpeg;
  if (!nvjpeg::missing().empty()) GTEST_SKIP() << nvjpeg::missing();
  constexpr int kNoGpu = 99;
  const auto check = [](const char* file, bool suits, int orientation = 1) {
    const std::vector<uint8_t> bytes = read_file(golden(file));
    const Image cpu = suits ? replicated(bytes, orientation) : decode(bytes, file);
    const Image gpu = decode(bytes, file, {.gpu = 0});
    ASSERT_LE(largest_difference(gpu, cpu), suits ? 2 : 0) << file;
    int64_t total = 0;
    for (size_t i = 0; i < cpu.pixels.size(); ++i) total += std::abs(gpu.pixels[i] - cpu.pixels[i]);
    EXPECT_LE(total, static_cast<int64_t>(cpu.pixels.size()) / 20) << file;
    std::string error;
    try {
      decode(bytes, file, {.gpu = kNoGpu});
    } catch (const Error& refused) {
      error = refused.what();
    }
    EXPECT_EQ(error.find("cuda:99") != std::string::npos, suits) << file << " goes to the GPU or not: " << error;
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i)
    threads.emplace_back([&] {
      for (const char* file : {"baseline.jpg", "progressive.jpg", "chroma420.JPEG"}) check(file, true);
      check("exif6.jpg", true, 6);
      for (const char* file : {"grey.jpg", "cmyk.jpg"}) check(file, false);
    });
  for (std::thread& thread : threads) thread.join();
  std::vector<uint8_t> bytes = read_file(golden("baseline.jpg"));
  std::vector<uint8_t> rgb(size_t{3} * 64 * 64);
  EXPECT_FALSE(nvjpeg::decode(0, bytes, 1, 1, rgb.data())) << "of other sizes";
  bytes.resize(bytes.size() * 3 / 4);
  EXPECT_THAT(error_text([&] { decode(bytes, "a.jpg", {.gpu = 0}); }), HasSubstr("jpeg: a.jpg is cut short after"));
}
#endif

TEST(DecodeImage, EveryExifOrientationStandsUpright) {
  WEFT_NEED_PART(JPEG, "libjpeg-turbo");
  const Image upright_image = read_ppm(golden("rgb.ppm"));
  for (int orientation = 1; orientation <= 8; ++orientation) {
    const std::string file = str("exif", orientation, ".jpg");
    const Image image = decode(read_file(golden(file)), file);
    ASSERT_EQ(image.height, upright_image.height) << file;
    int64_t total = 0;
    for (size_t i = 0; i < image.pixels.size(); ++i) total += std::abs(image.pixels[i] - upright_image.pixels[i]);
    EXPECT_LT(total, static_cast<int64_t>(image.pixels.size()) * 6) << file;
  }
}

// One sample, 0x8123, as text and as bytes: its high byte counts.
TEST(DecodeImage, SixteenBitsAreCutToTheHighByte) {
  WEFT_NEED_PART(LEPTONICA, "Leptonica");
  const std::string headers[] = {"P5 1 1 65535\n", "P5\n# 7 8\n1 1\n65535\n", "P6 1 1 65535\n"};
  std::vector<std::string> files{"P2 1 1 65535\n33059\n"};
  for (const std::string& header : headers) {
    files.push_back(header);
    for (int i = 0; i < (header[1] == '6' ? 3 : 1); ++i) files.back() += "\x81\x23";
  }
  for (const std::string& file : files) {
    const Image image = decode({reinterpret_cast<const uint8_t*>(file.data()), file.size()}, "x.pnm");
    EXPECT_EQ(image.pixels, std::vector<uint8_t>(3, 0x81)) << file;
  }
}

TEST(DecodeImage, RefusesWhatIsNoImage) {
  EXPECT_THAT(error_text([] { decode({}, "a.jpg"); }), HasSubstr("a.jpg is empty"));
  EXPECT_THAT(error_text([] {
                decode(std::vector<uint8_t>{'G', 'I', 'F', '8'}, "a.jpg");
              }),
              HasSubstr("cannot read a.jpg"));
  const std::string page = "<!DOCTYPE html>";
  EXPECT_EQ(
      error_text([&] {
        decode({reinterpret_cast<const uint8_t*>(page.data()), page.size()}, "a.jpg");
      }),
      "decode: expected a JPEG, PNG, WebP, BMP, GIF, TIFF or PNM image, got something else in a.jpg, which begins "
      "with '<!DOCTYPE html>'");
}

TEST(DecodeImage, RefusesTruncatedImages) {
  for (const char* file : {"baseline.jpg", "progressive.jpg", "rgb.png"}) {
    std::vector<uint8_t> bytes = read_file(golden(file));
    bytes.resize(bytes.size() * 3 / 5);
    EXPECT_THAT(error_text([&] { decode(bytes, file); }), HasSubstr(file));
  }
}

TEST(DecodeImage, SaysWhereAJpegIsCutShort) {
  WEFT_NEED_PART(JPEG, "libjpeg-turbo");
  std::vector<uint8_t> bytes = read_file(golden("baseline.jpg"));
  bytes.resize(bytes.size() * 3 / 4);
  EXPECT_THAT(error_text([&] { decode(bytes, "a.jpg"); }), HasSubstr("jpeg: a.jpg is cut short after"));
  bytes.resize(30);
  EXPECT_THAT(error_text([&] { decode(bytes, "a.jpg"); }), HasSubstr("jpeg: cannot read a.jpg"));
}

TEST(DecodeImage, RefusesCorruptImages) {
  WEFT_NEED_PART(SPNG, "libspng");
  std::vector<uint8_t> bytes = read_file(golden("rgb.png"));
  bytes[bytes.size() / 2] ^= 0x55;
  EXPECT_THAT(error_text([&] { decode(bytes, "a.png"); }), HasSubstr("png: cannot read a.png: "));
}

/// Where `marker` (FF and this byte) stands, counted from the end of the file.
size_t last_marker(const std::vector<uint8_t>& jpeg, uint8_t marker) {
  for (size_t at = jpeg.size() - 2; at > 0; --at)
    if (jpeg[at] == 0xff && jpeg[at + 1] == marker) return at;
  ADD_FAILURE() << "no such marker";
  return 0;
}

TEST(DecodeImage, AFewBytesOfJpegCannotAskForGigabytes) {
  WEFT_NEED_PART(JPEG, "libjpeg-turbo");
  std::vector<uint8_t> bytes = read_file(golden("baseline.jpg"));
  EXPECT_EQ(error_text([&] { decode(bytes, "a.jpg", {.max_pixels = 767}); }),
            "jpeg: expected at most 767 pixels in a.jpg, got 768");
  EXPECT_EQ(decode(bytes, "a.jpg", {.max_pixels = 768}).width, 32);
  const size_t sizes = last_marker(bytes, 0xc0) + 5;  // height and width, two bytes each
  for (const size_t at : {sizes, sizes + 2}) bytes[at] = 0x1f, bytes[at + 1] = 0xff;
  EXPECT_EQ(
      error_text([&] { decode(bytes, "a.jpg"); }),
      str("jpeg: expected a.jpg to hold 67092481 pixels, got a file of ", bytes.size(), " bytes. Is it cut short?"));
  bytes[sizes] = bytes[sizes + 2] = 0x20;
  EXPECT_THAT(error_text([&] { decode(bytes, "a.jpg"); }), HasSubstr("expected at most 67108864 pixels in a.jpg"));
}

TEST(DecodeImage, AJpegOfManyScansIsRefused) {
  WEFT_NEED_PART(JPEG, "libjpeg-turbo");
  const std::vector<uint8_t> bytes = read_file(golden("progressive.jpg"));
  const size_t scan = last_marker(bytes, 0xda);
  std::vector<uint8_t> many(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(scan));
  for (int i = 0; i < 101; ++i)
    many.insert(many.end(), bytes.begin() + static_cast<std::ptrdiff_t>(scan), bytes.end() - 2);
  many.insert(many.end(), {0xff, 0xd9});
  EXPECT_EQ(error_text([&] { decode(many, "a.jpg"); }),
            "jpeg: cannot read a.jpg: expected at most 100 scans, got more");
}

TEST(DecodeImage, AFewBytesOfPngCannotAskForGigabytes) {
  WEFT_NEED_PART(SPNG, "libspng");
  std::vector<uint8_t> bytes = read_file(golden("rgb.png"));
  EXPECT_EQ(error_text([&] { decode(bytes, "a.png", {.max_pixels = 700}); }),
            "png: expected at most 700 pixels in a.png, got 32x24");
  bytes[18] = bytes[22] = 0x1f;  // width and height of IHDR, big-endian from bytes 16 and 20
  uint32_t crc = ~0u;            // checksum of the chunk's name and content (PNG, annex D)
  for (size_t i = 12; i < 29; ++i) {
    crc ^= bytes[i];
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0u);
  }
  for (size_t i = 0; i < 4; ++i) bytes[29 + i] = static_cast<uint8_t>(~crc >> (24 - 8 * i));
  EXPECT_EQ(
      error_text([&] { decode(bytes, "a.png"); }),
      str("png: expected a.png to hold 7968x7960 pixels, got a file of ", bytes.size(), " bytes. Is it cut short?"));
}

TEST(DecodeImage, NamesWhatLeptonicaWouldReadInWrongColours) {
  WEFT_NEED_PART(LEPTONICA, "Leptonica");
  std::vector<uint8_t> bmp = read_file(golden("rgb.bmp"));
  for (const uint8_t bits : {16, 32}) {
    bmp[28] = bits;
    EXPECT_EQ(error_text([&] { decode(bmp, "a.bmp"); }),
              "decode: cannot read a.bmp: expected a BMP of 1, 4, 8 or 24 bits a pixel");
  }
  // One pixel, (9, 8, 7) with the alpha 3: ten entries of 12 bytes, then 8, 8, 8, 8 and the pixel.
  std::vector<uint8_t> tiff{'I', 'I', 42, 0, 8, 0, 0, 0, 10, 0};
  const auto entry = [&](uint16_t tag, uint8_t count, uint8_t value) {
    tiff.insert(tiff.end(),
                {static_cast<uint8_t>(tag), static_cast<uint8_t>(tag >> 8), 3, 0, count, 0, 0, 0, value, 0, 0, 0});
  };
  entry(256, 1, 1), entry(257, 1, 1), entry(258, 4, 134), entry(259, 1, 1), entry(262, 1, 2), entry(273, 1, 142);
  entry(277, 1, 4), entry(278, 1, 1), entry(279, 1, 4), entry(338, 1, 2);
  tiff.insert(tiff.end(), {0, 0, 0, 0, 8, 0, 8, 0, 8, 0, 8, 0, 9, 8, 7, 3});
  EXPECT_EQ(error_text([&] { decode(tiff, "a.tif"); }),
            "decode: cannot read a.tif: expected a TIFF without transparent pixels. Save it without its alpha channel");
  tiff.back() = 255;
  EXPECT_EQ(decode(tiff, "a.tif").pixels, (std::vector<uint8_t>{9, 8, 7}));
}

using Bytes = std::vector<uint8_t>;

Bytes joined_bytes(std::initializer_list<Bytes> parts) {
  Bytes all;
  for (const Bytes& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

/// A chunk of RIFF; the file itself is one.
Bytes chunk(const char* name, const Bytes& body) {
  Bytes head(name, name + 4);
  for (int i = 0; i < 4; ++i) head.push_back(static_cast<uint8_t>(body.size() >> (8 * i)));
  return joined_bytes({head, body, Bytes(body.size() % 2, 0)});
}

TEST(DecodeImage, OtherFormatsStandUpright) {
  WEFT_NEED_PART(LEPTONICA, "Leptonica");
  const Bytes webp = read_file(golden("rgb.webp"));  // 32x24
  const Bytes image(webp.begin() + 12, webp.end()), canvas{8, 0, 0, 0, 31, 0, 0, 23, 0, 0};
  const auto block = [](uint8_t orientation) {
    return Bytes{'I', 'I', 42, 0, 8, 0, 0, 0, 1, 0, 0x12, 1, 3, 0, 1, 0, 0, 0, orientation, 0, 0, 0, 0, 0, 0, 0};
  };
  const Image plain = decode(webp, "a.webp");
  for (uint8_t orientation = 0; orientation <= 9; ++orientation)
    for (const Bytes& prefix : {Bytes{}, Bytes{'E', 'x', 'i', 'f', 0, 0}}) {
      const Bytes exif = chunk("EXIF", joined_bytes({prefix, block(orientation)}));
      const Image turned =
          decode(chunk("RIFF", joined_bytes({{'W', 'E', 'B', 'P'}, chunk("VP8X", canvas), image, exif})), "a.webp");
      const Image wanted = upright(plain, orientation);
      EXPECT_EQ(turned.height, wanted.height);
      EXPECT_EQ(turned.pixels, wanted.pixels) << int{orientation};
    }
  // Three pixels beside two: nine entries of 12 bytes, then the pixels.
  const auto tiff = [](uint8_t orientation, bool big) {
    Bytes bytes = big ? Bytes{'M', 'M', 0, 42, 0, 0, 0, 8, 0, 9} : Bytes{'I', 'I', 42, 0, 8, 0, 0, 0, 9, 0};
    const auto entry = [&](uint16_t tag, uint8_t value) {
      const auto high = static_cast<uint8_t>(tag >> 8), low = static_cast<uint8_t>(tag);
      const Bytes made =
          big ? Bytes{high, low, 0, 3, 0, 0, 0, 1, 0, value, 0, 0} : Bytes{low, high, 3, 0, 1, 0, 0, 0, value, 0, 0, 0};
      bytes.insert(bytes.end(), made.begin(), made.end());
    };
    entry(256, 3), entry(257, 2), entry(258, 8), entry(259, 1), entry(262, 1), entry(273, 122);
    entry(274, orientation), entry(278, 2), entry(279, 6);
    return joined_bytes({bytes, {0, 0, 0, 0, 10, 20, 30, 40, 50, 60}});
  };
  const Image level = decode(tiff(1, false), "a.tif");
  EXPECT_EQ(level.width, 3);
  for (uint8_t orientation = 0; orientation <= 9; ++orientation)
    for (const bool big : {false, true})
      EXPECT_EQ(decode(tiff(orientation, big), "a.tif").pixels, upright(level, orientation).pixels) << int{orientation};
}

TEST(DecodeImage, AnAnimatedWebPsFirstImageCounts) {
  WEFT_NEED_PART(LEPTONICA, "Leptonica");
  const Bytes webp = read_file(golden("rgb.webp"));
  const Bytes first(webp.begin() + 12, webp.end()), canvas{2, 0, 0, 0, 31, 0, 0, 23, 0, 0};
  const auto animated = [&](uint8_t x) {
    const Bytes place{x, 0, 0, 0, 0, 0, 31, 0, 0, 23, 0, 0, 100, 0, 0, 2};
    const Bytes frame = chunk("ANMF", joined_bytes({place, first}));
    const Bytes second = chunk("ANMF", joined_bytes({place, chunk("VP8L", {0x2f, 0, 0})}));
    return chunk("RIFF",
                 joined_bytes({{'W', 'E', 'B', 'P'}, chunk("VP8X", canvas), chunk("ANIM", Bytes(6)), frame, second}));
  };
  EXPECT_EQ(decode(animated(0), "a.webp").pixels, decode(webp, "b.webp").pixels);
  EXPECT_EQ(error_text([&] { decode(animated(1), "a.webp"); }),
            "decode: cannot read a.webp: expected an animated WebP whose first image fills it");
}

TEST(DecodeImage, AFewBytesOfOtherFormatsCannotAskForGigabytes) {
  WEFT_NEED_PART(LEPTONICA, "Leptonica");
  for (const char* file : {"rgb.webp", "rgb.bmp", "rgb.tiff", "animated.gif", "rgb.pnm"})
    EXPECT_EQ(error_text([&] { decode(read_file(golden(file)), file, {.max_pixels = 700}); }),
              str("decode: expected at most 700 pixels in ", file, ", got 768"));
}

TEST(DecodeImage, SurvivesRandomDamage) {
  // Whatever happens to the bytes, the outcome is an image or one weft::Error.
  std::mt19937 generator(std::random_device{}());
  for (const char* file : {"baseline.jpg", "progressive.jpg", "cmyk.jpg", "exif6.jpg", "palette.png", "deep.png",
                           "rgb.webp", "rgb.bmp", "rgb.tiff", "animated.gif", "rgb.pnm"}) {
    const std::vector<uint8_t> bytes = read_file(golden(file));
    for (int round = 0; round < 200; ++round) {
      std::vector<uint8_t> damaged = bytes;
      for (int n = 0; n < 3; ++n) damaged[generator() % damaged.size()] = static_cast<uint8_t>(generator());
      try {
        const Image image = decode(damaged, file);
        EXPECT_EQ(static_cast<int64_t>(image.pixels.size()), image.height * image.width * 3);
      } catch (const Error& error) {
        EXPECT_THAT(error.what(), HasSubstr(file));
      }
    }
  }
}

TEST(DecodeImage, ScalesDownInTheDctDomainWhenAllowed) {
  WEFT_NEED_PART(JPEG, "libjpeg-turbo");
  const std::vector<uint8_t> bytes = read_file(golden("baseline.jpg"));  // 32x24
  const Image half = decode(bytes, "baseline.jpg", {.shortest_edge = 12});
  EXPECT_EQ(half.height, 12);
  EXPECT_EQ(half.width, 16);
  const Image whole = decode(bytes, "baseline.jpg", {.shortest_edge = 24});
  EXPECT_EQ(whole.height, 24);
  EXPECT_EQ(decode(bytes, "baseline.jpg", {.shortest_edge = 100}).height, 24);
  // Same image: the mean colour stays.
  const auto mean = [](const Image& image) {
    double sum = 0;
    for (const uint8_t value : image.pixels) sum += value;
    return sum / static_cast<double>(image.pixels.size());
  };
  EXPECT_NEAR(mean(half), mean(whole), 2);
}

TEST(DecodeImage, AStubSaysHowToBuildItsPartIn) {
  if (WEFT_HAVE_JPEG && WEFT_HAVE_SPNG && WEFT_HAVE_LEPTONICA)
    GTEST_SKIP() << "this build has no stub: WEFT_WITHOUT=all gives one";
  if (!WEFT_HAVE_JPEG) {
    EXPECT_THAT(error_text([] { decode(read_file(golden("baseline.jpg")), "a.jpg"); }),
                HasSubstr("jpeg: cannot read a.jpg: built without libjpeg. On Debian: apt-get install "
                          "libjpeg-dev, then configure again."));
  }
  if (!WEFT_HAVE_LEPTONICA) {
    EXPECT_EQ(
        error_text([] { decode(read_file(golden("rgb.webp")), "a.webp"); }),
        "decode: cannot read a.webp, which is no JPEG or PNG: built without Leptonica. On Debian: apt-get install "
        "libleptonica-dev, then configure again.");
  }
  if (!WEFT_HAVE_SPNG) {
    EXPECT_THAT(error_text([] { decode(read_file(golden("rgb.png")), "a.png"); }),
                HasSubstr("png: cannot read a.png: built without libspng. On Debian: apt-get install libspng-dev, then "
                          "configure again."));
  }
}

TEST(Exif, IgnoresMalformedBlocks) {
  EXPECT_EQ(exif_orientation({}), 1);
  const std::vector<uint8_t> good{'I', 'I', 42, 0, 8, 0, 0, 0, 1, 0, 0x12, 1, 3, 0, 1, 0, 0, 0, 6, 0, 0, 0};
  EXPECT_EQ(exif_orientation(good), 6);
  for (size_t size = 0; size < good.size(); ++size) EXPECT_EQ(exif_orientation({good.data(), size}), 1) << size;
  for (int round = 0; round < 2000; ++round) {
    std::vector<uint8_t> bytes = random_bytes(40);
    bytes[0] = bytes[1] = round % 2 ? 'I' : 'M';
    const int orientation = exif_orientation(bytes);
    EXPECT_TRUE(orientation >= 1 && orientation <= 8);
  }
}

}  // namespace
}  // namespace weft::data::testing
