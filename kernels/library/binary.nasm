# C = A op B, element by element, for any number of elements: the hand-written library's kernel.
# The loader replaces $OP, $TYPE and $BYTES ("add", "f16", 2).
#
# Partition: partition.nasm, which the loader inserts at its name.
# Schedule: three stages on two halves of NMEM. A half is [x | y]; the result replaces x. Step s does
#     store block s-2 from half s%2,  load block s into half s%2,  compute block s-1 in the other half,
# and ends with one sync of all queues. The store and the load of the same half are in the same in-order
# queue, store first, so they need no wait between them.
# Blocks are as large as NMEM allows. Loads and stores move the exact count. The vector unit computes up to
# the next multiple of 64 elements, for which the halves have room.

# [library binary begin]
.program $OP.$TYPE
.scalar n i64
.tensor A $TYPE any in
.tensor B $TYPE any in
.tensor C $TYPE any out

.equ GROUP 64                   # elements that vector instructions count in
.equ SPAN_GROUP 128             # elements: keeps buffers of 1-byte elements at multiples of 128 bytes
.equ SMALLEST_RUN 4096          # bytes

.reg zero r0
.reg one r1
.reg group r2
.reg a r3                       # next addresses in GMEM
.reg b r4
.reg c r5
.reg load_left r6               # elements of this core's run still to load, compute and store
.reg compute_left r7
.reg store_left r8
.reg span r9                    # elements of a block
.reg x r10                      # the half that this step stores from and loads into
.reg y r11
.reg x_other r12                # the half that this step computes in
.reg y_other r13
.reg step r14
.reg size r15
.reg bytes r16
.reg t r17
.reg u r18

  li zero, 0
  li one, 1
  li group, GROUP

# size = the first element of my run, store_left = how many there are.
$PARTITION
  mov load_left, store_left
  mov compute_left, store_left
  muli bytes, size, $BYTES
  arg a, 9
  add a, a, bytes
  arg b, 10
  add b, b, bytes
  arg c, 11
  add c, c, bytes

# Four buffers of one block each.
  arg span, 5
  li t, SPAN_GROUP
  muli t, t, $BYTES + $BYTES + $BYTES + $BYTES
  div span, span, t
  muli span, span, SPAN_GROUP
  muli bytes, span, $BYTES
  li x, 0
  mov y, bytes
  add x_other, y, bytes
  add y_other, x_other, bytes
  li step, 0

next_step:
  addi t, step, -2
  blt t, zero, load
  min size, store_left, span
  memcpy.$TYPE.gmem.nmem.async c, x, size, one, zero, zero
  sub store_left, store_left, size
  muli bytes, size, $BYTES
  add c, c, bytes

load:
  bge zero, load_left, compute
  min size, load_left, span
  memcpy.$TYPE.nmem.gmem.async x, a, size, one, zero, zero
  memcpy.$TYPE.nmem.gmem.async y, b, size, one, zero, zero
  sub load_left, load_left, size
  muli bytes, size, $BYTES
  add a, a, bytes
  add b, b, bytes

compute:
  blt step, one, turn
  bge zero, compute_left, turn
  min size, compute_left, span
  sub compute_left, compute_left, size
  addi size, size, GROUP - 1
  div size, size, group
  mul size, size, group
  $OP.$TYPE x_other, x_other, y_other, size

turn:
  sync
  mov t, x
  mov x, x_other
  mov x_other, t
  mov t, y
  mov y, y_other
  mov y_other, t
  addi step, step, 1
  blt zero, store_left, next_step

done:
  halt
# [library binary end]
