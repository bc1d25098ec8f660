/* The program of README.md. */
#include <polyphase/polyphase.h>
#include <stdio.h>

int main(void) {
  float pixels[1 * 3 * 32 * 32] = {0};
  pph_tensor input = {PPH_F32, {4, {1, 3, 32, 32}}, pixels}, output;
  pph_model *model = NULL;
  pph_session *session = NULL;
  pph_error error = {0};
  if (pph_model_load("examples/upscale/upscale.onnx", NULL, &model, &error) ||
      pph_session_create(model, NULL, &session, &error) ||
      pph_session_run(session, &input, 1, &output, 1, &error))
    fprintf(stderr, "%s: %s\n", error.where, error.message);
  else /* output.data stays valid until the next run */
    printf("%lld x %lld\n", (long long)output.shape.dims[2],
           (long long)output.shape.dims[3]);
  pph_session_destroy(session);
  pph_model_destroy(model);
  return error.status != PPH_OK;
}
