/* ONNX files for tests, out of a short text. Written byte by byte, so that the
   importer is not judged by its own code. */
#ifndef MODEL_WRITER_H
#define MODEL_WRITER_H

#include <stddef.h>
#include <stdint.h>

#include "graph/graph.h"

/* A growing block; starts as zeros. */
typedef struct model_bytes {
  unsigned char *data;
  size_t length, capacity;
} model_bytes;

/* The model of `text`: statements parted by ';' or line ends, words by blanks.
     opset 9            opset com.example 1
     ir 3
     in x f32 1x3x?xW   no dimensions: no shape; "scalar": none of them
     out y              or with type and dimensions as `in`
     init w f32 2x2 1 2 3 4          raw_data
     typed w f16 3 1 2 3             the typed field, packed
     unpacked w f32 3 1 2 3          the typed field, one tag per element
     external w f32 4 location=w.bin offset=0 length=16
     node Conv x w _ -> y pads=is:1,1,1,1 auto_pad=s:NOTSET @name=c1
   A node's operator may be domain::Name, `_` omits an input or output.
   Attributes: i:1 f:0.5 s:text is:1,2 fs:1,2 ss:a,b t:f32:2x2:1,2,3,4 and g:
   for an empty graph; a type in front of the value. A text that makes no sense
   fails the test. Free with model_bytes_free. */
model_bytes model_write(const char *text);
void model_bytes_free(model_bytes *bytes);

/* The pieces. */
void model_put_varint(model_bytes *bytes, uint64_t value);
void model_put_number(model_bytes *bytes, unsigned field, uint64_t value);
void model_put_float(model_bytes *bytes, unsigned field, float value);
void model_put_bytes(model_bytes *bytes, unsigned field, const void *data,
                     size_t length);
void model_put_text(model_bytes *bytes, unsigned field, const char *text);
/* Appends `part` as a message and frees it. */
void model_put_message(model_bytes *bytes, unsigned field, model_bytes *part);

/* The nodes of a graph as "Slice(x,{0},{2}) -> y; Relu(y) -> z". Constants
   without a name of the file's are written out, other values that the importer
   made are #K, the position of the node that makes them; attributes follow the
   inputs. Into a static buffer. */
const char *model_summary(const pph_graph *graph);

#endif
