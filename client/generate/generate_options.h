/* generate_options.h - the options of `lockstep generate`. */
#ifndef CLIENT_GENERATE_GENERATE_OPTIONS_H
#define CLIENT_GENERATE_GENERATE_OPTIONS_H

#include "base/cli/options.h"

#define GENERATE_OPTIONS 19
extern const struct option_spec generate_options[GENERATE_OPTIONS];

#endif /* CLIENT_GENERATE_GENERATE_OPTIONS_H */
