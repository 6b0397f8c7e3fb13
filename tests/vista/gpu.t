# Vista's programs on a GPU.

needs: zip emulated

  $ on_gpu single_gpu 1 1 --batch_size 512 2> said
  [GPU0] Epoch 0 | Batchsize: 512 | Steps: 4
  Epoch 0 | Training checkpoint saved at checkpoint.pt
  $ env -u CUDA_VISIBLE_DEVICES weft-emulate --gpu h100 weft-info --quiet
  GPU usable: yes, cuda:0 (NVIDIA H100 80GB HBM3, 132 SMs, 79 GiB)
