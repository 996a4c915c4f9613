/*
 * job_facts.h - what a job is, in the words of who trains: sizes, batches, the optimizer.
 *
 * All of it is read from the tape and its constants, so nobody can claim it falsely. A program that
 * is none of ours has the facts that can be found; the others are zero.
 */
#ifndef PROOFS_JOB_JOB_FACTS_H
#define PROOFS_JOB_JOB_FACTS_H

#include <jansson.h>

#include "proofs/job/job.h"

#define FACTS_RATES 5
struct job_facts {
    bool trains;         /* it has a loss; else each step makes states of states */
    uint64_t parameters; /* numbers that are trained */
    uint64_t numbers;    /* of the states of a job that has no loss */
    uint64_t frozen;     /* numbers of weights that no step changes */
    uint64_t batch;      /* of a micro-batch: sequences, or samples */
    uint64_t length;     /* tokens of a sequence; 0: samples */
    uint64_t micro_batches;
    uint64_t tokens;  /* that all steps learn from; 0: samples */
    uint64_t samples; /* likewise */
    uint64_t rows;    /* of packed data; 0: it is none */
    bool pairs;       /* two rows are drawn together, and two models score them */
    bool in_order;    /* rows are read as they lie, once at most; else each epoch has all of them */
    uint64_t epochs;  /* whole ones */
    uint64_t rows_of_next; /* that all steps take of the epoch after them */
    uint64_t bits;         /* of quantized numbers */
    uint64_t block;
    const char *optimizer; /* "adamw", "sgd", "lion", "muon"; NULL: none */
    double rate_first;     /* learning rates of the job's steps */
    double rate_most;
    double rate_last;
    double rates[FACTS_RATES]; /* after equal shares of the steps, first and last with them */
    double factor_least;       /* tensors learn so many times as fast as the rates say */
    double factor_most;
    uint64_t rank;   /* of adapters; 0: there are none */
    double adapters; /* what they count: alpha / rank, mostly */
    uint64_t whole;  /* parameters that are no part of an adapter, beside adapters */
    bool masked;     /* a mask says which tokens count */
    double beta1;
    double beta2;
    double epsilon;
    double momentum;
    double decay;
    double clip;
    double dropout;
};

void job_facts(struct job_facts *facts, const struct job *job);

/*
 * How many checkpoints a run keeps where nobody says: 0, all of them, up to JOB_KEPT_BYTES in all;
 * of larger states as many as that holds, and three at least.
 */
#define JOB_KEPT_BYTES (UINT64_C(16) << 30)
uint64_t job_keep_default(const struct job *job);

/* The most bytes of the checkpoints and the journal of a run that keeps the newest `keep` (0: all)
 * and those of every `every`-th segment (0: none). */
uint64_t job_bundle_bytes(const struct job *job, uint64_t keep, uint64_t every);
uint64_t job_checkpoint_bytes(const struct job *job); /* of one, as a file */

/* The job, and the facts of it, for people and scripts; a new reference, NULL without memory. */
json_t *job_json(const struct job *job);

#endif /* PROOFS_JOB_JOB_FACTS_H */
