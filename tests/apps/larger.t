# Models larger than a GPU: their state, four times the weights, fits on no emulated GPU whole; in shards on the host it trains.

needs: emulated nccl ranks yaml hdf5

  $ on() { env -u CUDA_VISIBLE_DEVICES OMP_NUM_THREADS=1 weft-emulate --gpus 4 --threads 1 --memory "$1" weft-run --nproc_per_node 4 "${@:2}" --device cuda > said 2>&1; }
  $ both() { if on "$@" --parallel ddp; then echo replicas fit; fi; grep -om1 'out of memory on cuda' said; on "$@" --parallel fsdp --fsdp-offload parameters || cat said; }
  $ both 8 train_gpt --model gpt_tiny --context 16 --batch-size 1 --max-steps 2 --data "$WEFT/README.md" --out gpt --overwrite --recompute
  out of memory on cuda
  $ both 40 train_image --model vit_tiny4 --data random:32x32x32x3 --optimizer adamw --batch-size 1 --max-steps 2 --out image --overwrite --recompute
  out of memory on cuda
  $ both 44 linear_probe --model vit_tiny4 --data random:32x32x32x3 --phases finetune -e 1 -b 4 --max-steps 2 --out probe --overwrite
  out of memory on cuda
  $ practice_data texts films > said; both 7 finetune --data films --model bert_tiny --epochs 1 --batch-size 1 --max-steps 2 --out texts --overwrite
  out of memory on cuda
  $ make_fields --out fields --channels 4 --rows 16 --columns 32 --times 9 > said; both 3 train_vit --yaml_config fields/ViT.yaml --num_iters 2 --local_batch_size 1
  out of memory on cuda
