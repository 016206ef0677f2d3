/* Preloaded library: PyOS_InterruptOccurred reports an interrupt at its nth call only. A Python
   with a shared libpython calls this function in place of its own. */

static unsigned long calls, due;

/* Report an interrupt at the nth call from now on. */
void interrupts_plan(unsigned long nth);
void interrupts_plan(unsigned long nth)
{
    calls = 0;
    due = nth;
}

/* Return the number of calls since the plan was set. */
unsigned long interrupts_seen(void);
unsigned long interrupts_seen(void)
{
    return calls;
}

int PyOS_InterruptOccurred(void);
int PyOS_InterruptOccurred(void)
{
    return ++calls == due;
}
