# SPDX-License-Identifier: Apache-2.0
"""Tensors change hands between Weft, NumPy and PyTorch in one process, without a copy. Run by exchange.cpp, whose
functions ctypes finds in the program itself."""
import ctypes
import sys

try:
    import numpy
    import torch
    import torch.utils.dlpack
except ImportError as error:
    print(f"SKIPPED: {error}", flush=True)
    sys.exit(77)

weft = ctypes.CDLL(None)
weft.exchange_make.argtypes = [ctypes.c_int, ctypes.c_int64, ctypes.c_int64]
weft.exchange_out.restype = ctypes.c_void_p
weft.exchange_in.argtypes = [ctypes.c_void_p]
weft.exchange_sum.restype = ctypes.c_double
weft.exchange_error.restype = ctypes.c_char_p

capsule_new = ctypes.pythonapi.PyCapsule_New
capsule_new.restype = ctypes.py_object
capsule_new.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
capsule_pointer = ctypes.pythonapi.PyCapsule_GetPointer
capsule_pointer.restype = ctypes.c_void_p
capsule_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
capsule_name = ctypes.pythonapi.PyCapsule_SetName
capsule_name.argtypes = [ctypes.py_object, ctypes.c_char_p]

# In the order of weft::DType; NumPy has no bfloat16.
DTYPES = [torch.float32, torch.float64, torch.bfloat16, torch.float16, torch.int64, torch.int32, torch.uint8, torch.bool]
OF_NUMPY = [numpy.float32, numpy.float64, None, numpy.float16, numpy.int64, numpy.int32, numpy.uint8, numpy.bool_]
NEW_NAME = ctypes.c_char_p(b"used_dltensor")  # a consumer's name for a capsule that it has emptied
exchanges = 0
# DLPack's bool is younger than the others.
TORCH_HAS_BOOL = int(torch.__version__.split(".")[0]) >= 2
NUMPY_HAS_BOOL = tuple(int(part) for part in numpy.__version__.split(".")[:2]) >= (1, 25)


def done(result):
    assert result and not weft.exchange_error(), weft.exchange_error().decode()
    return result


class Exported:
    """Weft's tensor as Python's protocol asks for it."""

    def __dlpack__(self, *, stream=None, **_):
        return capsule_new(done(weft.exchange_out()), b"dltensor", None)

    def __dlpack_device__(self):
        return (1, 0)


def take(exporter):
    """Weft takes what an object of another library exports."""
    global exchanges
    exchanges += 1
    capsule = exporter.__dlpack__()
    pointer = capsule_pointer(capsule, b"dltensor")
    capsule_name(capsule, NEW_NAME)
    done(weft.exchange_in(pointer))


for number, dtype in enumerate(DTYPES):
    want = torch.arange(12).reshape(3, 4).T.to(dtype)
    if dtype == torch.bool and not (TORCH_HAS_BOOL and NUMPY_HAS_BOOL):
        print(f"bool is NOT exchanged: NumPy {numpy.__version__} or PyTorch {torch.__version__} has none in DLPack")
        continue

    done(weft.exchange_make(number, 3, 4))
    theirs = torch.from_dlpack(Exported())
    exchanges += 1
    assert theirs.dtype == dtype and theirs.shape == (4, 3) and torch.equal(theirs, want), (dtype, theirs)
    theirs[1, 2] = 0  # held 9
    assert weft.exchange_sum() == want.double().sum().item() - want[1, 2].item(), dtype
    weft.exchange_drop()
    assert theirs[3, 2] == want[3, 2], "the memory went before its last user"

    ours = want.clone().T  # strides of the transposed
    take(ours)
    assert weft.exchange_dtype() == number and weft.exchange_sum() == ours.double().sum().item(), dtype
    if dtype.is_floating_point:
        done(weft.exchange_double())
        assert torch.equal(ours, want.T * 2), dtype
    weft.exchange_drop()

    if OF_NUMPY[number] is None:
        continue
    done(weft.exchange_make(number, 3, 4))
    array = numpy.from_dlpack(Exported())
    exchanges += 1
    assert array.dtype == OF_NUMPY[number] and (array == want.numpy()).all(), array
    weft.exchange_drop()
    array = numpy.arange(24).astype(OF_NUMPY[number]).reshape(4, 6)[::2, 1:]
    users = sys.getrefcount(array)
    take(array)
    assert weft.exchange_dtype() == number and weft.exchange_sum() == array.astype(float).sum()
    if dtype.is_floating_point:
        before = array.copy()
        done(weft.exchange_double())
        assert (array == 2 * before).all()
    assert sys.getrefcount(array) > users, "Weft holds no reference"
    weft.exchange_drop()
    assert sys.getrefcount(array) == users, "the deleter did not run"

capsule = numpy.arange(3)[::-1].__dlpack__()
pointer = capsule_pointer(capsule, b"dltensor")
capsule_name(capsule, NEW_NAME)
assert not weft.exchange_in(pointer)
assert b"negative strides are not supported" in weft.exchange_error(), weft.exchange_error()
print(f"{exchanges} exchanges with NumPy {numpy.__version__} and PyTorch {torch.__version__}", flush=True)
