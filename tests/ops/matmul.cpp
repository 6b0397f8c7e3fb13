// SPDX-License-Identifier: Apache-2.0
#include "core/ops/matmul.h"
#include "core/ops/einsum.h"
#include "core/ops/layers/linear.h"
#include "tests/ops/op_case.h"

namespace weft::test {
namespace {

// clang-format off
const AddCases matmul_cases{
    {"matmul", {{{5, 7}}, {{7, 3}}}, BOTH(matmul(x[0], x[1])), 7},
    {"matmul_larger", {{{67, 45}}, {{45, 70}}}, BOTH(matmul(x[0], x[1])), 70},
    {"matmul_one", {{{1, 1}}, {{1, 1}}}, BOTH(matmul(x[0], x[1]))},
    {"matmul_left_transposed", {{{5, 7}, Values::normal, Layout::transposed}, {{7, 3}}}, BOTH(matmul(x[0], x[1])), 7},
    {"matmul_right_transposed", {{{5, 7}}, {{7, 3}, Values::normal, Layout::transposed}}, BOTH(matmul(x[0], x[1])), 7},
    {"matmul_strided", {{{5, 7}, Values::normal, Layout::strided}, {{7, 3}, Values::normal, Layout::strided}},
     BOTH(matmul(x[0], x[1])), 7},
    {"matmul_stretched", {{{5, 7}, Values::normal, Layout::stretched}, {{7, 3}}}, BOTH(matmul(x[0], x[1])), 7},
    {"matmul_vectors", {{{9}, Values::positive}, {{9}, Values::positive}}, BOTH(matmul(x[0], x[1])), 9},
    {"matmul_vector_matrix", {{{9}}, {{9, 4}}}, BOTH(matmul(x[0], x[1])), 9},
    {"matmul_matrix_vector", {{{4, 9}}, {{9}}}, BOTH(matmul(x[0], x[1])), 9},
    {"matmul_batched", {{{3, 5, 7}}, {{3, 7, 2}}}, BOTH(matmul(x[0], x[1])), 7},
    {"matmul_batch_shared", {{{2, 3, 5, 7}}, {{7, 4}}}, BOTH(matmul(x[0], x[1])), 30},
    {"matmul_batch_broadcast", {{{2, 1, 5, 7}}, {{3, 7, 2}}}, BOTH(matmul(x[0], x[1])), 21},
    {"matmul_shared_left", {{{5, 7}}, {{3, 7, 2}}}, BOTH(matmul(x[0], x[1])), 21},
    {"matmul_no_terms", {{{3, 0}}, {{0, 4}}}, BOTH(matmul(x[0], x[1]))},
    {"matmul_no_rows", {{{0, 3}}, {{3, 4}}}, BOTH(matmul(x[0], x[1]))},
    {"linear", {{{5, 7}}, {{3, 7}}, {{3}}}, BOTH(linear(x[0], x[1], x[2])), 7},
    {"linear_no_bias", {{{5, 7}}, {{3, 7}}}, BOTH(linear(x[0], x[1])), 7},
    {"linear_batched", {{{2, 5, 7}}, {{3, 7}}, {{3}}}, BOTH(linear(x[0], x[1], x[2])), 10},
    {"linear_vector", {{{7}}, {{3, 7}}, {{3}}}, BOTH(linear(x[0], x[1], x[2])), 7},
    {"linear_transposed",
     {{{5, 7}, Values::normal, Layout::transposed}, {{3, 7}, Values::normal, Layout::transposed}, {{3}}},
     BOTH(linear(x[0], x[1], x[2])), 7},
    {"linear_no_rows", {{{0, 7}}, {{3, 7}}, {{3}}}, BOTH(linear(x[0], x[1], x[2]))},
    {"linear_gelu", {{{5, 7}}, {{3, 7}}, {{3}}}, CALL(linear_gelu(x[0], x[1], x[2])), "gelu(linear(*x))", 10},
    {"linear_gelu_tanh", {{{2, 5, 7}}, {{3, 7}}}, CALL(linear_gelu(x[0], x[1], {}, Gelu::tanh)),
     "gelu(linear(*x), approximate='tanh')", 10},
    {"linear_gelu_no_rows", {{{0, 7}}, {{3, 7}}, {{3}}}, CALL(linear_gelu(x[0], x[1], x[2])), "gelu(linear(*x))"},
    {"einsum", {{{2, 3, 4}}, {{5, 2, 4}}}, CALL(einsum("bik,jbk->ijb", {x[0], x[1]})), "einsum('bik,jbk->ijb', *x)",
     4},
    {"einsum_sums", {{{2, 3}}, {{2, 2}}}, CALL(einsum("ij,kl->j", {x[0], x[1]})), "einsum('ij,kl->j', *x)", 12},
    {"einsum_of_three", {{{3, 4}}, {{4, 5}}, {{5, 3}}}, CALL(einsum("ij, jk, ki -> i", {x[0], x[1], x[2]})),
     "einsum('ij, jk, ki -> i', *x)", 60}};
// clang-format on

}  // namespace
}  // namespace weft::test
