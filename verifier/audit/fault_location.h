/*
 * fault_location.h - where a refuted step is false: which operation, tensor and element, both
 * values, and evidence that a judge or a contract takes without the bundle.
 *
 * It drives a dispute that no ledger knows of (verifier/dispute). What it finds depends on what
 * there is of the accused. With replies about the accused's trace it finds the first element that
 * differs from ours, and the evidence is about that element. With a checkpoint of the state after
 * the step it finds the first state and element that differ, and the evidence says that the state
 * is not what the trace ends in. The trace is then the true one, since the accused's is not known:
 * a solver that answers a claim with another has to be walked on the ledger. With neither, only the
 * step is known. The result says what is lacking and how to get it. Evidence is judged here before
 * anybody gets it.
 */
#ifndef VERIFIER_AUDIT_FAULT_LOCATION_H
#define VERIFIER_AUDIT_FAULT_LOCATION_H

#include "base/io/stop.h"
#include "proofs/dispute/evidence.h"
#include "proofs/run/run.h"

#define FAULT_LOCATION_OP_MAX       40
#define FAULT_LOCATION_INSTANCE_MAX 40

struct fault_location {
    enum evidence_kind kind; /* 0: there is no evidence */
    uint8_t *evidence;       /* an evidence file (evidence_file.h); owned */
    size_t evidence_size;
    bool own_trace; /* the accused's own trace was at hand */
    struct digest trace_root;

    bool op_known; /* the operation of the program that makes what differs: */
    uint32_t op;
    uint32_t output;
    char op_name[FAULT_LOCATION_OP_MAX];
    char instance[FAULT_LOCATION_INSTANCE_MAX]; /* "micro-batch 3"; "": it is done once */

    bool tensor_known; /* the tensor that differs: */
    char tensor[TENSOR_NAME_MAX + 1];

    bool element_known; /* its first element that differs: */
    uint64_t element;
    enum dtype dtype;
    uint32_t found;    /* the accused's bits, as rules see them (element.h) */
    bool wanted_known; /* a number that ends a job has no better one */
    uint32_t wanted;   /* and the true ones */

    uint64_t proven_element; /* kind 1: the element that the evidence is about; it may be another
                                one near by that takes fewer bytes to show */
    char lacking[ERROR_TEXT_MAX]; /* what is not known and how to get it; "": nothing */
};

struct fault_location_request {
    uint64_t step;            /* the wrong one */
    bool went_on;             /* its state is true and not finite, and the job went on */
    struct digest after;      /* the root that the journal names after it */
    const char *const *paths; /* the job's data */
    size_t path_count;
    const struct machine_options *machine;
    const char *cache;          /* a folder of its own for what is fetched */
    const char *const *sources; /* of replies about the trace, as accused.h takes them */
    size_t source_count;
    struct stop *stop;
};

/* Never fails: what cannot be found or made is lacking. Release the location. */
void fault_location_make(struct fault_location *location, struct bundle *bundle,
                         const struct fault_location_request *wish);
void fault_location_release(struct fault_location *location); /* a zero-filled one is allowed */

/* "element 77 of 'layers.0.weight'": text has room for FAULT_LOCATION_TEXT_MAX bytes. */
#define FAULT_LOCATION_TEXT_MAX 256
void fault_location_place(char text[FAULT_LOCATION_TEXT_MAX],
                          const struct fault_location *location);

/* A value for people, "0.125" of a float, "-7" of an integer; and its bits, "0x3e000000". */
#define FAULT_LOCATION_VALUE_MAX 32
void fault_location_value(char text[FAULT_LOCATION_VALUE_MAX], enum dtype dtype, uint32_t bits);
void fault_location_bits(char text[FAULT_LOCATION_VALUE_MAX], enum dtype dtype, uint32_t bits);

const char *fault_location_kind_name(enum evidence_kind kind); /* "element" */

#endif /* VERIFIER_AUDIT_FAULT_LOCATION_H */
