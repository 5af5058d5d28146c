# Y = scale * (X convolved with F), for any image, filter, stride and dilation: the hand-written library's
# kernel. X (H, W, CI) and F (CO, KH, KW, CI) are $TYPE, sums i32, Y (HO, WO, CO) f16. The loader replaces
# $TYPE and $BYTES ("i8", 1).
#
# Padding is the host's work: X has zeros around it, so that no window leaves it, and the kernel reads them
# from GMEM. The host also chooses the shares and the sizes of a tile (conv2d.cc), as mlu-ops does.
# Shares: the card's clusters form a grid over the rows, columns and channels of the output; the cores of a
# cluster form a grid over the cluster's part. So all cores have work for 56 rows and 16 cores, and each
# core reads few filters where the filters weigh more than the image.
# Filters: a core computes one block of its channels after another; a block's filters fit WMEM, filter c in
# bank c % 64 as number c / 64. Where the cores of a cluster need the same filters (by_smem is 1), the memory
# core brings each block to SMEM once, while the cores still compute the block before; after one barrier
# per block the cores copy it to WMEM. Otherwise each core loads its filters from GMEM.
# Tiles: tile_rows x tile_columns pixels, from left to right, then down.
# Schedule: three stages on two halves of NMEM, image and result each; sums once. In step s
#     store tile s-2,  load tile s into the same halves,  compute tile s-1 in the other halves,
# and one sync of all queues, as in binary.nasm. Stores move the exact channels. The tensor and the vector unit
# compute up to the next multiple of 64 channels.

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
.scalar cluster_columns i64     # of the grid of clusters
.scalar cluster_channels i64
.scalar core_rows i64           # of the grid of a cluster's cores
.scalar core_columns i64
.scalar core_channels i64
.scalar share_rows i64          # of a core's share of the output
.scalar share_columns i64
.scalar share_channels i64
.scalar tile_rows i64
.scalar tile_columns i64
.scalar block i64               # output channels at a time: share_channels, or a multiple of LANES
.scalar by_smem i64
.scalar clusters i64            # that have a share

.equ LANES 64
.equ ALIGN 128

.reg zero r0
.reg one r1
.reg lanes r2
.reg x r3                       # in GMEM: image, filters of the next block, result of the block
.reg f r4
.reg y r5
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
.reg first_row r26              # of this core's share
.reg end_row r27
.reg first_column r6
.reg end_column r52
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
.reg tid r53
.reg by_smem r54
.reg slot r55                   # of the block in SMEM, and of the next one
.reg next_slot r56

  li zero, 0
  li one, 1
  li lanes, LANES
  arg tid, 0
  arg ci, 15
  arg kh, 16
  arg kw, 17
  mul filter, kh, kw
  mul filter, filter, ci

# My place in the grids: rows first_row to end_row - 1, columns and channels likewise.
  arg co, 13
  arg t, 1
  arg u, 33
  bge t, u, done
  arg u, 22
  mod channels, t, u
  div t, t, u
  arg u, 21
  mod first_column, t, u
  div first_row, t, u
  arg u, 25
  mul channels, channels, u
  mod v, tid, u
  add channels, channels, v     # my place among the shares of channels
  div t, tid, u
  arg u, 24
  mul first_column, first_column, u
  mod v, t, u
  add first_column, first_column, v
  div t, t, u
  arg u, 23
  mul first_row, first_row, u
  add first_row, first_row, t
  arg u, 28
  mul t, channels, u
  sub channels_left, co, t
  min channels_left, channels_left, u
  bge zero, channels_left, done # for all cores of a cluster that wait for one another
  arg f, 9
  arg y, 10
  muli u, t, 2
  add y, y, u
  mul t, t, filter
  muli t, t, $BYTES
  add f, f, t
  arg channels, 31
  arg by_smem, 32
  li slot, 0
  mul next_slot, channels, filter
  muli next_slot, next_slot, $BYTES
  arg t, 2
  blt tid, t, core
  bne by_smem, zero, feed
  halt

# The memory core: one block after the other into two slots of SMEM. When the cores come to a block's barrier,
# they have copied the block before from the other slot.
feed:
  min channels, channels, channels_left
  mul count, channels, filter
  memcpy.$TYPE.smem.gmem.async slot, f, count, one, zero, zero
  barrier.cluster
  muli count, count, $BYTES
  add f, f, count
  mov t, slot
  mov slot, next_slot
  mov next_slot, t
  sub channels_left, channels_left, channels
  blt zero, channels_left, feed
  halt

core:
  arg u, 26
  mul first_row, first_row, u
  add end_row, first_row, u
  arg t, 11
  min end_row, end_row, t
  arg u, 27
  mul first_column, first_column, u
  add end_column, first_column, u
  arg wo, 12
  min end_column, end_column, wo
  blt first_column, end_column, has_columns
  mov end_row, first_row        # no columns, so no tiles
has_columns:
  blt first_row, end_row, has_work
  beq by_smem, zero, done       # else the others count on this core at their barriers
has_work:
  arg x, 8
  arg width, 14
  arg stride, 18
  arg dilation, 19
  arg scale, 20
  arg tile_rows, 29
  arg tile_columns, 30
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
  addi t, t, ALIGN - 1
  li u, 0 - ALIGN
  and t, t, u
  li in_half, 0
  mov in_other, t
  add sums, t, t
  addi u, channels, LANES - 1
  li v, 0 - LANES
  and u, u, v
  mul u, u, tile_rows
  mul u, u, tile_columns
  muli t, u, 4
  add y_half, sums, t
  muli t, u, 2
  add y_other, y_half, t

next_block:
  min channels, channels_left, channels
  addi padded, channels, LANES - 1
  li t, 0 - LANES
  and padded, padded, t

# Whole groups of filters, then the filters that are left.
  div t, channels, lanes
  mod u, channels, lanes
  mul plane, filter, lanes
  mul count, plane, t
  muli count, count, $BYTES
  mul v, t, pitch
  muli v, v, $BYTES
  beq by_smem, zero, from_gmem
  barrier.cluster
  memcpy3d.$TYPE.wmem.smem.async zero, slot, filter, lanes, bank, filter, t, pitch, plane
  add count, slot, count
  memcpy.$TYPE.wmem.smem.async v, count, filter, u, bank, filter
  mov t, slot
  mov slot, next_slot
  mov next_slot, t
  jump filters_come
from_gmem:
  memcpy3d.$TYPE.wmem.gmem.async zero, f, filter, lanes, bank, filter, t, pitch, plane
  add count, f, count
  memcpy.$TYPE.wmem.gmem.async v, count, filter, u, bank, filter
filters_come:
  mov row, first_row
  mov column, first_column
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
  sub l_columns, end_column, column
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
  blt column, end_column, compute
  mov column, first_column
  add row, row, l_rows

compute:
  beq c_rows, zero, turn
  addi image_columns, c_columns, -1
  mul image_columns, image_columns, stride
  add image_columns, image_columns, reach_w
  conv.$TYPE sums, in_other, zero, c_rows, c_columns, padded, image_columns, kh, kw, ci, stride, stride, dilation, dilation, pitch, bank
  mul count, c_rows, c_columns
  mul count, count, padded
  rescale.f16.i32 y_other, sums, scale, count

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
