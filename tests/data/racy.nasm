# For `nao check`: adds to elements that the copy may still bring; a sync.io before the addition would make it right.
.program racy
.tensor x f16 any in
.scalar n i64
  li r0, 0
  li r1, 1
  arg r2, 0
  arg r3, 1
  add r2, r2, r3
  bne r2, r0, end               # on core 0 of cluster 0 alone
  arg r8, 8
  arg r5, 9
  addi r5, r5, 63
  li r6, 64
  div r5, r5, r6
  mul r5, r5, r6
  li r10, 0
  li r11, 0x8000
  memcpy.f16.nmem.gmem.async r10, r8, r5, r1, r0, r0
  fill.f16 r11, r0, r5
  add.f16 r10, r10, r11, r5
end:
  halt
