/* Everything of Polyphase. */
#ifndef POLYPHASE_POLYPHASE_H
#define POLYPHASE_POLYPHASE_H

#include "polyphase/conv.h"
#include "polyphase/conv_stream.h"
#include "polyphase/conv_transpose.h"
#include "polyphase/memory.h"
#include "polyphase/model.h"
#include "polyphase/operator.h"
#include "polyphase/session.h"
#include "polyphase/status.h"
#include "polyphase/tensor.h"
#include "polyphase/version.h"

#endif
