"""Open a page in Chromium, and print two times in seconds since its navigation began: ``paint.py BROWSER URL TEXT``.

The first is the browser's own first paint; the second is when an element with exactly this text can be seen. This is a
separate program because Playwright's synchronous interface leaves an event loop in its thread.
"""

from __future__ import annotations

import sys

SINCE_START = "() => performance.now() / 1000"
FIRST_PAINT = "() => performance.getEntriesByName('first-contentful-paint')[0].startTime / 1000"


def main(browser: str, url: str, text: str) -> None:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        # Chromium's sandbox needs privileges that a container does not have. This Chromium opens only our page.
        chromium = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        page = chromium.new_page()
        page.goto(url)
        page.get_by_text(text, exact=True).wait_for()
        seen = page.evaluate(SINCE_START)
        print(page.evaluate(FIRST_PAINT), seen)
        chromium.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
