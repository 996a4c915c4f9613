/*
 * status.h - how a function says that it could not do its job.
 *
 * A proof that is wrong is not an error: the check did its job and the answer is no. That answer
 * is a verdict. Keeping the two apart means that a full disk can never be read as "the solver
 * cheated".
 */
#ifndef BASE_STATUS_H
#define BASE_STATUS_H

#define MUST_CHECK __attribute__((warn_unused_result))

enum status {
    STATUS_OK = 0,
    STATUS_USAGE,       /* the caller of the program asked for something that makes no sense */
    STATUS_REFUSED,     /* understood, and not allowed (a rule, a revert, a lock) */
    STATUS_NOT_FOUND,   /* the thing named does not exist */
    STATUS_BAD_FORMAT,  /* bytes from outside do not parse */
    STATUS_OVER_LIMIT,  /* a documented maximum was exceeded */
    STATUS_NO_MEMORY,   /* memory, on the host or a device, ran out */
    STATUS_IO,          /* the operating system refused */
    STATUS_GONE,        /* a file that is open is no longer the one at its path; waiting is vain */
    STATUS_UNREACHABLE, /* an endpoint did not answer, or not in time */
    STATUS_DEVICE,      /* an accelerator is missing, refused or failed */
    STATUS_STOPPED,     /* the user or the system asked for a clean stop */
    STATUS_RANK_LOST,   /* another rank of a training is gone, silent or elsewhere */
};

/*
 * Calls that may fail, one after another. TRY leaves the function with the status of a call that
 * failed. TRY_OUT keeps it in the variable `status` and goes to the label `out`, where the function
 * releases what it holds.
 */
#define TRY(call)                                                                                  \
    do {                                                                                           \
        enum status tried_ = (call);                                                               \
        if (tried_ != STATUS_OK) {                                                                 \
            return tried_;                                                                         \
        }                                                                                          \
    } while (0)
#define TRY_OUT(call)                                                                              \
    do {                                                                                           \
        status = (call);                                                                           \
        if (status != STATUS_OK) {                                                                 \
            goto out;                                                                              \
        }                                                                                          \
    } while (0)

/* Zero is the refusing answer, so a verdict that was never set rejects. */
enum verdict {
    VERDICT_INVALID = 0,
    VERDICT_VALID = 1,
};

#endif /* BASE_STATUS_H */
