"""The page of `gangway explain --format=html` in a browser: no errors, pictures drawn, links that lead somewhere."""

import html
import json
import pathlib
import re
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).parents[2]
GANGWAY = ROOT / "build" / "gangway"
BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)

# Looks at the page from inside; the report is read from the document that the browser prints.
PROBE = """
<script>
const errors = [];
window.addEventListener("error", (event) => errors.push(event.message));
window.addEventListener("load", () => {
  const drawn = [...document.querySelectorAll("svg")].map((svg) => {
    const marks = [...svg.querySelectorAll("rect, text")].map((mark) => mark.getBoundingClientRect());
    return {label: svg.getAttribute("aria-label"), marks: marks.filter((box) => box.width && box.height).length};
  });
  const links = [...document.querySelectorAll("a")].map((link) => {
    link.click();
    const target = document.querySelector(":target");
    return {href: link.getAttribute("href"), reached: target !== null && "#" + target.id === location.hash};
  });
  const opened = [...document.querySelectorAll("details")].map((item) => {
    item.open = true;
    return item.lastElementChild.getBoundingClientRect().height > 0;
  });
  const outside = performance.getEntriesByType("resource").map((entry) => entry.name);
  const wide = document.documentElement.scrollWidth > window.innerWidth;
  const report = document.createElement("pre");
  report.id = "report";
  report.textContent = JSON.stringify({errors, drawn, links, opened, outside, wide});
  document.body.append(report);
});
</script>
"""


@pytest.mark.skipif(not GANGWAY.exists(), reason="build/gangway is not built")
@pytest.mark.skipif(BROWSER is None, reason="no chromium: apt-get install chromium")
def test_the_page_in_a_browser(tmp_path):
    page = tmp_path / "page.html"
    program = pathlib.Path(__file__).with_name("gathers.hlo")
    subprocess.run([GANGWAY, "explain", "--format=html", "--min-tensor-bytes=1", "-o", page, program], check=True)
    page.write_text(page.read_text().replace("</head>", PROBE + "</head>"))
    command = [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path}/profile"]
    shown = subprocess.run([*command, "--dump-dom", page.as_uri()], capture_output=True, text=True, timeout=120)
    found = re.search(r'<pre id="report">(.*?)</pre>', shown.stdout, re.DOTALL)
    assert found, shown.stderr[-2000:]
    report = json.loads(html.unescape(found[1]))
    assert report["errors"] == [] and report["outside"] == [] and not report["wide"]
    pictures = {picture["label"]: picture["marks"] for picture in report["drawn"]}
    assert pictures["8 devices"] == 16  # a square and a number each
    assert len(pictures) > 1 and all(marks > 0 for marks in pictures.values())
    assert len(report["links"]) >= 3 and all(link["reached"] for link in report["links"]), report["links"]
    assert report["opened"] and all(report["opened"])
