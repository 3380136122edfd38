/* fuzz_api.c - any bytes as a program of calls: no input makes libgrad crash, hang, leak or fail without a message. */
#include "vm.h"

#define MOST_STEPS 200

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
        vm m = {.at = data, .end = data + bytes, .steps = MOST_STEPS, .nowhere = fopen("/dev/null", "w")};
        FUZZ_CHECK(m.nowhere, "/dev/null cannot be opened");
        m.now = m.sides;
        side_open(&m.sides[0]);
        if (flag(&m))
                side_open(&m.sides[1]);
        while (m.at < m.end && m.steps > 0)
                step(&m);
        for (int i = 0; i < 2; i++)
                if (m.sides[i].ctx)
                        side_close(&m, &m.sides[i]);
        FUZZ_CHECK(m.lent == 0, "%d release functions have not run", m.lent);
        files_forget();
        fclose(m.nowhere);
        return 0;
}
