"""Hooks of the documentation site: links to files outside docs/ become links to the repository, and names in tables can break."""

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


CELL = re.compile(r"<td[^>]*>.*?</td>", re.DOTALL)
CODE = re.compile(r"<code>([^<]*)</code>")
BREAK = re.compile(r"[_.](?=\w)|[a-z](?=[A-Z])")


def on_post_page(output, page, config):
    """Lets names in tables break between their words, so that tables are not too wide. The search index has whole names."""

    def code(match):
        return "<code>%s</code>" % BREAK.sub(lambda at: at[0] + "<wbr>", match[1])

    return CELL.sub(lambda cell: CODE.sub(code, cell[0]), output)
