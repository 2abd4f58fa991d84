/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_DAEMON_ANALYSIS_ASKED_H
#define IPCLAB_DAEMON_ANALYSIS_ASKED_H

/*
 * Which questions of the study whose preset was posted an experiment still has. A preset's fields may be overridden in
 * the posted spec: what was measured then may be another thing, to which the published answer does not apply. Called by
 * studies.c.
 */

#include "schema/spec/spec.h"

struct asked {
        struct spec *study;        /* as the study's own preset has it */
        struct spec *preset;       /* that was posted: its -quick form requires less */
        const struct spec *posted; /* of the experiment */
        unsigned met;              /* the axes that have a meaning for one of them, as bits */
        const char *setting;       /* in which the experiment is unlike the preset, and which is no axis; NULL: none */
};

/* Both names are those of presets; posted NULL: the preset as it is. -ENOMEM; -EINVAL: a preset is none. */
int asked_init(struct asked *a, const char *preset, const char *study, const struct spec *posted);
void asked_deinit(struct asked *a);

/* Whether the study has such a point: an experiment may have others beside. */
bool asked_point(const struct asked *a, const struct point *p);

/* Whether the experiment has a value of the axis that the preset has; also where the preset has it not. */
bool asked_value(const struct asked *a, enum axis_name axis, const struct point *p);
/* Whether the preset has it: its -quick form has not all of the study's. */
bool asked_by_preset(const struct asked *a, enum axis_name axis, const struct point *p);
/* Whether it has one of the study's values of the axis; all that the preset has; and none beside the study's. */
bool asked_any(const struct asked *a, enum axis_name axis);
bool asked_all(const struct asked *a, enum axis_name axis);
bool asked_alone(const struct asked *a, enum axis_name axis);

#endif
