"""Makes asv's own pages show text as text, not as HTML: `asv publish` does so in every process that imports this module.

asv's scripts insert names, code, git tags, units and a machine's facts as HTML, so that a results file or a repository could
bring a script along. The copies of asv's scripts that are published are changed; asv itself and the files that they read stay
as they are.
"""

from __future__ import annotations

import importlib
import logging
import re
import sys
from pathlib import Path

import asv
from asv import main
from asv.config import Config
from asv.console import log
from asv.publishing import OutputPublisher
from asv.util import UserError

WWW = Path(asv.__file__).with_name("www")  # asv's pages before it publishes them
VERSION = "0.6"  # the versions of asv that these scripts belong to
# A script, the place in it where an expression is inserted as HTML, and the expression.
MARKUP = [
    ("asv_ui.js", """panel-heading">' + {} + '</div>""", "heading"),
    ("graphdisplay.js", """caret-right"/> ' + {} +""", "parts[j]"),
    ("graphdisplay.js", """'">' + {} + '</li>'""", "name"),
    ("graphdisplay.js", "details.push({});", "key + ': ' + val"),
    ("graphdisplay.js", """smaller;'>" + {} + "</div>""", "tag"),
    ("summarygrid.js", """benchmark-text">' + {} + '</div>'""", "display_name"),
    ("summarygrid.js", "'<h1>' + {} + '</h1>'", "group"),
    ("summarylist.js", "details.push({});", "key + ': ' + val"),
]
# A script, and the expression that a tooltip shows as HTML.
TOOLTIPS = [
    ("graphdisplay.js", "bm.code"),
    ("graphdisplay.js", "contents"),
    ("summarygrid.js", "bm.code"),
    ("summarygrid.js", "bm.name"),
]
# A benchmark's name is inserted into URLs and attributes as well, where these characters have a meaning.
UNSAFE = re.compile(r"""[\x00-\x1f\x7f"#%&/<>?\\]""")
# A link is an http URL or a relative one, and no character of it ends an attribute.
LINK = re.compile(r"""https?://[^\s"'<>`\\\x00-\x1f]*|[^\s"'<>`\\\x00-\x1f:&]*""", re.IGNORECASE)
LINKS = ("project_url", "show_commit_url")


class Text(OutputPublisher):
    """Changes asv's scripts before any other publisher writes; where it cannot, `asv publish` ends without a page."""

    name = "text"
    button_label = "Text"
    description = "Shows as text what is text"
    order = -1

    @classmethod
    def publish(cls, conf: Config, repo, benchmarks, graphs, revisions) -> None:
        """Called by asv, which writes index.json, without which nothing is shown, after all publishers."""
        for name in [name for name in benchmarks if not isinstance(name, str) or UNSAFE.search(name)]:
            del benchmarks[name]
            log.warning(f"asv's pages leave out the benchmark {name!r:.80}: its name contains characters of HTML or of URLs")
        for setting in LINKS:
            address = getattr(conf, setting)
            if not isinstance(address, str) or not LINK.fullmatch(address):
                setattr(conf, setting, "#")
                log.warning(f"asv's pages leave out {setting} of the configuration: {address!r:.80} is not an http URL")
        for name, place, expression in MARKUP:
            escaped = f'$("<span>").text({expression}).html()'  # as asv itself does elsewhere
            _change(Path(conf.html_dir, name), re.escape(place.format(expression)), place.format(escaped))
        for name, title in TOOLTIPS:
            _change(Path(conf.html_dir, name), rf"title: {re.escape(title)},\s+html: true", f"title: {title}, html: false")


def _change(script: Path, pattern: str, replacement: str) -> None:
    """Replace the one place in a script that matches. Raises UserError if there is none, or more than one."""
    text, count = re.subn(pattern, lambda _: replacement, script.read_text(encoding="utf-8"))
    if count != 1:
        raise UserError(
            f"{script.name} differs from that of asv {VERSION} and may show text as HTML: pip install 'asv=={VERSION}.*'"
        )
    script.write_text(text, encoding="utf-8")


def run() -> None:
    """Run asv in this process, so that no broken file ends it. Its warnings go to standard error, where progress is not."""
    importlib.import_module("convbench.asv.tolerant_results")
    warnings = logging.StreamHandler(sys.stderr)
    warnings.setLevel(logging.WARNING)
    logging.getLogger().addHandler(warnings)
    main.main()
