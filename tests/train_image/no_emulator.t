# --device emulated of a program that has no weft-emulate is an error with the cure.

needs: !emulator

  $ program=$(command -v train_image); PATH= $program --data random:64x8x8x3 --model resnet8 --batch-size 8 --device emulated --out run
  …
  train_image: error: device: 'emulated' needs weft-emulate, which is not beside this program…
  [1]
