"""python -m benchmarks VERB REQUEST: what convbench asks of the measured environment, in JSON.

try: check and time a shape; prints one JSON event a line, the last of them {"error": ...} where it cannot be done.
"""

import json
import os
import sys


def main() -> None:
    verb, request = sys.argv[1], json.loads(sys.argv[2])
    if verb != "try":
        sys.exit(f"no verb is called {verb!r}; there is try")
    # Events alone go where they are read: whatever an implementation prints goes to standard error.
    events = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    try:
        from benchmarks import trial

        for event in trial.run(request):
            print(json.dumps(event), file=events, flush=True)
    except (ValueError, TypeError, LookupError, ImportError, MemoryError) as error:
        print(json.dumps({"error": str(error).strip("\"'") or type(error).__name__}), file=events, flush=True)


if __name__ == "__main__":
    main()
