# Y = scale * (X convolved with F), for any image, filter, stride and dilation: the hand-written library's
# kernel. X (H, W, CI) and F (CO, KH, KW, CI) are $TYPE, sums i32, Y (HO, WO, CO) f16; $TYPE and $BYTES are
# put in when the kernel is loaded ("i8", 1).
#
# Padding is the host's work: X comes with its zeros around it, so that no window leaves it, and its
# larger bytes are read. The host also chooses the sizes of a tile (library.cc), as mlu-ops does.
# Partition: rows of the output, core_rows for each core; cores behind the last row have nothing to do.
# For each block of output channels, whose filters fit WMEM, a core
#   - loads the filters from GMEM into its WMEM, each core for itself: filter c to bank c % 64, number c / 64,
#   - goes over its tiles of tile_rows x tile_columns pixels, from left to right, then down.
# Schedule: three stages on two halves of NMEM, image and result each; sums once. In step s
#     store tile s-2,  load tile s into the same halves,  compute tile s-1 in the other halves,
# and one sync of all queues, as in binary.nasm. Stores move the exact channels; the tensor and the vector
# unit compute up to the next multiple of 64 channels.

# [library conv begin]
.program conv2d.$TYPE
.tensor X $TYPE any in
.tensor F $TYPE any in
.tensor Y f16 any out
.scalar ho i64
.scalar wo i64
.scalar co i64
.scalar width i64               # of X, with its zeros
.scalar ci i64
.scalar kh i64
.scalar kw i64
.scalar stride i64
.scalar dilation i64
.scalar scale i64               # bit pattern of an f32
.scalar core_rows i64           # of the output, for each core
.scalar tile_rows i64
.scalar tile_columns i64
.scalar block i64               # output channels at a time: co, or a multiple of LANES

.equ LANES 64
.equ ALIGN 128

.reg zero r0
.reg one r1
.reg lanes r2
.reg x r3                       # in GMEM: image, filters of the next block, result of the block
.reg f r4
.reg y r5
.reg ho r6
.reg wo r7
.reg co r8
.reg width r9
.reg ci r10
.reg kh r11
.reg kw r12
.reg stride r13
.reg dilation r14
.reg scale r15
.reg tile_rows r16
.reg tile_columns r17
.reg channels_left r18
.reg channels r19               # of the block
.reg padded r20                 # the same as a multiple of LANES
.reg filter r21                 # elements of a filter, from one to the next in a bank, of a bank
.reg pitch r22
.reg bank r23
.reg reach_h r24                # (kh - 1) * dilation + 1: rows that a row of the output reads
.reg reach_w r25
.reg first_row r26              # of this core
.reg end_row r27
.reg row r28                    # the next tile to load
.reg column r29
.reg in_half r30                # halves that this step stores from and loads into
.reg in_other r31               # halves that this step computes in
.reg y_half r32
.reg y_other r33
.reg sums r34
.reg c_rows r35                 # the tile to compute: rows, columns, where its result goes
.reg c_columns r36
.reg c_to r37
.reg s_rows r38                 # the tile to store
.reg s_columns r39
.reg s_to r40
.reg l_rows r41                 # the tile that is being loaded
.reg l_columns r42
.reg l_to r43
.reg image_rows r44
.reg image_columns r45
.reg count r46
.reg line r47                   # strides in GMEM
.reg plane r48
.reg t r49
.reg u r50
.reg v r51

  li zero, 0
  li one, 1
  li lanes, LANES
  arg t, 0
  arg u, 2
  bge t, u, done                # memory cores have nothing to do
  arg v, 1
  mul v, v, u
  add v, v, t                   # this core's number on the card
  arg ho, 11
  arg u, 21
  mul first_row, v, u
  add end_row, first_row, u
  min end_row, end_row, ho
  bge first_row, end_row, done
  arg x, 8
  arg f, 9
  arg y, 10
  arg wo, 12
  arg co, 13
  arg width, 14
  arg ci, 15
  arg kh, 16
  arg kw, 17
  arg stride, 18
  arg dilation, 19
  arg scale, 20
  arg tile_rows, 22
  arg tile_columns, 23

  mul filter, kh, kw
  mul filter, filter, ci
  muli pitch, filter, $BYTES
  addi pitch, pitch, 63
  div pitch, pitch, lanes       # the unit reads filters in pieces of 64 bytes
  mul pitch, pitch, lanes
  li t, $BYTES
  div pitch, pitch, t
  arg bank, 7
  div bank, bank, lanes
  div bank, bank, t
  addi t, kh, -1
  mul t, t, dilation
  addi reach_h, t, 1
  addi t, kw, -1
  mul t, t, dilation
  addi reach_w, t, 1

# Two halves for images, two for results, one buffer for sums.
  addi t, tile_rows, -1
  mul t, t, stride
  add image_rows, t, reach_h
  addi t, tile_columns, -1
  mul t, t, stride
  add image_columns, t, reach_w
  mul t, image_rows, image_columns
  mul t, t, ci
  muli t, t, $BYTES
  li u, ALIGN
  addi t, t, ALIGN - 1
  div t, t, u
  mul t, t, u
  li in_half, 0
  mov in_other, t
  add sums, t, t
  arg channels, 24
  addi u, channels, LANES - 1
  div u, u, lanes
  mul u, u, lanes
  mul u, u, tile_rows
  mul u, u, tile_columns
  muli t, u, 4
  add y_half, sums, t
  muli t, u, 2
  add y_other, y_half, t
  mov channels_left, co

next_block:
  min channels, channels_left, channels
  div t, channels, lanes        # whole groups of filters, then the filters that are left
  mul plane, filter, lanes
  memcpy3d.$TYPE.wmem.gmem.async zero, f, filter, lanes, bank, filter, t, pitch, plane
  mul u, t, lanes
  sub u, channels, u
  mul v, t, pitch
  muli v, v, $BYTES
  mul plane, plane, t
  muli plane, plane, $BYTES
  add plane, f, plane
  memcpy.$TYPE.wmem.gmem.async v, plane, filter, u, bank, filter
  addi padded, channels, LANES - 1
  div padded, padded, lanes
  mul padded, padded, lanes
  mov row, first_row
  li column, 0
  li c_rows, 0
  li s_rows, 0

next_step:
  beq s_rows, zero, load
  mul line, wo, co
  mul plane, s_columns, padded
  memcpy3d.f16.gmem.nmem.async s_to, y_half, channels, s_columns, co, padded, s_rows, line, plane

load:
  li l_rows, 0
  bge row, end_row, compute
  sub l_rows, end_row, row
  min l_rows, l_rows, tile_rows
  sub l_columns, wo, column
  min l_columns, l_columns, tile_columns
  mul l_to, row, wo
  add l_to, l_to, column
  mul l_to, l_to, co
  muli l_to, l_to, 2
  add l_to, l_to, y
  addi image_rows, l_rows, -1
  mul image_rows, image_rows, stride
  add image_rows, image_rows, reach_h
  addi image_columns, l_columns, -1
  mul image_columns, image_columns, stride
  add image_columns, image_columns, reach_w
  mul t, row, width
  add t, t, column
  mul t, t, stride
  mul t, t, ci
  muli t, t, $BYTES
  add t, t, x
  mul count, image_columns, ci
  mul line, width, ci
  memcpy.$TYPE.nmem.gmem.async in_half, t, count, image_rows, count, line
  add column, column, l_columns
  blt column, wo, compute
  li column, 0
  add row, row, l_rows

compute:
  beq c_rows, zero, turn
  addi image_columns, c_columns, -1
  mul image_columns, image_columns, stride
  add image_columns, image_columns, reach_w
  conv.$TYPE sums, in_other, zero, c_rows, c_columns, padded, image_columns, kh, kw, ci, stride, stride, dilation, dilation, pitch, bank
  mul count, c_rows, c_columns
  mul count, count, padded
  cast.f32.i32 sums, sums, count
  muls.f32 sums, sums, scale, count
  cast.f16.f32 y_other, sums, count

turn:
  sync
  mov t, in_half
  mov in_half, in_other
  mov in_other, t
  mov t, y_half
  mov y_half, y_other
  mov y_other, t
  mov s_rows, c_rows
  mov s_columns, c_columns
  mov s_to, c_to
  mov c_rows, l_rows
  mov c_columns, l_columns
  mov c_to, l_to
  blt row, end_row, next_step
  bne c_rows, zero, next_step
  bne s_rows, zero, next_step

  sub channels_left, channels_left, channels
  mul t, channels, filter
  muli t, t, $BYTES
  add f, f, t
  muli t, channels, 2
  add y, y, t
  blt zero, channels_left, next_block

done:
  halt
# [library conv end]
