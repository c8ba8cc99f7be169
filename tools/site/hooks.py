"""Turns links to files outside docs/ into links to the repository."""

import os
import posixpath
import re

LINK = re.compile(r"\]\((\.\.?/[^)#]*)(#[^)]*)?\)")


def on_page_markdown(markdown, page, config, files):
    root = os.path.dirname(config["docs_dir"])

    def target(match):
        path = posixpath.normpath(posixpath.join("docs", posixpath.dirname(page.file.src_path), match[1]))
        if path.startswith("docs/"):
            return match[0]
        kind = "tree" if os.path.isdir(os.path.join(root, path)) else "blob"
        return "](%s/%s/main/%s%s)" % (config["extra"]["repository"], kind, path, match[2] or "")

    return LINK.sub(target, markdown)
