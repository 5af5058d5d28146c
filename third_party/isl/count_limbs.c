// isl counts its operations (isl_ctx_set_max_operations), but a pivot of a simplex tableau is one operation, however
// many numbers there are and however long they grow: in an integer program that needs many cuts, 20,000 operations took
// 24 s, where they take 10 ms else. So each 16 limbs (64-bit digits) of rows that are normalized after a pivot are an
// operation, too. Then a million operations take about a second.
//
// The linker sends isl's calls here (--wrap). A limit of time instead would make what the compiler gives up depend
// on how busy the machine is.

#include <stddef.h>
#include <stdint.h>

// Inside isl, which installs no headers of it. A number of 32 bits lies in the upper half of the integer itself, a
// greater one elsewhere.
struct isl_ctx;
typedef int64_t isl_sioimath;
int isl_ctx_next_operation(struct isl_ctx* ctx);
int isl_sioimath_is_big(isl_sioimath number);
size_t isl_sioimath_sizeinbase(isl_sioimath number, int base);
void __real_isl_seq_normalize(struct isl_ctx* ctx, isl_sioimath* numbers, unsigned count);

static size_t LimbsOf(isl_sioimath number) {
  if (isl_sioimath_is_big(number)) return (isl_sioimath_sizeinbase(number, 2) + 63) / 64;
  return number >> 32 != 0;
}

void __wrap_isl_seq_normalize(struct isl_ctx* ctx, isl_sioimath* numbers, unsigned count) {
  static _Thread_local size_t limbs = 0;
  for (unsigned i = 0; i < count; ++i) limbs += LimbsOf(numbers[i]);
  // An error stays in `ctx`, and the next pivot fails.
  for (; limbs >= 16; limbs -= 16) isl_ctx_next_operation(ctx);
  __real_isl_seq_normalize(ctx, numbers, count);
}
