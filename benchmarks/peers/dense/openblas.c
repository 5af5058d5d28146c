// OpenBLAS: products of matrices of f32. It packs its operands in each run.
#include <cblas.h>
#include <stdio.h>
#include <stdlib.h>

struct Open {
  struct PeerLayer layer;
  const float *x, *f;
  float* y;
};

const char* peer_version(void) {
  static char text[256];
  snprintf(text, sizeof(text), "%s, kernels for %s", openblas_get_config(),
           openblas_get_corename());
  return text;
}

void* peer_open(const struct PeerLayer* layer, void* const* buffers, const char** why) {
  *why = "OpenBLAS has products of f32 alone";
  if (layer->kind == kConv || layer->type != kF32 || layer->bias || layer->relu) return NULL;
  struct Open* o = calloc(1, sizeof(struct Open));
  o->layer = *layer;
  o->x = buffers[0];
  o->f = buffers[1];
  o->y = buffers[2];
  return o;
}

int peer_reorder(void* layer) { return layer == NULL; }

int peer_run(void* layer) {
  const struct Open* o = layer;
  const struct PeerLayer* l = &o->layer;
  openblas_set_num_threads((int)l->threads);
  const int rows = (int)l->h, sums = (int)l->ci, columns = (int)l->co;
  if (l->kind == kMatmul) {
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, rows, columns, sums, 1.0f, o->x, sums,
                o->f, sums, 0.0f, o->y, columns);
    return 0;
  }
  for (int64_t n = 0; n < l->batch; ++n) {
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, rows, columns, sums, 1.0f,
                o->x + n * l->h * l->ci, sums, o->f + n * l->ci * l->co, columns, 0.0f,
                o->y + n * l->h * l->co, columns);
  }
  return 0;
}

void peer_close(void* layer) { free(layer); }
