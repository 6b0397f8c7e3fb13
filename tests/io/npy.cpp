// SPDX-License-Identifier: Apache-2.0
#include "io/npy.h"

#include <fstream>

#include "io/torch/zip_archive.h"
#include "tests/support/error_text.h"
#include "tests/support/temporary_folder.h"

namespace weft {
namespace {

using ::testing::HasSubstr;
namespace fs = std::filesystem;
using TemporaryFolder = tests::TemporaryFolderOf<fs::path>;

/// A file of version 1 with this header, unpadded, and these bytes.
fs::path file_of(const TemporaryFolder& folder, const std::string& header, const std::string& data, char version = 1) {
  const fs::path path = folder / "a.npy";
  std::ofstream out(path, std::ios::binary);
  out << "\x93NUMPY" << version << '\0' << static_cast<char>(header.size() & 255)
      << static_cast<char>(header.size() >> 8);
  if (version > 1) out << std::string(2, '\0');
  out << header << data;
  return path;
}

std::string read_file_text(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::string refusal(const std::string& header, const std::string& data, char version = 1) {
  const TemporaryFolder folder;
  return error_text([&] { read_npy(file_of(folder, header, data, version)); });
}

TEST(Npy, RoundTrips) {
  const TemporaryFolder folder;
  for (const DType dtype : {DType::f16, DType::f32, DType::f64, DType::i32, DType::i64, DType::u8, DType::boolean}) {
    const Tensor x = Tensor::arange(24, DType::f32).reshape({1, 4, 1, 6}).to(dtype);
    write_npy(folder / "x.npy", x.permute({0, 3, 2, 1}));
    const Tensor y = read_npy(folder / "x.npy");
    EXPECT_EQ(y.dtype(), dtype);
    EXPECT_EQ(y.sizes(), (Shape{1, 6, 1, 4}));
    EXPECT_EQ(y.to_vector<double>(), x.permute({0, 3, 2, 1}).to_vector<double>());
  }
  write_npy(folder / "line.npy", Tensor::arange(3, DType::f32));
  EXPECT_EQ(read_npy(folder / "line.npy").sizes(), Shape{3});
  // As NumPy aligns it: the data begin at a multiple of 64 bytes.
  EXPECT_EQ((fs::file_size(folder / "line.npy") - 12) % 64, 0u);
}

TEST(Npy, ComplexNumbers) {
  const TemporaryFolder folder;
  for (const DType dtype : {DType::f32, DType::f64}) {
    const ComplexTensor z = view_as_complex(Tensor::arange(12, dtype).reshape({3, 2, 2})).transpose(0, 1);
    write_npy(folder / "z.npy", z);
    const Tensor parts = read_npy(folder / "z.npy");
    EXPECT_EQ(parts.dtype(), dtype);
    EXPECT_EQ(parts.sizes(), (Shape{2, 3, 2}));
    EXPECT_EQ(parts.to_vector<double>(), z.parts().to_vector<double>());
    EXPECT_EQ(read_file_text(folder / "z.npy").find(dtype == DType::f32 ? "'<c8'" : "'<c16'"), 20u);
  }
  const std::string many = "{'descr': '<c8', 'fortran_order': False, 'shape': (1, 1, 1, 1, 1, 1, 1, 1), }\n";
  EXPECT_THAT(refusal(many, std::string(8, '\0')),
              HasSubstr("expected at most 7 dimensions of complex numbers, got 8"));
}

// Bytes as numpy 1.24 writes np.save(file, np.array([[1, 2]], dtype='<f4')): header of 118 bytes.
TEST(Npy, ReadsWhatNumPyWrites) {
  const TemporaryFolder folder;
  std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2), }";
  header.resize(117, ' ');
  const std::string data("\0\0\x80\x3f\0\0\0\x40", 8);
  for (const char version : {1, 2, 3}) {
    const Tensor x = read_npy(file_of(folder, header + '\n', data, version));
    EXPECT_EQ(x.sizes(), (Shape{1, 2}));
    EXPECT_THAT(x.to_vector<float>(), ::testing::ElementsAre(1, 2));
  }
}

// np.save(file, x.T): the first dimension is the dense one in memory.
TEST(Npy, FortranOrderIsTransposed) {
  const TemporaryFolder folder;
  const auto read = [&](const std::string& header) {
    return read_npy(file_of(folder, "{'descr': " + header + ", }\n", std::string("\0\1\2\3\4\5\6\7", 8)));
  };
  const Tensor x = read("'|u1', 'fortran_order': True, 'shape': (2, 4)");
  EXPECT_EQ(x.sizes(), (Shape{2, 4}));
  EXPECT_TRUE(x.is_contiguous());
  EXPECT_THAT(x.to_vector<double>(), ::testing::ElementsAre(0, 2, 4, 6, 1, 3, 5, 7));
  EXPECT_THAT(read("'|u1', 'fortran_order': True, 'shape': (2, 2, 2)").to_vector<double>(),
              ::testing::ElementsAre(0, 4, 2, 6, 1, 5, 3, 7));
  const Tensor z = Tensor::arange(8, DType::f32);
  const auto* const bytes = static_cast<const char*>(z.raw_data());
  const Tensor parts = read_npy(file_of(folder, "{'descr': '<c8', 'fortran_order': True, 'shape': (2, 2), }\n",
                                        std::string(bytes, bytes + z.nbytes())));
  EXPECT_EQ(parts.sizes(), (Shape{2, 2, 2}));
  EXPECT_THAT(parts.to_vector<double>(), ::testing::ElementsAre(0, 1, 4, 5, 2, 3, 6, 7));
}

TEST(Npy, NarrowIntegersAreWidened) {
  const TemporaryFolder folder;
  const auto expect = [&](const std::string& type, const std::string& data, DType dtype, std::vector<double> values) {
    const Tensor x =
        read_npy(file_of(folder, "{'descr': '" + type + "', 'fortran_order': False, 'shape': (2,), }\n", data));
    EXPECT_EQ(x.dtype(), dtype) << type;
    EXPECT_EQ(x.to_vector<double>(), values) << type;
  };
  expect("|i1", "\xff\x7f", DType::i32, {-1, 127});
  expect("<i2", "\xfe\xff\x01\x02", DType::i32, {-2, 513});
  expect("<u2", "\xfe\xff\x01\x02", DType::i32, {65534, 513});
  expect("<u4", "\xff\xff\xff\xff\x01\x02\x03\x04", DType::i64, {4294967295, 67305985});
}

TEST(Npy, RefusesWithOneLine) {
  const std::string good = "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }\n";
  EXPECT_THAT(refusal(good, "1234567"), HasSubstr("a.npy: expected 8 bytes after the header, got 7"));
  EXPECT_THAT(
      refusal("{'descr': '>f4', 'fortran_order': False, 'shape': (2,), }\n", "12345678"),
      HasSubstr("expected elements f2, f4, f8, i1, i2, i4, i8, u1, u2, u4, b1, c8 or c16, little-endian, got '>f4'"));
  EXPECT_THAT(refusal("{'descr': '<f4', 'fortran_order': False, }\n", ""),
              HasSubstr("expected the key 'shape' in the header, got none"));
  EXPECT_THAT(refusal("{'descr': '<f4', 'fortran_order': False, 'shape': (x,), }", ""),
              HasSubstr("expected numbers in the shape, got x"));
  EXPECT_THAT(refusal("{'descr': '<f4', 'fortran_order': False, 'shape': 3, }", ""),
              HasSubstr("expected a shape such as (1, 20), got 3"));
  for (const char* shape : {"(4294967296, 4294967296)", "(99999999999999999999,)", "(1, 1, 1, 1, 1, 1, 1, 1, 1)"})
    EXPECT_THAT(refusal(str("{'descr': '<f4', 'fortran_order': False, 'shape': ", shape, ", }"), ""),
                HasSubstr("expected at most 2^60 numbers in 8 dimensions, got more"));
  EXPECT_THAT(refusal("{'descr': '<f4', 'fortran_order': False, 'shape': (400000000,), }", ""),
              HasSubstr("expected 1600000000 bytes after the header, got 0"));
  EXPECT_THAT(refusal("{'descr': '|b1', 'fortran_order': False, 'shape': (2,), }", "\x01\x02"),
              HasSubstr("expected 0 or 1 for each BOOL, got another byte"));
  EXPECT_THAT(refusal(good, "12345678", 9), HasSubstr("expected version 1 to 3 of the format, got 9"));
  const TemporaryFolder folder;
  std::ofstream(folder / "short.npy") << "\x93NUMPY\x01" << '\0' << "\xff\xff{";
  EXPECT_THAT(error_text([&] { read_npy(folder / "short.npy"); }), HasSubstr("cut short inside the header"));
  std::ofstream(folder / "other.npy") << "hello, this is no array";
  EXPECT_THAT(error_text([&] { read_npy(folder / "other.npy"); }), HasSubstr("expected a file of NumPy's np.save"));
  EXPECT_THAT(error_text([&] { write_npy(folder / "h.npy", Tensor::zeros({2}, DType::bf16)); }),
              HasSubstr("expected f16, f32, f64, i32, i64, u8 or bool, got bf16[2]"));
}

TEST(Npz, RoundTrips) {
  if (!have_zip()) GTEST_SKIP() << "needs a build with libzip; this one has its stub";
  const TemporaryFolder folder;
  write_npz(folder / "a.npz",
            {{"x", Tensor::arange(6, DType::f32).reshape({2, 3})}, {"y", Tensor::full({}, 7, DType::i64)}});
  const std::map<std::string, Tensor> arrays = read_npz(folder / "a.npz");
  ASSERT_EQ(arrays.size(), 2u);
  EXPECT_EQ(arrays.at("x").sizes(), (Shape{2, 3}));
  EXPECT_THAT(arrays.at("x").to_vector<float>(), ::testing::ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_EQ(arrays.at("y").item(), 7);
}

// numpy 2.4: np.savez_compressed(file, x=np.arange(6, dtype='i2').reshape(2, 3).T * -1, z=np.zeros(4096, dtype='f4'))
TEST(Npz, CompressedArraysAreInflated) {
  if (!have_zip()) GTEST_SKIP() << "needs a build with libzip; this one has its stub";
  const std::map<std::string, Tensor> arrays = read_npz(WEFT_GOLDEN "/compressed.npz");
  ASSERT_EQ(arrays.size(), 2u);
  EXPECT_EQ(arrays.at("x").sizes(), (Shape{3, 2}));
  EXPECT_THAT(arrays.at("x").to_vector<double>(), ::testing::ElementsAre(0, -3, -1, -4, -2, -5));
  EXPECT_EQ(arrays.at("z").to_vector<float>(), std::vector<float>(4096));

  const TemporaryFolder folder;
  const auto refusal = [&](size_t at, const std::string& bytes) {  // `at` begins at the first entry's line
    std::string file = read_file_text(WEFT_GOLDEN "/compressed.npz");
    file.replace(file.find("PK\1\2") + at, bytes.size(), bytes);
    std::ofstream(folder / "a.npz", std::ios::binary) << file;
    return error_text([&] { read_npz(folder / "a.npz"); });
  };
  constexpr size_t kMethod = 10, kChecksum = 16, kSize = 24;
  EXPECT_THAT(refusal(kMethod, "\x0c"), HasSubstr("expected it stored or deflated, got it encrypted or compressed by"));
  EXPECT_THAT(refusal(kChecksum, "?"), HasSubstr("zip entry 'x.npy': expected 140 bytes, got 'CRC error'"));
  EXPECT_THAT(refusal(kSize, "\xff\xff\xff"),
              HasSubstr("expected at most 1032 times its 82 compressed bytes, got 16777215"));
}

TEST(Npz, RefusesWhatIsNoArchiveOfArrays) {
  if (!have_zip()) GTEST_SKIP() << "needs a build with libzip; this one has its stub";
  const TemporaryFolder folder;
  std::ofstream(folder / "b.npz") << "no zip archive";
  EXPECT_THAT(error_text([&] { read_npz(folder / "b.npz"); }), HasSubstr("b.npz: expected a whole zip archive"));
  EXPECT_THAT(error_text([&] {
                write_npz(folder / "c.npz", {{"a/b", Tensor::zeros({1})}});
              }),
              HasSubstr("without a /, got 'a/b'"));
  EXPECT_THAT(error_text([&] {
                write_npz(folder / "c.npz", {{"h", Tensor::zeros({1}, DType::bf16)}});
              }),
              HasSubstr("got bf16[1]"));
  EXPECT_THAT(error_text([&] { write_npz(folder / "c.npz", {}); }), HasSubstr("expected at least one array, got none"));
  EXPECT_THAT(error_text([&] {
                write_npz(folder / "c.npz", {{"\xff", Tensor::zeros({1})}});
              }),
              HasSubstr("got '\\xff'"));
  EXPECT_FALSE(fs::exists(folder / "c.npz"));
  {
    AtomicFile file(folder / "d.npz", "test");
    ZipWriter writer(file);
    writer.add("notes.txt", 2, [] { return std::make_shared<const std::string>("hi"); });
    writer.close();
    file.commit();
  }
  EXPECT_THAT(error_text([&] { read_npz(folder / "d.npz"); }),
              HasSubstr("d.npz: notes.txt: expected an array, NAME.npy, got another entry of 2 bytes"));
}

}  // namespace
}  // namespace weft
