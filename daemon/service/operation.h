/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_DAEMON_SERVICE_OPERATION_H
#define IPCLAB_DAEMON_SERVICE_OPERATION_H

/* Operations of the main loop that may take long. */
enum service_operation {
        OPERATION_OTHER,
        OPERATION_SUBMIT,
        OPERATION_CANCEL,
        OPERATION_DELETE,
        OPERATION_AGAIN, /* extend and retry */
        OPERATION_BASELINE,
        OPERATION_IMPORT,
        OPERATION_EXPORTED,
        OPERATION_LOOK,   /* at the machine */
        OPERATION_DECIDE, /* whether an experiment needs more repetitions */
        OPERATION_RUN_START,
        OPERATION_RUN_END,
        OPERATION_SAMPLES,
        OPERATION_HOUSEKEEPING,
        OPERATION_COUNT,
};

const char *service_operation_name(enum service_operation operation);

#endif
