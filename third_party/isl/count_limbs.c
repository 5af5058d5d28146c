// isl counts its operations (isl_ctx_set_max_operations), but a pivot of a simplex tableau is one operation, however
// many numbers there are and however long they grow: in an integer program that needs many cuts, 20,000 operations took
// 24 s, where they take 10 ms else. So each 16 limbs (64-bit digits) of rows that are normalized after a pivot are an
// operation, too. Then a million operations take about a second.
//
// The linker sends isl's calls here (--wrap). A limit of time instead would make what the compiler gives up depend
// on how busy the machine is.

#include <gmp.h>
#include <isl/ctx.h>

// Inside isl.
int isl_ctx_next_operation(struct isl_ctx* ctx);
void __real_isl_seq_normalize(struct isl_ctx* ctx, mpz_t* numbers, unsigned count);

void __wrap_isl_seq_normalize(struct isl_ctx* ctx, mpz_t* numbers, unsigned count) {
  static _Thread_local size_t limbs = 0;
  for (unsigned i = 0; i < count; ++i) limbs += mpz_size(numbers[i]);
  // An error stays in `ctx`, and the next pivot fails.
  for (; limbs >= 16; limbs -= 16) isl_ctx_next_operation(ctx);
  __real_isl_seq_normalize(ctx, numbers, count);
}
