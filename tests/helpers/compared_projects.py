"""A project with stored results of several commits, to be compared."""

import json
import subprocess

import compressed


def numbered(n):
    return f"{n:08d}".ljust(40, "a")


def git(folder, *arguments):
    names = ["-c", "user.name=A", "-c", "user.email=a@b.c"]
    done = subprocess.run(["git", "-C", folder, *names, *arguments], check=True, capture_output=True, text=True)
    return done.stdout.strip()


class Project:
    """A git repository of two commits and a folder of results."""

    def __init__(self, folder):
        self.folder = folder
        (folder / "asv.conf.json").write_text('{"version": 1, "project": "other", "repo": "."}')
        git(folder, "init", "--quiet")
        git(folder, "add", ".")
        for message in ("first", "second"):
            git(folder, "commit", "--quiet", "--allow-empty", "--message", message)
        self.base, self.head = git(folder, "rev-parse", "HEAD~1"), git(folder, "rev-parse", "HEAD")
        self.names = {}

    def store(self, commit, rows, environment="env", box="box", side=(), unit="seconds"):
        """One results file; rows as sort() makes them, every time with five samples around it."""
        content = {
            "commit_hash": commit,
            "env_name": environment,
            "date": 0,
            "params": {"machine": box},
            "result_columns": [
                *("result", "params", "version", "started_at", "stats_q_25", "stats_q_75"),
                "stats_repeat",
                "samples",
            ],
            "results": {name: self.row(*row) for name, row in rows.items()},
        }
        folder = self.folder / "results" / box
        folder.mkdir(parents=True, exist_ok=True)
        self.names |= {
            name: {"params": [list(times)], "param_names": ["n"], "version": version, "unit": unit}
            for name, (times, version, *_) in rows.items()
        }
        (folder.parent / "benchmarks.json").write_text(json.dumps({**self.names, "version": 2}))
        path = folder / f"{commit[:8]}-{environment}.json"
        path.write_text(json.dumps(content))
        lines = [json.dumps({"benchmark": "lists.time_sort", **line}) for line in side]
        compressed.write_text(path.with_suffix(".cells.jsonl.gz"), "\n".join(lines))
        return path

    @staticmethod
    def row(times, version, samples, repeat, started):
        values = list(times.values())
        timed = [value is not None and value == value for value in values]
        quartiles = [[value * by if ok else None for value, ok in zip(values, timed, strict=True)] for by in (0.99, 1.01)]
        kept = [
            [value * (1 + 0.01 * k) for k in range(-2, 3)] if ok else None for value, ok in zip(values, timed, strict=True)
        ]
        row = [values, [list(times)], version, started, *quartiles, [repeat if ok else None for ok in timed]]
        return [*row, kept] if samples else row
