# SPDX-License-Identifier: MIT
"""What ends with a sanitizer's finding has the status by which tests/bench/driver.c recognizes it."""

import re
import subprocess

import pytest
from ipclabtest import SOURCE

FAULTS = {
    "undefined": "int main(int argc, char **argv) { volatile int n = 0x7fffffff; (void) argv; n += argc; return 0; }",
    "address": "int main(int argc, char **argv) { volatile char a[1] = {0}; (void) argv; return a[argc]; }",
    "leak": "#include <stdlib.h>\nint main(void) { *(void *volatile *) &(void *){0} = malloc(9); return 0; }",
    "thread": """
#include <pthread.h>
static int n;
static void *count(void *p) { n++; return p; }
int main(void) {
        pthread_t a, b;
        return pthread_create(&a, 0, count, 0) || pthread_create(&b, 0, count, 0) || pthread_join(a, 0) ||
               pthread_join(b, 0);
}
""",
}
SANITIZERS = {"undefined": "address,undefined", "leak": "address"}


@pytest.mark.parametrize("fault", FAULTS)
def test_status_of_a_finding(fault, tmp_path):
    (found,) = re.findall(r"^#define FOUND (\d+)", (SOURCE / "tests/bench/driver.c").read_text(), re.MULTILINE)
    program, code = tmp_path / "program", tmp_path / "program.c"
    code.write_text(FAULTS[fault])
    subprocess.run(["gcc", f"-fsanitize={SANITIZERS.get(fault, fault)}", "-o", program, code], check=True)
    command = ["bash", "-c", '. "$1"; set +e; "$2"', "bash", SOURCE / "tools/lib.sh", program]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == int(found), ended
