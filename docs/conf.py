"""The documentation's site, which `make docs` builds: Sphinx with MyST, every warning an error.

MyST reads the pages as CommonMark, as they are shown where the repository is hosted; links and anchors are the same in
both. Nothing is fetched, neither by the build nor by the browser that shows it.
"""

from dispatch_operator import __version__

project = "DispatchStart operator"
version = release = __version__
root_doc = "docs/index"
# All pages that people read, so that a link between any two of them leads somewhere.
include_patterns = ["*.md", "docs/**.md", "tests/README.md"]
extensions = ["myst_parser", "sphinx_copybutton"]
nitpicky = True

myst_heading_anchors = 6
# Blocks hold what a shell, helm, or a person reads, of which no lexer knows the rest.
suppress_warnings = ["misc.highlighting_failure"]

html_theme = "furo"
html_title = project
html_show_sourcelink = False
html_show_copyright = False
html_show_sphinx = False
html_extra_path = ["site"]

# The prompt and what was printed are not copied with a command.
copybutton_prompt_text = "$ "
