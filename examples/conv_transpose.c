/* A transposed convolution without a model: twice the size, 8 channels to 3,
   on two threads, with a ReLU. */
#include <polyphase/polyphase.h>
#include <stdio.h>
#include <stdlib.h>

enum { INS = 8, OUTS = 3, KERNEL = 4, SIZE = 16 };

static float input[SIZE * SIZE * INS]; /* [height, width, channels] */
static float output[2 * SIZE * 2 * SIZE * OUTS];
static float weights[INS * OUTS * KERNEL * KERNEL];

static void describe(pph_conv_desc *desc) {
  pph_conv_desc_init(desc);
  desc->in_channels = INS;
  desc->out_channels = OUTS;
  for (int i = 0; i < 2; i++) {
    desc->kernel[i] = KERNEL;
    desc->stride[i] = 2;
    desc->pad_begin[i] = desc->pad_end[i] = 1;
  }
  desc->activation = PPH_ACTIVATION_CLAMP;
  desc->low = 0;
  desc->threads = 2;
}

int main(void) {
  const float bias[OUTS] = {0.5f, -100, 0};
  const int64_t size[2] = {SIZE, SIZE};
  int64_t result[2];
  size_t bytes;
  pph_conv_desc desc;
  pph_conv_transpose *op = NULL;
  pph_thread_pool *pool = NULL;
  void *workspace = NULL;
  pph_error error = {0};
  for (int i = 0; i < SIZE * SIZE * INS; i++)
    input[i] = 1;
  for (int i = 0; i < INS * OUTS * KERNEL * KERNEL; i++)
    weights[i] = 0.25f;
  describe(&desc);
  if (pph_conv_transpose_create(&desc, weights, bias, &op, &error) ||
      pph_conv_transpose_reshape(op, 1, size, result, &bytes, &error) ||
      pph_thread_pool_create(desc.threads, &pool, &error))
    goto end;
  if (bytes && !(workspace = aligned_alloc(64, bytes))) {
    error = (pph_error){PPH_OUT_OF_MEMORY, "workspace", "no memory"};
    goto end;
  }
  pph_conv_tensors tensors = {
      .input = input, .output = output, .workspace = workspace, .pool = pool};
  if (pph_conv_transpose_run(op, &tensors, &error))
    goto end;
  const float *middle = &output[(SIZE * 2 * SIZE + SIZE) * OUTS];
  printf("%s: %lld x %lld, %g %g %g\n",
         pph_conv_transpose_explain(op).algorithm, (long long)result[0],
         (long long)result[1], (double)middle[0], (double)middle[1],
         (double)middle[2]);
end:
  if (error.status != PPH_OK)
    fprintf(stderr, "%s: %s\n", error.where, error.message);
  free(workspace);
  pph_thread_pool_destroy(pool);
  pph_conv_transpose_destroy(op);
  return error.status != PPH_OK;
}
