# Each rank of a run has an emulated GPU of its own, over NCCL.

needs: emulated ranks nccl

  $ unset CUDA_VISIBLE_DEVICES
  $ ranks 2 train_image --data random:64x8x8x3 --model resnet8 --batch-size 8 --max-steps 3 --workers 0 --parallel ddp --device emulated:a100 2>&1 | grep '^device\|^ranks'
  ranks   2 over nccl (RANK and WORLD_SIZE), ddp, 1 bucket; 8 images each per step, 16 together
  device  cuda:0 (NVIDIA A100-SXM4-80GB, 108 SMs, 79 GiB)
