"""The flows Prefect runs, and the command line that starts them.

What is set here must be set before Prefect or Great Expectations are imported: neither reports home, and Prefect keeps no result.
The environment's own values win.
"""

import os

_DEFAULTS = {
    "DO_NOT_TRACK": "1",
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "PREFECT_RESULTS_PERSIST_BY_DEFAULT": "false",
    "PREFECT_RESULTS_DEFAULT_SERIALIZER": "json",
    "GX_ANALYTICS_ENABLED": "false",
}
for _name, _value in _DEFAULTS.items():
    os.environ.setdefault(_name, _value)
