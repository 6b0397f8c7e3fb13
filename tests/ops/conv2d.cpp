// SPDX-License-Identifier: Apache-2.0
#include "core/ops/conv2d.h"
#include "tests/ops/op_case.h"

namespace weft::test {
namespace {

using Inputs = std::vector<Tensor>;

template <Conv2dOptions options = {}>
Tensor conv(const Inputs& x) {
  return conv2d(x[0], x[1], x.size() > 2 ? x[2] : Tensor(), options);
}

const AddCases cases{
    {"conv2d", {{{2, 5, 6, 3}}, {{4, 3, 3, 3}}, {{4}}}, conv<{.padding = {1, 1}}>, 60},
    {"conv2d_no_bias", {{{1, 4, 4, 2}}, {{3, 3, 3, 2}}}, conv<>, 18},
    {"conv2d_1x1", {{{2, 5, 5, 7}}, {{6, 1, 1, 7}}}, conv<>, 50},
    {"conv2d_1x1_stride", {{{2, 5, 5, 7}}, {{6, 1, 1, 7}}}, conv<{.stride = {2, 2}}>, 18},
    {"conv2d_stride", {{{2, 7, 8, 3}}, {{4, 3, 3, 3}}, {{4}}}, conv<{.stride = {2, 2}, .padding = {1, 1}}>, 32},
    {"conv2d_odd", {{{1, 6, 9, 2}}, {{3, 2, 5, 2}}}, conv<{.stride = {3, 2}, .padding = {0, 2}}>, 20},
    {"conv2d_dilated", {{{1, 9, 8, 2}}, {{3, 3, 3, 2}}}, conv<{.padding = {2, 1}, .dilation = {2, 3}}>, 60},
    {"conv2d_groups", {{{2, 5, 5, 6}}, {{4, 3, 3, 3}}, {{4}}}, conv<{.padding = {1, 1}, .groups = 2}>, 50},
    {"conv2d_depthwise", {{{2, 5, 5, 6}}, {{6, 3, 3, 1}}}, conv<{.padding = {1, 1}, .groups = 6}>, 50},
    {"conv2d_stem", {{{1, 14, 14, 3}}, {{8, 7, 7, 3}}}, conv<{.stride = {2, 2}, .padding = {3, 3}}>, 147},
    {"conv2d_wide", {{{2, 6, 6, 16}}, {{32, 3, 3, 16}}}, conv<{.padding = {1, 1}}>, 300},
    {"conv2d_transposed_input", {{{2, 5, 6, 6}, Values::normal, Layout::transposed}, {{4, 3, 3, 6}}}, conv<>, 54},
    {"conv2d_no_images", {{{0, 5, 5, 3}}, {{4, 3, 3, 3}}, {{4}}}, conv<>},
};

}  // namespace
}  // namespace weft::test
