/* version.h - the version of the program; the arithmetic and the formats have their own. */
#ifndef BASE_VERSION_H
#define BASE_VERSION_H

#define LOCKSTEP_VERSION "0.1.0"

#endif /* BASE_VERSION_H */
