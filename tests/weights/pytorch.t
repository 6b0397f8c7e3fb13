# weft-weights converts to PyTorch's files and back

needs: zip

  $ python3 "$WEFT"/tests/weights/write_safetensors.py a.safetensors 'fc.weight F32 2,2 1,-2,0.5,4' 'fc.steps I64 - 7' epoch=3
  $ for end in pt pth bin; do weft-weights convert a.safetensors b.$end; weft-weights diff a.safetensors b.$end; done
  wrote   b.pt
          2 tensors, 24 bytes
  2 equal, 0 different, 0 only in a.safetensors, 0 only in b.pt
  wrote   b.pth
          2 tensors, 24 bytes
  2 equal, 0 different, 0 only in a.safetensors, 0 only in b.pth
  wrote   b.bin
          2 tensors, 24 bytes
  2 equal, 0 different, 0 only in a.safetensors, 0 only in b.bin
  $ weft-weights convert b.pt c.safetensors > log && weft-weights diff a.safetensors c.safetensors
  2 equal, 0 different, 0 only in a.safetensors, 0 only in c.safetensors
