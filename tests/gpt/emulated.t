# A CUDA graph changes no bit

needs: emulated

  $ . "$WEFT"/tests/gpt/tiny.sh
  $ for graph in on off; do env -u CUDA_VISIBLE_DEVICES train_gpt --config tiny.toml --batch-size 4 --dropout 0.1 --precision bf16 --max-steps 6 --device emulated --graph $graph --out $graph > log 2>&1 || cat log; done
  $ same $(weights on) $(weights off)
