# A captured graph changes not a bit.

needs: emulated

  $ unset CUDA_VISIBLE_DEVICES; for graph in on off; do linear_probe --data random:8x32x32x3 --model vit_tiny4 -b 2 -e 1 --phases finetune --workers 0 --device emulated --graph $graph --out $graph > log 2>&1; done
  $ same on/finetuned.safetensors off/finetuned.safetensors
