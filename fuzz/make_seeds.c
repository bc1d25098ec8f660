/* Makes the binary corpora from the text one: usage make_seeds TEXT OUT.onnx
   [PREFIX_BYTE]. Run by scripts/make-seeds.sh after a change of the text. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/text.h"
#include "onnx/onnx.h"

static char *read_file(const char *path, size_t *length) {
  FILE *file = fopen(path, "rb");
  if (!file)
    return NULL;
  fseek(file, 0, SEEK_END);
  *length = (size_t)ftell(file);
  rewind(file);
  char *text = malloc(*length + 1);
  if (text)
    *length = fread(text, 1, *length, file);
  fclose(file);
  return text;
}

static int write_model(const pph_graph *graph, const char *path,
                       const char *prefix, pph_error *error) {
  void *bytes;
  size_t length;
  if (pph_onnx_export(graph, &bytes, &length, error) != PPH_OK)
    return 1;
  FILE *file = fopen(path, "wb");
  if (!file)
    return 1;
  if (prefix)
    fputc(atoi(prefix), file);
  fwrite(bytes, 1, length, file);
  fclose(file);
  pph_heap_release(graph->heap, bytes);
  return 0;
}

int main(int argc, char **argv) {
  pph_heap heap;
  pph_graph graph;
  pph_error error = {0};
  size_t length = 0;
  char *text = argc > 2 ? read_file(argv[1], &length) : NULL;
  if (!text)
    return 2;
  pph_heap_init(&heap, NULL, 0);
  pph_graph_init(&graph, &heap, NULL);
  int failed = pph_text_parse(text, length, &graph, &error) != PPH_OK ||
               write_model(&graph, argv[2], argc > 3 ? argv[3] : NULL, &error);
  if (failed)
    fprintf(stderr, "%s: %s: %s\n", argv[1], error.where, error.message);
  pph_graph_clear(&graph);
  free(text);
  return failed;
}
