# C = scale * (A times B transposed): the steps of the GEMM tutorial for MLU270 (CambriconECO/BANGC_Gemm_Tutorial, its
# files 04 to 07), instruction by instruction as its plans go. A (256, 256) and B (columns, 256) are i8, sums i32, C
# (256, columns) f16, a part of rows of `row`. The loader replaces $STEP, $CORES (cores that compute), $FETCH (how 256
# columns of B come to NMEM), $STORE (how the result leaves), $MEMORY_CORE and $ROUND_ENDS.
#
# A round is 256 columns on each core that computes: B to NMEM, put into the order of the 64 banks there, one
# copy to WMEM, product, scaling, store. Copies wait for their end.
.program ladder.$STEP
.tensor A i8 any in
.tensor B i8 any in
.tensor C f16 any out
.scalar columns i64
.scalar row i64                 # elements from a row of C to the next
.scalar scale i64               # bit pattern of an f32

.equ SIDE 256                   # rows of A, elements of a row, columns of a round
.equ ROW 512                    # bytes of a row of a round's result
.equ BLOCK 0x10000              # bytes of A, and of a round's part of B
.equ RAW 0x10000                # NMEM: A, then sums, then the result. B as it comes, and in the banks' order,
.equ BANKED 0x20000             # where the sums will be
.equ SUMS 0x10000
.equ RESULT 0x50000

.reg zero r0
.reg one r1
.reg side r2
.reg block r3
.reg bank r4                    # elements of a bank: 4 columns
.reg groups r5                  # of 64 columns
.reg lanes r6
.reg a r7
.reg b r8                       # this core's part in this round
.reg c r9
.reg columns r10
.reg scale r11
.reg raw r12
.reg banked r13
.reg sums r14
.reg result r15
.reg count r16                  # elements of the result
.reg step_b r17                 # bytes to the next round
.reg step_c r18
.reg left r19                   # columns from this core's first one on
.reg step r20
.reg core r21                   # that computes, among all
.reg tid r22
.reg cores r23                  # in a cluster
.reg t r24
.reg from r25                   # a row of the result, where it goes
.reg to r26
.reg slot r27                   # in SMEM
.reg next_slot r28
.reg pitch r29                  # bytes of a row of C
.reg group r30                  # elements of 64 columns
.reg cluster_block r31          # bytes of B for all cores of a cluster
.reg stride r32                 # elements from a row of C to the next

  li zero, 0
  li one, 1
  li side, SIDE
  li block, BLOCK
  li bank, 1024
  li groups, 4
  li group, 0x4000
  li lanes, 64
  li raw, RAW
  li banked, BANKED
  li sums, SUMS
  li result, RESULT
  li count, 0x10000
  arg a, 8
  arg b, 9
  arg c, 10
  arg columns, 11
  arg stride, 12
  arg scale, 13
  arg tid, 0
  arg t, 1
  arg cores, 2
  mul core, t, cores
  li slot, 0
  mul cluster_block, cores, block
  mov next_slot, cluster_block
  muli step, side, $CORES
  mul step_b, step, side
  muli step_c, step, 2
  muli pitch, stride, 2
  bge tid, cores, memory_core
  add core, core, tid
  li t, $CORES
  bge core, t, done
# My first columns.
  mul t, core, side
  sub left, columns, t
  mul t, core, block
  add b, b, t
  muli t, core, ROW
  add c, c, t
  memcpy.i8.nmem.gmem zero, a, block, one, zero, zero

round:
$FETCH
  memcpy3d.i8.nmem.nmem banked, raw, side, lanes, bank, side, groups, side, group
  memcpy.i8.wmem.nmem zero, banked, block, one, zero, zero
  matmul.i8 sums, zero, zero, side, side, side, side, bank
  rescale.f16.i32 result, sums, scale, count
  sync.compute
$STORE
$ROUND_ENDS
  add b, b, step_b
  add c, c, step_c
  sub left, left, step
  blt zero, left, round
done:
  halt

memory_core:
$MEMORY_CORE
  halt
