// SPDX-License-Identifier: Apache-2.0
#include "data/table/table.h"

#include <fstream>

#include "tests/data/fixture.h"

namespace weft::data::testing {
namespace {

class TableFile : public ::testing::Test {
 public:
  Table table(const std::string& text, const std::string& name = "wells.csv") {
    std::ofstream(folder_ / name) << text;
    return Table(folder_ / name);
  }

  fs::path folder() const { return folder_ / ""; }

 private:
  TemporaryFolder folder_;
};

constexpr const char* kWells =
    "depth,porosity,rock,well\n"
    "10,0.25,sand,\"A, north\"\n"
    "20,,lime,B\n"
    "-3e1,0.5,sand,C\n";

TEST_F(TableFile, NumbersClassesAndTexts) {
  const Table wells = table(kWells);
  EXPECT_EQ(wells.rows(), 3);
  EXPECT_EQ(wells.columns(), (std::vector<std::string>{"depth", "porosity", "rock", "well"}));
  EXPECT_EQ(wells.number_columns(), (std::vector<std::string>{"depth", "porosity"}));
  const Tensor x = wells.numbers({"porosity", "depth"}, DType::f32, -1);
  EXPECT_EQ(x.sizes(), (Shape{3, 2}));
  EXPECT_EQ(x.to_vector<float>(), (std::vector<float>{0.25, 10, -1, 20, 0.5, -30}));
  EXPECT_EQ(wells.numbers({"depth"}, DType::f64).dtype(), DType::f64);
  const Categories rock = wells.categories("rock");
  EXPECT_EQ(rock.names, (std::vector<std::string>{"lime", "sand"}));
  EXPECT_EQ(rock.indices.to_vector<int64_t>(), (std::vector<int64_t>{1, 0, 1}));
  EXPECT_EQ(wells.categories("rock", {"sand", "chalk", "lime"}).indices.to_vector<int64_t>(),
            (std::vector<int64_t>{0, 2, 0}));
  EXPECT_EQ(wells.texts("well"), (std::vector<std::string>{"A, north", "B", "C"}));
  EXPECT_EQ(table("k\n10\n9\n10\n").categories("k").names, (std::vector<std::string>{"9", "10"}));
  EXPECT_EQ(table("a\tb\n1\t2\n", "t.tsv").numbers({"b"}).item(), 2);
  EXPECT_EQ(table("{\"a\": 1.5}\n{\"a\": null}\n", "t.jsonl").numbers({"a"}, DType::f32, 0).to_vector<float>(),
            (std::vector<float>{1.5, 0}));
}

TEST_F(TableFile, BlanksDoNotCountAndWordsForNoValueAreEmpty) {
  const Table blanks = table("x, y, c\n1, 2, a\n3 , 4,a\n");
  EXPECT_EQ(blanks.number_columns(), (std::vector<std::string>{"x", "y"}));
  EXPECT_EQ(blanks.numbers({"x", "y"}).to_vector<float>(), (std::vector<float>{1, 2, 3, 4}));
  EXPECT_EQ(blanks.categories("c").names, (std::vector<std::string>{"a"}));
  const Table gaps = table("x,y,c\n1,NA,cat\n2,3,nan\n4,NaN,dog\n5,inf,dog\n");
  EXPECT_EQ(gaps.number_columns(), (std::vector<std::string>{"x", "y"}));
  EXPECT_THAT(error_text([&] { gaps.numbers({"y"}, DType::f32, 0); }),
              HasSubstr("line 5, column 'y': expected a finite number, got 'inf'"));
  EXPECT_THAT(error_text([&] { gaps.numbers({"y"}); }),
              HasSubstr("line 2, column 'y': expected a number, got NA. Give"));
  EXPECT_THAT(error_text([&] { gaps.categories("c"); }), HasSubstr("line 3, column 'c': expected a class, got nan"));
  EXPECT_EQ(table("x;y\n1;2\n").numbers({"y"}).item(), 2);
  EXPECT_EQ(table("x\ty\n1\t2\n").numbers({"y"}).item(), 2);
  const Table nested = table("{\"a\": 1, \"c\": [1, 2], \"u\": NaN}\n", "t.jsonl");
  EXPECT_EQ(nested.number_columns(), (std::vector<std::string>{"a"}));
  EXPECT_THAT(error_text([&] { nested.categories("c"); }), HasSubstr("expected a number or a text, got [1,2]"));
}

// As pandas reads them.
TEST_F(TableFile, QuotedEmptyCellsAreRowsAndBlankLinesAreNone) {
  const Table quoted = table("a\n\"\"\n1\n\"\"\n \t\n\n2\n\"\"");
  EXPECT_EQ(quoted.rows(), 5);
  EXPECT_EQ(quoted.numbers({"a"}, DType::f32, -1).to_vector<float>(), (std::vector<float>{-1, 1, -1, 2, -1}));
  EXPECT_EQ(table("a,b\r\n\"\"\r\n\r\n1,2\r\n").numbers({"a", "b"}, DType::f32, 0).to_vector<float>(),
            (std::vector<float>{0, 0, 1, 2}));
}

TEST_F(TableFile, NumbersBeyondF64KeepTheirColumnOneOfNumbers) {
  const Table small = table("p,q\n1e-400,1\n-4e-320,2\n0.5,1e400\n");
  EXPECT_EQ(small.number_columns(), (std::vector<std::string>{"p", "q"}));
  EXPECT_EQ(small.numbers({"p"}, DType::f64).to_vector<double>(), (std::vector<double>{0, -4e-320, 0.5}));
  EXPECT_THAT(error_text([&] { small.numbers({"q"}); }),
              HasSubstr("line 4, column 'q': expected a finite number, got '1e400'"));
  EXPECT_EQ(small.categories("p").names, (std::vector<std::string>{"-4e-320", "1e-400", "0.5"}));
}

TEST_F(TableFile, MissingIsANumberThatTheDtypeHolds) {
  const Table gaps = table("a,b\n1,\n,2\n");
  for (const DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16}) {
    const std::vector<double> values = gaps.numbers({"a", "b"}, dtype, NAN).to_vector<double>();
    EXPECT_EQ(values[0], 1);
    EXPECT_TRUE(std::isnan(values[1]) && std::isnan(values[2]));
    EXPECT_EQ(gaps.numbers({"a", "b"}, dtype, -INFINITY).to_vector<double>()[1], -INFINITY);
  }
  EXPECT_THAT(error_text([&] { gaps.numbers({"a"}, DType::i64, NAN); }),
              HasSubstr("wells.csv: expected a number as `missing` that i64 holds (whole ones below 2^53), got nan"));
  EXPECT_THAT(error_text([&] { gaps.numbers({"a"}, DType::u8, -1); }), HasSubstr("`missing` that u8 holds"));
  EXPECT_THAT(error_text([&] { gaps.numbers({"a"}, DType::f32, 1e39); }), HasSubstr("`missing` that f32 holds"));
}

TEST_F(TableFile, ErrorsNameFileLineAndColumn) {
  const Table wells = table(kWells);
  EXPECT_THAT(error_text([&] { wells.numbers({"depht"}); }),
              HasSubstr("wells.csv: expected the name of a column, got 'depht'. Did you mean 'depth'?"));
  EXPECT_THAT(error_text([&] { wells.numbers({}); }), HasSubstr("expected the names of columns, got none"));
  EXPECT_THAT(error_text([&] { wells.numbers({"porosity"}); }),
              HasSubstr("wells.csv line 3, column 'porosity': expected a number, got an empty cell. Give `missing`"));
  EXPECT_THAT(error_text([&] { wells.numbers({"rock"}); }),
              HasSubstr("line 2, column 'rock': expected a finite number, got 'sand'"));
  EXPECT_THAT(error_text([&] { wells.categories("porosity"); }), HasSubstr("expected a class, got an empty cell"));
  EXPECT_THAT(error_text([&] {
                wells.categories("rock", {"sand", "clay"});
              }),
              HasSubstr("line 3, column 'rock': expected a known class, got 'lime'."));
  EXPECT_THAT(error_text([&] { wells.texts("x"); }), HasSubstr("expected the name of a column, got 'x'."));
  EXPECT_THAT(error_text([&] { table("a,a\n1,2\n"); }), HasSubstr("a name for each column, got 'a' twice"));
  const Table numbers = table("a,b\n1.5,300\n1e39,-1\n");
  EXPECT_THAT(error_text([&] { numbers.numbers({"a"}, DType::i64); }),
              HasSubstr("expected a number that i64 holds (whole ones below 2^53), got '1.5'"));
  EXPECT_THAT(error_text([&] { numbers.numbers({"a"}); }),
              HasSubstr("line 3, column 'a': expected a number that f32 holds"));
  EXPECT_THAT(error_text([&] { numbers.numbers({"b"}, DType::u8); }), HasSubstr("got '300'"));
  EXPECT_EQ(numbers.numbers({"b"}, DType::i32).to_vector<int>(), (std::vector<int>{300, -1}));
  EXPECT_THAT(error_text([&] { table("a,b\n"); }), HasSubstr("at least one row"));
}

TEST_F(TableFile, ReadsTheColumnsThatAreAskedFor) {
  std::ofstream(folder() / "wells.csv") << kWells;
  const Table wells(folder() / "wells.csv", {.columns = {"well", "depth"}});
  EXPECT_EQ(wells.columns(), (std::vector<std::string>{"well", "depth"}));
  EXPECT_EQ(wells.numbers({"depth"}).to_vector<float>(), (std::vector<float>{10, 20, -30}));
  EXPECT_EQ(wells.texts("well")[0], "A, north");
  EXPECT_THAT(error_text([&] { wells.texts("rock"); }), HasSubstr("expected the name of a column, got 'rock'"));
  EXPECT_THAT(error_text([&] { Table(folder() / "wells.csv", {.columns = {"depht"}}); }),
              HasSubstr("got 'depht'. Did you mean 'depth'?"));
  EXPECT_THAT(error_text([&] {
                Table(folder() / "wells.csv", {.columns = {"depth", "depth"}});
              }),
              HasSubstr("got 'depth' twice"));
}

const fs::path kParquet = fs::path(WEFT_GOLDEN) / "parquet/wells.parquet";  // tests/golden/parquet.py writes it

/// Empty: this build has Arrow.
std::string error_without_arrow() {
  try {
    Table table(kParquet);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

#define NEED_PARQUET \
  if (!error_without_arrow().empty()) GTEST_SKIP() << "needs a build with Parquet; this one has its stub"

TEST_F(TableFile, ParquetWithoutArrowIsAnError) {
  if (error_without_arrow().empty()) GTEST_SKIP() << "this build has Arrow";
  EXPECT_EQ(
      error_without_arrow(),
      "table: cannot read " + kParquet.string() +
          ": built without Parquet. Install Apache Arrow's libarrow-dev and libparquet-dev, then configure again.");
}

TEST_F(TableFile, Parquet) {
  NEED_PARQUET;
  const Table wells(kParquet);
  EXPECT_EQ(wells.rows(), 5);
  EXPECT_EQ(wells.columns().size(), 14u);
  EXPECT_EQ(wells.number_columns(),
            (std::vector<std::string>{"id", "serial", "depth", "porosity", "half", "small", "infinite", "price"}));
  EXPECT_EQ(wells.numbers({"id"}, DType::i64).to_vector<int64_t>(), (std::vector<int64_t>{1, 2, 3, 4, 5}));
  EXPECT_EQ(wells.numbers({"depth"}, DType::f64, -1).to_vector<double>(),
            (std::vector<double>{10.5, -2e300, 0.1, -1, -1}));
  EXPECT_EQ(wells.numbers({"porosity", "half"}, DType::f32, 9).to_vector<float>(),
            (std::vector<float>{0.25, 1.5, 9, 2.5, 0.5, -0.5, 0.125, 0, 1, 65504}));
  EXPECT_EQ(wells.numbers({"small"}, DType::u8, 3).to_vector<uint8_t>(), (std::vector<uint8_t>{255, 0, 3, 1, 2}));
  EXPECT_EQ(wells.numbers({"price"}, DType::f64).to_vector<double>(), (std::vector<double>{1.25, -3.5, 0, 99.99, 4}));
  EXPECT_EQ(wells.texts("serial"), (std::vector<std::string>{"9007199254740993", "-1", "0", "", "7"}));
  EXPECT_EQ(wells.texts("depth"), (std::vector<std::string>{"10.5", "-2e+300", "0.1", "", ""}));
  EXPECT_EQ(wells.texts("wet"), (std::vector<std::string>{"true", "false", "", "true", "true"}));
  EXPECT_EQ(wells.texts("rock"), (std::vector<std::string>{"sand", "lime", "", "sand", "clay"}));
  EXPECT_EQ(wells.texts("well"), (std::vector<std::string>{"A, north", "B", "", "", "Caf\u00e9"}));
  EXPECT_EQ(wells.texts("day")[4], "2026-01-05");
  EXPECT_EQ(wells.texts("nothing"), std::vector<std::string>(5));
  const Categories ids = wells.categories("id");
  EXPECT_EQ(ids.names, (std::vector<std::string>{"1", "2", "3", "4", "5"}));

  const Table two(kParquet, {.columns = {"rock", "id"}});
  EXPECT_EQ(two.columns(), (std::vector<std::string>{"rock", "id"}));
  EXPECT_EQ(two.numbers({"id"}).to_vector<float>(), (std::vector<float>{1, 2, 3, 4, 5}));
  fs::copy(kParquet, folder() / "wells");  // its bytes tell
  EXPECT_EQ(Table(folder() / "wells").rows(), 5);
}

TEST_F(TableFile, ParquetErrorsNameFileRowAndColumn) {
  NEED_PARQUET;
  const Table wells(kParquet);
  EXPECT_THAT(
      error_text([&] { wells.numbers({"porosity"}); }),
      HasSubstr("wells.parquet row 2, column 'porosity': expected a number, got an empty cell. Give `missing`"));
  EXPECT_THAT(error_text([&] { wells.numbers({"infinite"}); }),
              HasSubstr("row 3, column 'infinite': expected a finite number, got 'inf'"));
  EXPECT_THAT(error_text([&] { wells.numbers({"serial"}, DType::i64, 0); }),
              HasSubstr("row 1, column 'serial': expected a number that i64 holds (whole ones below 2^53)"));
  EXPECT_THAT(error_text([&] { wells.numbers({"wet"}); }), HasSubstr("expected a finite number, got 'true'"));
  EXPECT_THAT(error_text([&] { wells.categories("rock"); }), HasSubstr("row 3, column 'rock': expected a class"));
  EXPECT_THAT(error_text([&] { wells.texts("layers"); }),
              HasSubstr("wells.parquet, column 'layers': expected numbers, truths or texts, got list<"));
  EXPECT_THAT(error_text([&] { wells.numbers({"layers"}); }), HasSubstr("truths or texts, got list<"));
  EXPECT_THAT(error_text([&] { Table(kParquet, {.columns = {"dept"}}); }),
              HasSubstr("wells.parquet: expected the name of a column, got 'dept'. Did you mean 'depth'?"));
  EXPECT_THAT(error_text([&] { Table(kParquet.parent_path() / "empty.parquet"); }), HasSubstr("at least one row"));

  // Each half of the file, and none.
  const std::vector<uint8_t> bytes = read_file(kParquet);
  const std::string whole(bytes.begin(), bytes.end());
  for (const std::string& part : {whole.substr(0, whole.size() / 2), whole.substr(whole.size() / 2), std::string()})
    EXPECT_THAT(error_text([&] { table(part, "part.parquet"); }),
                HasSubstr("part.parquet: expected a Parquet file, got one that Arrow does not read: "));
  EXPECT_THAT(error_text([&] { Table(folder() / "gone.parquet"); }), HasSubstr("gone.parquet"));
  // A byte in a page of the first row group.
  std::string damaged = whole;
  for (size_t i = 8; i < 60; ++i) damaged[i] = static_cast<char>(damaged[i] ^ 0x55);
  EXPECT_THAT(error_text([&] { table(damaged, "damaged.parquet"); }), HasSubstr("damaged.parquet: expected a Parquet"));
}

}  // namespace
}  // namespace weft::data::testing
