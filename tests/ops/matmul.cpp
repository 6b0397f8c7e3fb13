// SPDX-License-Identifier: Apache-2.0
#include "core/ops/matmul.h"
#include "core/ops/einsum.h"
#include "core/ops/layers/linear.h"
#include "tests/ops/op_case.h"

namespace weft::test {
namespace {

using Inputs = std::vector<Tensor>;

Tensor product(const Inputs& x) { return matmul(x[0], x[1]); }

const AddCases matmul_cases{
    {"matmul", {{{5, 7}}, {{7, 3}}}, product, 7},
    {"matmul_larger", {{{67, 45}}, {{45, 70}}}, product, 70},
    {"matmul_one", {{{1, 1}}, {{1, 1}}}, product},
    {"matmul_left_transposed", {{{5, 7}, Values::normal, Layout::transposed}, {{7, 3}}}, product, 7},
    {"matmul_right_transposed", {{{5, 7}}, {{7, 3}, Values::normal, Layout::transposed}}, product, 7},
    {"matmul_strided",
     {{{5, 7}, Values::normal, Layout::strided}, {{7, 3}, Values::normal, Layout::strided}},
     product,
     7},
    {"matmul_stretched", {{{5, 7}, Values::normal, Layout::stretched}, {{7, 3}}}, product, 7},
    {"matmul_vectors", {{{9}, Values::positive}, {{9}, Values::positive}}, product, 9},
    {"matmul_vector_matrix", {{{9}}, {{9, 4}}}, product, 9},
    {"matmul_matrix_vector", {{{4, 9}}, {{9}}}, product, 9},
    {"matmul_batched", {{{3, 5, 7}}, {{3, 7, 2}}}, product, 7},
    {"matmul_batch_shared", {{{2, 3, 5, 7}}, {{7, 4}}}, product, 30},
    {"matmul_batch_broadcast", {{{2, 1, 5, 7}}, {{3, 7, 2}}}, product, 21},
    {"matmul_shared_left", {{{5, 7}}, {{3, 7, 2}}}, product, 21},
    {"matmul_no_terms", {{{3, 0}}, {{0, 4}}}, product},
    {"matmul_no_rows", {{{0, 3}}, {{3, 4}}}, product},
    {"linear", {{{5, 7}}, {{3, 7}}, {{3}}}, [](const Inputs& x) { return linear(x[0], x[1], x[2]); }, 7},
    {"linear_no_bias", {{{5, 7}}, {{3, 7}}}, [](const Inputs& x) { return linear(x[0], x[1]); }, 7},
    {"linear_batched", {{{2, 5, 7}}, {{3, 7}}, {{3}}}, [](const Inputs& x) { return linear(x[0], x[1], x[2]); }, 10},
    {"linear_vector", {{{7}}, {{3, 7}}, {{3}}}, [](const Inputs& x) { return linear(x[0], x[1], x[2]); }, 7},
    {"linear_transposed",
     {{{5, 7}, Values::normal, Layout::transposed}, {{3, 7}, Values::normal, Layout::transposed}, {{3}}},
     [](const Inputs& x) { return linear(x[0], x[1], x[2]); },
     7},
    {"linear_no_rows", {{{0, 7}}, {{3, 7}}, {{3}}}, [](const Inputs& x) { return linear(x[0], x[1], x[2]); }},
    {"linear_gelu", {{{5, 7}}, {{3, 7}}, {{3}}}, [](const Inputs& x) { return linear_gelu(x[0], x[1], x[2]); }, 10},
    {"linear_gelu_tanh",
     {{{2, 5, 7}}, {{3, 7}}},
     [](const Inputs& x) { return linear_gelu(x[0], x[1], {}, Gelu::tanh); },
     10},
    {"linear_gelu_no_rows", {{{0, 7}}, {{3, 7}}, {{3}}}, [](const Inputs& x) { return linear_gelu(x[0], x[1], x[2]); }},
    {"einsum",
     {{{2, 3, 4}}, {{5, 2, 4}}},
     [](const Inputs& x) {
       return einsum("bik,jbk->ijb", {x[0], x[1]});
     },
     4},
    {"einsum_of_three",
     {{{3, 4}}, {{4, 5}}, {{5, 3}}},
     [](const Inputs& x) {
       return einsum("ij, jk, ki -> i", {x[0], x[1], x[2]});
     },
     60},
};

}  // namespace
}  // namespace weft::test
