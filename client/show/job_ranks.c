/* job_ranks.c - see job_ranks.h. */
#include "client/show/job_ranks.h"

#include <inttypes.h>

void job_ranks_show(struct sheet *sheet, const struct rank_wire *wire, uint32_t ranks)
{
    const double each =
        wire->elements == 0 ? 0.0 : (double)wire->bytes / (double)wire->elements / (double)ranks;

    sheet_print(sheet,
                "%u ranks      share %u groups; a step sends %.2f MiB, which is %.3g bytes a "
                "parameter and rank\n",
                ranks, wire->groups, (double)wire->bytes / 1048576.0, each);
    sheet_print(sheet, "           hold %.2f MiB of the states in shards, and all others whole\n",
                (double)wire->cut / 1048576.0);
    if (wire->spare > 0) {
        sheet_print(sheet,
                    "           %u of them are spare: they have no group, and hold shards like the "
                    "others\n",
                    wire->spare);
    }
    sheet_set(sheet, "ranks",
              json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:f}", "ranks", (json_int_t)ranks,
                        "groups", (json_int_t)wire->groups, "spare", (json_int_t)wire->spare,
                        "subtrees", (json_int_t)wire->subtrees, "parameters",
                        (json_int_t)wire->elements, "shard_bytes", (json_int_t)wire->cut,
                        "wire_bytes", (json_int_t)wire->bytes, "bytes_each", each));
}
