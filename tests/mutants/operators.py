# SPDX-License-Identifier: Apache-2.0
"""Mutants by operators: what may be broken in a source, from clang's syntax tree. CUDA is parsed as C++: an expression that clang does
not understand there has no mutant, and the others have theirs."""
import os
import random
import re
import shutil
import sys

sys.path.append("/usr/lib/python3/dist-packages")  # Debian's python3-clang, where another Python comes first
try:
    from clang import cindex
except ImportError:
    cindex = None

# Declarations that CUDA's headers have for its own compiler alone.
CUDA = """
#include <cuda_runtime.h>
extern const uint3 threadIdx, blockIdx;
extern const dim3 blockDim, gridDim;
extern const int warpSize;
void __syncthreads();
void __syncwarp(unsigned mask = 0xffffffffu);
void __trap();
size_t __cvta_generic_to_shared(const void*);
template <class T> T __ldg(const T*);
template <class T> T __shfl_sync(unsigned, T, int, int = 32);
template <class T> T __shfl_xor_sync(unsigned, T, int, int = 32);
template <class T> T __shfl_up_sync(unsigned, T, unsigned, int = 32);
template <class T> T __shfl_down_sync(unsigned, T, unsigned, int = 32);
template <class T> T atomicAdd(T*, T);
template <class T> T atomicMax(T*, T);
template <class T> T atomicMin(T*, T);
template <class T> T atomicCAS(T*, T, T);
unsigned __ballot_sync(unsigned, int);
unsigned __activemask();
int __popc(unsigned);
int __ffs(int);
int __clz(int);
"""
SWAPPED = {"+": "-", "-": "+", "*": "/", "/": "*", "%": "*", "+=": "-=", "-=": "+=", "*=": "/=", "/=": "*="}
COMPARED = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="}
JOINED = {"&&": "||", "||": "&&"}
SYMMETRIC = {"min", "max", "swap", "add", "mul", "maximum", "minimum", "hypot", "equal", "gcd"}  # in their arguments
LONGEST = 300  # characters of a call whose arguments change places


class Site:
    """One mutant: text[begin:end] of `file` becomes `mutated`."""

    def __init__(self, file, function, operator, text, begin, end, mutated):
        self.file, self.function, self.operator = file, function, operator
        self.original, self.mutated, self.begin, self.end = text[begin:end], mutated, begin, end

    @property
    def key(self):
        """What an explanation names: survives any change outside of the function."""
        return " ".join(f"{self.function}: {self.operator}: {self.original} -> {self.mutated or 'nothing'}".split())


def place(location):
    """The offset in the file; of a macro's argument, where it is written."""
    file, line, column, offset = cindex.c_object_p(), cindex.c_uint(), cindex.c_uint(), cindex.c_uint()
    cindex.conf.lib.clang_getFileLocation(location, cindex.byref(file), cindex.byref(line), cindex.byref(column), cindex.byref(offset))
    return offset.value


def span(cursor):
    extent = cursor.extent
    return place(extent.start), place(extent.end)


def plain(cursor):
    """The expression without casts that clang adds."""
    while cursor.kind == cindex.CursorKind.UNEXPOSED_EXPR:
        inside = list(cursor.get_children())
        if len(inside) != 1 or span(inside[0]) != span(cursor):
            break
        cursor = inside[0]
    return cursor


class Finder:
    """Walks one file's tree."""

    def __init__(self, file, text, host_only):
        self.file, self.text, self.host_only, self.sites, self.functions = file, text, host_only, {}, []
        self.kinds = cindex.CursorKind
        self.function_kinds = {self.kinds.FUNCTION_DECL, self.kinds.CXX_METHOD, self.kinds.CONSTRUCTOR, self.kinds.DESTRUCTOR,
                               self.kinds.FUNCTION_TEMPLATE, self.kinds.CONVERSION_FUNCTION}
        # Children of these that are literals are arguments of templates.
        self.names = {self.kinds.DECL_REF_EXPR, self.kinds.MEMBER_REF_EXPR, self.kinds.TYPE_REF, self.kinds.TEMPLATE_REF}

    def add(self, function, operator, begin, end, mutated):
        if 0 <= begin < end and self.text[begin:end] != mutated:
            self.sites.setdefault((begin, end, mutated), Site(self.file, function, operator, self.text, begin, end, mutated))

    def between(self, left, right, table, function, operator):
        """A binary operator of this table between two operands."""
        (begin, middle), (other, end) = left, right
        sign = self.text[middle:other].strip()
        if begin < middle <= other < end and sign in table:
            a, b = self.text[begin:middle], self.text[other:end]
            self.add(function, operator, begin, end, f"{a} {table[sign]} {b}")

    def statement(self, cursor, function):
        """A call that is a statement is dropped."""
        begin, end = span(cursor)
        is_statement = re.search(r"(?:[;{}):]|\belse)\s*$", self.text[:begin]) and self.text[begin].isalpha() and self.text[end - 1] == ")"
        if is_statement and plain(cursor).kind == self.kinds.CALL_EXPR:
            close = re.match(r"\s*;", self.text[end:])
            if close:
                self.add(function, "drop", begin, end + close.end(), "")

    def condition(self, cursor, function):
        begin, end = span(cursor)
        if cursor.kind.is_expression() and begin < end and not re.fullmatch(r"[^()&|?]*[!=]=[^()&|?]*", self.text[begin:end]):
            self.add(function, "negate", begin, end, f"!({self.text[begin:end]})")

    def call(self, cursor, function):
        """Operators of classes, and two arguments of one type that change places."""
        arguments, name = list(cursor.get_arguments()), cursor.spelling
        spans = [span(a) for a in arguments]
        if name.startswith("operator") or not name and len(arguments) == 2:
            if len(arguments) == 2:
                self.binary(spans[0], spans[1], function, False, "string" in cursor.type.spelling)
            return
        begin, end = span(cursor)
        callee = next(cursor.get_children(), None)
        if name in SYMMETRIC or end - begin > LONGEST or callee is None or span(callee)[0] != begin or not spans \
                or not self.text[span(callee)[1]:spans[0][0]].strip() == "(":
            return
        for first in range(len(spans) - 1):
            (a, b), (c, d) = spans[first], spans[first + 1]
            types = {re.sub(r"\bconst\b|[&\s]", "", x.type.get_canonical().spelling) for x in arguments[first:first + 2]}
            texts = {self.text[a:b], self.text[c:d]}
            if b <= c < d <= end and a < b and len(types) == 1 and "dependent" not in types.pop() and len(texts) == 2 \
                    and not any(re.search(r"\bc?(begin|end)\(\)$", t) for t in texts):
                self.add(function, "swap", begin, end, self.text[begin:a] + self.text[c:d] + self.text[b:c] + self.text[a:b] + self.text[d:end])

    def binary(self, left, right, function, is_loop, is_text=False):
        if not is_text:
            self.between(left, right, SWAPPED, function, "arithmetic")
        self.between(left, right, JOINED, function, "logic")
        if is_loop and self.text[left[1]:right[0]].strip() == "<":
            a, b = self.text[slice(*left)], self.text[slice(*right)]
            self.add(function, "bound", left[0], right[1], f"{a} + 1 < {b}")
        else:
            self.between(left, right, COMPARED, function, "bound" if is_loop else "comparison")

    def literal(self, cursor, parent, function):
        begin, end = span(cursor)
        word = self.text[begin:end]
        if cursor.kind == self.kinds.CXX_BOOL_LITERAL_EXPR and word in ("true", "false"):
            self.add(function, "constant", begin, end, "false" if word == "true" else "true")
        elif cursor.kind != self.kinds.CXX_BOOL_LITERAL_EXPR and re.fullmatch(r"[\d.][\w.'+-]*", word):
            if parent.kind == self.kinds.VAR_DECL and not re.search(r"[={(,]\s*$", self.text[:begin]):
                return  # an array's size, a template's argument
            self.add(function, "constant", begin, end, f"{word} + 1")

    def walk(self, cursor, parent, function, in_body, is_loop=False):
        kinds, kind = self.kinds, cursor.kind
        begin, end = span(cursor)
        if kind in self.function_kinds:
            owner = cursor.semantic_parent
            in_class = owner is not None and owner.kind in (kinds.CLASS_DECL, kinds.STRUCT_DECL, kinds.CLASS_TEMPLATE)
            function = f"{owner.spelling}::{cursor.spelling}" if in_class else cursor.spelling
            function = re.sub(r"<.*", "", function)
            self.functions.append((begin, end, function))
            head = re.split(r"[;{}]", self.text[:begin])[-1] + self.text[begin:end].partition("{")[0]
            if self.host_only and re.search(r"\b(__device__|__global__|WEFT_HD)\b", head):
                return
            in_body = kind == kinds.CONSTRUCTOR
        if kind == kinds.COMPOUND_STMT:
            in_body = in_body or function is not None
        if kind in (kinds.STATIC_ASSERT, kinds.PARM_DECL, kinds.ENUM_DECL) or \
                kind == kinds.VAR_DECL and re.search(r"\bconstexpr\b", self.text[begin:end].partition("=")[0]):
            return
        children = list(cursor.get_children())
        if in_body:
            if kind in (kinds.BINARY_OPERATOR, kinds.COMPOUND_ASSIGNMENT_OPERATOR) and len(children) == 2:
                self.binary(span(children[0]), span(children[1]), function, is_loop)
            elif kind == kinds.CALL_EXPR:
                self.call(cursor, function)
            elif kind == kinds.UNARY_OPERATOR and self.text[begin:begin + 1] == "-" and self.text[begin:begin + 2] != "--":
                self.add(function, "arithmetic", begin, end, self.text[begin + 1:end])
            elif kind in (kinds.INTEGER_LITERAL, kinds.FLOATING_LITERAL, kinds.CXX_BOOL_LITERAL_EXPR) and parent.kind not in self.names:
                self.literal(cursor, parent, function)
            elif kind == kinds.COMPOUND_STMT:
                for child in children:
                    self.statement(child, function)
            elif kind in (kinds.IF_STMT, kinds.WHILE_STMT, kinds.CONDITIONAL_OPERATOR):
                if re.match(r"if\s+constexpr", self.text[begin:end]):
                    children = [c for c in children if not c.kind.is_expression() or re.match(r"\s*;", self.text[span(c)[1]:])]
                else:
                    head = next((c for c in children if kind == kinds.CONDITIONAL_OPERATOR or re.match(r"\s*\)", self.text[span(c)[1]:])), None)
                    if head is not None:
                        self.condition(head, function)
                for child in children if kind != kinds.CONDITIONAL_OPERATOR else []:
                    self.statement(child, function)
            elif kind == kinds.FOR_STMT:
                for child in children[-1:]:
                    self.statement(child, function)
            elif kind == kinds.CASE_STMT:
                children = children[1:]
        heads = {}
        if kind == kinds.FOR_STMT:
            heads = {c.hash for c in children if c.kind.is_expression()}
        for child in children:
            self.walk(child, cursor, function, in_body, child.hash in heads or is_loop and kind == kinds.UNEXPOSED_EXPR)

    def checks(self):
        """WEFT_CHECK(condition, message…) is dropped; its condition has mutants as any other."""
        for check in re.finditer(r"\bWEFT_CHECK\(", self.text):
            end = self.text.find(");\n", check.end()) + 2
            names = [name for first, last, name in self.functions if first <= check.start() < last]
            if names and end > check.end():
                self.add(names[-1], "drop", check.start(), end, "")


def sites(root, file, host_only):
    """All mutants of one source by operators, in the order of the file; host_only: functions for the GPU have none."""
    path = os.path.join(root, file)
    with open(path, encoding="utf-8") as source:
        text = source.read()
    if not text.isascii():  # clang counts bytes
        text = text.encode().decode("latin-1")
    arguments = ["-std=c++20", "-I", root, "-I", "/usr/include/hdf5/serial", "-ferror-limit=0", "-x", "c++", "-mavx2", "-mfma", "-mf16c"]
    unsaved = []
    if file.endswith((".cu", ".cuh")) or "/cuda/" in file:
        nvcc = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
        shim = os.path.join(root, "cuda_for_clang.h")
        arguments += ["-I", os.path.join(os.path.dirname(os.path.dirname(os.path.realpath(nvcc))), "include"), "-include", shim]
        unsaved = [(shim, CUDA)]
    unit = cindex.Index.create().parse(path, args=arguments, unsaved_files=unsaved)
    finder = Finder(file, text, host_only)
    for cursor in unit.cursor.get_children():
        where = cursor.location.file
        if where is not None and where.name == path:
            finder.walk(cursor, unit.cursor, None, False)
    finder.checks()
    found = sorted(finder.sites.values(), key=lambda s: (s.begin, s.end, s.mutated))
    for site in found if not text.isascii() else []:
        site.original, site.mutated = (t.encode("latin-1").decode() for t in (site.original, site.mutated))
        site.begin, site.end = (len(text[:at].encode("latin-1").decode()) for at in (site.begin, site.end))
    return found
