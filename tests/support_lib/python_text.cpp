// SPDX-License-Identifier: Apache-2.0
#include "apps/support/python_text.h"

#include <gtest/gtest.h>

#include <limits>

namespace weft::support {
namespace {

// Python 3.11's repr() of each.
TEST(PythonNumber, IsPythonsRepr) {
  EXPECT_EQ(python_number(0.1), "0.1");
  EXPECT_EQ(python_number(0.08535), "0.08535");
  EXPECT_EQ(python_number(1.0 / 3), "0.3333333333333333");
  EXPECT_EQ(python_number(25), "25.0");
  EXPECT_EQ(python_number(100000), "100000.0");
  EXPECT_EQ(python_number(-0.0), "-0.0");
  EXPECT_EQ(python_number(0.0001), "0.0001");
  EXPECT_EQ(python_number(0.00001), "1e-05");
  EXPECT_EQ(python_number(-1.5e-7), "-1.5e-07");
  EXPECT_EQ(python_number(1234567890123456.0), "1234567890123456.0");
  EXPECT_EQ(python_number(1e16), "1e+16");
  EXPECT_EQ(python_number(1.7976931348623157e308), "1.7976931348623157e+308");
  EXPECT_EQ(python_number(std::numeric_limits<double>::infinity()), "inf");
  EXPECT_EQ(python_number(-std::numeric_limits<double>::infinity()), "-inf");
  EXPECT_EQ(python_number(std::numeric_limits<double>::quiet_NaN()), "nan");
}

}  // namespace
}  // namespace weft::support
