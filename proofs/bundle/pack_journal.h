/*
 * pack_journal.h - the journal of a bundle as bytes. Only bundle_pack.c needs it.
 *
 *     OFFSET  SIZE  MEANING
 *     0       8     "LSJRNL" 0x00 0x02
 *     8       32    id of the job
 *     40      1     1: the bundle is encrypted; 0: it is not
 *     41      8     n, number of steps, from step 0 on without a gap
 *     49      8     the step that diverged, or 2^64-1
 *     57      4     d, number of devices
 *     61      8     s, number of segments that were signed
 *     69      0/80  encrypted: the job's id as an encrypted payload (context "journal/key")
 *             ...   each device: size (2), name; encrypted: payload (context "journal/device/I")
 *             76n   each step: root (32), bits of loss, held-out loss and accuracy (4 each),
 *                   nanoseconds (8), nanoseconds of committing (8), microjoules or 2^63-1 (8),
 *                   device (8)
 *             124n  encrypted: root (32), the same 44 bytes as a payload ("journal/step/N")
 *             ...   each segment: number (8), root (32), size (2), signature
 */
#ifndef PROOFS_BUNDLE_PACK_JOURNAL_H
#define PROOFS_BUNDLE_PACK_JOURNAL_H

#include "proofs/bundle/bundle_parts.h"
#include "proofs/format/archive.h"

#define PACK_JOURNAL_HEAD 69
#define PACK_KEY_BOX      (DIGEST_SIZE + ENCRYPTION_BOX_EXTRA)

/* The size of the bytes, and the bytes. Both must see one snapshot: the caller has begun a
 * transaction. */
MUST_CHECK enum status pack_journal_size(uint64_t *size, struct bundle *bundle,
                                         struct error *error);
MUST_CHECK enum status pack_journal_write(struct archive_writer *archive, struct bundle *bundle,
                                          struct error *error);

/* Fills the empty journal of bundle, whose job is known, from an entry of `size` bytes. Sets
 * bundle->encrypted; an encrypted bundle is locked until it gets its key. */
MUST_CHECK enum status pack_journal_read(struct bundle *bundle, struct archive_reader *archive,
                                         uint64_t size, struct error *error);

#endif /* PROOFS_BUNDLE_PACK_JOURNAL_H */
