/* SPDX-License-Identifier: MIT */

#include "api/handle/render/kinds.h"

#include "api/handle/render/render.h"
#include "schema/util.h"

const char *kinds_get(const struct kinds *k, int64_t run_id) {
        return k->run_id == run_id ? k->kind : NULL;
}

int kinds_read(struct kinds *k, struct service *service, int64_t run_id, struct refusal *r) {
        _cleanup_(run_record_deinit) struct run_record run = {0};
        struct sample_noise noise = {0};
        int n = service_run(service, run_id, &run, r);
        if (n >= 0)
                n = sample_noise_read(&noise, &run);
        if (n < 0)
                return n;
        kinds_deinit(k);
        *k = (struct kinds){.run_id = run_id, .kind = render_latency_kind(run.point_json), .noise = noise};
        k->point_json = util_steal(&run.point_json);
        return n;
}

void kinds_deinit(struct kinds *k) {
        free(k->point_json);
        sample_noise_deinit(&k->noise);
        *k = (struct kinds){0};
}
