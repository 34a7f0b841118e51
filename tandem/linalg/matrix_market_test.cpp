// tandem/linalg/matrix_market_test.cpp: the format by example, errors with their lines, and files that are damaged at
// random.
#include "tandem/linalg/matrix_market.hpp"

#include <gtest/gtest.h>

#include <complex>
#include <cstdio>
#include <limits>
#include <random>
#include <sstream>

#include "tandem/linalg/generators.hpp"

namespace tandem::linalg::matrix_market_test {
namespace {

base::Result<MatrixMarketFile> read(const std::string& text) {
  std::istringstream input(text);
  return read_matrix_market(input, "test.mtx");
}

template <class T>
std::vector<T> dense(const std::string& text) {
  const auto file = read(text);
  EXPECT_TRUE(file.ok()) << file.error().message;
  auto matrix = to_dense<T>(file.value());
  EXPECT_TRUE(matrix.ok());
  return matrix.value().values;
}

std::string error(const std::string& text) {
  const auto file = read(text);
  return file.ok() ? "no error" : file.error().message;
}

using Z = std::complex<double>;

TEST(MatrixMarket, ReadsCoordinates) {
  EXPECT_EQ(
      dense<double>(
          "%%MatrixMarket matrix coordinate real general\n% a comment\n\n2 3 3\n1 1 1.5\n2 3 -2e1\n1 2 +1.0D+00\n"),
      (std::vector<double>{1.5, 0, 1, 0, 0, -20}));
  EXPECT_EQ(dense<float>("%%MatrixMarket MATRIX Coordinate Pattern Symmetric\n2 2 2\n1 1\n2 1\n"),
            (std::vector<float>{1, 1, 1, 0}));
  EXPECT_EQ(dense<double>("%%MatrixMarket matrix coordinate integer general\n1 1 2\n1 1 3\n1 1 4\n"),
            (std::vector<double>{7}));
  EXPECT_EQ(dense<Z>("%%MatrixMarket matrix coordinate complex hermitian\n2 2 2\n1 1 1 0\n2 1 2 3\n"),
            (std::vector<Z>{{1, 0}, {2, 3}, {2, -3}, {0, 0}}));
  EXPECT_EQ(dense<double>("%%MatrixMarket matrix coordinate real skew-symmetric\r\n2 2 1\r\n2 1 5\r\n"),
            (std::vector<double>{0, 5, -5, 0}));
}

TEST(MatrixMarket, ReadsArrays) {
  EXPECT_EQ(dense<double>("%%MatrixMarket matrix array real general\n2 2\n1\n2\n3\n4"),
            (std::vector<double>{1, 2, 3, 4}));
  EXPECT_EQ(dense<double>("%%MatrixMarket matrix array real symmetric\n3 3\n1\n2\n3\n4\n5\n6\n"),
            (std::vector<double>{1, 2, 3, 2, 4, 5, 3, 5, 6}));
  EXPECT_EQ(dense<double>("%%MatrixMarket matrix array real skew-symmetric\n3 3\n1\n2\n3\n"),
            (std::vector<double>{0, 1, 2, -1, 0, 3, -2, -3, 0}));
  EXPECT_EQ(dense<Z>("%%MatrixMarket matrix array complex general\n1 1\n1 -2\n"), (std::vector<Z>{{1, -2}}));
  EXPECT_EQ(dense<double>("%%MatrixMarket matrix array real general\n0 0\n"), std::vector<double>{});
}

TEST(MatrixMarket, ErrorsNameTheLineAndWhatIsWrong) {
  const std::string real = "%%MatrixMarket matrix coordinate real general\n";
  EXPECT_EQ(error(""), "test.mtx, line 1: the file is empty; a Matrix Market file begins with %%MatrixMarket");
  EXPECT_EQ(error("hello\n"), "test.mtx, line 1: expected \"%%MatrixMarket matrix coordinate|array FIELD SYMMETRY\"");
  EXPECT_EQ(error("%%MatrixMarket matrix coordinate reel general\n"),
            "test.mtx, line 1: unknown field \"reel\": expected real, double, integer, complex or pattern");
  EXPECT_EQ(error(real + "% comment\n2 2\n"), "test.mtx, line 3: expected the sizes: rows, columns, entries");
  EXPECT_EQ(error(real + "2 -2 1\n"),
            "test.mtx, line 2: expected the sizes: rows, columns, entries; \"-2\" is not a count");
  EXPECT_EQ(error(real + "2 2 1\n3 1 1.0\n"), "test.mtx, line 3: \"3\" is not a row from 1 to 2");
  EXPECT_EQ(error(real + "2 2 1\n1 0 1.0\n"), "test.mtx, line 3: \"0\" is not a column from 1 to 2");
  EXPECT_EQ(error(real + "2 2 1\n1 1 1.0x\n"), "test.mtx, line 3: \"1.0x\" is not a finite number");
  EXPECT_EQ(error(real + "2 2 1\n1 1 nan\n"), "test.mtx, line 3: \"nan\" is not a finite number");
  EXPECT_EQ(error(real + "2 2 1\n1 1\n"), "test.mtx, line 3: expected 3 numbers on this line, found 2");
  EXPECT_EQ(error(real + "2 2 2\n1 1 1\n"), "test.mtx, line 4: the file ends after 1 of 2 entries");
  EXPECT_EQ(error(real + "2 2 1\n1 1 1\n2 2 1\n"), "test.mtx, line 4: the file goes on after its 1 entries");
  EXPECT_EQ(error("%%MatrixMarket matrix coordinate real symmetric\n2 2 1\n1 2 1\n"),
            "test.mtx, line 3: an entry above the diagonal: a file with a symmetry holds the lower triangle only");
  EXPECT_EQ(error("%%MatrixMarket matrix coordinate real symmetric\n2 3 1\n"),
            "test.mtx, line 2: a matrix of 2 rows and 3 columns cannot have a symmetry");
  EXPECT_EQ(error("%%MatrixMarket matrix array complex hermitian\n1 1\n1 1\n"),
            "test.mtx, line 3: the diagonal of a hermitian matrix is real");
  EXPECT_EQ(error("%%MatrixMarket matrix array integer general\n1 1\n1.5\n"),
            "test.mtx, line 3: \"1.5\" is not an integer");
}

TEST(MatrixMarket, PromisesOfTheHeaderAllocateNothing) {
  EXPECT_EQ(error("%%MatrixMarket matrix coordinate real general\n2147483647 2147483647 18446744073709551615\n1 1 1\n"),
            "test.mtx, line 4: the file ends after 1 of 18446744073709551615 entries");
  const auto file = read("%%MatrixMarket matrix coordinate real general\n2147483647 2147483647 0\n");
  ASSERT_TRUE(file.ok());
  const auto matrix = to_dense<double>(file.value());
  ASSERT_FALSE(matrix.ok());
  EXPECT_EQ(matrix.error().code, base::ErrorCode::exhausted);
}

TEST(MatrixMarket, AComplexFileNeedsAComplexPrecision) {
  const auto file = read("%%MatrixMarket matrix array complex general\n1 1\n1 1\n");
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(to_dense<float>(file.value()).error().message,
            "test.mtx: the matrix is complex; precision s is real, choose c or z");
}

TEST(MatrixMarket, AMissingFileIsNamed) {
  EXPECT_EQ(read_matrix_market("/nowhere/a.mtx").error().message, "/nowhere/a.mtx: cannot be opened for reading");
}

template <class T>
void check_write(const std::string& path) {
  DenseMatrix<T> a{5, 3, std::vector<T>(15)};
  generate_tile(RandomGeneral{4}, {}, a.view());
  a.values[2] = T(std::numeric_limits<Real<T>>::min());
  a.values[3] = T(Real<T>(1) / Real<T>(3));
  ASSERT_TRUE(write_matrix_market<T>(path, a.view()).ok());
  const auto file = read_matrix_market(path);
  ASSERT_TRUE(file.ok()) << file.error().message;
  EXPECT_EQ(to_dense<T>(file.value()).value().values, a.values);
}

TEST(MatrixMarket, WhatIsWrittenComesBackEqual) {
  const std::string path = testing::TempDir() + "matrix_market_test.mtx";
  check_write<float>(path);
  check_write<double>(path);
  check_write<std::complex<float>>(path);
  check_write<Z>(path);
  std::remove(path.c_str());
  EXPECT_FALSE(write_matrix_market<double>("/nowhere/a.mtx", MatrixView<const double>{}).ok());
}

TEST(MatrixMarket, DamagedFilesGiveErrorsAndNeverCrash) {
  const std::string whole[] = {
      "%%MatrixMarket matrix coordinate complex hermitian\n% c\n3 3 4\n1 1 1 0\n2 1 2 3\n3 3 1.5 0\n3 2 -1e-3 4D2\n",
      "%%MatrixMarket matrix array real symmetric\n3 3\n1\n2\n3\n4\n5\n6\n",
      "%%MatrixMarket matrix coordinate pattern general\n4 4 3\n1 1\n4 4\n2 3\n"};
  const std::string bytes = "0123456789 \n\r\t%-+.eEdDnaif\0\xff";
  const unsigned seed = 20240601;
  std::mt19937 random(seed);
  for (int round = 0; round < 20000; ++round) {
    std::string text = whole[random() % std::size(whole)];
    for (unsigned changes = 1 + random() % 4; changes > 0 && !text.empty(); --changes) {
      const std::size_t at = random() % text.size();
      switch (random() % 4) {
        case 0: text[at] = bytes[random() % bytes.size()]; break;
        case 1: text.erase(at, 1 + random() % 8); break;
        case 2: text.insert(at, 1, bytes[random() % bytes.size()]); break;
        default: text.resize(at); break;
      }
    }
    const auto file = read(text);
    if (!file.ok()) {
      ASSERT_NE(file.error().message.find("line"), std::string::npos) << "seed " << seed << ", round " << round << "\n"
                                                                      << text;
    } else {
      for (const auto& entry : file.value().entries)
        ASSERT_TRUE(entry.row < file.value().rows && entry.col < file.value().cols);
    }
  }
}

}  // namespace
}  // namespace tandem::linalg::matrix_market_test
