/* Sound while it comes: a transposed convolution that makes 4 positions of 1,
   pushed 3 positions at a time; no matter how a signal is cut, the output is
   the same. */
#include <polyphase/polyphase.h>
#include <stdio.h>

enum { INS = 2, KERNEL = 8, STRIDE = 4, LONGEST = 3, LENGTH = 10 };

static float input[LENGTH * INS]; /* [position, channel] */
static float output[LENGTH * STRIDE + KERNEL];
static float weights[INS * KERNEL];

static pph_status create(pph_conv_stream **stream, pph_error *error) {
  pph_conv_stream_options options;
  pph_conv_stream_options_init(&options);
  options.longest = LONGEST;
  pph_conv_desc desc;
  pph_conv_desc_init(&desc);
  desc.axes = 1;
  desc.in_channels = INS;
  desc.out_channels = 1;
  desc.kernel[0] = KERNEL;
  desc.stride[0] = STRIDE;
  desc.pad_begin[0] = desc.pad_end[0] = (KERNEL - STRIDE) / 2;
  return pph_conv_stream_create_transposed(&desc, &options, weights, NULL,
                                           stream, error);
}

int main(void) {
  pph_conv_stream *stream = NULL;
  pph_error error = {0};
  int64_t written, all = 0;
  for (int i = 0; i < LENGTH * INS; i++)
    input[i] = (float)i;
  for (int i = 0; i < INS * KERNEL; i++)
    weights[i] = 0.25f;
  if (create(&stream, &error))
    goto end;
  for (int64_t at = 0; at < LENGTH; at += LONGEST) {
    int64_t count = LENGTH - at < LONGEST ? LENGTH - at : LONGEST;
    if (pph_conv_stream_push(stream, input + at * INS, count, output + all,
                             &written, &error))
      goto end;
    printf("%lld in, %lld out\n", (long long)count, (long long)written);
    all += written;
  }
  if (pph_conv_stream_flush(stream, output + all, &written, &error))
    goto end;
  all += written;
  printf("%lld at the end; %lld in all, the last is %g\n", (long long)written,
         (long long)all, (double)output[all - 1]);
end:
  if (error.status != PPH_OK)
    fprintf(stderr, "%s: %s\n", error.where, error.message);
  pph_conv_stream_destroy(stream);
  return error.status != PPH_OK;
}
