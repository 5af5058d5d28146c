# Y = op X or Y = X op value, element by element, for any number of elements: the hand-written library's
# kernel. The loader replaces $OP, $VALUE, $TYPE and $BYTES ("exp", "", "f16", 2; or "muls", "operand, ",
# "f16", 2).
#
# Partition: partition.nasm, which the loader inserts at its name.
# Schedule: three stages on two halves of NMEM, each computed in place. Step s does
#     store block s-2 from half s%2,  load block s into half s%2,  compute block s-1 in the other half,
# and ends with one sync of all queues, as in binary.nasm. A half is one buffer here, so blocks can be twice
# as large; but a block is at most half of the run, so that copies and computation overlap.
# Loads and stores move the exact count. The vector unit computes up to the next multiple of 64 elements, for
# which the halves have room.

# [library unary begin]
.program $OP.$TYPE
.scalar n i64
.tensor X $TYPE any in
.tensor Y $TYPE any out
.scalar value i64               # bit pattern of the number that adds, ... take; other operators ignore it

.equ GROUP 64                   # elements that vector instructions count in
.equ SPAN_GROUP 128             # elements: keeps buffers of 1-byte elements at multiples of 128 bytes
.equ SMALLEST_RUN 4096          # bytes
.equ SMALLEST_SPAN 2048         # elements: shorter blocks are bound by the start of copies

.reg zero r0
.reg one r1
.reg group r2
.reg x r3                       # next addresses in GMEM
.reg y r4
.reg operand r5
.reg load_left r6               # elements of this core's run still to load, compute and store
.reg compute_left r7
.reg store_left r8
.reg span r9                    # elements of a block
.reg half r10                   # the half that this step stores from and loads into
.reg other r11                  # the half that this step computes in
.reg step r12
.reg size r13
.reg bytes r14
.reg t r15
.reg u r16

  li zero, 0
  li one, 1
  li group, GROUP

# size = the first element of my run, store_left = how many there are.
$PARTITION
  mov load_left, store_left
  mov compute_left, store_left
  muli bytes, size, $BYTES
  arg x, 9
  add x, x, bytes
  arg y, 10
  add y, y, bytes
  arg operand, 11

# Two halves of one block each.
  arg span, 5
  li t, SPAN_GROUP
  muli u, t, $BYTES + $BYTES
  div span, span, u
  addi u, store_left, SPAN_GROUP
  muli size, t, 2
  div u, u, size
  li size, SMALLEST_SPAN
  div size, size, t
  max u, u, size
  min span, span, u
  mul span, span, t
  li half, 0
  muli other, span, $BYTES
  li step, 0

next_step:
  addi t, step, -2
  blt t, zero, load
  min size, store_left, span
  memcpy.$TYPE.gmem.nmem.async y, half, size, one, zero, zero
  sub store_left, store_left, size
  muli bytes, size, $BYTES
  add y, y, bytes

load:
  bge zero, load_left, compute
  min size, load_left, span
  memcpy.$TYPE.nmem.gmem.async half, x, size, one, zero, zero
  sub load_left, load_left, size
  muli bytes, size, $BYTES
  add x, x, bytes

compute:
  blt step, one, turn
  bge zero, compute_left, turn
  min size, compute_left, span
  sub compute_left, compute_left, size
  addi size, size, GROUP - 1
  div size, size, group
  mul size, size, group
  $OP.$TYPE other, other, $VALUEsize

turn:
  sync
  mov t, half
  mov half, other
  mov other, t
  addi step, step, 1
  blt zero, store_left, next_step

done:
  halt
# [library unary end]
