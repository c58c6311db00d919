/*
 * The figures of a report. Each returns false, with nothing initialised, when the records hold
 * nothing for it. Those of a group come in parts of so many cases as can be read, from part 0 on
 * until there is none.
 */
#ifndef REPORT_FIGURES_H
#define REPORT_FIGURES_H

#include "record/changes.h"
#include "report/groups.h"
#include "report/history.h"
#include "report/plot.h"

/* Arithmetic intensity against performance under the measured ceilings. Never for an
   emulated device. */
bool figure_roofline(const struct device_group *g, unsigned part, struct plot *p);
/* Achieved bandwidth per case, cold and hot, with the measured ceilings; never for an
   emulated device. */
bool figure_bandwidth(const struct device_group *g, unsigned part, struct plot *p);
/* Wall time per case of an emulated device, labelled so; only for one. */
bool figure_emulated(const struct device_group *g, unsigned part, struct plot *p);
/* Every sample of every case, as deviation from the median; flagged ones as crosses. */
bool figure_samples(const struct device_group *g, unsigned part, struct plot *p);
/* Effects of a comparison with their intervals. */
bool figure_forest(const struct comparison *c, const struct regress_options *opt, unsigned part,
                   struct plot *p);
/* Medians over the runs, relative to the first, of the cases that moved most. */
bool figure_history(const struct history *h, struct plot *p);

#endif
