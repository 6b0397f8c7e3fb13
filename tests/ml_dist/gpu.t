# mnist begins with the same loss on a GPU.

needs: emulated

  $ "$WEFT"/tests/ml_dist/digits.py bars data 16 16; flags='--batch-size 8 --dry-run --epochs 1 --data-dir data'; loss() { grep -o 'Loss: .*' | numbers; }
  $ mnist $flags --no-cuda 2> said | loss > cpu; mnist $flags --device cpu 2> said | loss | near 1e-4 - cpu
  $ on_gpu mnist $flags 2> said | loss | near 1e-4 - cpu
