/* version.h - the version of the program; the arithmetic and the formats have their own. */
#ifndef BASE_VERSION_H
#define BASE_VERSION_H

#define LOCKSTEP_VERSION "0.1.0"

/* The date of this version, for the manual pages and the package. */
#define LOCKSTEP_DATE "2026-11-22"

#endif /* BASE_VERSION_H */
