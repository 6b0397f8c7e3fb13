# Published ResNet-20 weights reach the accuracy that an independent forward pass in NumPy counted: 8,989 of 9,806.

needs: shared/cifar-10-pretrained

  $ source=${WEFT_SHARED_DATA}/cifar-10-pretrained; mkdir cifar; xz -dc $source/test_batch.bin.xz > cifar/test_batch.bin
  $ train_image --data cifar10:cifar --model resnet20 --weights $source/resnet20-12fca82f.safetensors --mean .485,.456,.406 --std .229,.224,.225 --eval-only
  …
  … accuracy 91.67% (8989 of 9806)…
