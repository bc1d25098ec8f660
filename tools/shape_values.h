/* Values for inputs that decide shapes, where none are given. */
#ifndef TOOLS_SHAPE_VALUES_H
#define TOOLS_SHAPE_VALUES_H

#include "model_inputs.h"

/* Where such an input is not given: the scales and sizes of a Resize become
   those of a picture twice as large each way (batch and channels stay), if what
   it resizes is an input too, else PPH_INVALID_ARGUMENT asks for them; others
   keep the zeros that they have, and stderr tells. All inputs have their data,
   or are given. */
PPH_NODISCARD pph_status shape_values_fill(const pph_model *model,
                                           model_inputs *inputs,
                                           pph_error *error);

#endif
