# out = max(x, 0) for 1000 elements, all by core 0 of cluster 0. NMEM holds 1024: vector instructions take multiples of
# 64 elements.
.program relu_by_hand
.tensor x f16 any in
.tensor out f16 any out
.equ COUNT 1000
.equ ROUNDED 1024
  arg r1, 0                # core
  arg r2, 1                # cluster
  or r1, r1, r2
  li r0, 0
  bne r1, r0, done
  arg r10, 8               # x
  arg r11, 9               # out
  li r5, COUNT
  li r6, ROUNDED
  li r1, 1
  fill.f16 r0, r0, r6      # so that what follows x is defined
  sync
  memcpy.f16.nmem.gmem r0, r10, r5, r1, r0, r0   # waits until it is done
  relu.f16 r0, r0, r6
  sync
  memcpy.f16.gmem.nmem r11, r0, r5, r1, r0, r0
done:
  halt
