# A driver that cannot be used is no machine without GPUs: nobody shall train on the CPU for weeks and not know.

needs: cuda zip

The folder has a driver for CUDA 12.4 (tests/vista/old_driver).

  $ export LD_LIBRARY_PATH=$(dirname "$(command -v weft-info)")/../tests/vista/old_driver; unset CUDA_VISIBLE_DEVICES
  $ weft-info --quiet
  GPU usable: no, cudaGetDeviceCount: CUDA driver version is insufficient … (cudaErrorInsufficientDriver): the driver is for CUDA 12.4, and this program needs one for CUDA …
  [1]
  $ single_gpu 1 1 --device auto
  single_gpu: error: … (cudaErrorInsufficientDriver): the driver is for CUDA 12.4, and this program needs one …
  [1]
  $ weft-run --nproc-per-node gpu single_gpu 1 1
  weft-run: error: … (cudaErrorInsufficientDriver): the driver is for CUDA 12.4, and this program needs one …
  [1]
  $ weft-run --nproc-per-node 1 single_gpu 1 1 --device cpu 2> /dev/null
  [GPU0] Epoch 0 | Batchsize: 32 | Steps: 64
  Epoch 0 | Training checkpoint saved at checkpoint.pt
