/* keep_metrics.h - what a keeper did, for Prometheus. */
#ifndef CLIENT_KEEPER_KEEP_METRICS_H
#define CLIENT_KEEPER_KEEP_METRICS_H

#include "base/sheet/sheet.h"
#include "client/keeper/keeper.h"

void keep_metrics_show(struct sheet *sheet, const struct keeper_counts *counts,
                       const struct job_view *view);

#endif /* CLIENT_KEEPER_KEEP_METRICS_H */
