"""How long hypothesis looks: little while developing, the same each time in CI, without end for vopr.

`quick` is for the mutants: the same each time, and no search for the shortest failure.
"""

import os
import signal

from hypothesis import HealthCheck, Phase, settings

SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
settings.register_profile(
    "dev", max_examples=50, deadline=None, database=None, report_multiple_bugs=False, suppress_health_check=SLOW
)
settings.register_profile("ci", settings.get_profile("dev"), derandomize=True)
settings.register_profile(
    "quick", settings.get_profile("dev"), derandomize=True, phases=[Phase.explicit, Phase.generate]
)
settings.register_profile("vopr", settings.get_profile("dev"), max_examples=10**9)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE") or ("ci" if os.environ.get("CI") else "dev"))

if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:  # under nohup; children do not inherit a handler
    signal.signal(signal.SIGHUP, lambda *_: None)
